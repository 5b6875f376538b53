package merging

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/worktree"
	"ralph/loop/check"
	"ralph/loop/gate"
	"ralph/store"
)

// Gate tells what a change, merged and verified, does to what decides on it (docs/gate.md). What counts is the
// difference to the target: what others have changed there is not this change's.
// Guarded are files, relative to the project, of which it is known that they wait for a person.
func (l *Merger) Gate(
	ctx context.Context, c ralph.Change, b Built, now []ralph.Check, guarded []string,
) (g ralph.Gate, err error) {
	tip := b.Target.Tip
	pairs, err := l.Tree.Pairs(ctx, tip, b.Commit)
	if err != nil {
		return g, err
	}
	commands, of, err := l.commands(ctx, []ralph.Change{c})
	if err != nil {
		return g, err
	}
	t := of[0]
	files, blobs := l.ours(pairs)
	var links map[string]string
	if len(pairs) > 0 {
		if links, err = l.links(ctx, b.Commit, tip); err != nil {
			return g, err
		}
	}
	g.Guarded = l.guarded(pairs, links, guarded, t.Allow)
	r := gate.Results{Files: l.gateRules(commands).Changes(files, l.reads(ctx, tip))}
	if gate.Moves(files) {
		names, err := l.Tree.Names(ctx, tip)
		if err != nil {
			return g, err
		}
		r.Moved = gate.Moved(files, names)
	}
	if r.Now, err = l.passing(ctx, b.Tree, commands.All(), now); err != nil {
		return g, err
	}
	tree, err := l.Tree.Whole(ctx, tip)
	if err != nil {
		return g, err
	}
	own, _, err := l.stored(ctx, tree, commands.Own)
	if err != nil {
		return g, err
	}
	for _, o := range own {
		if o.Check.Passed {
			g.Idle = append(g.Idle, o.Check.Command)
		}
	}
	shared, err := l.results(ctx, tip, tree, commands.Shared)
	if err != nil || ctx.Err() != nil {
		return g, err
	}
	r.Target = runs(slices.Concat(shared, own))
	g.Unchanged = len(pairs) == 0 && len(r.Target) > 0 && len(r.Target) == len(commands.All()) &&
		!slices.ContainsFunc(r.Target, func(r gate.Run) bool { return !r.Passed })
	if gate.Alters(r.Files) {
		if r.Old, err = l.swapped(ctx, b.Commit, tip, gate.Old(r.Files), commands.All()); err != nil || ctx.Err() != nil {
			return g, err
		}
		if edits := gate.OldButCode(r.Files); edits != nil {
			again, err := l.swapped(ctx, b.Commit, tip, edits, commands.All())
			if err != nil || ctx.Err() != nil {
				return g, err
			}
			r.Old = gate.Both(r.Old, again)
		}
		g.Tried = gate.Passes(r)
	}
	g.Weakened, g.Refused = gate.Judge(r)
	if slices.ContainsFunc(g.Weakened, func(w ralph.Weakening) bool { return w.Kind == ralph.TestChanged }) {
		if r.New, err = l.swapped(ctx, tip, b.Commit, gate.New(r.Files), commands.All()); err != nil || ctx.Err() != nil {
			return g, err
		}
		g.Weakened, g.Refused = gate.Judge(r)
	}
	if err := l.markUnseen(ctx, t.Feature, g.Weakened, r.Files, blobs, commands); err != nil {
		return g, err
	}
	if g.Refused == "" && gate.Interferes(files, r.Files) {
		if g.Refused, err = l.inert(ctx, b, tip, l.gateRules(commands), commands.All()); err != nil || ctx.Err() != nil {
			return g, err
		}
	}
	if l.Check.Proof == check.ProofRequire && len(pairs) > 0 {
		if r.New == nil && len(r.Files) > 0 {
			r.New, err = l.swapped(ctx, tip, b.Commit, gate.New(r.Files), commands.All())
			if err != nil || ctx.Err() != nil {
				return g, err
			}
		}
		proved, _ := gate.Prove(r)
		g.Unproved = len(proved) == 0 && !slices.ContainsFunc(own, func(o check.Outcome) bool { return !o.Check.Passed })
	}
	var paths []string
	for _, f := range r.Files {
		paths = append(paths, f.Path)
		if !f.Added() || f.Kind == gate.Setting {
			g.Deciding = append(g.Deciding, l.Tree.Below(f.Path))
		}
	}
	if len(g.Weakened) > 0 {
		g.Files = append(g.Files, blobsOf(r.Files, blobs)...)
		if slices.Contains(t.Allow, gate.AllowTests) || len(paths) > 0 && gate.Allows(t.Allow, paths) {
			g.Allowed, g.Weakened = g.Weakened, nil
		}
	}
	for _, w := range gate.Suspects(files, r.Files) {
		if len(commands.All()) > 0 && !gate.Allows(t.Allow, []string{w.Test}) {
			w.Command = commands.All()[0]
			g.Weakened, g.Files = append(g.Weakened, w), append(g.Files, blobs[w.Test])
		}
	}
	return g, nil
}

// markUnseen marks changed tests that sessions of the same feature wrote, and that no person has seen since. The tests
// are in the gate files of the target that the change alters.
func (l *Merger) markUnseen(
	ctx context.Context, feature string, found []ralph.Weakening, files []gate.Changed, blobs map[string]ralph.Blob,
	commands check.Commands,
) error {
	changed := func(w ralph.Weakening) bool { return w.Kind == ralph.TestChanged }
	if feature == "" || !slices.ContainsFunc(found, changed) {
		return nil
	}
	var list []ralph.Change
	var approved []ralph.Approval
	err := l.Store.View(ctx, func(tx *store.Tx) (err error) {
		if list, err = tx.MergedFor(feature); err == nil {
			approved, err = tx.ApprovedFor(feature)
		}
		return err
	})
	if err != nil {
		return err
	}
	var merged [][]ralph.Blob
	for _, c := range list {
		if c.Commit == "" || !l.Tree.Has(ctx, c.Commit) || !l.Tree.Has(ctx, c.Head) {
			continue // what it wrote counts as a person's
		}
		// A session that changed nothing of its own may have merged what people had committed.
		if nothing, err := l.below(ctx, c.To, c.Head); err != nil || nothing {
			if err != nil {
				return err
			}
			continue
		}
		before, err := l.Tree.Ref(ctx, c.Commit+"^1")
		if err != nil {
			return err
		}
		pairs, err := l.Tree.Pairs(ctx, before, c.Commit)
		if err != nil {
			return err
		}
		theirs, ids := l.ours(pairs)
		merged = append(merged, blobsOf(l.gateRules(commands).Changes(theirs, l.reads(ctx, before)), ids))
	}
	unseen := gate.Unseen(blobsOf(files, blobs), merged, approved)
	for i, w := range found {
		found[i].Unseen = unseen && changed(w)
	}
	return nil
}

// blobsOf returns git's ids of gate files.
func blobsOf(files []gate.Changed, blobs map[string]ralph.Blob) (list []ralph.Blob) {
	for _, f := range files {
		list = append(list, blobs[f.Path])
	}
	return list
}

// inert returns why a change is refused whose tests cannot fail, as controls show; "" if they can.
func (l *Merger) inert(ctx context.Context, b Built, tip string, rules gate.Rules, commands []string) (string, error) {
	trial := func(commit string) (runs []gate.Run, marks map[string]string, err error) {
		names, err := l.Tree.Names(ctx, commit)
		if err != nil {
			return nil, nil, err
		}
		edits, marks := rules.Controls(names, l.reads(ctx, commit), b.Tree)
		if len(edits) == 0 {
			return nil, nil, nil
		}
		runs, err = l.swapped(ctx, commit, commit, edits, commands)
		return runs, marks, err
	}
	now, marks, err := trial(b.Commit)
	if err != nil || ctx.Err() != nil || gate.Covered(now, marks) {
		return "", err
	}
	was, had, err := trial(tip)
	if err != nil || ctx.Err() != nil {
		return "", err
	}
	return gate.Inert(was, now, had, marks), nil
}

// gateRules returns which files of the project decide.
func (l *Merger) gateRules(c check.Commands) gate.Rules {
	return gate.Rules{Tests: l.Check.Tests, Protect: l.Check.Protect, Shared: c.Shared, Own: c.Own}
}

// ours returns the files of the project among those that differ, relative to it, and their ids.
func (l *Merger) ours(pairs []worktree.Pair) (files []gate.File, blobs map[string]ralph.Blob) {
	blobs = map[string]ralph.Blob{}
	for _, p := range pairs {
		if name, ok := strings.CutPrefix(p.Path, l.Tree.Below("")); ok {
			files = append(files, gate.File{Path: name, Was: p.Was, Is: p.Is})
			blobs[name] = p.Blob
		}
	}
	return files, blobs
}

// guarded returns the files that a person has to approve and that the task does not allow. They count wherever they
// are in the repository, and so does each file outside of the project, of which its commands say nothing. links are the
// links of the repository: what a guarded one leads to is guarded.
func (l *Merger) guarded(pairs []worktree.Pair, links map[string]string, known, allow []string) (list []ralph.Blob) {
	var literal []string
	for _, name := range known {
		literal = append(literal, gate.Literal(name))
	}
	patterns := slices.Concat(literal, l.Check.Guard.More)
	guards := func(p worktree.Pair, ours bool, name string) bool {
		return !ours || len(gate.Guarded([]gate.File{{Path: name, Was: p.Was, Is: p.Is}}, patterns)) > 0
	}
	names := func(top string) (names []string, ours bool) {
		inside, ours := strings.CutPrefix(top, l.Tree.Below(""))
		if names = []string{top}; ours && inside != top {
			names = append(names, inside)
		}
		return names, ours
	}
	linked := gate.Linked(links, func(top string) bool {
		all, _ := names(top)
		return slices.ContainsFunc(all, func(name string) bool { return guards(worktree.Pair{}, true, name) })
	})
	patterns = slices.Concat(literal, linked, l.Check.Guard.More)
	for _, p := range pairs {
		all, ours := names(p.Path)
		if slices.ContainsFunc(all, func(name string) bool {
			return guards(p, ours, name) && !gate.Allows(allow, []string{name})
		}) {
			list = append(list, p.Blob)
		}
	}
	return list
}

// links returns the symbolic links of commits.
func (l *Merger) links(ctx context.Context, commits ...string) (links map[string]string, err error) {
	links = map[string]string{}
	for _, commit := range commits {
		of, err := l.Tree.Symlinks(ctx, commit)
		if err != nil {
			return nil, err
		}
		maps.Copy(links, of)
	}
	return links, nil
}

// reads returns a function that reads files of the project in a commit.
func (l *Merger) reads(ctx context.Context, commit string) func(name string) []byte {
	return func(name string) []byte { return l.Tree.Content(ctx, commit, l.Tree.Below(name)) }
}

// passing returns the stored results of commands on a tree that was just verified. What was excused counts as passed.
func (l *Merger) passing(ctx context.Context, tree string, commands []string, now []ralph.Check) ([]gate.Run, error) {
	list, all, err := l.stored(ctx, tree, commands)
	if err != nil || !all {
		if err == nil {
			err = fmt.Errorf("the results of the check are not stored any more")
		}
		return nil, err
	}
	list = slices.Clone(list)
	for i, o := range list {
		for _, c := range now {
			if c.Command == o.Check.Command {
				list[i].Check.Passed = c.Passed
			}
		}
	}
	return runs(list), nil
}

// results returns the results of commands on a commit: those stored, whatever they are, or of a run.
func (l *Merger) results(ctx context.Context, commit, tree string, commands []string) ([]check.Outcome, error) {
	list, all, err := l.stored(ctx, tree, commands)
	if err != nil || all {
		return list, err
	}
	return l.run(ctx, commit, tree, commands)
}

// swapped verifies a commit in which some files are as in another one. Its results are stored as all are.
func (l *Merger) swapped(
	ctx context.Context, commit, from string, edits []gate.Edit, commands []string,
) ([]gate.Run, error) {
	var files []worktree.Exchange
	for _, e := range edits {
		files = append(files, worktree.Exchange{Path: l.Tree.Below(e.Path), Content: e.Content})
	}
	tree, err := l.Tree.Exchanged(ctx, commit, from, files, l.State)
	if err != nil {
		return nil, err
	}
	list, all, err := l.stored(ctx, tree, commands)
	if err == nil && !all {
		var made string
		made, err = l.Tree.Variant(ctx, commit, tree)
		if err == nil {
			list, err = l.run(ctx, made, tree, commands)
		}
	}
	return runs(list), err
}

// runs returns what a judgement depends on.
func runs(list []check.Outcome) (runs []gate.Run) {
	for _, o := range list {
		runs = append(runs, gate.Run{
			Command: o.Check.Command, Passed: o.Check.Passed, Tests: o.Names(), Controls: o.Controls,
		})
	}
	return runs
}
