// Package replay decides on sessions again, by today's rules and from the facts that were
// recorded with them. It changes nothing.
package replay

import (
	"context"
	"errors"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// A Replay compares today's decision on a session with the recorded one.
type Replay struct {
	SessionID   string         `json:"session_id"`
	TaskID      int64          `json:"task_id"`
	Then        Verdict        `json:"then"`
	Now         Verdict        `json:"now"`
	Differences []string       `json:"differences"` // empty if both are the same
	Steps       []signals.Step `json:"steps"`       // how today's rules decide
}

// A Verdict is the resulting status of the task.
type Verdict struct {
	Status ralph.Status `json:"status"`
	Reason string       `json:"reason"`
}

// A Comparison is the effect of changed rules on the whole history.
type Comparison struct {
	Sessions     int      `json:"sessions"` // decided again
	WithoutFacts int      `json:"without_facts"`
	Different    []Replay `json:"different"`
}

// Session decides on one session. The error is [store.ErrNoFacts] if it was decided before ralph
// stored the facts of decisions.
func Session(tx *store.Tx, s ralph.Session, rules signals.Rules) (Replay, error) {
	f, then, err := tx.Replayed(s)
	if err != nil {
		return Replay{}, err
	}
	f.Rules = rules
	now := signals.Decide(f)
	return Replay{
		SessionID: s.ID, TaskID: s.TaskID,
		Then: Verdict{then.Status, then.StatusReason}, Now: Verdict{now.Status, now.StatusReason},
		Differences: append([]string{}, signals.Differences(then, now)...), Steps: signals.Explain(f, now),
	}, nil
}

// page is the number of sessions read at a time.
const page = 200

// All decides again on every session that was decided.
func All(ctx context.Context, db *store.DB, rules signals.Rules) (Comparison, error) {
	all := Comparison{Different: []Replay{}}
	var last ralph.Session
	for {
		var list []ralph.Session
		err := db.View(ctx, func(tx *store.Tx) (err error) {
			if list, err = tx.Decided(last, page); err != nil {
				return err
			}
			for _, s := range list {
				if err := all.add(tx, s, rules); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(list) < page {
			return all, err
		}
		last = list[len(list)-1]
	}
}

func (c *Comparison) add(tx *store.Tx, s ralph.Session, rules signals.Rules) error {
	r, err := Session(tx, s, rules)
	switch {
	case errors.Is(err, store.ErrNoFacts):
		c.WithoutFacts++
		return nil
	case err != nil:
		return err
	}
	c.Sessions++
	if len(r.Differences) > 0 {
		c.Different = append(c.Different, r)
	}
	return nil
}
