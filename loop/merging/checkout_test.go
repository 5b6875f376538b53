package merging

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/store"
)

// TestThePersonsCheckout: a merge moves people's branch and work tree if
// that touches nothing of theirs. Each row is what they do before a change
// of file a is merged; in any case their work is unchanged afterwards.
func TestThePersonsCheckout(t *testing.T) {
	t.Parallel()
	mine := edit(lines("a"), 8, "mine")
	for _, tt := range []struct {
		name   string
		before func(y *yard)
		behind string   // why the branch did not follow; "" if it did
		keeps  []string // files and their content, alternating
		clean  bool     // git status is empty
	}{
		{"nothing", func(*yard) {}, "", nil, true},
		{"another branch", func(y *yard) { y.git("checkout", "-qb", "other") }, "", []string{"a", lines("a")}, true},
		{"a detached HEAD", func(y *yard) { y.git("checkout", "-q", "--detach") }, "", []string{"a", lines("a")}, true},
		{"an edit of another file", func(y *yard) { y.write("b", "mine\n") }, "", []string{"b", "mine\n"}, false},
		{"a staged edit of another file", func(y *yard) { y.write("b", "mine\n"); y.git("add", "b") }, "", []string{"b", "mine\n"}, false},
		{"an edit of the same file", func(y *yard) { y.write("a", mine) }, "you have edits in a (commit them first)", []string{"a", mine}, false},
		{"a staged edit of the same file", func(y *yard) { y.write("a", mine); y.git("add", "a") }, "you have edits in a", []string{"a", mine}, false},
		{"an untracked file in the way", func(y *yard) { y.write("new", "mine\n") }, "you have untracked files in the way: new", []string{"new", "mine\n"}, false},
		{"an ignored file in the way", func(y *yard) { y.write("x.env", "mine\n") }, "you have untracked files in the way: x.env", []string{"x.env", "mine\n"}, true},
		{"a stash", func(y *yard) { y.write("a", mine); y.git("stash") }, "", nil, true},
		{"a merge under way", func(y *yard) {
			y.git("checkout", "-qb", "other")
			y.write("c", "other\n")
			y.git("commit", "-qam", "Other")
			y.git("checkout", "-q", "main")
			y.git("merge", "--no-ff", "--no-commit", "other")
		}, "a merge is under way", []string{"c", "other\n"}, false},
		{"a rebase under way", func(y *yard) {
			y.write("c", "one\n")
			y.git("commit", "-qam", "One")
			y.git("branch", "other", "HEAD^")
			y.git("checkout", "-q", "other")
			y.write("c", "two\n")
			y.git("commit", "-qam", "Two")
			y.git("checkout", "-q", "main")
			if _, err := y.try(y.dir, "rebase", "other"); err == nil {
				y.t.Fatal("the rebase met no conflict")
			}
		}, "a rebase is under way", nil, false},
		{"a sparse checkout", func(y *yard) {
			y.write("dir/file", "x\n")
			y.git("add", ".")
			y.git("commit", "-qm", "Dir")
			y.git("sparse-checkout", "set", "dir")
		}, "", []string{"dir/file", "x\n"}, true},
		{"the branch in another work tree", func(y *yard) {
			y.git("checkout", "-qb", "other")
			y.git("worktree", "add", "-q", filepath.Join(y.t.TempDir(), "second"), "main")
		}, "", []string{"a", lines("a")}, true},
		{"the branch in another work tree, with an edit", func(y *yard) {
			y.git("checkout", "-qb", "other")
			dir := filepath.Join(y.t.TempDir(), "second")
			y.git("worktree", "add", "-q", dir, "main")
			y.no(os.WriteFile(filepath.Join(dir, "a"), []byte(mine), 0o600))
		}, "you have edits in a", []string{"a", lines("a")}, true},
		{"a hook that refuses", func(y *yard) {
			for _, hook := range []string{"post-merge", "post-checkout", "reference-transaction", "pre-merge-commit"} {
				y.no(os.WriteFile(filepath.Join(y.dir, ".git/hooks", hook), []byte("#!/bin/sh\ntouch "+y.dir+"/ran\nexit 1\n"), 0o700))
			}
		}, "", []string{"ran", "(ran is not there)"}, true},
		{"a lock of the index", func(y *yard) { y.write(".git/index.lock", "") }, "it is locked by .git/index.lock", []string{"a", lines("a")}, true},
		{
			"a lock of the branch", func(y *yard) { y.write(".git/refs/heads/main.lock", "") }, "it is locked by .git/refs/heads/main.lock",
			[]string{"a", lines("a")},
			true,
		},
		{"a lock of the branch, which is not checked out", func(y *yard) {
			y.git("checkout", "-qb", "other")
			y.write(".git/refs/heads/main.lock", "")
		}, "refs/heads/main.lock", []string{"a", lines("a")}, true},
		{"a file with a filter", func(y *yard) {
			y.write(".gitattributes", "a filter=up\n")
			y.git("add", ".")
			y.git("commit", "-qm", "Attributes")
		}, "a filter has to write a", []string{"a", lines("a")}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			tt.before(y)
			status, stashes := y.git("status", "--porcelain"), y.git("stash", "list")
			files := map[string]string{"a": edit(lines("a"), 1, "changed"), "new": "new\n"}
			if strings.Contains(tt.name, "ignored") {
				files = map[string]string{".gitignore": "", "x.env": "theirs\n"}
			}
			c := y.workOn(y.git("rev-parse", "main"), "Work", files)
			local := y.git("rev-parse", "main")
			y.merge()
			y.merged(c)
			point, is := y.git("rev-parse", PointRef("main")), y.git("rev-parse", "main")
			if got := y.state().Behind; (tt.behind == "") != (is == point) || tt.behind == "" && got != "" || !strings.Contains(got, tt.behind) {
				t.Errorf("main follows: %t, it is behind for %q", is == point, got)
			}
			if tt.behind != "" && is != local {
				t.Error("main has moved")
			}
			for i := 0; i < len(tt.keeps); i += 2 {
				if got := y.read(tt.keeps[i]); got != tt.keeps[i+1] {
					t.Errorf("%s: %q", tt.keeps[i], got)
				}
			}
			if got := y.git("status", "--porcelain"); got != status || (got == "") != tt.clean {
				t.Errorf("status before:\n%s\nand after:\n%s", status, got)
			}
			if y.git("stash", "list") != stashes {
				t.Error("the stash has changed")
			}
		})
	}
}

// TestItFastForwardsOnceItCan, when the obstacle is gone.
func TestItFastForwardsOnceItCan(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.write("a", "mine\n")
	y.work("One", map[string]string{"a": "theirs\n"})
	y.merge()
	two := y.work("Two", map[string]string{"b": "theirs\n"}) // based on what has been merged
	y.merge()
	y.merged(two)
	if y.state().Behind == "" || y.git("log", "--format=%s", "main") != "Begin" {
		t.Fatal("main has moved over an edit")
	}
	y.git("checkout", "a")
	y.merge()
	if y.state().Behind != "" || y.git("rev-parse", "main") != y.git("rev-parse", PointRef("main")) || y.git("status", "--porcelain") != "" {
		t.Errorf("main did not follow: %s", y.state().Behind)
	}
}

// TestPeoplesCommits become part of the next candidate, whether or not
// their branch could follow. They may also take commits back.
func TestPeoplesCommits(t *testing.T) {
	t.Parallel()
	t.Run("upon what was merged", func(t *testing.T) {
		y := newYard(t)
		one := y.work("One", map[string]string{"a": "x\n"})
		y.merge()
		y.write("b", "mine\n")
		y.git("commit", "-qam", "Mine")
		two := y.work("Two", map[string]string{"c": "x\n"})
		y.merge()
		y.merged(two)
		if y.read("b") != "mine\n" || y.read("c") != "x\n" {
			t.Error(y.git("log", "--graph", "--oneline", "--all"))
		}
		// The order of changes need not be that of their merges.
		if gone, err := y.Reverted(t.Context(), []ralph.Change{y.change(one.ID), y.change(two.ID)}); err != nil || len(gone) > 0 {
			t.Errorf("taken back: %+v, %v", gone, err)
		}
	})
	t.Run("beside what was merged", func(t *testing.T) {
		y := newYard(t)
		y.write("a", "mine\n")
		one := y.work("One", map[string]string{"a": "x\n"})
		y.merge()
		y.git("checkout", "a")
		y.write("b", "mine\n")
		y.git("commit", "-qam", "Mine")
		two := y.work("Two", map[string]string{"c": "x\n"})
		y.merge()
		y.merged(one)
		y.merged(two)
		if y.read("a") != "x\n" || y.read("b") != "mine\n" || y.read("c") != "x\n" || y.git("status", "--porcelain") != "" {
			t.Error(y.git("log", "--graph", "--oneline", "--all"))
		}
	})
	t.Run("back behind what could not follow", func(t *testing.T) {
		y := newYard(t)
		y.write("b", "mine\n")
		y.git("commit", "-qam", "Mine")
		y.write("a", "mine\n")
		one := y.work("One", map[string]string{"a": "x\n"})
		y.merge()
		merged := y.change(one.ID).To
		y.git("reset", "-q", "--hard", "HEAD^")
		two := y.work("Two", map[string]string{"c": "x\n"})
		y.merge()
		y.merged(two)
		if y.read("a") != lines("a") || y.read("b") != lines("b") || y.read("c") != "x\n" {
			t.Error(y.git("log", "--graph", "--oneline", "--all"))
		}
		if kept := y.git("for-each-ref", "--format=%(objectname)", "refs/ralph/lost"); kept != merged {
			t.Errorf("kept is %q, and not %s", kept, merged)
		}
		missing, err := y.Missing(t.Context())
		if err != nil || len(missing) != 1 || missing[0].TaskID != one.TaskID {
			t.Errorf("missing: %+v, %v", missing, err)
		}
		said, err := store.Read(t.Context(), y.Store, func(tx *store.Tx) ([]ralph.Event, error) { return tx.Events(0, 1000) })
		if err != nil || !slices.ContainsFunc(said, func(e ralph.Event) bool { return e.Type == ralph.EventType(ralph.TargetRewritten{}) }) {
			t.Errorf("nobody is told: %v", err)
		}
	})
	for name, rewrite := range map[string][]string{
		"reset":                   {"reset", "-q", "--hard", "HEAD^"},
		"amended":                 {"commit", "-q", "--amend", "--allow-empty", "-m", "Amended"},
		"replaced by another one": {"reset", "-q", "--hard", "other"},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.git("branch", "other", y.git("commit-tree", "-m", "Other", "main^{tree}"))
			one := y.work("One", map[string]string{"a": "x\n"})
			y.merge()
			y.merged(one)
			before := y.made(y.git("rev-parse", "main"), "Three", map[string]string{"c": "x\n"})
			y.git(rewrite...)
			mine := y.git("rev-parse", "main")
			y.merge() // nobody follows
			if y.git("rev-parse", "main") != mine {
				t.Fatal("what people took back is there again")
			}
			two := y.work("Two", map[string]string{"b": "x\n"})
			y.merge()
			y.merged(two)
			if y.git("rev-parse", "main^1") != mine {
				t.Errorf("the merge is not upon what people left:\n%s", y.git("log", "--graph", "--oneline", "--all"))
			}
			three := y.queue("Three", before)
			y.merge()
			y.merged(three)
			if files := y.git("diff", "--name-only", mine, "main"); files != "b\nc" {
				t.Errorf("a session that began before brought back what people removed: %s", files)
			}
			missing, err := y.Missing(t.Context())
			if err != nil || len(missing) != 1 || missing[0].TaskID != one.TaskID {
				t.Errorf("missing: %+v, %v", missing, err)
			}
		})
	}
}

// TestOddRepositories get the merged work, and their checkouts follow.
func TestOddRepositories(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		make func(y *yard) map[string]string // what the session does
	}{
		{"a submodule", func(y *yard) map[string]string {
			sub := y.t.TempDir()
			y.in(sub, "init", "-q")
			y.in(sub, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "Sub")
			y.git("submodule", "--quiet", "add", sub, "sub")
			y.git("commit", "-qm", "Submodule")
			return map[string]string{"a": "x\n"}
		}},
		{"a shallow clone", func(y *yard) map[string]string {
			y.write("b", "x\n")
			y.git("commit", "-qam", "More")
			dir := y.t.TempDir()
			y.in(dir, "clone", "-q", "--depth=1", "file://"+y.dir, ".")
			y.dir = dir
			return map[string]string{"a": "x\n"}
		}},
		{"a rename of the case alone", func(*yard) map[string]string { return map[string]string{"A": lines("a")} }},
		{"a name with a quote and an end of line", func(*yard) map[string]string { return map[string]string{"q\"\nx": "x\n"} }},
		{"a branch with a slash", func(y *yard) map[string]string {
			y.git("branch", "-m", "main", "team/main")
			y.git("branch", "main")
			return map[string]string{"a": "x\n"}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			files := tt.make(y)
			y.open(nil)
			y.git("config", "user.name", "Ann")
			y.git("config", "user.email", "ann@example.org")
			c := y.work("Work", files)
			y.merge()
			y.merged(c)
			for name, text := range files {
				if y.git("status", "--porcelain", "--", name) != "" || y.Into == y.git("branch", "--show-current") && y.read(name) != text {
					t.Errorf("%q: %q", name, y.read(name))
				}
			}
		})
	}
}

// TestARemote: its branch decides about merges. After a lost lease the change is built again, and a refusal by the
// remote pauses the queue.
func TestARemote(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) (y *yard, remote string) {
		y, remote = newYard(t, "true"), t.TempDir()
		y.in(remote, "init", "-q", "--bare", "--initial-branch=main")
		y.git("remote", "add", "origin", remote)
		y.git("push", "-q", "origin", "main")
		y.Push = "origin"
		return y, remote
	}
	done := func(y *yard, c ralph.Change) {
		y.t.Helper()
		if task := y.task(c.TaskID); task.Status != ralph.Completed {
			y.t.Fatalf("%s: %s %+v", task.Status, task.StatusReason, y.state())
		}
	}
	t.Run("it takes it", func(t *testing.T) {
		y, remote := begin(t)
		c := y.work("One", map[string]string{"a": "x\n"})
		y.merge()
		done(y, c)
		if y.in(remote, "log", "--format=%s", "-1", "main") != "TASK-1: One" || y.read("a") != "x\n" || y.git("status", "--porcelain") != "" {
			t.Error(y.in(remote, "log", "--oneline", "main"))
		}
	})
	t.Run("it is asked once for all that look within seconds", func(t *testing.T) {
		y, _ := begin(t)
		log := filepath.Join(t.TempDir(), "git.log")
		y.AfterEnv = append(os.Environ(), "GIT_TRACE2_EVENT="+log)
		if _, err := y.Tip(t.Context()); err != nil {
			t.Fatal(err)
		}
		y.Links.remote.seen.Store(new(time.Now().Add(time.Hour))) // whatever the rest takes on a busy machine
		for i := range 8 {
			y.work(fmt.Sprint("Task ", i), map[string]string{fmt.Sprint("file", i): "x\n"})
		}
		for range 3 {
			if _, err := y.Tip(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		y.merge()
		b, err := os.ReadFile(log)
		if n := strings.Count(string(b), `"name":"fetch"`); err != nil || n != 1 {
			t.Errorf("%d fetches, %v", n, err)
		}
	})
	t.Run("somebody else pushes at the same moment", func(t *testing.T) {
		y, remote := begin(t)
		other := y.in(remote, "-c", "user.name=Bob", "-c", "user.email=bob@example.org", "commit-tree", "-p", "main", "-m", "Theirs", "main^{tree}")
		hook := "#!/bin/sh\nrm \"$0\"; git update-ref refs/heads/main " + other
		y.no(os.WriteFile(filepath.Join(remote, "hooks", "update"), []byte(hook), 0o700)) // which git asks before it moves it
		c := y.work("One", map[string]string{"a": "x\n"})
		y.merge()
		done(y, c)
		if got := y.in(remote, "log", "--format=%s", "--first-parent", "main"); got != "TASK-1: One\nTheirs\nBegin" {
			t.Errorf("%s\n%+v", got, y.state())
		}
	})
	t.Run("somebody else has pushed", func(t *testing.T) {
		y, remote := begin(t)
		other := t.TempDir()
		y.in(other, "clone", "-q", remote, ".")
		c := y.work("One", map[string]string{"a": "x\n"})
		first := true
		y.after = func(at string) {
			if at == "stored" && first {
				first = false
				y.in(other, "-c", "user.name=B", "-c", "user.email=b@c", "commit", "-q", "--allow-empty", "-m", "Theirs")
				y.in(other, "push", "-q", "origin", "HEAD:main")
			}
		}
		y.merge()
		done(y, c)
		if got := y.in(remote, "log", "--first-parent", "--format=%s", "main"); got != "TASK-1: One\nTheirs\nBegin" {
			t.Error(got)
		}
	})
	t.Run("killed after the push", func(t *testing.T) {
		y, remote := begin(t)
		c := y.work("One", map[string]string{"a": "x\n"})
		y.after = func(at string) {
			if at == "moved" {
				panic("killed")
			}
		}
		func() {
			defer func() { _ = recover() }()
			_, _ = y.Merge(t.Context())
		}()
		y.after = nil
		y.merge()
		done(y, c)
		if got := y.in(remote, "log", "--first-parent", "--format=%s", "main"); got != "TASK-1: One\nBegin" {
			t.Error(got)
		}
	})
	t.Run("it refuses", func(t *testing.T) {
		y, remote := begin(t)
		y.no(os.WriteFile(filepath.Join(remote, "hooks/pre-receive"), []byte("#!/bin/sh\necho protected branch >&2\nexit 1\n"), 0o700))
		c := y.work("One", map[string]string{"a": "x\n"})
		why := y.merge()
		if task := y.task(c.TaskID); task.Status != ralph.Merging || !strings.Contains(why, "origin refuses main: pre-receive hook declined protected branch") {
			t.Errorf("%s: %s", task.Status, why)
		}
	})
	t.Run("it cannot be reached", func(t *testing.T) {
		y, remote := begin(t)
		c := y.work("One", map[string]string{"a": "x\n"})
		y.no(os.Rename(remote, remote+"-away"))
		if why := y.merge(); why != "waiting for the remote" || y.task(c.TaskID).Status != ralph.Merging || y.state().Failures != 1 {
			t.Errorf("%s; %+v", why, y.state())
		}
	})
}

// TestReasonsOfABranchBehind: the reason is always up to date, also without a run, and looking moves nothing.
func TestReasonsOfABranchBehind(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	const merge = "git merge refs/ralph/target/main"
	says := func(when, reason, command string) {
		t.Helper()
		at := y.git("rev-parse", "main")
		y.no(y.CaughtUp(t.Context()))
		if got := y.state(); got.Behind != reason || got.Command != command {
			t.Errorf("%s: %q, %q", when, got.Behind, got.Command)
		}
		if now := y.git("rev-parse", "main"); now != at {
			t.Errorf("%s: main was moved", when)
		}
	}
	y.write("a", "mine\n")
	y.work("One", map[string]string{"a": "theirs\n", "new": "theirs\n"})
	y.merge()
	says("an edit", "you have edits in a (commit them first)", merge)
	y.git("add", "a")
	says("a staged edit", "you have edits in a (commit them first)", merge)
	y.git("checkout", "-q", "HEAD", "a")
	y.write("new", "mine\n")
	y.write(".git/info/exclude", "new\n")
	says("an ignored file", "you have untracked files in the way: new (move or commit them first)", merge)
	y.no(os.Remove(filepath.Join(y.dir, "new")))
	says("neither", "nothing is in its way any more", merge)
	y.write("a", "mine\n")
	y.git("commit", "-qam", "Mine")
	says("a commit", "you have commits that conflict with it in a", merge)
	if _, err := y.try(y.dir, "merge", "refs/ralph/target/main"); err == nil {
		t.Fatal("there is no conflict")
	}
	says("a merge", "a merge is under way (finish it first)", "git merge --continue")
	y.write("a", "both\n")
	y.git("add", "a")
	y.git("-c", "core.editor=true", "merge", "--continue")
	says("its end", "", "")
}

// TestPeoplesConflictIsNobodysElse: merged work conflicts with later commits of people. A change of another file is
// merged all the same, and the printed command works.
func TestPeoplesConflictIsNobodysElse(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.write("a", "mine\n")
	made := y.work("One", map[string]string{"a": "theirs\n"})
	y.merge()
	y.merged(made)
	if got, want := y.state(), "git merge refs/ralph/target/main"; got.Behind != "you have edits in a (commit them first)" || got.Command != want {
		t.Fatalf("%+v", got)
	}
	y.git("commit", "-qam", "Mine")
	made = y.work("Two", map[string]string{"c": "theirs\n"})
	y.merge()
	y.merged(made)
	if got := y.state(); got.Behind != "you have commits that conflict with it in a" || got.Command != "git merge refs/ralph/target/main" {
		t.Fatalf("%+v", got)
	}
	if _, err := y.try(y.dir, "merge", "refs/ralph/target/main"); err == nil {
		t.Fatal("there is no conflict")
	}
	y.write("a", "both\n")
	y.git("commit", "-qam", "Merged")
	y.merge()
	made = y.work("Three", map[string]string{"b": "theirs\n"})
	y.merge()
	y.merged(made)
	if got := y.state(); got.Behind != "" || y.read("a") != "both\n" || y.read("b") != "theirs\n" || y.read("c") != "theirs\n" {
		t.Errorf("%+v\n%s", got, y.git("log", "--graph", "--oneline", "--all"))
	}
	events, err := store.Read(t.Context(), y.Store, func(tx *store.Tx) ([]ralph.Event, error) { return tx.Events(0, 1000) })
	var said []string
	for _, e := range events {
		d, rerr := e.Read()
		y.no(rerr)
		switch d := d.(type) {
		case ralph.ChangeMerged:
			said = append(said, "merged: "+d.Behind)
		case ralph.TargetBehind:
			said = append(said, "behind: "+d.Reason)
		}
	}
	want := []string{
		"merged: you have edits in a (commit them first)", "behind: you have edits in a (commit them first)",
		"merged: you have commits that conflict with it in a", "behind: you have commits that conflict with it in a",
		"behind: ", "merged: ",
	}
	if err != nil || !slices.Equal(said, want) {
		t.Errorf("%q, %v", said, err)
	}
}
