package merging

import (
	"context"

	"ralph"
	"ralph/loop/check"
	"ralph/loop/gate"
	"ralph/store"
)

// again runs refusing commands once more on the same commit, and stores and returns the results that count.
func (m *Merger) again(
	ctx context.Context, commit, tree string, list []check.Outcome, compare func(check.Outcome) ralph.Check,
) ([]check.Outcome, error) {
	var ran bool
	list, err := m.Check.Again(list, compare, func(commands []string) ([]check.Outcome, error) {
		ran = true
		return m.run(ctx, commit, tree, commands)
	})
	if err != nil || !ran || ctx.Err() != nil {
		return list, err
	}
	return list, m.put(ctx, tree, list)
}

// twice runs commands once more if they failed with tests that passed in was, and stores and returns the joined
// results.
func (m *Merger) twice(
	ctx context.Context, commit, tree string, list []check.Outcome, was []gate.Run,
) ([]check.Outcome, error) {
	second, err := m.again(ctx, commit, tree, list, func(o check.Outcome) ralph.Check {
		o.Check.Passed = !gate.Doubtful(gate.RunOf(was, o.Check.Command), runs([]check.Outcome{o})[0])
		return o.Check
	})
	if err != nil || ctx.Err() != nil {
		return list, err
	}
	joined := make([]check.Outcome, len(list))
	for i := range list {
		joined[i] = check.Either(list[i], second[i])
	}
	return joined, m.put(ctx, tree, joined)
}

// put stores results of commands on a tree.
func (m *Merger) put(ctx context.Context, tree string, list []check.Outcome) error {
	return m.Store.Tx(ctx, func(tx *store.Tx) error {
		for _, o := range list {
			if err := tx.PutVerification(m.Pool.ResultKey(tree), o.Check.Command, o); err != nil {
				return err
			}
		}
		return nil
	})
}

// asIs returns the check of a result, without a comparison.
func asIs(o check.Outcome) ralph.Check { return o.Check }

// asChecks returns the checks of results, without a comparison.
func asChecks(list []check.Outcome) (checks []ralph.Check) {
	for _, o := range list {
		checks = append(checks, o.Check)
	}
	return checks
}

// noteFlaky records tests that were flaky in the queue with the session of the first change that they checked. They are
// counted and listed with those of its done.
func (m *Merger) noteFlaky(ctx context.Context, c ralph.Change, checks []ralph.Check) error {
	if c.SessionID == "" || len(ralph.FlakyOf(checks)) == 0 {
		return nil
	}
	return m.Store.Tx(ctx, func(tx *store.Tx) error { return tx.NoteFlaky(c.SessionID, checks) })
}
