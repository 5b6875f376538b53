package merging

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ralph"
	"ralph/store"
)

// A forgeYard is a yard whose changes become pull requests of a bare remote.
type forgeYard struct {
	*yard
	remote string
}

func newForgeYard(t *testing.T) *forgeYard {
	t.Helper()
	y := &forgeYard{newYard(t, "true"), t.TempDir()}
	y.in(y.remote, "init", "-q", "--bare", "--initial-branch=main")
	y.git("remote", "add", "origin", y.remote)
	y.git("push", "-q", "origin", "main")
	y.Push, y.Branch, y.Pulls = "origin", true, true
	return y
}

// person is a clone of the remote by somebody else, at a branch.
func (y *forgeYard) person(branch string) (dir string) {
	dir = y.t.TempDir()
	y.in(dir, "clone", "-q", "-b", branch, y.remote, ".")
	y.in(dir, "config", "user.name", "Bob")
	y.in(dir, "config", "user.email", "bob@example.org")
	return dir
}

// put writes files in a clone, and stages them.
func (y *forgeYard) put(dir string, files map[string]string) {
	y.t.Helper()
	for name, text := range files {
		y.no(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	y.in(dir, "add", "-A")
}

// TestPullRequestBranches: ralph's pushes, and people's pushes meanwhile.
func TestPullRequestBranches(t *testing.T) {
	for name, tt := range map[string]struct {
		people map[string]string // files that a person has pushed to the branch meanwhile
		again  map[string]string // files of the next session, which began before that
		state  ralph.ChangeState
		status ralph.Status
		has    map[string]string // files of the branch then
	}{
		"nobody pushes": {nil, map[string]string{"b": "2\n"}, ralph.Reviewing, ralph.Merging, map[string]string{"a": "1\n", "b": "2\n"}},
		"a person pushes another file": {
			map[string]string{"c": "theirs\n"},
			map[string]string{"b": "2\n"},
			ralph.Reviewing, ralph.Merging,
			map[string]string{"a": "1\n", "b": "2\n", "c": "theirs\n"},
		},
		"a person pushes the same line": {
			map[string]string{"b": "theirs\n"},
			map[string]string{"b": "2\n"},
			ralph.SentBack, ralph.Pending,
			map[string]string{"a": "1\n", "b": "theirs\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newForgeYard(t)
			c := y.work("Edit a", map[string]string{"a": "1\n"})
			y.merge()
			branch := fmt.Sprintf("ralph/TASK-%d-edit-a", c.TaskID)
			if c = y.change(c.ID); c.State != ralph.Reviewing || y.in(y.remote, "rev-parse", branch) != c.To {
				t.Fatalf("the change is %s (%s)", c.State, c.Reason)
			}
			if y.in(y.remote, "log", "--format=%s", "main") != "Begin" {
				t.Error("the target has moved")
			}
			y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error {
				return tx.ReviewRound(c, c.To, c.Tree, "a review", "", nil)
			}))
			next := y.made(c.To, "Again", tt.again)
			if tt.people != nil {
				y.pushes(branch, tt.people)
			}
			next.TaskID = c.TaskID
			next = y.queue("", next)
			theirs := y.in(y.remote, "rev-parse", branch)
			y.merge()
			if next = y.change(next.ID); next.State != tt.state {
				t.Errorf("the change is %s (%s), want %s", next.State, next.Reason, tt.state)
			}
			if is := y.task(c.TaskID); is.Status != tt.status {
				t.Errorf("the task is %s: %s", is.Status, is.StatusReason)
			}
			y.in(y.remote, "merge-base", "--is-ancestor", theirs, branch) // nothing is overwritten
			for file, want := range tt.has {
				if got := y.in(y.remote, "show", branch+":"+file) + "\n"; got != want {
					t.Errorf("%s is %q, want %q", file, got, want)
				}
			}
		})
	}
}

// TestAConflictWithTheBase is resolved by a session that begins at the target: the branch is continued, and merges.
func TestAConflictWithTheBase(t *testing.T) {
	t.Parallel()
	y := newForgeYard(t)
	c := y.work("Edit a", map[string]string{"a": "ours\n"})
	y.merge()
	c = y.change(c.ID)
	branch := y.branchName(c)
	y.pushes("main", map[string]string{"a": "theirs\n"})
	head, tree, err := y.Pull(t.Context(), c, branch)
	y.no(err)
	y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.ReviewRound(c, head, tree, "a conflict", "", nil) }))
	y.Links.remote.seen.Store(nil)
	next := y.change(y.again(c.TaskID, map[string]string{"a": "both\n"}).ID)
	y.merge()
	if next = y.change(next.ID); next.State != ralph.Reviewing {
		t.Fatalf("the change is %s (%s)", next.State, next.Reason)
	}
	y.in(y.remote, "merge-base", "--is-ancestor", head, branch)
	y.in(y.remote, "merge-base", "--is-ancestor", "main", branch)
	if got := y.in(y.remote, "show", branch+":a"); got != "both" {
		t.Errorf("a is %q", got)
	}
}

// pushes has a person commit files to a branch of the remote.
func (y *forgeYard) pushes(branch string, files map[string]string) {
	y.t.Helper()
	y.in(y.remote, "update-ref", "refs/heads/"+branch, y.onto(y.in(y.remote, "rev-parse", branch), "Theirs", files))
}

// onto makes a commit of a person upon one of the remote, and returns it.
func (y *forgeYard) onto(base, subject string, files map[string]string) string {
	y.t.Helper()
	dir := y.t.TempDir()
	y.in(dir, "clone", "-q", "--no-checkout", y.remote, ".")
	y.in(dir, "checkout", "-q", "--detach", base)
	y.put(dir, files)
	y.in(dir, "-c", "user.name=Bob", "-c", "user.email=bob@example.org", "commit", "-qm", subject)
	y.in(dir, "push", "-q", "origin", "HEAD:refs/theirs/x", "--force")
	return y.in(dir, "rev-parse", "HEAD")
}

// TestLandedPullRequests: after each way of merging at the forge, all of the change is known, undone and shown, and its
// branch is deleted.
func TestLandedPullRequests(t *testing.T) {
	two := map[string]string{"a": "1\n", "b": "2\n"}
	for name, tt := range map[string]struct {
		merges func(y *forgeYard, dir, branch string) // in a clone at into
		files  []string
	}{
		"merged into another branch": {func(y *forgeYard, dir, branch string) {
			y.in(dir, "merge", "-q", "--no-ff", "-m", "Merge", "origin/"+branch)
		}, []string{"a", "b"}},
		"merged": {func(y *forgeYard, dir, branch string) {
			y.in(dir, "merge", "-q", "--no-ff", "-m", "Merge", "origin/"+branch)
		}, []string{"a", "b"}},
		"squashed": {func(y *forgeYard, dir, branch string) {
			y.in(dir, "merge", "-q", "--squash", "origin/"+branch)
			y.in(dir, "commit", "-qm", "Squashed (#3)")
		}, []string{"a", "b"}},
		"rebased": {func(y *forgeYard, dir, branch string) {
			y.in(dir, "cherry-pick", y.in(dir, "rev-parse", "origin/"+branch+"~1"), y.in(dir, "rev-parse", "origin/"+branch))
		}, []string{"a", "b"}},
		"fast-forwarded": {func(y *forgeYard, dir, branch string) {
			y.in(dir, "checkout", "-q", "-B", "main", "origin/"+branch)
		}, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newForgeYard(t)
			y.Squash = true // a rebase of the forge leaves merge commits out
			c := y.work("Edit a", map[string]string{"a": "1\n"})
			y.merge()
			c = y.change(c.ID)
			branch := y.branchName(c)
			y.pushes(branch, map[string]string{"b": two["b"]}) // a person's commit is part of it
			into := "main"
			if strings.HasSuffix(name, "another branch") {
				into = "release"
				y.in(y.remote, "branch", into, "main")
			}
			dir := y.person(into)
			if name != "fast-forwarded" {
				y.put(dir, map[string]string{"c": "meanwhile\n"})
				y.in(dir, "commit", "-qm", "Meanwhile")
			}
			tt.merges(y, dir, branch)
			y.in(dir, "push", "-q", "origin", into)
			merged, head := y.in(dir, "rev-parse", into), y.in(y.remote, "rev-parse", branch)
			base, files, err := y.Landed(t.Context(), into, branch, merged, head)
			y.no(err)
			var names []string
			for _, f := range files {
				names = append(names, f.Path)
			}
			if !slices.Equal(names, tt.files) {
				t.Errorf("it has changed %q, want %q (base %q)", names, tt.files, base)
			}
			y.no(y.DropBranch(t.Context(), branch, head))
			y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error {
				p := store.ForgePull{Number: 3, TaskID: c.TaskID, ChangeID: c.ID, Branch: branch, Open: true}
				return tx.ReviewMerged(p, merged, base, into, files)
			}))
			if left := y.in(y.remote, "branch", "--list", branch) + y.git("branch", "--list", branch); left != "" {
				t.Errorf("%s stays", left)
			}
			from, to := y.change(c.ID).Compared()
			if got := y.git("diff", "--name-only", from, to); got != strings.Join(tt.files, "\n") {
				t.Errorf("ralph diff shows %q", got)
			}
			undo, conflicts, err := y.Reverse(t.Context(), []ralph.Change{y.change(c.ID)})
			y.no(err)
			if len(conflicts) > 0 || y.git("show", undo.Head+":a") != strings.TrimSpace(lines("a")) ||
				y.git("show", undo.Head+":b") != strings.TrimSpace(lines("b")) {
				t.Errorf("the undo leaves something, conflicts %q", conflicts)
			}
		})
	}
}

// TestABranchThatIsKept has commits that the merge has not, or is checked out.
func TestABranchThatIsKept(t *testing.T) {
	t.Parallel()
	y := newForgeYard(t)
	c := y.work("Edit a", map[string]string{"a": "1\n"})
	y.merge()
	c = y.change(c.ID)
	branch := y.branchName(c)
	y.pushes(branch, map[string]string{"b": "late\n"})
	y.git("checkout", "-q", branch)
	y.no(y.DropBranch(t.Context(), branch, c.To))
	if y.in(y.remote, "branch", "--list", branch) == "" || y.git("branch", "--list", branch) == "" {
		t.Error("it is gone")
	}
}

// TestTheNextBranchOfATask whose pull request was closed is another one: no push is forced.
func TestTheNextBranchOfATask(t *testing.T) {
	t.Parallel()
	y := newForgeYard(t)
	c := y.work("Edit a", map[string]string{"a": "1\n"})
	y.merge()
	c = y.change(c.ID)
	y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error {
		p := store.ForgePull{Number: 3, TaskID: c.TaskID, ChangeID: c.ID, Branch: y.branchName(c), Open: true}
		if err := tx.PutForgePull(p); err != nil {
			return err
		}
		if err := tx.ReviewClosed(p, "ann"); err != nil {
			return err
		}
		return tx.Retry(c.TaskID, "ann")
	}))
	next := y.change(y.again(c.TaskID, map[string]string{"a": "another\n"}).ID)
	y.merge()
	if next = y.change(next.ID); next.State != ralph.Reviewing {
		t.Fatalf("the change is %s (%s)", next.State, next.Reason)
	}
	if got := y.in(y.remote, "log", "--format=%s", "main.."+y.branchName(next)); strings.Contains(got, "Edit a\nEdit a") || y.branchName(next) == y.branchName(c) {
		t.Errorf("%s has %q", y.branchName(next), got)
	}
}

// TestConflictsOfABranch are seen as the remote has it, or as it was fetched last.
func TestConflictsOfABranch(t *testing.T) {
	t.Parallel()
	y := newForgeYard(t)
	c := y.work("Edit a", map[string]string{"a": "1\n"})
	y.merge()
	branch := y.branchName(y.change(c.ID))
	conflicts := func(fetch bool) bool {
		y.Links.remote.seen.Store(nil)
		is, err := y.Conflicts(t.Context(), branch, fetch)
		y.no(err)
		return is
	}
	if conflicts(true) || conflicts(false) {
		t.Error("it conflicts with nothing")
	}
	y.pushes("main", map[string]string{"a": "theirs\n"})
	if !conflicts(false) || !conflicts(true) {
		t.Error("it conflicts with the target")
	}
	y.pushes(branch, map[string]string{"a": "theirs\n"})
	if !conflicts(false) || conflicts(true) {
		t.Error("a person has resolved that")
	}
}

// branchName is the branch of a change in review.
func (y *forgeYard) branchName(c ralph.Change) string {
	y.t.Helper()
	y.no(y.Store.View(y.t.Context(), func(tx *store.Tx) (err error) { c, err = tx.Change(c.ID); return err }))
	return c.Branch
}

// TestAStrayBranch is not where the queue has left it: it is somebody else's, or was deleted, or rewritten.
func TestAStrayBranch(t *testing.T) {
	const name = "ralph/TASK-1-edit-a"
	review := func(y *forgeYard, c ralph.Change) {
		y.no(y.Store.Tx(y.t.Context(), func(tx *store.Tx) error {
			return tx.PutForgePull(store.ForgePull{Number: 3, TaskID: c.TaskID, ChangeID: c.ID, Branch: name, Open: true})
		}))
		head, tree, err := y.Pull(y.t.Context(), c, name)
		y.no(err)
		if head == "" {
			y.t.Fatal("there is nothing to begin with")
		}
		y.no(y.Store.Tx(y.t.Context(), func(tx *store.Tx) error { return tx.ReviewRound(c, head, tree, "a review", "", nil) }))
	}
	for what, tt := range map[string]struct {
		before func(y *forgeYard)                 // the first push
		then   func(y *forgeYard, c ralph.Change) // after it
		branch string                             // of the last change, or its beginning
		has    map[string]string
	}{
		"another queue has one of this name": {
			func(y *forgeYard) {
				y.in(y.remote, "branch", name, y.onto("main", "Other", map[string]string{"b": "other\n"}))
			}, nil, name + "-", map[string]string{"a": "1", "b": strings.TrimSpace(lines("b"))},
		},
		"people have deleted it": {
			nil, func(y *forgeYard, c ralph.Change) {
				y.in(y.remote, "branch", "-D", name)
				review(y, c)
			}, name, map[string]string{"a": "1", "b": "2"},
		},
		"people delete it in a session": {
			nil, func(y *forgeYard, c ralph.Change) {
				review(y, c)
				y.in(y.remote, "branch", "-D", name)
			}, name, map[string]string{"a": "1", "b": "2"},
		},
		"people have rewritten it": {
			nil, func(y *forgeYard, c ralph.Change) {
				y.in(y.remote, "branch", "-f", name, y.onto("main", "Anew", map[string]string{"c": "3\n"}))
				review(y, c)
			}, name, map[string]string{"c": "3", "b": "2", "a": strings.TrimSpace(lines("a"))},
		},
		"its task has another title": {
			nil, func(y *forgeYard, c ralph.Change) {
				review(y, c)
				is := y.task(c.TaskID)
				is.Title = "Other words"
				y.no(y.Store.Tx(y.t.Context(), func(tx *store.Tx) error { return tx.UpdateTask(is) }))
			}, name, map[string]string{"a": "1", "b": "2"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			y := newForgeYard(t)
			if tt.before != nil {
				tt.before(y)
			}
			theirs, _ := y.try(y.remote, "rev-parse", "-q", "--verify", name)
			c := y.work("Edit a", map[string]string{"a": "1\n"})
			y.merge()
			c = y.change(c.ID)
			if tt.then != nil {
				tt.then(y, c)
				next := y.made(y.change(c.ID).Head, "Again", map[string]string{"b": "2\n"})
				next.TaskID = c.TaskID
				next = y.queue("", next)
				y.merge()
				c = y.change(next.ID)
			} else if got := y.in(y.remote, "rev-parse", name); got != theirs {
				t.Errorf("their branch has moved from %s to %s", theirs, got)
			}
			if c.State != ralph.Reviewing || !strings.HasPrefix(c.Branch, tt.branch) || (c.Branch == name) != (tt.branch == name) {
				t.Fatalf("the change is %s on %s (%s)", c.State, c.Branch, c.Reason)
			}
			for file, want := range tt.has {
				if got := y.in(y.remote, "show", c.Branch+":"+file); got != want {
					t.Errorf("%s is %q, want %q", file, got, want)
				}
			}
		})
	}
}
