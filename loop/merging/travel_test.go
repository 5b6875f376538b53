package merging

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/store"
)

// machines are two with a repository each, which share a database and a remote.
func machines(t *testing.T) (here, there *yard, remote string) {
	t.Helper()
	database := pgtest.New(t)
	remote = t.TempDir()
	here = newYard(t, "true")
	here.in(remote, "init", "-q", "--bare", "--initial-branch=main")
	here.git("remote", "add", "origin", remote)
	here.git("push", "-q", "origin", "main")
	there = &yard{t: t, dir: t.TempDir(), n: 100}
	there.git("clone", "-q", remote, ".")
	there.open(here.Check.Commands)
	for _, y := range []*yard{here, there} {
		db, err := store.Open(t.Context(), database, store.Options{})
		y.no(err)
		t.Cleanup(func() { y.no(db.Close()) })
		y.Store, y.Push = db, "origin"
	}
	return here, there, remote
}

// TestTwoMachinesShareTheLine: each checks on the known changes ahead, and merges the passed ones of both.
func TestTwoMachinesShareTheLine(t *testing.T) {
	t.Parallel()
	here, there, _ := machines(t)
	here.Wait, there.Wait = time.Hour, time.Hour
	end := func(y *yard, c ralph.Change) ralph.Change {
		t.Helper()
		y.no(y.HandOver(t.Context(), c))
		return y.end("", c)
	}
	first := here.passed("First", file("f1"))
	second := there.passed("Second", file("f2")) // the first is not there yet
	third := here.passed("Third", file("f3"))
	second = end(there, second)
	there.merge() // nobody has to wait: it is verified as it is
	merged := func(c ralph.Change, subject string) {
		t.Helper()
		c = here.change(c.ID)
		here.git("fetch", "-q", "origin")
		log := here.git("log", "--first-parent", "--format=%s", "origin/main")
		if c.State != ralph.Merged || !strings.HasPrefix(log, subject+"\n") {
			t.Errorf("its change is %s; the remote has\n%s", c.State, log)
		}
	}
	merged(second, "TASK-2: Second")
	first = end(here, first)
	here.Links.remote.seen.Store(nil)
	left := there.waits(func() { // for the first, which was handed over, to be verified with the second
		here.merge()
		merged(first, "TASK-1: First")
	})
	fourth := there.passed("Fourth", file("f4"))
	third, fourth = end(here, third), end(there, fourth)
	here.merge()
	merged(third, "Merge TASK-3, TASK-4")
	merged(fourth, "Merge TASK-3, TASK-4")
	if len(here.checked) != 4 || len(there.checked) != 2 || left() > 0 {
		t.Errorf("verified %d and %d times", len(here.checked), len(there.checked))
	}
}

// TestAChangeMadeAnew on one machine replaces the version that another machine has fetched before, also when it is
// merged there.
func TestAChangeMadeAnew(t *testing.T) {
	t.Parallel()
	here, there, remote := machines(t)
	const one, two = "00000000-0000-4000-8000-0000000000aa", "00000000-0000-4000-8000-0000000000bb"
	made := func(session, text string) ralph.Change {
		t.Helper()
		c := here.made(here.git("rev-parse", "main"), text, map[string]string{"a": text})
		c.SessionID = session
		here.no(here.HandOver(t.Context(), c))
		return c
	}
	obtain := func(c ralph.Change) string {
		t.Helper()
		commit, err := there.Obtain(t.Context(), c)
		there.no(err)
		return commit
	}
	first := made(one, "first\n")
	if got := obtain(first); got != first.Head {
		t.Errorf("got %q, want %q", got, first.Head)
	}
	second := made(one, "second\n")
	// Without a known commit the local one counts: the remote is not asked again.
	if got := obtain(ralph.Change{SessionID: second.SessionID}); got != first.Head {
		t.Errorf("of any commit: got %q, want %q", got, first.Head)
	}
	second = here.queue("Second", second)
	there.merge()
	if got := there.change(second.ID); got.State != ralph.Merged {
		t.Errorf("its change is %s: %s", got.State, got.Reason)
	}
	if got := there.git("ls-remote", remote, second.Ref()); got != "" {
		t.Errorf("the remote keeps what was merged: %s", got)
	}
	third := here.start("Third", made(two, "third\n"))
	there.git("update-ref", third.Ref(), first.Head)
	if got := obtain(third); got != third.Head || there.git("rev-parse", third.Ref()) != got {
		t.Errorf("got %q, want %q", got, third.Head)
	}
	var all sync.WaitGroup
	for range 4 { // sessions and merges do at once
		all.Go(func() {
			if got, err := there.FetchChange(t.Context(), third); err != nil || got != third.Head {
				t.Errorf("beside others: got %q, %v", got, err)
			}
		})
	}
	all.Wait()
	there.no(os.RemoveAll(remote))
	if got := obtain(third); got != third.Head {
		t.Errorf("what is here needs no remote: got %q, want %q", got, third.Head)
	}
	_, err := there.Obtain(t.Context(), second)
	if err == nil || !strings.Contains(err.Error(), "fetch the change of TASK-1 from origin") {
		t.Errorf("without the remote: %v", err)
	}
	if _, err = there.Obtain(t.Context(), second); !errors.Is(err, ralph.ErrConflict) || there.state().Failures != 1 {
		t.Errorf("it was asked again at once: %v, %+v", err, there.state())
	}
}

// TestARefThatCannotBeDropped at the remote stays here, too, so that it is dropped later.
func TestARefThatCannotBeDropped(t *testing.T) {
	t.Parallel()
	y, remote := newYard(t, "true"), filepath.Join(t.TempDir(), "remote")
	y.in(t.TempDir(), "init", "-q", "--bare", remote)
	y.git("remote", "add", "origin", remote)
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{})
	y.no(err)
	t.Cleanup(func() { y.no(db.Close()) })
	y.Store, y.Push = db, "origin"
	c := y.made(y.git("rev-parse", "main"), "It", map[string]string{"a": "new\n"})
	c.SessionID = "00000000-0000-4000-8000-0000000000aa"
	y.no(y.HandOver(t.Context(), c))
	y.no(y.SetChangeRef(t.Context(), c))
	y.no(os.Rename(remote, remote+".away"))
	if err := y.drop(t.Context(), []string{c.Ref()}); err == nil || y.git("rev-parse", c.Ref()) != c.Head {
		t.Errorf("while the remote is away: %v", err)
	}
	y.no(os.Rename(remote+".away", remote))
	y.no(y.drop(t.Context(), []string{c.Ref()}))
	if left := y.git("for-each-ref", c.Ref()) + y.git("ls-remote", remote, c.Ref()); left != "" {
		t.Errorf("left: %s", left)
	}
}
