package merging

import (
	"context"
	"time"

	"ralph"
	"ralph/internal/worktree"
	"ralph/loop/check"
	"ralph/loop/gate"
	"ralph/store"
)

// proveAuto is how long a check may take for the proof of a change to be looked for without being asked for.
const proveAuto = time.Minute

// prove looks for what the tests of merged changes prove: they are run on the code as it was before, too. It gives way
// to the next merge, and goes on at the next rest.
func (l *Merger) prove(ctx context.Context) (gaveWay bool, err error) {
	if l.Check.Proof == check.ProofOff || l.Check.Proof == "" || l.Branch {
		return false, nil
	}
	list, err := store.Read(ctx, l.Store, (*store.Tx).Unproved)
	if err != nil || len(list) == 0 {
		return false, err
	}
	within, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for within.Err() == nil {
			changed := l.Store.Changed()
			queued, err := store.Read(within, l.Store, (*store.Tx).QueuedChanges)
			if err == nil && len(queued) > 0 {
				stop()
			}
			select {
			case <-changed:
			case <-within.Done():
			}
		}
	}()
	for _, c := range list {
		p, err := l.proof(within, c)
		if within.Err() != nil {
			return ctx.Err() == nil, ctx.Err()
		}
		if err != nil {
			l.Log.Warn("cannot tell what the tests of a change prove", "task", c.TaskID, "error", err)
			p = &ralph.Proof{Unknown: err.Error()}
		}
		if err := l.Store.Tx(ctx, func(tx *store.Tx) error { return tx.SetProof(c, *p) }); err != nil {
			return false, err
		}
	}
	return false, nil
}

// proof returns what the tests of one change prove, compared with the target before its merge.
func (l *Merger) proof(ctx context.Context, c ralph.Change) (*ralph.Proof, error) {
	commands, _, err := l.commands(ctx, []ralph.Change{c})
	if err != nil {
		return nil, err
	}
	if len(commands.All()) == 0 {
		return &ralph.Proof{Unchecked: true}, nil
	}
	if l.Travels() && !(l.Tree.Has(ctx, c.To) && l.Tree.Has(ctx, c.Head)) {
		return &ralph.Proof{Unknown: "it was merged on another machine, which alone has its commits"}, nil
	}
	before, m, err := l.alone(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(m.Conflicts) > 0 {
		return &ralph.Proof{Unknown: "it was merged together with what it needs"}, nil
	}
	now, all, err := l.stored(ctx, m.Tree, commands.All())
	if err != nil || !all {
		return &ralph.Proof{Unknown: "it was verified together with others"}, err
	}
	r := gate.Results{Now: runs(now)}
	tree, err := l.Tree.Whole(ctx, before)
	if err != nil {
		return nil, err
	}
	was, _, err := l.stored(ctx, tree, commands.All())
	if err != nil {
		return nil, err
	}
	r.Target = runs(was)
	pairs, err := l.Tree.Pairs(ctx, tree, m.Tree)
	if err != nil {
		return nil, err
	}
	files, _ := l.ours(pairs)
	r.Files = l.gateRules(commands).Changes(files, l.reads(ctx, before))
	p := &ralph.Proof{Tests: len(r.Files) > 0}
	for _, own := range commands.Own { // red before, green now
		if w := of(was, own); w != nil && !w.Check.Passed {
			p.Proved = append(p.Proved, "`"+own+"`")
		}
	}
	var took float64
	for _, o := range now {
		took += o.Check.Seconds
	}
	if !p.Tests || l.Check.Proof == check.ProofAuto && took >= proveAuto.Seconds() {
		return p, nil
	}
	if r.New, err = l.swapped(ctx, before, c.To, gate.New(r.Files), commands.Shared); err != nil || ctx.Err() != nil {
		return nil, err
	}
	proved, idle := gate.Prove(r)
	p.Proved, p.Idle = append(p.Proved, proved...), idle
	return p, nil
}

// alone merges a merged change with the target as it was before. It conflicts if it was merged together with what it
// needs.
func (l *Merger) alone(ctx context.Context, c ralph.Change) (before string, m worktree.Merge, err error) {
	if before, err = l.Tree.Ref(ctx, c.To+"^1"); err == nil {
		m, err = l.Tree.MergeTree(ctx, before, c.Head)
	}
	return before, m, err
}

// of returns the result of a command; nil if there is none.
func of(list []check.Outcome, command string) *check.Outcome {
	for i := range list {
		if list[i].Check.Command == command {
			return &list[i]
		}
	}
	return nil
}
