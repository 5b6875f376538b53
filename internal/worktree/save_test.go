package worktree_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"ralph/internal/worktree"
)

func open(t testing.TB, dir string) *worktree.Tree {
	t.Helper()
	tree, err := worktree.Open(t.Context(), dir, ".ralph")
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func save(t *testing.T, tree *worktree.Tree) (worktree.Saved, bool) {
	t.Helper()
	scratch := t.TempDir()
	s, err := tree.Snapshot(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := tree.Ignored(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	saved, ok, err := tree.Save(t.Context(), s, ignored, scratch, "before a session")
	if err != nil {
		t.Fatal(err)
	}
	return saved, ok
}

func output(t *testing.T, dir, script string) string {
	t.Helper()
	sh(t, dir, "( "+script+" ) > /tmp/out-$$ 2>&1; mv /tmp/out-$$ .git/test-output")
	b, err := os.ReadFile(filepath.Join(dir, ".git", "test-output"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestUncommittedFilesSurviveWhateverTheAgentDoes: every uncommitted state of a person's files can
// be restored.
func TestUncommittedFilesSurviveWhateverTheAgentDoes(t *testing.T) {
	const before = "git init -q -b main; printf 'a\\n' > tracked; printf 'x\\n' > other; echo .env > .gitignore; echo build/ >> .gitignore; git add .; git commit -qm base; git branch side" +
		"; echo mine >> tracked; mkdir -p new/deep; echo draft > new/deep/file; echo secret > .env; mkdir build; echo big > build/x; echo staged > staged; git add staged; printf 'ü' > \"$(printf 'ü \"q\"')\""
	for name, agent := range map[string]string{
		"reset and clean":   "git reset -q --hard; git clean -fdxq",
		"switch of branch":  "git checkout -qf side; git clean -fdxq",
		"amend":             "git add -A; git commit -q --amend -m other; git reset -q --hard HEAD@{1}; git clean -fdxq",
		"rebase":            "git add -A; git commit -qm x; git rebase -q --root --exec true; git reset -q --hard HEAD~1; git clean -fdxq",
		"removal of all":    "git rm -rqf .; git clean -fdxq; rm -rf new",
		"a file for folder": "git reset -q --hard; git clean -fdxq; echo x > new",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sh(t, dir, before)
			tree := open(t, dir)
			index := output(t, dir, "git status --porcelain; git rev-parse HEAD; git branch; git stash list")
			saved, ok := save(t, tree)
			if !ok {
				t.Fatal("nothing was saved")
			}
			if again := output(t, dir, "git status --porcelain; git rev-parse HEAD; git branch; git stash list"); again != index {
				t.Errorf("saving changed the repository: before %s after %s", index, again)
			}
			sh(t, dir, agent)
			files, err := tree.SavedFiles(t.Context(), saved)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(files)
			if want := []string{".env", "new/deep/file", "staged", "tracked", `ü "q"`}; !slices.Equal(files, want) {
				t.Errorf("saved %q, want %q", files, want)
			}
			if missing, err := tree.Missing(files); err != nil || len(missing) < 3 {
				t.Errorf("missing %q, %v", missing, err)
			}
			if err := tree.Restore(t.Context(), saved, files); err != nil {
				t.Fatal(err)
			}
			for file, want := range map[string]string{"tracked": "a\nmine\n", "new/deep/file": "draft\n", ".env": "secret\n", "staged": "staged\n", `ü "q"`: "ü"} {
				if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != want {
					t.Errorf("%s: got %q, %v", file, got, err)
				}
			}
		})
	}
}

func TestSavingTwiceKeepsOneState(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q; echo a > a; git add .; git commit -qm base")
	tree := open(t, dir)
	if _, ok := save(t, tree); ok {
		t.Error("a clean work tree was saved")
	}
	sh(t, dir, "echo b > b")
	first, ok := save(t, tree)
	if _, twice := save(t, tree); !ok || twice || first.ID != 1 {
		t.Errorf("saved %t, then %t as %d", ok, twice, first.ID)
	}
	// A lock that a power cut has left is no obstacle.
	sh(t, dir, "echo c > b; touch .git/refs/ralph/snapshots/2.lock")
	if next, ok := save(t, tree); !ok || next.ID != 2 {
		t.Errorf("a change was saved %t as %d", ok, next.ID)
	}
	if _, err := tree.Saved(t.Context(), 7); !errors.Is(err, worktree.ErrNoSaved) {
		t.Errorf("got %v", err)
	}
	sh(t, dir, "git gc -q --prune=now; git clean -fdxq")
	saved, err := tree.Saved(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Restore(t.Context(), saved, []string{"b"}); err != nil {
		t.Error(err)
	}
}

func TestARepositoryWithoutACommitIsSaved(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q; echo a > a")
	tree := open(t, dir)
	saved, ok := save(t, tree)
	files, err := tree.SavedFiles(t.Context(), saved)
	if !ok || err != nil || !slices.Equal(files, []string{"a"}) {
		t.Errorf("got %t %q %v", ok, files, err)
	}
}

func TestCommitTakesOnlyWhatItIsTold(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q -b main; echo a > a; echo b > b; echo gone > gone; git add .; git commit -qm base; mkdir .git/hooks -p; printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"+
		"; echo mine >> b; echo staged > staged; git add staged; echo work >> a; echo new > new; rm gone; git config user.name tester; git config user.email t@example.com")
	tree := open(t, dir)
	id, _, err := tree.Commit(t.Context(), []string{"a", "new", "gone", "never there"}, "Do it\n\nTask: TASK-1\n")
	if err != nil || id == "" {
		t.Fatal(id, err)
	}
	if got := output(t, dir, "git show --name-status --format=%B HEAD; echo ==; git status --porcelain"); got != "Do it\n\nTask: TASK-1\n\n\nM\ta\nD\tgone\nA\tnew\n==\n M b\nA  staged\n" {
		t.Errorf("got %q", got)
	}
	if id, _, err := tree.Commit(t.Context(), []string{"a"}, "Again\n"); err != nil || id != "" {
		t.Errorf("nothing was committed as %q, %v", id, err)
	}
}

func TestUncommittedListsWhatDiffersFromTheCommit(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q; echo a > a; echo b > b; git add .; git commit -qm base; echo x >> a; rm b; echo c > c")
	tree := open(t, dir)
	scratch := t.TempDir()
	s, err := tree.Snapshot(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tree.Uncommitted(t.Context(), s, scratch)
	if err != nil || strings.Join(got, " ") != "a b c" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestAProjectBelowTheTopSavesWhatIsBesideItToo: an agent's reset also affects files outside of the
// project.
func TestAProjectBelowTheTopSavesWhatIsBesideItToo(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q; mkdir project other; echo a > other/file; echo a > project/file; git add .; git commit -qm base")
	tree := open(t, filepath.Join(dir, "project"))
	if _, ok := save(t, tree); ok {
		t.Error("a clean work tree was saved")
	}
	sh(t, dir, "echo mine > other/file; echo mine > project/new")
	saved, ok := save(t, tree)
	if _, twice := save(t, tree); !ok || twice {
		t.Errorf("saved %t, then %t", ok, twice)
	}
	sh(t, dir, "git reset -q --hard; git clean -fdxq")
	files, err := tree.SavedFiles(t.Context(), saved)
	if err != nil || !slices.Equal(files, []string{"other/file", "project/new"}) {
		t.Fatalf("got %q, %v", files, err)
	}
	if missing, err := tree.Missing(files); err != nil || !slices.Equal(missing, []string{tree.Below("new")}) {
		t.Errorf("missing %q, %v", missing, err)
	}
	if err := tree.Restore(t.Context(), saved, files); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if got, err := os.ReadFile(filepath.Join(dir, f)); err != nil || string(got) != "mine\n" {
			t.Errorf("%s: got %q, %v", f, got, err)
		}
	}
}

// TestSavesAtTheSameTimeAllGetANumber: workers in different work trees share the numbers of one
// repository.
func TestSavesAtTheSameTimeAllGetANumber(t *testing.T) {
	t.Parallel()
	const savers = 50
	dir := t.TempDir()
	sh(t, dir, "git init -q -b main main; cd main; git commit -q --allow-empty -m base; for i in $(seq 1 "+strconv.Itoa(savers)+"); do git worktree add -q --detach ../$i; echo $i > ../$i/draft; done")
	var together sync.WaitGroup
	begin := make(chan struct{})
	ids := make([]int64, savers)
	errs := make([]error, savers)
	for i := range savers {
		tree, scratch := open(t, filepath.Join(dir, strconv.Itoa(i+1))), t.TempDir()
		s, err := tree.Snapshot(t.Context(), scratch)
		if err != nil {
			t.Fatal(err)
		}
		together.Go(func() {
			<-begin
			saved, _, err := tree.Save(t.Context(), s, worktree.Ignored{}, scratch, "before a session")
			ids[i], errs[i] = saved.ID, err
		})
	}
	close(begin)
	together.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != savers || ids[0] == 0 {
		t.Errorf("%d saves have %d numbers: %v", savers, n, ids)
	}
}

// A file is also gone if another file replaced its folder.
func TestWhatAFileStandsInForIsMissing(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q -b main; mkdir folder; echo x > folder/file; echo y > kept; git add .; git commit -qm base")
	tree := open(t, dir)
	sh(t, dir, "rm -r folder; echo z > folder")
	missing, err := tree.Missing([]string{"folder/file", "kept"})
	if err != nil || !slices.Equal(missing, []string{"folder/file"}) {
		t.Errorf("missing are %q, %v", missing, err)
	}
}

// TestSavedStatesAreBounded: a large file that changes in each session is saved while there is
// room, and reported from then on; small ones are always saved.
func TestSavedStatesAreBounded(t *testing.T) {
	worktree.LimitLarge(t, 5<<20)
	dir := t.TempDir()
	sh(t, dir, "git init -q -b main; echo a > tracked; mkdir sub; echo b > sub/big; git add .; git commit -qm base")
	tree := open(t, dir)
	var omitted []string
	for i := range 4 {
		sh(t, dir, "head -c 2000000 /dev/urandom > sub/big; echo "+strconv.Itoa(i)+" > small")
		saved, ok := save(t, tree)
		if !ok {
			t.Fatal("nothing was saved")
		}
		omitted = append(omitted, strings.Join(saved.Omitted, ","))
		files, err := tree.SavedFiles(t.Context(), saved)
		if err != nil || !slices.Contains(files, "small") || slices.Contains(files, "sub/big") == (omitted[i] != "") {
			t.Errorf("round %d: %v, %v, omitted %q", i, files, err, saved.Omitted)
		}
	}
	if want := []string{"", "", "sub/big", "sub/big"}; !slices.Equal(omitted, want) {
		t.Errorf("omitted %q, want %q", omitted, want)
	}
	size := strings.Fields(output(t, dir, "du -sk .git/objects"))[0]
	if kb, err := strconv.Atoi(size); err != nil || kb > 6<<10 {
		t.Errorf("the repository has %s KB of objects, %v", size, err)
	}
	sh(t, dir, "git show refs/ralph/snapshots/2:sub/big > sub/big; touch other")
	if saved, ok := save(t, tree); !ok || saved.Omitted != nil {
		t.Errorf("what is kept already is omitted: %v, %t", saved.Omitted, ok)
	}
}
