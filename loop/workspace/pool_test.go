package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"ralph/internal/worktree"
)

func sh(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// withWorkspaces returns a project made by a script, with its workspaces.
func withWorkspaces(t *testing.T, script string) *Pool {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "git init -q -b main; git config user.name Ann; git config user.email ann@example.com; "+
		"echo '*.log' > .gitignore; mkdir sub; echo b > sub/b; git add -A; git commit -qm base; "+script)
	tree, err := worktree.Open(t.Context(), dir, ".ralph")
	if err != nil {
		t.Fatal(err)
	}
	return &Pool{
		Here: &Workspace{Dir: dir, Tree: tree, State: t.TempDir()}, Dir: t.TempDir(), Name: "repo",
		Timeout: time.Minute, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

func tip(t *testing.T, s *Pool) string {
	t.Helper()
	at, err := s.Here.Tree.Ref(t.Context(), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// begun returns a workspace in which a session has begun at the tip.
func begun(t *testing.T, s *Pool) *Workspace {
	t.Helper()
	p, err := s.Take(t.Context(), 1, false)
	if err == nil {
		_, err = p.Begin(t.Context(), tip(t, s), "")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Release(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func noted(t *testing.T, p *Workspace) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(p.Clone.folder, leftFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestAFreshWorkspaceIsNotedAsItIs, even without a scan: otherwise its next use
// would find work that nobody did.
func TestAFreshWorkspaceIsNotedAsItIs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		set    func(s *Pool)
	}{
		"files":             {"true", nil},
		"an ignored one":    {"echo x > x.log; git add -f x.log; git commit -qm log", nil},
		"ralph's own":       {"mkdir .ralph; echo x > .ralph/x; git add -f .ralph; git commit -qm own", nil},
		"other line ends":   {"echo '* text eol=crlf' > .gitattributes; git add -A; git commit -qm crlf", nil},
		"a repository":      {"git init -q in; git -C in -c user.name=a -c user.email=a commit -q --allow-empty -m in; git add in 2>/dev/null; git commit -qm in", nil},
		"a copy":            {"echo x > x.log; echo x.log > .worktreeinclude; git add -A; git commit -qm include", nil},
		"a set-up":          {"true", func(s *Pool) { s.Setup = []string{"echo x > made"} }},
		"an earlier set-up": {"true", func(s *Pool) { s.Setup = []string{"echo x > made.log"} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withWorkspaces(t, tt.script)
			if tt.set != nil {
				tt.set(s)
			}
			for range 2 { // the second time it is reused
				p := begun(t, s)
				was := noted(t, p)
				if err := p.Note(t.Context()); err != nil {
					t.Fatal(err)
				}
				if d := gocmp.Diff(noted(t, p), was); d != "" {
					t.Errorf("it is noted otherwise than it is:\n%s", d)
				}
				if err := p.Release(); err != nil {
					t.Fatal(err)
				}
				sh(t, s.Here.Dir, "date +%N > next; git add next; git commit -qm next")
			}
			if lost := sh(t, s.Here.Dir, "git for-each-ref refs/ralph/lost"); lost != "" {
				t.Errorf("what nobody made was found: %s", lost)
			}
		})
	}
}

// TestAWorkspaceThatIsOpenedAgain finds commits and staged files in it even if git ignores the files.
func TestAWorkspaceThatIsOpenedAgain(t *testing.T) {
	t.Parallel()
	s := withWorkspaces(t, "true")
	p := begun(t, s)
	sh(t, p.Dir, "echo x > x.log; git add -f x.log; git commit -qm log; echo y > y.log; git add -f y.log; echo z > z.log")
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	sh(t, s.Here.Dir, "git commit -q --allow-empty -m next")
	begun(t, s)
	if got := sh(t, s.Here.Dir, "git ls-tree -r --name-only $(git for-each-ref --format='%(objectname)' refs/ralph/lost)"); got !=
		".gitignore\nsub/b\nx.log\ny.log\n" {
		t.Errorf("kept is %q", got)
	}
}

// TestWorkThatWasSavedIsNotFoundAgain if ralph was killed before it recorded that; newer work is found.
func TestWorkThatWasSavedIsNotFoundAgain(t *testing.T) {
	t.Parallel()
	for since, want := range map[string]string{"true": "", "echo y > since": ".gitignore\nmade\nsince\nsub/b\n"} {
		s := withWorkspaces(t, "true")
		p := begun(t, s)
		const ref = "refs/ralph/changes/one"
		if err := p.Begun(ref); err != nil {
			t.Fatal(err)
		}
		sh(t, p.Dir, "echo x > made")
		candidate(t, p, ref)
		sh(t, p.Dir, since)
		if err := p.Release(); err != nil {
			t.Fatal(err)
		}
		begun(t, s)
		got := sh(t, s.Here.Dir, "for c in $(git for-each-ref --format='%(objectname)' refs/ralph/lost); do git ls-tree -r --name-only $c; done")
		if got != want {
			t.Errorf("after %q, found is %q, want %q", since, got, want)
		}
	}
}

// TestAWorkspaceSurvivesTheGarbageCollection of the repository whose objects it
// borrows, even if its session continues from a merge that exists only for it.
func TestAWorkspaceSurvivesTheGarbageCollection(t *testing.T) {
	t.Parallel()
	s := withWorkspaces(t, "seq 20 > both; git add both; git commit -qm both")
	p := begun(t, s)
	sh(t, p.Dir, "sed -i 1s/1/first/ both")
	made := candidate(t, p, "refs/ralph/changes/a")
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	sh(t, s.Here.Dir, "sed -i '$s/20/last/' both; git commit -qam next")
	p, err := s.Take(t.Context(), 1, false)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release() //nolint:errcheck // the test is over
	if _, err := p.Begin(t.Context(), tip(t, s), made.Head); err != nil {
		t.Fatal(err)
	}
	sh(t, s.Here.Dir, "git reflog expire --expire=now --all; git gc -q --prune=now")
	sh(t, p.Dir, "echo more > more")
	made = candidate(t, p, "refs/ralph/changes/b")
	if got := sh(t, s.Here.Dir, "git merge-base --is-ancestor main "+made.Head+"; git merge-base --is-ancestor refs/ralph/changes/a "+
		made.Head+"; git diff --name-only "+made.Head+" main; git show "+made.Head+":both | sed -n '1p;$p'"); got !=
		"both\nmore\nfirst\nlast\n" {
		t.Errorf("made is %q", got)
	}
}

func candidate(t *testing.T, p *Workspace, ref string) worktree.Candidate {
	t.Helper()
	_, made, err := p.Candidate(t.Context(), ref, "made\n")
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestWorkspacesOfSeveralAtOnce: sessions begin, commit and release their workspaces
// while others do the same, workspaces are listed, removed and tidied, and
// people commit and collect garbage. No work is lost, and nothing fails.
func TestWorkspacesOfSeveralAtOnce(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a repository": "true",
		"a shallow one": "git commit -q --allow-empty -m more; git clone -q --depth 1 file://$PWD odd; mv odd/.git/shallow .git/shallow; " +
			"rm -rf odd",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withWorkspaces(t, script)
			var parallel, others sync.WaitGroup
			over := make(chan struct{})
			for number := range 3 {
				parallel.Go(func() {
					for round := range 4 {
						if err := inWorkspace(t, s, number+1, round); err != nil {
							t.Errorf("session %d, round %d: %v", number+1, round, err)
						}
					}
				})
			}
			for _, do := range []func() error{
				func() error { _, err := s.List(t.Context()); return err },
				func() error { return s.Tidy(t.Context(), time.Now().Add(time.Hour), 0, nil) },
				func() error {
					err := s.Remove(t.Context(), "2")
					if errors.Is(err, ErrTaken) || errors.Is(err, ErrNotFound) {
						err = nil
					}
					return err
				},
				func() error {
					cmd := exec.Command("git", "commit", "-q", "--allow-empty", "-m", "of a person")
					cmd.Dir = s.Here.Dir
					return cmd.Run()
				},
			} {
				others.Go(func() {
					for {
						select {
						case <-over:
							return
						default:
						}
						if err := do(); err != nil {
							t.Errorf("beside the sessions: %v", err)
							return
						}
					}
				})
			}
			parallel.Wait()
			close(over)
			others.Wait()
			if lost := sh(t, s.Here.Dir, "git for-each-ref refs/ralph/lost; git fsck --strict --no-dangling 2>&1"); lost != "" {
				t.Errorf("there is %s", lost)
			}
		})
	}
}

// inWorkspace begins a session in a workspace, creates a file and releases the workspace.
func inWorkspace(t *testing.T, s *Pool, number, round int) (err error) {
	at, err := s.Here.Tree.Ref(t.Context(), "HEAD")
	if err != nil {
		return err
	}
	p, err := s.Take(t.Context(), number, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Release()) }()
	if _, err := p.Begin(t.Context(), at, ""); err != nil {
		return err
	}
	text := fmt.Sprintf("%d of %d", round, number)
	if err := os.WriteFile(p.Path("made"), []byte(text), 0o600); err != nil {
		return err
	}
	_, made, err := p.Candidate(t.Context(), fmt.Sprintf("refs/ralph/changes/%d-%d", number, round), "made\n")
	if err != nil {
		return err
	}
	cmd := exec.Command("git", "show", made.Head+":made")
	cmd.Dir = s.Here.Dir
	if out, err := cmd.Output(); err != nil || string(out) != text {
		return fmt.Errorf("the candidate has %q: %w", out, err)
	}
	return p.Note(t.Context())
}

// TestAWorkspaceThatIsBeingRemoved: the session that is to work in it waits, and then creates it again.
func TestAWorkspaceThatIsBeingRemoved(t *testing.T) {
	t.Parallel()
	s := withWorkspaces(t, "true")
	if err := begun(t, s).Release(); err != nil {
		t.Fatal(err)
	}
	held, err := s.named(t.Context(), "1", lockWait)
	if err != nil {
		t.Fatal(err)
	}
	removed := make(chan error, 1)
	go func() { removed <- errors.Join(held.Clone.discard(held.Clone.folder), held.Release()) }()
	begun(t, s)
	if err := <-removed; err != nil {
		t.Error(err)
	}
}

// TestAWorkspaceOfASessionWithoutAVerdict is not tidied away. If it is gone, or was
// prepared for another use, the session's work is not searched there: its ref has it.
func TestAWorkspaceOfASessionWithoutAVerdict(t *testing.T) {
	t.Parallel()
	s := withWorkspaces(t, "true")
	const ref, second = "refs/ralph/changes/one", "refs/ralph/changes/two"
	worked := func(ref string) *Workspace {
		p := begun(t, s)
		if err := errors.Join(p.Begun(ref), os.WriteFile(p.Path("made"), []byte(ref), 0o600), p.Release()); err != nil {
			t.Fatal(err)
		}
		return p
	}
	has := func(ref string) {
		t.Helper()
		if v, err := s.Here.Tree.Version(t.Context(), ref, "made"); err != nil || string(v.Content) != ref {
			t.Errorf("%s has %q, %v", ref, v.Content, err)
		}
	}
	p := worked(ref)
	if err := s.Tidy(t.Context(), time.Now().Add(time.Hour), 0, []string{p.Dir}); err != nil {
		t.Fatal(err)
	}
	again, err := s.Of(t.Context(), p.Dir, ref)
	if err != nil || again == nil {
		t.Fatalf("it is %v, %v", again, err)
	}
	if err := s.Remove(t.Context(), "1"); !errors.Is(err, ErrTaken) {
		t.Errorf("it is removed while it is looked at: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Fatal(err)
	}
	worked(second)
	has(ref)
	if used, err := s.Of(t.Context(), p.Dir, ref); err != nil || used != nil {
		t.Errorf("of another session's use it is %v, %v", used, err)
	}
	if err := s.Remove(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	has(second)
	if gone, err := s.Of(t.Context(), p.Dir, second); err != nil || gone != nil {
		t.Errorf("it is %v, %v", gone, err)
	}
}

// TestAMergeIntoAWorkspace writes both versions of conflicting lines, follows no link that a session has made, and
// makes the next candidate a merge.
func TestAMergeIntoAWorkspace(t *testing.T) {
	t.Parallel()
	s := withWorkspaces(t, "printf '\\0one' > bin; echo one > text; echo one > x.sh; chmod +x x.sh; git add -A; git commit -qm more")
	p := begun(t, s)
	outside := filepath.Join(t.TempDir(), "outside")
	sh(t, p.Dir, "printf '\\0mine' > bin; echo mine > text; echo mine > own; rm .git/index; echo theirs > '"+outside+"'; ln -s '"+outside+"' .git/index")
	made := candidate(t, p, "refs/ralph/changes/x")
	sh(t, s.Here.Dir, "printf '\\0theirs' > bin; echo theirs > text; mkdir new; echo two > new/x.sh; git mv x.sh new/run.sh; git add -A; git commit -qm theirs")
	at := tip(t, s)
	conflicts, err := p.Merge(t.Context(), at, made)
	if err != nil || fmt.Sprint(conflicts) != "[bin text]" {
		t.Fatalf("conflicts: %v, %v", conflicts, err)
	}
	got := sh(t, p.Dir, "tr -d '\\0' <bin; echo; sed 's/^\\([<>]* \\).*/\\1/' text; cat own new/x.sh new/run.sh; test -x new/run.sh; test ! -e x.sh; cat '"+outside+"'")
	if want := "theirs\n<<<<<<< \ntheirs\n=======\nmine\n>>>>>>> \nmine\ntwo\none\ntheirs\n"; got != want {
		t.Errorf("there is\n%s\nand not\n%s", got, want)
	}
	marks := func(head string) []string {
		list, err := p.Marks(t.Context(), head)
		if err != nil {
			t.Error(err)
		}
		return list
	}
	left := candidate(t, p, "refs/ralph/changes/x")
	if list := marks(left.Head); fmt.Sprint(list) != "[text]" {
		t.Errorf("marks are left in %v", list)
	}
	sh(t, p.Dir, "echo both > text")
	mended := candidate(t, p, "refs/ralph/changes/x")
	if list := marks(mended.Head); list != nil {
		t.Errorf("then marks are left in %v", list)
	}
	if parents := sh(t, s.Here.Dir, "git rev-parse "+mended.Head+"^2"); parents != at+"\n" {
		t.Errorf("its second parent is %s", parents)
	}
	// The next user of a workspace knows whether its marks were left in place.
	if err := p.Note(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := p.Begin(t.Context(), at, left.Head, "text", "own"); err != nil || fmt.Sprint(list) != "[text]" {
		t.Errorf("the next session finds %v, %v", list, err)
	}
}

// TestWorkspacesOfOddRepositories contain the files of the person's own work tree: work there becomes a commit like any
// other.
func TestWorkspacesOfOddRepositories(t *testing.T) {
	t.Parallel()
	const ann = "git config user.name Ann; git config user.email ann@example.com; "
	for name, tt := range map[string]struct {
		script string // makes the repository in the folder repo
		work   string // what a session does
		want   string // what git says of its commit then
		needs  string // a program
	}{
		"sha256":    {"git init -q -b main --object-format=sha256 repo; cd repo; " + ann + "echo a > a; git add a; git commit -qm a", "cat a > b", "git show $C:b", ""},
		"reftables": {"git init -q -b main --ref-format=reftable repo; cd repo; " + ann + "echo a > a; git add a; git commit -qm a", "cat a > b", "git show $C:b", "reftable"},
		"a partial clone": {
			"git init -q -b main src; cd src; " + ann + "git config uploadpack.allowFilter true; git config uploadpack.allowAnySHA1InWant true; mkdir d; echo a > d/a; git add -A; git commit -qm a; cd ..; " +
				"git clone -q --no-checkout --filter=tree:0 file://$PWD/src repo; cd repo; " + ann,
			"cat d/a > b", "git show $C:b", "",
		},
		"a sparse checkout": {
			"git init -q -b main repo; cd repo; " + ann + "mkdir in out; echo a > in/a; echo a > out/a; git add -A; git commit -qm a; git sparse-checkout set in; test ! -e out",
			"cat out/a > b", "git show $C:b", "",
		},
		"a work tree": {
			"git init -q -b other main; cd main; " + ann + "echo a > a; git add a; git commit -qm a; git worktree add -q -b main ../repo; cd ../repo",
			"cat a > b", "git show $C:b", "",
		},
		"Git LFS": {
			"git init -q -b main repo; cd repo; " + ann + "git lfs install --local --skip-repo >/dev/null; echo '*.bin filter=lfs' > .gitattributes; echo a > a.bin; git add -A; git commit -qm a",
			"test \"$(cat a.bin)\" = a; echo new > b.bin", "git show $C:b.bin | sed -n 's/ https.*//p'; git cat-file -p $C:b.bin | git lfs smudge", "git-lfs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(cmp.Or(tt.needs, "git")); err != nil && tt.needs != "reftable" {
				t.Skip("there is no " + tt.needs)
			}
			top := t.TempDir()
			if tt.needs == "reftable" && exec.Command("git", "-C", top, "init", "-q", "--ref-format=reftable", "x").Run() != nil {
				t.Skip("this git knows no reftables")
			}
			sh(t, top, tt.script)
			dir := filepath.Join(top, "repo")
			tree, err := worktree.Open(t.Context(), dir, ".ralph")
			if err != nil {
				t.Fatal(err)
			}
			if why := tree.Uncloned(t.Context()); why != "" {
				t.Fatal(why)
			}
			s := &Pool{
				Here: &Workspace{Dir: dir, Tree: tree, State: t.TempDir()}, Dir: t.TempDir(), Name: "repo",
				Timeout: time.Minute, Log: slog.New(slog.DiscardHandler),
			}
			p := begun(t, s)
			if got := sh(t, p.Dir, "git status --porcelain"); got != "" {
				t.Errorf("a fresh workspace has\n%s", got)
			}
			sh(t, p.Dir, tt.work)
			made := candidate(t, p, "refs/ralph/changes/x")
			got := sh(t, dir, "C="+made.Head+"; "+tt.want+"; git diff --name-only "+tip(t, s)+" $C")
			want := map[string]string{"Git LFS": "version\nnew\nb.bin\n"}[name]
			if got != cmp.Or(want, "a\nb\n") {
				t.Errorf("it made\n%s", got)
			}
		})
	}
}
