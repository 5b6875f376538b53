package worktree_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ralph/internal/worktree"
)

// look returns a tree's current snapshot.
func look(t *testing.T, tree *worktree.Tree, scratch string) worktree.Snapshot {
	t.Helper()
	s, err := tree.Snapshot(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestHeadAndRefsAgreeWithGit: HEAD is read without git if that is simple, and an earlier answer of git is only used if
// nothing has changed.
func TestHeadAndRefsAgreeWithGit(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q -b main")
	tree, scratch := open(t, dir), t.TempDir()
	for _, step := range []string{
		"true",
		"git commit -q --allow-empty -m 1",
		"git commit -q --allow-empty -m 2",
		"git switch -qc topic/deep; git commit -q --allow-empty -m 3",
		"git pack-refs --all --prune",
		"git commit -q --allow-empty -m 4",
		"git branch -qf topic/deep2 HEAD~2; git tag light; git tag -a -m x heavy",
		"git switch -q --detach HEAD~1",
		"git switch -q main; git branch -qD topic/deep",
		"git symbolic-ref refs/heads/alias refs/heads/topic/deep2; git symbolic-ref HEAD refs/heads/alias",
		"git symbolic-ref HEAD refs/heads/nothing",
		"git switch -qf main; git reset -q --hard HEAD~1",
		"git stash list; echo x > f; git add f; git stash -q",
		"git reflog expire --expire=now --all",
		"git worktree add -q ../linked-$$ -b linked; cd ../linked-$$; git commit -q --allow-empty -m 5",
		"git gc -q --prune=now",
	} {
		sh(t, dir, step)
		for range 2 { // the second time nothing has moved
			s := look(t, tree, scratch)
			said := func(args ...string) string {
				cmd := exec.CommandContext(t.Context(), "git", args...)
				cmd.Dir = dir
				out, err := cmd.Output()
				var exit *exec.ExitError
				if err != nil && !errors.As(err, &exit) {
					t.Fatal(err)
				}
				return strings.TrimSpace(string(out))
			}
			if want := said("rev-parse", "--verify", "--quiet", "HEAD"); s.Head != want {
				t.Errorf("after %q HEAD is %q, want %q", step, s.Head, want)
			}
			want := strings.TrimPrefix(said("symbolic-ref", "--quiet", "HEAD"), "refs/heads/")
			if got := tree.Branch(t.Context()); got != want {
				t.Errorf("after %q the branch is %q, want %q", step, got, want)
			}
			for _, name := range []string{"heads/main", "heads/topic/deep", "heads/alias", "heads/none", "tags/heavy"} {
				got, err := tree.Ref(t.Context(), "refs/"+name)
				if want := said("rev-parse", "--verify", "--quiet", "refs/"+name+"^{commit}"); err != nil || got != want {
					t.Errorf("after %q %s is %q, %v, want %q", step, name, got, err, want)
				}
			}
			refs, err := tree.Refs(t.Context(), "refs/")
			if want := strings.Fields(said("for-each-ref", "--format=%(refname)")); err != nil || len(refs) != len(want) {
				t.Errorf("after %q the refs are %q, %v, want %q", step, refs, err, want)
			}
			if want := said("rev-parse", "--verify", "--quiet", "HEAD^{tree}"); want != "" && s.Content != want && said("status", "--porcelain") == "" {
				t.Errorf("after %q the content is %q, want %q", step, s.Content, want)
			}
		}
	}
}

// TestAFilterThatIsConfiguredMeanwhileDoesNotRun: the earlier absence of filters proves nothing,
// wherever one is configured.
func TestAFilterThatIsConfiguredMeanwhileDoesNotRun(t *testing.T) {
	for _, where := range []string{
		"git config filter.evil.clean \"$EVIL\"",
		"git config extensions.worktreeConfig true; git config --worktree filter.evil.clean \"$EVIL\"",
		"git config -f .git/more filter.evil.clean \"$EVIL\"; git config include.path more",
		"git config -f .git/more filter.evil.clean \"$EVIL\"; git config includeIf.onbranch:other.path more; git branch other; git symbolic-ref HEAD refs/heads/other",
	} {
		t.Run(where, func(t *testing.T) {
			dir, trap := t.TempDir(), filepath.Join(t.TempDir(), "sprung")
			sh(t, dir, "git init -q -b main; echo x > a; echo '* filter=evil' > .gitattributes; git add .; git commit -qm a")
			tree, scratch := open(t, dir), t.TempDir()
			look(t, tree, scratch)
			sh(t, dir, "EVIL=\"touch '"+trap+"'; cat\"\n"+where)
			if err := os.WriteFile(filepath.Join(dir, "b"), []byte("y\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			before := look(t, tree, scratch)
			// The condition of an inclusion may change without the files.
			sh(t, dir, "git symbolic-ref HEAD refs/heads/other")
			if err := os.WriteFile(filepath.Join(dir, "b"), []byte("z\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if look(t, tree, scratch).Content == before.Content {
				t.Error("a change was not seen")
			}
			if _, err := os.Stat(trap); !errors.Is(err, os.ErrNotExist) {
				t.Error("a program of the repository's configuration was run")
			}
		})
	}
}

// TestTheCopyOfAnIndexIsAsOldAsTheIndex: by the time of the index git knows which files it must
// reread because they were changed soon after.
func TestTheCopyOfAnIndexIsAsOldAsTheIndex(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q; echo a > f; touch -d 2020-01-01T00:00:00Z f; git add f; git commit -qm f; git update-index -q --refresh; touch -d 2021-01-01T00:00:00Z .git/index")
	scratch := t.TempDir()
	look(t, open(t, dir), scratch)
	index, err := os.Stat(filepath.Join(scratch, "index"))
	if err != nil {
		t.Fatal(err)
	}
	if year := index.ModTime().UTC().Year(); year != 2021 {
		t.Errorf("the copy is of %d", year)
	}
}

// TestAnIndexWithTheSameChecksumIsNoSameIndex: nobody verifies the checksum at the end of an index,
// which an agent may forge.
func TestAnIndexWithTheSameChecksumIsNoSameIndex(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q; printf a > f; git add f; git commit -qm f; touch -d '1 hour ago' f; git update-index -q --refresh; true")
	index := filepath.Join(dir, ".git", "index")
	tree, scratch := open(t, dir), t.TempDir()
	before := look(t, tree, scratch)
	old, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "printf bb > f; touch -d '1 hour ago' f; git add f")
	lying, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	copy(lying[len(lying)-20:], old[len(old)-20:])
	if err := os.WriteFile(index, lying, 0o600); err != nil {
		t.Fatal(err)
	}
	if look(t, tree, scratch).Content == before.Content {
		t.Error("the change was not seen")
	}
}

// TestARepositoryIsReadByManyAtOnce: sessions that work at once ask the same tree, and go-git's storage
// is not safe for that.
func TestARepositoryIsReadByManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q -b main; for i in 1 2 3 4; do git commit -q --allow-empty -m $i; git repack -q; done")
	for range 20 {
		tree := open(t, dir)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if id, err := tree.Ref(t.Context(), "refs/heads/main"); err != nil || id == "" {
					t.Errorf("got %q, %v", id, err)
				}
			})
		}
		all.Wait()
	}
}
