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

// Gate describes the effect of a merged and verified change on the tests and files that decide on it (docs/gate.md).
// It uses the difference to the target, so that others' merged changes do not count. Guarded are files, relative to
// the project, that are known to wait for a person.
func (m *Merger) Gate(
	ctx context.Context, c ralph.Change, b Built, now []ralph.Check, guarded []string,
) (ralph.Gate, error) {
	e := &examination{Merger: m, change: c, on: b, tip: b.Target.Tip}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return e.read(ctx, guarded) },
		func(ctx context.Context) error { return e.ran(ctx, now) },
		e.weigh, e.tries, e.proves, e.allow,
	} {
		if err := step(ctx); err != nil || ctx.Err() != nil {
			return e.found, err
		}
	}
	return e.found, nil
}

// An examination compares a change with the tests and settings that decide on it.
type examination struct {
	*Merger
	change   ralph.Change
	on       Built
	tip      string // commit of the target
	task     ralph.Task
	commands check.Commands
	rules    gate.Rules
	pairs    []worktree.Pair
	files    []gate.File // files of the project
	blobs    map[string]ralph.Blob
	own      []check.Outcome // results of the task's own commands where its session began
	results  gate.Results
	found    ralph.Gate
}

// swapped runs the commands on a commit in which the edited files are those of another commit.
func (e *examination) swapped(ctx context.Context, commit, from string, edits []gate.Edit) ([]gate.Run, error) {
	return e.Merger.swapped(ctx, commit, from, edits, e.commands.All(), e.results.Target)
}

// read reads the change, and finds the changed files that decide on it.
func (e *examination) read(ctx context.Context, guarded []string) (err error) {
	if e.pairs, err = e.Tree.Pairs(ctx, e.tip, e.on.Commit); err != nil {
		return err
	}
	commands, of, err := e.Merger.commands(ctx, []ralph.Change{e.change})
	if err != nil {
		return err
	}
	e.commands, e.task = commands, of[0]
	e.files, e.blobs = e.ours(e.pairs)
	var links map[string]string
	if len(e.pairs) > 0 {
		if links, err = e.links(ctx, e.on.Commit, e.tip); err != nil {
			return err
		}
	}
	e.found.Guarded = e.guarded(e.pairs, links, guarded, e.task.Allow)
	e.found.Depends = dependencies(e.pairs)
	if e.found.Outside = e.outside(e.pairs, e.task); len(e.found.Outside) > 0 {
		e.found.Scope = e.task.Files
	}
	e.rules = e.gateRules(commands)
	e.rules.Tests = slices.Concat(e.rules.Tests, e.linkedTests(links))
	e.results.Files = e.rules.Changes(e.files, e.reads(ctx, e.tip))
	if gate.Moves(e.files) {
		names, err := e.Tree.Names(ctx, e.tip)
		if err != nil {
			return err
		}
		e.results.Moved = gate.Moved(e.files, names)
	}
	return nil
}

// ran reads the results of the commands on the change and on the target. The task's own commands ran on the commit
// where its session began, not on the moved target.
func (e *examination) ran(ctx context.Context, now []ralph.Check) (err error) {
	if e.results.Now, err = e.passing(ctx, e.on.Tree, e.commands.All(), now); err != nil {
		return err
	}
	tree, err := e.Tree.Whole(ctx, e.change.Base)
	if err != nil {
		return err
	}
	if e.own, _, err = e.stored(ctx, tree, e.commands.Own); err != nil {
		return err
	}
	if tree, err = e.Tree.Whole(ctx, e.tip); err != nil {
		return err
	}
	for _, o := range e.own {
		if o.Check.Passed {
			e.found.Idle = append(e.found.Idle, o.Check.Command)
		}
	}
	shared, err := e.Merger.results(ctx, e.tip, tree, e.commands.Shared)
	if err != nil || ctx.Err() != nil {
		return err
	}
	target := runs(slices.Concat(shared, e.own))
	e.results.Target = target
	e.found.Unchanged = len(e.pairs) == 0 && len(target) > 0 && len(target) == len(e.commands.All()) &&
		!slices.ContainsFunc(target, func(r gate.Run) bool { return !r.Passed })
	return nil
}

// weigh runs old tests on new code and, if tests were changed, new tests on old code.
func (e *examination) weigh(ctx context.Context) (err error) {
	r := &e.results
	if gate.Alters(r.Files) {
		if r.Old, err = e.swapped(ctx, e.on.Commit, e.tip, gate.Old(r.Files)); err != nil || ctx.Err() != nil {
			return err
		}
		if edits := gate.OldButCode(r.Files); edits != nil {
			again, err := e.swapped(ctx, e.on.Commit, e.tip, edits)
			if err != nil || ctx.Err() != nil {
				return err
			}
			r.Old = gate.Both(r.Old, again)
		}
		e.found.Tried = gate.Passes(*r)
	}
	e.found.Weakened, e.found.Refused = gate.Judge(*r)
	if slices.ContainsFunc(e.found.Weakened, func(w ralph.Weakening) bool { return w.Kind == ralph.TestChanged }) {
		if r.New, err = e.swapped(ctx, e.tip, e.on.Commit, gate.New(r.Files)); err != nil || ctx.Err() != nil {
			return err
		}
		e.found.Weakened, e.found.Refused = gate.Judge(*r)
	}
	return e.markUnseen(ctx, e.task.Feature, e.found.Weakened, r.Files, e.blobs, e.commands)
}

// proves checks that a test or command proves the change, if verify.proof requires it.
func (e *examination) proves(ctx context.Context) (err error) {
	if e.Check.Proof != check.ProofRequire || len(e.pairs) == 0 {
		return nil
	}
	r := &e.results
	if r.New == nil && len(r.Files) > 0 {
		if r.New, err = e.swapped(ctx, e.tip, e.on.Commit, gate.New(r.Files)); err != nil || ctx.Err() != nil {
			return err
		}
	}
	proved, _ := gate.Prove(*r)
	if len(proved) > 0 {
		numb, err := e.numb(ctx, e.rules, e.on.Commit, r.Files, e.commands.Shared, proved)
		if err != nil || ctx.Err() != nil {
			return err
		}
		proved = slices.DeleteFunc(proved, func(t string) bool { return slices.Contains(numb, t) })
	}
	e.found.Unproved = len(proved) == 0 &&
		!slices.ContainsFunc(e.own, func(o check.Outcome) bool { return !o.Check.Passed })
	return nil
}

// allow moves weakenings that the task allows, and adds changed files of unknown purpose.
func (e *examination) allow(context.Context) error {
	g, changed := &e.found, e.results.Files
	var paths []string
	for _, f := range changed {
		paths = append(paths, f.Path)
		if !f.Added() || f.Kind == gate.Setting {
			g.Deciding = append(g.Deciding, e.Tree.Below(f.Path))
		}
	}
	allow := e.task.Allow
	if len(g.Weakened) > 0 {
		g.Files = append(g.Files, blobsOf(changed, e.blobs)...)
		if slices.Contains(allow, gate.AllowTests) || len(paths) > 0 && gate.Allows(allow, paths) {
			g.Allowed, g.Weakened = g.Weakened, nil
		}
	}
	for _, w := range gate.Suspects(e.files, changed) {
		if len(e.commands.All()) > 0 && !gate.Allows(allow, []string{w.Test}) {
			w.Command = e.commands.All()[0]
			g.Weakened, g.Files = append(g.Weakened, w), append(g.Files, e.blobs[w.Test])
		}
	}
	return nil
}

// markUnseen marks changed tests that sessions of the same feature wrote, and that no person has seen since. The tests
// are in the gate files of the target that the change alters.
func (m *Merger) markUnseen(
	ctx context.Context, feature string, found []ralph.Weakening, files []gate.Changed, blobs map[string]ralph.Blob,
	commands check.Commands,
) error {
	changed := func(w ralph.Weakening) bool { return w.Kind == ralph.TestChanged }
	if feature == "" || !slices.ContainsFunc(found, changed) {
		return nil
	}
	var list []ralph.Change
	var approved []ralph.Approval
	err := m.Store.View(ctx, func(tx *store.Tx) (err error) {
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
		if c.Commit == "" || !m.Tree.Has(ctx, c.Commit) || !m.Tree.Has(ctx, c.Head) {
			continue // its changes count as those of a person
		}
		// A session without changes of its own may have merged people's commits.
		if nothing, err := m.below(ctx, c.To, c.Head); err != nil || nothing {
			if err != nil {
				return err
			}
			continue
		}
		before, err := m.Tree.Ref(ctx, c.Before())
		if err != nil {
			return err
		}
		pairs, err := m.Tree.Pairs(ctx, before, c.Commit)
		if err != nil {
			return err
		}
		theirs, ids := m.ours(pairs)
		merged = append(merged, blobsOf(m.gateRules(commands).Changes(theirs, m.reads(ctx, before)), ids))
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

// gateRules returns the rules for the project's gate files.
func (m *Merger) gateRules(c check.Commands) gate.Rules {
	return gate.Rules{Tests: m.Check.Tests, Protect: m.Check.Protect, Shared: c.Shared, Own: c.Own}
}

// ours returns the differing files of the project, relative to it, and their ids.
func (m *Merger) ours(pairs []worktree.Pair) (files []gate.File, blobs map[string]ralph.Blob) {
	blobs = map[string]ralph.Blob{}
	for _, p := range pairs {
		if name, ok := strings.CutPrefix(p.Path, m.Tree.Below("")); ok {
			files = append(files, gate.File{Path: name, Was: p.Was, Is: p.Is})
			blobs[name] = p.Blob
		}
	}
	return files, blobs
}

// guarded returns the files that a person has to approve and that the task does not allow. They count anywhere in the
// repository. Files outside of the project also count, because the project's commands do not test them. The targets of
// guarded links are guarded, too.
func (m *Merger) guarded(pairs []worktree.Pair, links map[string]string, known, allow []string) (list []ralph.Blob) {
	var literal []string
	for _, name := range known {
		literal = append(literal, gate.Literal(name))
	}
	patterns := slices.Concat(literal, m.Check.Guard.More)
	guards := func(p worktree.Pair, ours bool, name string) bool {
		return !ours || len(gate.Guarded([]gate.File{{Path: name, Was: p.Was, Is: p.Is}}, patterns)) > 0
	}
	names := func(top string) (names []string, ours bool) {
		inside, ours := strings.CutPrefix(top, m.Tree.Below(""))
		if names = []string{top}; ours && inside != top {
			names = append(names, inside)
		}
		return names, ours
	}
	linked := gate.Linked(links, func(top string) bool {
		all, _ := names(top)
		return slices.ContainsFunc(all, func(name string) bool { return guards(worktree.Pair{}, true, name) })
	})
	patterns = slices.Concat(literal, linked, m.Check.Guard.More)
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

// linkedTests returns patterns for the targets of links with names of tests.
func (m *Merger) linkedTests(links map[string]string) (patterns []string) {
	rules := gate.Rules{Tests: m.Check.Tests}
	for _, p := range gate.Linked(links, func(top string) bool {
		name, ours := strings.CutPrefix(top, m.Tree.Below(""))
		return ours && rules.IsTest(name)
	}) {
		if name, ours := strings.CutPrefix(p, gate.Literal(m.Tree.Below(""))); ours {
			patterns = append(patterns, name)
		}
	}
	return patterns
}

// links returns the symbolic links of commits.
func (m *Merger) links(ctx context.Context, commits ...string) (links map[string]string, err error) {
	links = map[string]string{}
	for _, commit := range commits {
		of, err := m.Tree.Symlinks(ctx, commit)
		if err != nil {
			return nil, err
		}
		maps.Copy(links, of)
	}
	return links, nil
}

// reads returns a function that reads files of the project in a commit.
func (m *Merger) reads(ctx context.Context, commit string) func(name string) []byte {
	return func(name string) []byte { return m.Tree.Content(ctx, commit, m.Tree.Below(name)) }
}

// passing returns the stored results of commands on a tree that was just verified. Excused results count as passed.
func (m *Merger) passing(ctx context.Context, tree string, commands []string, now []ralph.Check) ([]gate.Run, error) {
	list, all, err := m.stored(ctx, tree, commands)
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

// results returns the results of commands on a commit: stored ones, passed or not, or those of a new run.
func (m *Merger) results(ctx context.Context, commit, tree string, commands []string) ([]check.Outcome, error) {
	list, all, err := m.stored(ctx, tree, commands)
	if err != nil || all {
		return list, err
	}
	return m.run(ctx, commit, tree, commands)
}

// swapped verifies a commit in which some files are those of another commit, and stores the results as usual. Commands
// run twice if they fail with tests that passed in was, so that a flaky test neither weakens nor proves a change.
func (m *Merger) swapped(
	ctx context.Context, commit, from string, edits []gate.Edit, commands []string, was []gate.Run,
) ([]gate.Run, error) {
	var files []worktree.Exchange
	for _, e := range edits {
		files = append(files, worktree.Exchange{Path: m.Tree.Below(e.Path), Content: e.Content})
	}
	tree, err := m.Tree.Exchanged(ctx, commit, from, files, m.State)
	if err != nil {
		return nil, err
	}
	list, all, err := m.stored(ctx, tree, commands)
	if err == nil && !all {
		var made string
		made, err = m.Tree.Variant(ctx, commit, tree)
		if err == nil {
			list, err = m.run(ctx, made, tree, commands)
		}
		if err == nil && ctx.Err() == nil {
			list, err = m.twice(ctx, made, tree, list, was)
		}
	}
	return runs(list), err
}

// runs converts results to the inputs of a judgement.
func runs(list []check.Outcome) (runs []gate.Run) {
	for _, o := range list {
		runs = append(runs, gate.Run{
			Command: o.Check.Command, Passed: o.Check.Passed, Tests: o.Names(),
		})
	}
	return runs
}
