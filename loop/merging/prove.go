package merging

import (
	"context"
	"time"

	"ralph"
	"ralph/loop/check"
	"ralph/loop/gate"
	"ralph/store"
)

// proveAuto is how long a check may take for the proof of a change to be looked for without being asked for.
const proveAuto = time.Minute

// prove looks for what the tests of merged changes prove: they are run on the code as it was before, too. It gives way
// to the next merge, and goes on at the next rest.
func (l *Merger) prove(ctx context.Context) (gaveWay bool, err error) {
	if l.Check.Proof == check.ProofOff || l.Check.Proof == "" {
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

// proof returns what the tests of one change prove: its task's own commands on the commit that its session began with,
// and its tests on the target before its merge.
func (l *Merger) proof(ctx context.Context, c ralph.Change) (*ralph.Proof, error) {
	commands, _, err := l.commands(ctx, []ralph.Change{c})
	if err != nil {
		return nil, err
	}
	if len(commands.All()) == 0 {
		return &ralph.Proof{Unchecked: true}, nil
	}
	if l.Travels() && !(l.Tree.Has(ctx, c.To) && l.Tree.Has(ctx, c.Base)) {
		return &ralph.Proof{Unknown: "it was merged on another machine, which alone has its commits"}, nil
	}
	if c.Commit == "" {
		return &ralph.Proof{Unknown: "the target had its change already"}, nil
	}
	p := &ralph.Proof{}
	if p.Proved, err = l.provedByOwn(ctx, c, commands.Own); err != nil || ctx.Err() != nil {
		return nil, err
	}
	before, err := l.Tree.Ref(ctx, c.Commit+"^1")
	if err != nil {
		return nil, err
	}
	tree, err := l.Tree.Whole(ctx, before)
	if err != nil {
		return nil, err
	}
	merged, err := l.Tree.Whole(ctx, c.Commit)
	if err != nil {
		return nil, err
	}
	pairs, err := l.Tree.Pairs(ctx, tree, merged)
	if err != nil {
		return nil, err
	}
	files, _ := l.ours(pairs)
	r := gate.Results{Files: l.gateRules(commands).Changes(files, l.reads(ctx, before))}
	if p.Tests = len(r.Files) > 0; !p.Tests {
		return p, nil
	}
	now, err := l.checked(ctx, c, merged, commands.All())
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	if now == nil || l.tooLong(now) {
		if len(p.Proved) == 0 {
			p.Unknown = "a check takes too long to look for it (verify.proof)"
		}
		return p, nil
	}
	was, _, err := l.stored(ctx, tree, commands.All())
	if err != nil {
		return nil, err
	}
	r.Now, r.Target = runs(now), runs(was)
	if r.New, err = l.swapped(ctx, before, c.Commit, gate.New(r.Files), commands.Shared); err != nil || ctx.Err() != nil {
		return nil, err
	}
	proved, idle := gate.Prove(r)
	p.Proved, p.Idle = append(p.Proved, proved...), idle
	return p, nil
}

// provedByOwn returns those of a task's own commands that fail on the commit that its session began with, and pass on
// what was merged.
func (l *Merger) provedByOwn(ctx context.Context, c ralph.Change, own []string) (proved []string, err error) {
	if len(own) == 0 {
		return nil, nil
	}
	after, err := l.Tree.Whole(ctx, c.To)
	if err != nil {
		return nil, err
	}
	base, err := l.Tree.Whole(ctx, c.Base)
	if err != nil {
		return nil, err
	}
	for _, command := range own {
		now, passed, err := l.stored(ctx, after, []string{command})
		if err != nil {
			return nil, err
		}
		if !passed || failed(now) {
			continue
		}
		was, known, err := l.stored(ctx, base, []string{command})
		if err == nil && !known && !l.tooLong(now) {
			was, err = l.run(ctx, c.Base, base, []string{command})
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

// checked returns the results of commands on the commit that merged a change alone: the stored ones, or, where the
// change was verified together with others, those of another check. They are nil if that would take too long.
func (l *Merger) checked(ctx context.Context, c ralph.Change, tree string, commands []string) ([]check.Outcome, error) {
	list, all, err := l.stored(ctx, tree, commands)
	if err != nil || all {
		return list, err
	}
	together, err := l.Tree.Whole(ctx, c.To)
	if err != nil {
		return nil, err
	}
	list, all, err = l.stored(ctx, together, commands)
	if err != nil || l.Check.Proof == check.ProofAuto && (!all || l.tooLong(list)) {
		return nil, err
	}
	return l.run(ctx, c.Commit, tree, commands)
}

// tooLong reports whether a check takes too long to be run once more for a proof that nobody has asked for.
func (l *Merger) tooLong(list []check.Outcome) bool {
	var took float64
	for _, o := range list {
		took += o.Check.Seconds
	}
	return l.Check.Proof == check.ProofAuto && took >= proveAuto.Seconds()
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
