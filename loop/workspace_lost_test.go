package loop_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ralph"
	"ralph/internal/worktree"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/session"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// TestALostSessionWhoseWorkspaceIsGone, because people removed it or another
// session began there before it was decided: its done is not checked against
// the present content, and the next session of its task continues its work.
func TestALostSessionWhoseWorkspaceIsGone(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"removed", "used"} {
		b := newWorkshop(t)
		l := b.tree("true")
		id := b.add(ralph.Task{Title: "A"})
		lost := uuid.NewString()
		ws := b.lose(l, id, lost)
		if _, err := b.db.Say(t.Context(), id, lost, "agent", signals.Done{Summary: "made it"}); err != nil {
			t.Fatal(err)
		}
		write(t, ws.Path("part"), "x")
		var err error
		if way == "used" {
			_, err = ws.Begin(t.Context(), ws.Clone.Base, "")
		}
		if err = errors.Join(err, ws.Release()); way == "removed" && err == nil {
			err = l.Pool.Remove(t.Context(), "1")
		}
		if err != nil {
			t.Fatal(err)
		}
		found := false
		b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
			found = exists(filepath.Join(a.Dir, "part"))
			b.tx(func(tx *store.Tx) error {
				kept, ok, err := tx.ChangeOf(id)
				if !ok || kept.SessionID != lost || kept.Base != ws.Clone.Base || kept.Head == kept.Base {
					t.Errorf("%s: what it kept is %+v", way, kept)
				}
				return err
			})
			_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", signals.Done{Summary: "made it"})
			return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
		}))
		if task := b.task(id); !found || task.Status != ralph.Completed || !exists(filepath.Join(l.Here.Dir, "part")) {
			t.Errorf("%s: found by the next session: %t; it is %s: %s", way, found, task.Status, task.StatusReason)
		}
		b.tx(func(tx *store.Tx) error {
			s, err := tx.Session(lost)
			if err == nil && !strings.HasPrefix(s.Reason, "lost before its done was accepted") {
				t.Errorf("%s: the lost one is %s", way, s.Reason)
			}
			return err
		})
	}
}

// TestALostSessionWithoutSavedWork has left no change.
func TestALostSessionWithoutSavedWork(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	id, lost := b.add(ralph.Task{Title: "A"}), uuid.NewString()
	b.tx(func(tx *store.Tx) error {
		_, err := tx.StartSession(store.Start{ID: lost, Task: id, Dir: filepath.Join(l.Pool.Dir, "1", "tree")})
		return err
	})
	l.Agent = deed(nil)
	if _, err := l.Run(t.Context()); err != nil { // no session of its own: none is allowed
		t.Fatal(err)
	}
	b.tx(func(tx *store.Tx) error {
		if kept, ok, err := tx.ChangeOf(id); ok || err != nil {
			t.Errorf("it has left %+v, %v", kept, err)
		}
		s, err := tx.Session(lost)
		if s.Ending != ralph.Lost || strings.Contains(s.Reason, "could not be looked at") {
			t.Errorf("it is %s: %s", s.Ending, s.Reason)
		}
		return err
	})
}

// lose leaves a session in a workspace as if its ralph had been killed, except that the workspace is still locked.
func (b *workshop) lose(l *loop.Loop, task int64, session string) *workspace.Workspace {
	b.t.Helper()
	return b.loseIn(l, 1, task, session)
}

func (b *workshop) loseIn(l *loop.Loop, number int, task int64, session string) *workspace.Workspace {
	b.t.Helper()
	ws, err := l.Pool.Take(b.t.Context(), number, false)
	if err != nil {
		b.t.Fatal(err)
	}
	tip, err := l.Merger.Tip(b.t.Context())
	if err == nil {
		_, err = ws.Begin(b.t.Context(), tip, "")
	}
	if err == nil {
		err = ws.Begun(ralph.Change{SessionID: session}.Ref())
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.tx(func(tx *store.Tx) error {
		_, err := tx.StartSession(store.Start{ID: session, Task: task, Dir: ws.Dir, Snapshot: worktree.Snapshot{Head: tip}})
		return err
	})
	return ws
}

// TestLostSessionsDoNotWaitForEachOther to be merged, as nothing is merged while they are decided.
func TestLostSessionsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree("true")
	l.Merger.Wait = time.Hour
	var tasks []int64
	for i, name := range []string{"a", "b"} {
		id, lost := b.add(ralph.Task{Title: name}), uuid.NewString()
		ws := b.loseIn(l, i+1, id, lost)
		write(t, ws.Path(name), "x")
		if _, err := b.db.Say(t.Context(), id, lost, "agent", finish); err != nil {
			t.Fatal(err)
		}
		if err := ws.Release(); err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, id)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b.onceWithin(ctx, l, &speech{b: b, ending: ralph.Finished})
	for _, id := range tasks {
		if task := b.task(id); task.Status != ralph.Completed {
			t.Errorf("TASK-%d is %s: %s", id, task.Status, task.StatusReason)
		}
	}
}

// TestALostSessionHasOneCandidate: a candidate that was handed over before its ralph was lost is not made again,
// because another machine may have fetched it.
func TestALostSessionHasOneCandidate(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree("true")
	id, lost := b.add(ralph.Task{Title: "A"}), uuid.NewString()
	ws := b.lose(l, id, lost)
	write(t, ws.Path("part"), "x")
	if _, err := b.db.Say(t.Context(), id, lost, "agent", finish); err != nil {
		t.Fatal(err)
	}
	_, made, err := ws.Candidate(t.Context(), ralph.Change{SessionID: lost}.Ref(), "handed over\n")
	if err = errors.Join(err, ws.Release()); err != nil {
		t.Fatal(err)
	}
	b.once(l, &speech{b: b, ending: ralph.Finished})
	b.tx(func(tx *store.Tx) error {
		c, _, err := tx.ChangeOf(id)
		if c.State != ralph.Merged || c.Head != made.Head {
			t.Errorf("it is %s with %s, want %s", c.State, c.Head, made.Head)
		}
		return err
	})
}

// TestADoneThatWasHandedOver by a machine that was lost is checked, and people are told so.
func TestADoneThatWasHandedOver(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree("test -e part")
	id, lost := b.add(ralph.Task{Title: "A"}), uuid.NewString()
	ws := b.lose(l, id, lost)
	write(t, ws.Path("part"), "x")
	if _, err := b.db.Say(t.Context(), id, lost, "agent", finish); err != nil {
		t.Fatal(err)
	}
	row := b.last()
	row.Dir = "/elsewhere"
	l.Agent = deed(nil)
	_, err := l.Sessions().Recover(t.Context(), session.Place{Workspace: ws, HandedOver: true}, row)
	if err = errors.Join(err, ws.Release()); err != nil {
		t.Fatal(err)
	}
	task, s := b.task(id), b.last()
	if task.Status != ralph.Merging || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "another machine checked the change that it had handed over") {
		t.Errorf("it is %s: %s; noted %q", task.Status, task.StatusReason, s.Notes)
	}
}

// TestTheWorkspaceOfALostSessionIsUsedAgain by the run that has decided it.
func TestTheWorkspaceOfALostSessionIsUsedAgain(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	id, lost := b.add(ralph.Task{Title: "A"}), uuid.NewString()
	if err := b.lose(l, id, lost).Release(); err != nil {
		t.Fatal(err)
	}
	b.passed.Add(int64(time.Minute))
	_, s := b.once(l, &speech{b: b, turns: []turn{{write: []string{"a"}, say: finish, answer: "over"}}, ending: ralph.Finished})
	if task := b.task(id); s.ID == lost || s.Dir != filepath.Join(l.Pool.Dir, "1", "tree") || task.Status != ralph.Completed {
		t.Errorf("it worked in %s; the task is %s: %s", s.Dir, task.Status, task.StatusReason)
	}
}

// TestWorkInAWorkspaceIsNotLost: a session's work there is saved once, with the session. Other work, left by a killed
// ralph or another program, is saved separately.
func TestWorkInAWorkspaceIsNotLost(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	session := func(file string) {
		b.add(ralph.Task{Title: "A"})
		b.once(l, &speech{b: b, turns: []turn{{write: []string{file}, say: signals.Done{Summary: "made it"}, answer: "over"}}, ending: ralph.Finished})
	}
	lost := func() string {
		refs, err := l.Here.Tree.Refs(t.Context(), "refs/ralph/lost/")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, commit := range refs {
			files := strings.Fields(b.git(l.Here.Dir, "diff-tree", "-r", "--name-only", "--no-commit-id", commit))
			names = append(names, files...)
		}
		return strings.Join(names, " ")
	}
	session("a")
	session("b")
	if got := lost(); got != "" {
		t.Errorf("kept once more is %q", got)
	}
	write(t, filepath.Join(l.Pool.Dir, "1", "tree", "mine"), "x")
	session("c")
	if got := lost(); got != "b mine" {
		t.Errorf("kept is %q, want what somebody made in the workspace", got)
	}
	// Of a commit that git does not take over, because it is none that git makes, the files are kept.
	odd := b.add(ralph.Task{Title: "Odd commit"})
	b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		write(t, filepath.Join(a.Dir, "unsound"), "x")
		below := b.git(a.Dir, "-c", `alias.bad=!git cat-file commit HEAD | sed "/^parent/d; s/^tree.*/&\nparent $(git rev-parse HEAD)/; s/^author.*/author x/" | `+
			"git hash-object -t commit -w --stdin --literally", "bad")
		b.git(a.Dir, "update-ref", "HEAD", b.git(a.Dir, "commit-tree", "-m", "better", "-p", below, "HEAD^{tree}"))
		_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", signals.Done{Summary: "made it"})
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	}))
	b.tx(func(tx *store.Tx) error {
		c, kept, err := tx.ChangeOf(odd)
		if why := b.task(odd).StatusReason; !strings.Contains(why, ".git has something that git refuses") || !kept {
			t.Errorf("it is %s; kept is %+v", why, c)
		}
		return err
	})
	// If .git is gone, the files are there.
	tree := filepath.Join(l.Pool.Dir, "1", "tree")
	write(t, filepath.Join(tree, "odd"), "x")
	if err := os.RemoveAll(filepath.Join(tree, ".git")); err != nil {
		t.Fatal(err)
	}
	l.Task = b.add(ralph.Task{Title: "After"})
	session("d")
	if got := lost(); !strings.Contains(got, "odd") || !exists(filepath.Join(l.Here.Dir, "d")) {
		t.Errorf("kept is %q", got)
	}
}

// TestUnreadablePartsOfALostWorkspaceAreReported: its saved work is not searched for elsewhere.
func TestUnreadablePartsOfALostWorkspaceAreReported(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	id, lost := b.add(ralph.Task{Title: "A"}), uuid.NewString()
	ws := b.lose(l, id, lost)
	write(t, ws.Path("part"), "x")
	if _, err := ws.Begin(t.Context(), ws.Clone.Base, ""); err != nil {
		t.Fatal(err)
	}
	if err := ws.Release(); err != nil {
		t.Fatal(err)
	}
	b.raw(`UPDATE sessions SET snapshot_before = '{"Head": 1}' WHERE id = $1`, lost)
	b.once(l, &speech{b: b, turns: []turn{{write: []string{"a"}, say: finish, answer: "over"}}, ending: ralph.Finished})
	b.tx(func(tx *store.Tx) error {
		s, err := tx.Session(lost)
		if !strings.Contains(s.Reason, "what was kept of its workspace (") {
			t.Errorf("it is %s", s.Reason)
		}
		return err
	})
}

// TestASessionThatComesBackLate was decided as lost while its machine was unreachable: its cost is booked, its work is
// kept apart and named, and its task stays as others left it.
func TestASessionThatComesBackLate(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree("true")
	said := ""
	l.Log = slog.New(witness{slog.NewTextHandler(io.Discard, nil), func(message string) { said += message + "\n" }})
	id := b.add(ralph.Task{Title: "A"})
	late := ""
	b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		late = a.SessionID
		write(t, filepath.Join(a.Dir, "part"), "x")
		if _, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", signals.Done{Summary: "made it"}); err != nil {
			t.Error(err)
		}
		b.tx(func(tx *store.Tx) error { // as the janitor of another machine does
			s, err := tx.Session(late)
			f, ferr := tx.Facts(late)
			s.Ending, s.CostUSD = ralph.Lost, 5
			f.Ending, f.Void, f.EndingWhy, f.Rules = ralph.Lost, true, "its machine was lost", l.Rules
			return errors.Join(err, ferr, tx.Apply(s, f, signals.Decide(f)))
		})
		return agent.Report{Ending: ralph.Finished, CostUSD: 2, CostKnown: true, Tokens: ralph.Tokens{Output: 7}}, nil
	}))
	if task := b.task(id); task.Status != ralph.Pending || task.Attempts != 0 || exists(filepath.Join(l.Here.Dir, "part")) {
		t.Errorf("its task is %s after %d attempts: %s", task.Status, task.Attempts, task.StatusReason)
	}
	if !strings.HasPrefix(said, "a session counted as lost; ") {
		t.Errorf("it says %q", said)
	}
	if left, err := filepath.Glob(filepath.Join(l.Pool.Dir, "1", "git", "scratch*")); len(left) > 0 || err != nil {
		t.Errorf("the objects of its snapshots are still there: %q, %v", left, err)
	}
	ref := workspace.LostRef(late)
	if made := strings.TrimSpace(b.git(l.Here.Dir, "show", ref+":part")); made != "x" {
		t.Errorf("%s has %q", ref, made)
	}
	if refs, err := l.Here.Tree.Refs(t.Context(), ralph.ChangeRefs); err != nil || len(refs) > 0 {
		t.Errorf("kept as changes: %v, %v", refs, err)
	}
	b.tx(func(tx *store.Tx) error {
		s, err := tx.Session(late)
		if s.CostUSD != 2 || !s.CostKnown || s.Tokens.Output != 7 || len(s.Notes) != 1 || !strings.HasSuffix(s.Notes[0], "kept there as "+ref) {
			t.Errorf("cost $%g (%t), %+v, noted %q", s.CostUSD, s.CostKnown, s.Tokens, s.Notes)
		}
		run, rerr := tx.Run(s.RunID)
		if run.CostUSD != 2 {
			t.Errorf("its run cost $%g", run.CostUSD)
		}
		list, uerr := tx.Undecided()
		if len(list) > 0 {
			t.Errorf("undecided: %v", list)
		}
		return errors.Join(err, rerr, uerr)
	})
}
