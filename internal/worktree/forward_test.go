package worktree_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ralph/internal/worktree"
)

// repository makes one whose second commit is the branch next, and opens it.
func repository(t *testing.T) (tree *worktree.Tree, dir, first, next string) {
	t.Helper()
	dir = t.TempDir()
	sh(t, dir, `git init -qb main . && git config user.name a && git config user.email a@b
		echo 1 > a.txt && echo 1 > b.txt && git add . && git commit -qm one && git checkout -qb next
		echo 2 > a.txt && echo new > made.txt && git rm -q b.txt && git add . && git commit -qm two && git checkout -q main`)
	tree, err := worktree.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	id := func(name string) string { return strings.TrimSpace(sh(t, dir, "git rev-parse "+name)) }
	return tree, dir, id("main"), id("next")
}

// killing puts a git first in PATH that is killed once at a command, before or after it has done its work.
func killing(t *testing.T, command string, after bool) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	real := ""
	if after {
		real = git + ` "$@";`
	}
	script := fmt.Sprintf("#!/bin/sh\nfor a; do if [ \"$a\" = %s ] && mkdir %s/killed 2>/dev/null; then %s kill -9 $$; fi; done\nexec %s \"$@\"\n",
		command, dir, real, git)
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Cleanup(func() {
		if _, err := os.Stat(filepath.Join(dir, "killed")); err != nil {
			t.Errorf("git %s was not killed: %v", command, err)
		}
	})
}

func TestAGitThatWasKilledIsTriedOnceMore(t *testing.T) {
	t.Run("merge-tree", func(t *testing.T) {
		tree, _, first, next := repository(t)
		killing(t, "merge-tree", false)
		if m, err := tree.MergeTree(t.Context(), first, next); err != nil || m.Tree == "" {
			t.Errorf("%+v, %v", m, err)
		}
	})
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("update-ref %v", after), func(t *testing.T) {
			tree, dir, first, next := repository(t)
			sh(t, dir, "git update-ref refs/ralph/target/main main")
			killing(t, "update-ref", after)
			if moved, err := tree.Move(t.Context(), "refs/ralph/target/main", first, next, "test"); err != nil || !moved {
				t.Errorf("%v, %v", moved, err)
			}
		})
	}
}

// over has ended, which nobody is told in time.
type over struct{ context.Context }

func (over) Err() error { return context.Canceled }

// TestAnEndedContextIsNotAnAbsence: a question to git that comes too late is not answered by "there is none".
func TestAnEndedContextIsNotAnAbsence(t *testing.T) {
	tree, _, first, next := repository(t)
	late := over{context.Background()}
	if all, err := tree.History(late, []string{next}); err == nil && !all[first] {
		t.Errorf("its history is %v", all)
	}
	if m, err := tree.MergeTree(late, first, next); err == nil && m.Tree == "" {
		t.Error("the merge has no tree")
	}
	if m, err := tree.MergeTree(t.Context(), first, next); err != nil || m.Tree == "" {
		t.Errorf("the merge afterwards: %+v, %v", m, err)
	}
}

func TestAStaleLockOfOurOwnRefsIsRemoved(t *testing.T) {
	for _, test := range []struct {
		ref   string
		old   bool
		moves bool
	}{
		{"refs/ralph/target/main", true, true},
		{"refs/ralph/target/main", false, false}, // a git may be about to use it
		{"refs/heads/main", true, false},         // people's: it is said
	} {
		tree, dir, first, next := repository(t)
		sh(t, dir, "git update-ref refs/ralph/target/main main")
		lock := filepath.Join(dir, ".git", test.ref+".lock")
		if err := os.WriteFile(lock, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if long := time.Now().Add(-time.Hour); test.old {
			if err := os.Chtimes(lock, long, long); err != nil {
				t.Fatal(err)
			}
		}
		moved, err := tree.Move(t.Context(), test.ref, first, next, "test")
		if moved != test.moves || (err == nil) != test.moves {
			t.Errorf("%+v: %v, %v", test, moved, err)
		}
		if locked, err := tree.Locked(test.ref); err != nil || (locked == "") != test.moves {
			t.Errorf("%+v: locked by %q, %v", test, locked, err)
		}
	}
}

// TestAFastForwardThatWasLeftHalfDoneIsFinished: git had written the files, and could not move the branch, or was
// killed. Files that people have edited since stay, and only they are named.
func TestAFastForwardThatWasLeftHalfDoneIsFinished(t *testing.T) {
	for name, test := range map[string]struct {
		before, killed string
		refused        string
		status         string // afterwards
	}{
		"nothing":                      {},
		"index and files":              {before: "git read-tree -mu next"},
		"index and files, edited":      {before: "git read-tree -mu next; echo mine > a.txt", status: " M a.txt\n"},
		"one file":                     {before: "echo 2 > a.txt"},
		"one file, and one is deleted": {before: "echo new > made.txt; rm b.txt"},
		"one file, and people's":       {before: "echo new > made.txt; echo mine > a.txt", refused: "you have edits in a.txt (commit them first)"},
		"a file in the way":            {before: "echo 2 > a.txt; echo mine > made.txt", refused: "you have untracked files in the way: made.txt (move or commit them first)"},
		"a staged file":                {before: "echo mine > a.txt; git add a.txt", refused: "you have edits in a.txt (commit them first)"},
		"a lock of the branch":         {before: "touch .git/refs/heads/main.lock", refused: "it is locked by .git/refs/heads/main.lock (remove that file, unless a git is at work)"},
		"a lock of the index":          {before: "touch .git/index.lock", refused: "it is locked by .git/index.lock (remove that file, unless a git is at work)"},
		"a kill":                       {killed: "merge"},
		"a kill of files half written": {before: "echo 2 > a.txt", killed: "merge"},
	} {
		t.Run(name, func(t *testing.T) {
			_, dir, first, next := repository(t)
			if test.before != "" {
				sh(t, dir, test.before)
			}
			status := sh(t, dir, "git status --porcelain")
			if test.killed != "" {
				killing(t, test.killed, false)
			}
			refused, err := open(t, dir).FastForward(t.Context(), next)
			if err != nil || refused != test.refused {
				t.Fatalf("refused %q, %v", refused, err)
			}
			at, want := strings.TrimSpace(sh(t, dir, "git rev-parse main")), next
			if test.refused != "" {
				want = first
			}
			is := sh(t, dir, "git status --porcelain")
			if at != want || test.refused == "" && is != test.status {
				t.Errorf("at %s, want %s; status\n%s", at, want, is)
			}
			if test.refused != "" && is != status {
				t.Errorf("status before\n%s\nand after\n%s", status, is)
			}
		})
	}
}

// TestDebrisIsNotInTheWay: untracked files that a tool makes again give way to those of a commit. Others do not, nor
// does anything beside them.
func TestDebrisIsNotInTheWay(t *testing.T) {
	for also, refused := range map[string]string{
		"": "", "notes~": "you have untracked files in the way: __pycache__/a.pyc, notes~ (move or commit them first)",
	} {
		_, dir, _, _ := repository(t)
		sh(t, dir, "git checkout -q -b theirs; mkdir __pycache__; echo theirs | tee __pycache__/a.pyc "+also+" >/dev/null; git add -Af; git commit -qm x; "+
			"git checkout -q main; mkdir -p __pycache__; echo mine | tee __pycache__/a.pyc "+also+" >/dev/null")
		got, err := open(t, dir).FastForward(t.Context(), strings.TrimSpace(sh(t, dir, "git rev-parse theirs")))
		if err != nil || got != refused {
			t.Errorf("refused %q, %v, want %q", got, err, refused)
		}
		if is, want := sh(t, dir, "cat __pycache__/*"), map[bool]string{true: "theirs\n", false: "mine\n"}[refused == ""]; is != want {
			t.Errorf("the bytecode is %q, want %q", is, want)
		}
	}
}
