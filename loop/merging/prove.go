package merging

import (
	"context"
	"slices"
	"time"

	"ralph"
	"ralph/loop/check"
	"ralph/loop/gate"
	"ralph/store"
)

// proveAuto is how long a check may take at most for an automatic proof.
const proveAuto = time.Minute

// prove runs the tests of merged changes on the old code too. It stops for the next merge, and continues when the queue
// is quiet again.
func (m *Merger) prove(ctx context.Context) (gaveWay bool, err error) {
	if m.Check.Proof == check.ProofOff || m.Check.Proof == "" {
		return false, nil
	}
	list, err := store.Read(ctx, m.Store, (*store.Tx).Unproved)
	if err != nil || len(list) == 0 {
		return false, err
	}
	within, stop := context.WithCancel(ctx)
	defer stop()
	go m.watch(within, nil, func() bool {
		queued, err := store.Read(within, m.Store, (*store.Tx).QueuedChanges)
		if err == nil && len(queued) > 0 {
			stop()
		}
		return false
	})
	for _, c := range list {
		p, err := m.proof(within, c)
		if within.Err() != nil {
			return ctx.Err() == nil, ctx.Err()
		}
		if err != nil {
			m.Log.Warn("cannot prove the tests of a change", "task", c.TaskID, "error", err)
			p = &ralph.Proof{Unknown: err.Error()}
		}
		if err := m.Store.Tx(ctx, func(tx *store.Tx) error { return tx.SetProof(c, *p) }); err != nil {
			return false, err
		}
	}
	return false, nil
}

// proof proves one change: by its task's own commands on the commit that its session began with, and by its tests on
// the target before its merge.
func (m *Merger) proof(ctx context.Context, c ralph.Change) (*ralph.Proof, error) {
	commands, _, err := m.commands(ctx, []ralph.Change{c})
	if err != nil {
		return nil, err
	}
	if len(commands.All()) == 0 {
		return &ralph.Proof{Unchecked: true}, nil
	}
	if m.Travels() && !(m.Tree.Has(ctx, c.To) && m.Tree.Has(ctx, c.Base)) {
		return &ralph.Proof{Unknown: "it was merged on another machine, which alone has its commits"}, nil
	}
	if c.Commit == "" {
		return &ralph.Proof{Unknown: "the target had its change already"}, nil
	}
	p := &ralph.Proof{}
	if p.Proved, err = m.provedByOwn(ctx, c, commands); err != nil || ctx.Err() != nil {
		return nil, err
	}
	before, err := m.Tree.Ref(ctx, c.Before())
	if err != nil {
		return nil, err
	}
	tree, err := m.Tree.Whole(ctx, before)
	if err != nil {
		return nil, err
	}
	merged, err := m.Tree.Whole(ctx, c.Commit)
	if err != nil {
		return nil, err
	}
	pairs, err := m.Tree.Pairs(ctx, tree, merged)
	if err != nil {
		return nil, err
	}
	files, _ := m.ours(pairs)
	r := gate.Results{Files: m.gateRules(commands).Changes(files, m.reads(ctx, before))}
	if p.Tests = len(r.Files) > 0; !p.Tests {
		return p, nil
	}
	now, err := m.checked(ctx, c, merged, commands.All())
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	if now == nil || m.tooLong(now) {
		if len(p.Proved) == 0 {
			p.Unknown = "a check takes too long to look for it (verify.proof)"
		}
		return p, nil
	}
	was, _, err := m.stored(ctx, tree, commands.All())
	if err != nil {
		return nil, err
	}
	r.Now, r.Target = runs(now), runs(was)
	r.New, err = m.swapped(ctx, before, c.Commit, gate.New(r.Files), commands.Shared, r.Target)
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	proved, idle := gate.Prove(r)
	numb, err := m.numb(ctx, m.gateRules(commands), c.Commit, r.Files, commands.Shared, proved)
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	p.Numb = len(numb)
	p.Proved = append(p.Proved, slices.DeleteFunc(proved, func(t string) bool { return slices.Contains(numb, t) })...)
	p.Idle = idle
	return p, nil
}

// provedByOwn returns the task's own commands that fail on the commit where its session began, and pass on the merge.
func (m *Merger) provedByOwn(
	ctx context.Context, c ralph.Change, commands check.Commands,
) (proved []string, err error) {
	if len(commands.Own) == 0 {
		return nil, nil
	}
	after, err := m.Tree.Whole(ctx, c.To)
	if err != nil {
		return nil, err
	}
	base, err := m.Tree.Whole(ctx, c.Base)
	if err != nil {
		return nil, err
	}
	for _, command := range commands.Own {
		now, passed, err := m.stored(ctx, after, []string{command})
		if err != nil {
			return nil, err
		}
		if !passed || failed(now) {
			continue
		}
		was, known, err := m.stored(ctx, base, []string{command})
		if err == nil && !known && !m.tooLong(now) {
			if was, err = m.run(ctx, c.Base, base, commands.All()); err == nil {
				was, _, err = m.stored(ctx, base, []string{command})
			}
		}
		if err != nil || ctx.Err() != nil {
			return nil, err
		}
		if failed(was) {
			proved = append(proved, "`"+command+"`")
		}
	}
	return proved, nil
}

// checked returns the results of commands on the commit that merged a change alone. It takes stored results or, if the
// change was verified together with others, those of a new check. They are nil if that would take too long.
func (m *Merger) checked(ctx context.Context, c ralph.Change, tree string, commands []string) ([]check.Outcome, error) {
	list, all, err := m.stored(ctx, tree, commands)
	if err != nil || all {
		return list, err
	}
	together, err := m.Tree.Whole(ctx, c.To)
	if err != nil {
		return nil, err
	}
	list, all, err = m.stored(ctx, together, commands)
	if err != nil || m.Check.Proof == check.ProofAuto && (!all || m.tooLong(list)) {
		return nil, err
	}
	return m.run(ctx, c.Commit, tree, commands)
}

// tooLong reports whether a check takes too long to be repeated for an optional proof.
func (m *Merger) tooLong(list []check.Outcome) bool {
	var took float64
	for _, o := range list {
		took += o.Check.Seconds
	}
	return m.Check.Proof == check.ProofAuto && took >= proveAuto.Seconds()
}
