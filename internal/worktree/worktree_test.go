package worktree_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/internal/worktree"
)

// sh runs a script in dir with a name for git.
func sh(t testing.TB, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// record returns the work tree as a commit.
func record(t *testing.T, tree *worktree.Tree, name string) string {
	t.Helper()
	made, err := tree.Record(t.Context(), t.TempDir(), "refs/ralph/test/"+name, name)
	if err != nil {
		t.Fatal(err)
	}
	return made.Head
}

// changes returns the files that differ between two commits.
func changes(t *testing.T, tree *worktree.Tree, from, to string) []ralph.FileChange {
	t.Helper()
	files, err := tree.Changes(t.Context(), from, to)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestChangesSinceASnapshot are found whatever somebody did with git meanwhile, and neither index nor HEAD is touched.
func TestChangesSinceASnapshot(t *testing.T) {
	base := "git init -q -b main; printf 'a\\nb\\n' > a; echo old > gone; printf 'ignored\\n' > .gitignore; git add .; git commit -qm base; echo mine > untracked; echo edited >> a"
	for _, tt := range []struct {
		name, before, session string
		want                  []ralph.FileChange
	}{
		{"nothing", base, "true", []ralph.FileChange{}},
		{
			"uncommitted and untracked", base, "echo x >> a; echo y > new; rm gone",
			[]ralph.FileChange{{Path: "a", Added: 1, Status: "modified"}, {Path: "gone", Removed: 1, Status: "deleted"}, {Path: "new", Added: 1, Status: "added"}},
		},
		{"committed", base, "echo y > new; git add new; git commit -qm new", []ralph.FileChange{{Path: "new", Added: 1, Status: "added"}}},
		{
			"amended twice", base, "echo y > new; git add new; git commit -qm 1; echo z > new; git commit -qam 2 --amend; git commit -q --allow-empty -m 3 --amend",
			[]ralph.FileChange{{Path: "new", Added: 1, Status: "added"}},
		},
		{
			"committed and reset away", base, "echo y > new; git add new; git commit -qm 1; git reset -q --hard HEAD~1",
			[]ralph.FileChange{{Path: "a", Removed: 1, Status: "modified"}},
		},
		{"on another branch", base, "git stash -q; git switch -qc other; echo y > new; git add new; git commit -qm new; git stash pop -q", []ralph.FileChange{{Path: "new", Added: 1, Status: "added"}}},
		{"ignored files do not count", base, "echo x > ignored", []ralph.FileChange{}},
		{"ralph's own do not count", base, "mkdir .ralph; echo x > .ralph/db", []ralph.FileChange{}},
		{"an unusual name", base, "echo x > \"$(printf 'q\"\\n\\tü -n')\"", []ralph.FileChange{{Path: "q\"\n\tü -n", Added: 1, Status: "added"}}},
		{"sha256", strings.Replace(base, "init -q", "init -q --object-format=sha256", 1), "echo y > new", []ralph.FileChange{{Path: "new", Added: 1, Status: "added"}}},
		{"split index", base + "; git update-index --split-index", "echo y > new", []ralph.FileChange{{Path: "new", Added: 1, Status: "added"}}},
		{"a nested repository without a commit", base, "git init -q nested; echo y > new", []ralph.FileChange{{Path: "new", Added: 1, Status: "added"}}},
		{
			"a nested repository that .gitmodules hides", base + "; git init -q in; git -C in commit -q --allow-empty -m 1; git add in; printf '[submodule \"in\"]\npath=in\nurl=./in\nignore=all\n' > .gitmodules; git add .gitmodules; git commit -qm in",
			"git -C in commit -q --allow-empty -m 2; git add -f in",
			[]ralph.FileChange{{Path: "in", Added: 1, Removed: 1, Status: "modified"}},
		},
		{"a binary file", base, "printf '\\000\\001' > bin", []ralph.FileChange{{Path: "bin", Status: "added"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			sh(t, dir, tt.before)
			tree, err := worktree.Open(t.Context(), dir, ".ralph")
			if err != nil {
				t.Fatal(err)
			}
			before := record(t, tree, "before")
			sh(t, dir, tt.session)
			state := sh(t, dir, "git rev-parse HEAD; git status --porcelain; cat .git/index | cksum")
			after := record(t, tree, "after")
			if now := sh(t, dir, "git rev-parse HEAD; git status --porcelain; cat .git/index | cksum"); now != state {
				t.Errorf("it was\n%s and is\n%s", state, now)
			}
			files := changes(t, tree, before, after)
			if diff := cmp.Diff(tt.want, files); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNothingOfTheRepositoryRuns: an agent can write its configuration.
func TestNothingOfTheRepositoryRuns(t *testing.T) {
	dir, trap := t.TempDir(), filepath.Join(t.TempDir(), "sprung")
	sh(t, dir, `git init -q; echo x > a; git add a; git commit -qm a; echo '* filter=evil diff=evil' > .gitattributes
		for s in clean smudge process; do git config filter.evil.$s "touch '`+trap+`'; cat"; done
		git config filter.evil.required true
		git config diff.evil.textconv "touch '`+trap+`'; cat"; git config diff.evil.command "touch '`+trap+`'"; git config diff.external "touch '`+trap+`'"
		git config core.fsmonitor "touch '`+trap+`'"
		mkdir -p .git/hooks; printf '#!/bin/sh\ntouch "`+trap+`"\n' > .git/hooks/post-index-change; chmod +x .git/hooks/post-index-change`)
	index, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := worktree.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	before := record(t, tree, "before")
	if err := os.WriteFile(filepath.Join(dir, "b"), []byte("y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if files := changes(t, tree, before, record(t, tree, "after")); len(files) != 1 {
		t.Errorf("got %v", files)
	}
	if _, err := os.Stat(trap); !errors.Is(err, os.ErrNotExist) {
		t.Error("a program of the repository's configuration was run")
	}
	if now, err := os.ReadFile(filepath.Join(dir, ".git", "index")); err != nil || string(now) != string(index) {
		t.Errorf("the index was touched (%v)", err)
	}
}

func TestAProjectBelowTheTopSeesAllOfTheRepository(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q; mkdir sub; echo x > sub/a; echo x > b; git add .; git commit -qm base")
	sub := filepath.Join(dir, "sub")
	tree, err := worktree.Open(t.Context(), sub)
	if err != nil {
		t.Fatal(err)
	}
	before := record(t, tree, "before")
	sh(t, dir, "echo y >> sub/a; echo y >> b")
	files := changes(t, tree, before, record(t, tree, "after"))
	want := []ralph.FileChange{{Path: "../b", Added: 1, Status: "modified"}, {Path: "a", Added: 1, Status: "modified"}}
	if !cmp.Equal(files, want) {
		t.Errorf("got %v; want %v", files, want)
	}
}

func TestNoRepositoryIsFound(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := worktree.Find(t.Context(), dir); !errors.Is(err, worktree.ErrNoRepo) {
		t.Errorf("got %v, want ErrNoRepo", err)
	}
	if _, err := worktree.Open(t.Context(), dir); !errors.Is(err, worktree.ErrNoRepo) {
		t.Errorf("got %v, want ErrNoRepo", err)
	}
	t.Setenv("PATH", dir)
	if _, err := worktree.Open(t.Context(), dir); !errors.Is(err, worktree.ErrNoGit) {
		t.Errorf("got %v, want ErrNoGit", err)
	}
}

func TestFindSharesTheStateOfLinkedWorkTrees(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q main; cd main; git commit -q --allow-empty -m 1; git worktree add -q ../linked")
	_, common, err := worktree.Find(t.Context(), filepath.Join(dir, "main"))
	if err != nil {
		t.Fatal(err)
	}
	top, linked, err := worktree.Find(t.Context(), filepath.Join(dir, "linked"))
	if err != nil || linked != common || filepath.Base(top) != "linked" {
		t.Errorf("got %s and %s, %v; want the git directory %s", top, linked, err, common)
	}
}

// TestAnIndexThatWasLeftBehindIsNotBelieved: a killed snapshot leaves an index whose objects may be
// gone.
func TestAnIndexThatWasLeftBehindIsNotBelieved(t *testing.T) {
	dir, scratch := t.TempDir(), t.TempDir()
	sh(t, dir, "git init -q; echo a > a; touch -t 202001010000 a") // long ago, so that git trusts its index
	tree, err := worktree.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	first, err := tree.Snapshot(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(scratch, "objects")); err != nil {
		t.Fatal(err)
	}
	again, err := tree.Snapshot(t.Context(), scratch)
	if err != nil || again.Content != first.Content {
		t.Errorf("got %q, %v; want %q", again.Content, err, first.Content)
	}
}

// TestALockThatWasLeftBehindIsNoObstacle: its holder was killed.
func TestALockThatWasLeftBehindIsNoObstacle(t *testing.T) {
	dir, scratch := t.TempDir(), t.TempDir()
	sh(t, dir, "git init -q; echo a > a; git add a; git commit -qm base; echo b > b")
	tree, err := worktree.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want, err := tree.Snapshot(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sh(t, scratch, "touch index.lock")
	if got, err := tree.Snapshot(t.Context(), scratch); err != nil || got.Content != want.Content {
		t.Errorf("got %q, %v; want %q", got.Content, err, want.Content)
	}
}
