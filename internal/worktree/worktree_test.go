package worktree_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

func TestChangesAreSeenWhateverTheAgentDidWithGit(t *testing.T) {
	base := "git init -q -b main; printf 'a\\nb\\n' > a; echo old > gone; printf 'ignored\\n' > .gitignore; git add .; git commit -qm base; echo mine > untracked; echo edited >> a"
	for _, tt := range []struct {
		name, before, session string
		want                  []ralph.FileChange
		commits               int
	}{
		{"nothing", base, "true", []ralph.FileChange{}, 0},
		{
			"uncommitted and untracked", base, "echo x >> a; echo y > new; rm gone",
			[]ralph.FileChange{{Path: "a", Added: 1, Status: "modified"}, {Path: "gone", Removed: 1, Status: "deleted"}, {Path: "new", Added: 1, Status: "added"}},
			0,
		},
		{"committed", base, "echo y > new; git add new; git commit -qm new", []ralph.FileChange{{Path: "new", Added: 1, Status: "added"}}, 1},
		{
			"amended twice", base, "echo y > new; git add new; git commit -qm 1; echo z > new; git commit -qam 2 --amend; git commit -q --allow-empty -m 3 --amend",
			[]ralph.FileChange{{Path: "new", Added: 1, Status: "added"}},
			3,
		},
		{
			"committed and reset away", base, "echo y > new; git add new; git commit -qm 1; git reset -q --hard HEAD~1",
			[]ralph.FileChange{{Path: "a", Removed: 1, Status: "modified"}},
			1,
		},
		{"on another branch", base, "git stash -q; git switch -qc other; echo y > new; git add new; git commit -qm new; git stash pop -q", []ralph.FileChange{{Path: "new", Added: 1, Status: "added"}}, 1},
		{"ignored files do not count", base, "echo x > ignored", []ralph.FileChange{}, 0},
		{"ralph's own do not count", base, "mkdir .ralph; echo x > .ralph/db", []ralph.FileChange{}, 0},
		{"an unusual name", base, "echo x > \"$(printf 'q\"\\n\\tü -n')\"", []ralph.FileChange{{Path: "q\"\n\tü -n", Added: 1, Status: "added"}}, 0},
		{"a repository without a commit", "git init -q -b main", "echo x > first", []ralph.FileChange{{Path: "first", Added: 1, Status: "added"}}, 0},
		{"the first commit", "git init -q -b main", "echo x > first; git add .; git commit -qm 1", []ralph.FileChange{{Path: "first", Added: 1, Status: "added"}}, 1},
		{"sha256", strings.Replace(base, "init -q", "init -q --object-format=sha256", 1), "echo y > new", []ralph.FileChange{{Path: "new", Added: 1, Status: "added"}}, 0},
		{"split index", base + "; git update-index --split-index", "echo y > new", []ralph.FileChange{{Path: "new", Added: 1, Status: "added"}}, 0},
		{"a nested repository without a commit", base, "git init -q nested; echo y > new", []ralph.FileChange{{Path: "new", Added: 1, Status: "added"}}, 0},
		{"a binary file", base, "printf '\\000\\001' > bin", []ralph.FileChange{{Path: "bin", Status: "added"}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			sh(t, dir, tt.before)
			tree, err := worktree.Open(t.Context(), dir, ".ralph")
			if err != nil {
				t.Fatal(err)
			}
			scratch := t.TempDir()
			before, err := tree.Snapshot(t.Context(), scratch)
			if err != nil {
				t.Fatal(err)
			}
			sh(t, dir, tt.session)
			after, err := tree.Snapshot(t.Context(), scratch)
			if err != nil {
				t.Fatal(err)
			}
			files, commits, err := tree.Changes(t.Context(), before, after, scratch)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, files); diff != "" {
				t.Error(diff)
			}
			if len(commits) != tt.commits {
				t.Errorf("got %d commits, want %d: %v", len(commits), tt.commits, commits)
			}
			if changed := before.Content != after.Content; changed != (len(tt.want) > 0) {
				t.Errorf("content changed: %t", changed)
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
	scratch := t.TempDir()
	before, err := tree.Snapshot(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b"), []byte("y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	after, err := tree.Snapshot(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := tree.Changes(t.Context(), before, after, scratch)
	if err != nil || len(files) != 1 {
		t.Errorf("got %v, %v", files, err)
	}
	if _, err := os.Stat(trap); !errors.Is(err, os.ErrNotExist) {
		t.Error("a program of the repository's configuration was run")
	}
	if now, err := os.ReadFile(filepath.Join(dir, ".git", "index")); err != nil || string(now) != string(index) {
		t.Errorf("the index was touched (%v)", err)
	}
}

func TestAProjectBelowTheTopSeesOnlyItsOwn(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q; mkdir sub; echo x > sub/a; echo x > b; git add .; git commit -qm base")
	sub := filepath.Join(dir, "sub")
	tree, err := worktree.Open(t.Context(), sub)
	if err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	before, err := tree.Snapshot(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "echo y >> sub/a; echo y >> b")
	after, err := tree.Snapshot(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := tree.Changes(t.Context(), before, after, scratch)
	if want := []ralph.FileChange{{Path: "a", Added: 1, Status: "modified"}}; err != nil || !cmp.Equal(files, want) {
		t.Errorf("got %v, %v; want %v", files, err, want)
	}
}

func TestWithoutGitTheContentIsKnownAndFilesAreNot(t *testing.T) {
	dir := t.TempDir()
	tree, err := worktree.Open(t.Context(), dir, ".ralph")
	if err != nil {
		t.Fatal(err)
	}
	take := func() worktree.Snapshot {
		s, err := tree.Snapshot(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := take()
	sh(t, dir, "mkdir .ralph; echo x > .ralph/db")
	if take().Content != before.Content {
		t.Error("ralph's own files count")
	}
	sh(t, dir, "echo x > a")
	after := take()
	if after.Content == before.Content {
		t.Error("a new file does not count")
	}
	if files, _, err := tree.Changes(t.Context(), before, after, t.TempDir()); err != nil || len(files) != 0 {
		t.Errorf("got %v, %v", files, err)
	}
	if _, _, err := worktree.Find(t.Context(), dir); !errors.Is(err, worktree.ErrNoRepo) {
		t.Errorf("got %v, want ErrNoRepo", err)
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
	want, err := tree.Look(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sh(t, scratch, "touch index.lock")
	if got, err := tree.Look(t.Context(), scratch); err != nil || got.Content != want.Content {
		t.Errorf("got %q, %v; want %q", got.Content, err, want.Content)
	}
}

// TestWhatIsIgnoredSinceIsNotDeleted: a session that makes git ignore everything has not deleted a
// person's uncommitted files.
func TestWhatIsIgnoredSinceIsNotDeleted(t *testing.T) {
	dir, scratch := t.TempDir(), t.TempDir()
	sh(t, dir, "git init -q -b main; echo a > tracked; git add .; git commit -qm base; echo mine > person.txt; echo mine > gone.txt")
	tree := open(t, dir)
	before, err := tree.Snapshot(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "echo '*' > .gitignore; echo b > tracked; rm gone.txt")
	after, err := tree.Look(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := tree.Changes(t.Context(), before, after, scratch)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Status+" "+f.Path)
	}
	if want := []string{"added .gitignore", "deleted gone.txt", "modified tracked"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
