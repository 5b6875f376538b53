package loop_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/internal/worktree"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/check"
	"ralph/loop/merging"
	"ralph/loop/order"
	"ralph/loop/session"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// A workshop is a database whose clock only moves when told to.
type workshop struct {
	t      *testing.T
	db     *store.DB
	state  string
	passed atomic.Int64
	cancel func() // of the run that workshop.run has begun
}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	b := &workshop{t: t, state: filepath.Join(t.TempDir(), "state")}
	begin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(b.state, "ralph.db")), store.Options{Now: func() time.Time { return begin.Add(time.Duration(b.passed.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	b.db = db
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// tree returns a loop in a work tree of its own that shares the queue.
func (b *workshop) tree(verify ...string) *loop.Loop {
	b.t.Helper()
	return b.at(b.t.TempDir(), verify...)
}

// at returns a loop that works in a folder.
func (b *workshop) at(dir string, verify ...string) *loop.Loop {
	b.t.Helper()
	l := &loop.Loop{
		Config: order.Config{
			Limits:  ralph.Limits{Attempts: 10},
			Rules:   signals.Rules{StuckLimit: 3, VerifyFailures: 3, Attempts: 10, Retries: 2},
			Check:   check.Rules{Commands: verify, Timeout: 10 * time.Minute, Env: os.Environ()},
			Prompts: order.Prompts{Tokens: 24_000},
		},
		Store: b.db,
		Here:  &workspace.Workspace{Dir: dir, State: b.state},
		Log:   slog.New(slog.DiscardHandler),
	}
	withWorkspaces(b.t, l)
	return l
}

// newLoop returns a loop that works in a folder with an agent, within wide limits.
func newLoop(t *testing.T, db *store.DB, dir string, works agent.Agent) *loop.Loop {
	t.Helper()
	l := &loop.Loop{
		Config: order.Config{
			Agent: works,
			Limits: ralph.Limits{
				MaxSessions: 100, MaxTasks: 100, MaxSeconds: 3600, MaxCostUSD: 100, MaxDayCostUSD: 100, MaxMonthCostUSD: 100,
				SessionSeconds: 3600, IdleSeconds: 3600, SessionTurns: 10, SessionCostUSD: 10, Attempts: 10, StagnantMaximum: 100,
			},
			Rules:   signals.Rules{StuckLimit: 3, VerifyFailures: 3, Attempts: 10},
			Prompts: order.Prompts{Tokens: 10000},
		},
		Store: db,
		Here:  &workspace.Workspace{Dir: dir, State: filepath.Join(dir, ".ralph")},
		Log:   slog.New(slog.DiscardHandler),
	}
	withWorkspaces(t, l)
	return l
}

// withWorkspaces prepares a loop whose workspace is a folder to work in workspaces and to merge. The folder becomes a
// repository unless it is one.
func withWorkspaces(t *testing.T, l *loop.Loop) {
	t.Helper()
	dir, state := l.Here.Dir, l.Here.State
	tree, err := worktree.Open(t.Context(), dir, ".ralph")
	if errors.Is(err, worktree.ErrNoRepo) {
		for _, args := range [][]string{
			{"init", "-q", "-b", "main"}, {"add", "-A", "--", ".", ":!.ralph"}, {"commit", "-q", "--allow-empty", "-m", "begin"},
		} {
			git := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=Ann", "-c", "user.email=ann@example.org"}, args...)...)
			git.Dir = dir
			if out, err := git.CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v\n%s", args, err, out)
			}
		}
		tree, err = worktree.Open(t.Context(), dir, ".ralph")
	}
	if err != nil {
		t.Fatal(err)
	}
	l.Here.Tree = tree
	l.Pool = &workspace.Pool{
		Here: l.Here, Dir: filepath.Join(t.TempDir(), "workspaces"), Name: "project", Env: os.Environ(), Timeout: time.Minute, Log: l.Log,
	}
	l.Merger = &merging.Merger{
		Rules: merging.Rules{
			Into: "main", MaxSentBack: 2, Wait: time.Minute, Message: "{task}: {title}", Timeout: time.Minute, State: state,
		},
		Store: l.Store, Tree: l.Here.Tree, Links: &merging.Links{}, Log: l.Log, Check: l.Check,
	}
	l.Merger.Pool, l.Pool.Merged = l.Pool, l.Merger.Tip
	l.Rules.MaxSentBack = 2
}

func (b *workshop) add(t ralph.Task) (id int64) {
	b.t.Helper()
	if err := b.db.Tx(b.t.Context(), func(tx *store.Tx) (err error) { id, err = tx.AddTask(t, "human"); return err }); err != nil {
		b.t.Fatal(err)
	}
	return id
}

func (b *workshop) task(id int64) (task ralph.Task) {
	b.t.Helper()
	if err := b.db.View(b.t.Context(), func(tx *store.Tx) (err error) { task, err = tx.Task(id); return err }); err != nil {
		b.t.Fatal(err)
	}
	return task
}

func (b *workshop) claim(l *loop.Loop, id int64, worker string) *loop.Claim {
	b.t.Helper()
	c, err := l.Claim(b.t.Context(), id, worker)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// workspaceOf returns the folder that a claim's worker works in.
func workspaceOf(c *loop.Claim) string {
	dir, _ := c.Workspace()
	return dir
}

func (b *workshop) say(c *loop.Claim, p signals.Payload) {
	b.t.Helper()
	if _, err := b.db.Say(b.t.Context(), c.TaskID(), c.SessionID(), "w", p); err != nil {
		b.t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A claim that was refused in its worker's work tree must not be accepted
// because somebody with another work tree decides on it.
func TestALapsedClaimIsNotJudgedInAnotherWorkTree(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	here, elsewhere := b.tree("test ! -e broken"), b.tree("test ! -e broken")
	id := b.add(ralph.Task{Title: "A"})
	c := b.claim(here, id, "ann")
	write(t, filepath.Join(workspaceOf(c), "broken"), "x")
	b.say(c, signals.Done{Summary: "made it"})
	again, _, err := c.Close(t.Context())
	if err != nil || !strings.Contains(again, "does not hold") {
		t.Fatalf("got %q, %v", again, err)
	}
	b.say(c, signals.Learned{Text: "x is y", Kind: "discovery", Scope: "project"})
	b.passed.Store(int64(3 * session.Lease))
	if err := elsewhere.Lapse(t.Context()); err != nil {
		t.Fatal(err)
	}
	if task := b.task(id); task.Status != ralph.Pending || task.Attempts != 0 || task.VerifyFailures != 0 || !strings.Contains(task.StatusReason, "another work tree") {
		t.Errorf("got %s, %d attempts: %s", task.Status, task.Attempts, task.StatusReason)
	}
	if err := b.db.View(t.Context(), func(tx *store.Tx) error {
		known, err := tx.Learnings(store.LearningFilter{})
		if len(known) != 1 {
			t.Errorf("what was learned is lost: %v", known)
		}
		s, serr := tx.Session(c.SessionID())
		if len(s.Files) != 0 {
			t.Errorf("the other work tree's files are taken for the session's: %v", s.Files)
		}
		return errors.Join(err, serr)
	}); err != nil {
		t.Fatal(err)
	}
}

// A worker that is lost while its done is reviewed leaves the review behind: it ends with the claim.
func TestTheReviewOfALostWorkerEnds(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	id := b.add(ralph.Task{Title: "A"})
	c := b.claim(l, id, "ann")
	const review = "0b0e7ae4-51a5-4dd4-9d5b-7c2f6d2f1a02"
	if err := b.db.Tx(t.Context(), func(tx *store.Tx) error {
		of, err := tx.Session(c.SessionID())
		if err != nil {
			return err
		}
		_, err = tx.StartReview(store.Start{ID: review, Task: id, Agent: "critic", Worker: of.Worker, Snapshot: struct{}{}, Hashes: struct{}{}}, of)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	b.passed.Store(int64(3 * session.Lease))
	if err := l.Lapse(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := store.Read(t.Context(), b.db, func(tx *store.Tx) (ralph.Session, error) { return tx.Session(review) })
	if err != nil || s.CompletedAt.IsZero() || s.Review == nil || !strings.Contains(s.Review.None, "stopped meanwhile") {
		t.Errorf("the review goes on: %+v, %v", s.Review, err)
	}
	if task := b.task(id); task.Status != ralph.Pending {
		t.Errorf("the task is %s", task.Status)
	}
}

// In its own work tree it is judged, like a lost session of the loop (decision 3).
func TestALapsedClaimIsJudgedInItsOwnWorkTree(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree("test -e made")
	id := b.add(ralph.Task{Title: "A"})
	c := b.claim(l, id, "ann")
	b.say(c, signals.Done{Summary: "made it"})
	write(t, filepath.Join(workspaceOf(c), "made"), "x")
	b.passed.Store(int64(session.Lease + time.Second))
	if err := l.Lapse(t.Context()); err != nil {
		t.Fatal(err)
	}
	if task := b.task(id); task.Status != ralph.Merging {
		t.Errorf("got %s: %s", task.Status, task.StatusReason)
	}
}

// A worker may end an expired claim, and another one may have its workspace, before the claim is decided: nothing is
// checked there.
func TestAClaimThatItsWorkerEndedIsNotJudgedAgain(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	ran := filepath.Join(t.TempDir(), "ran")
	l := b.tree("echo x >> " + ran)
	c := b.claim(l, b.add(ralph.Task{Title: "A"}), "ann")
	b.say(c, signals.Done{Summary: "made it"})
	b.passed.Store(int64(session.Lease + time.Second))
	lapsed, err := store.Read(t.Context(), b.db, (*store.Tx).LapsedClaims)
	if err != nil || len(lapsed) != 1 {
		t.Fatalf("got %v, %v", lapsed, err)
	}
	if _, _, err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(ran)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(workspaceOf(c), "other"), "x")
	if err := loop.LapseOne(t.Context(), l, lapsed[0]); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(ran); err != nil || string(after) != string(before) {
		t.Errorf("it was checked again: %q, then %q, %v", before, after, err)
	}
}

// blocker returns a command that fails before anybody has made the file "made". With it the command reports that it
// runs, and ends on request. A second one at the same time fails at once.
func blocker(dir string) (command string, running, proceed string) {
	running, proceed = filepath.Join(dir, "running"), filepath.Join(dir, "proceed")
	return "[ -e made ] && [ ! -e " + running + " ] || exit 1; echo > " + running + "; while [ ! -e " + proceed + " ]; do sleep 0.01; done", running, proceed
}

// until waits for something done by another goroutine or process.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: waited in vain", what)
		}
	}
}

// The time of ralph's own checks does not count against the worker's lease (decision 18).
func TestALeaseLastsForTheVerification(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	marks := t.TempDir()
	command, running, proceed := blocker(marks)
	l := b.tree()
	l.Limits.SessionSeconds = 3600 // a review may take as long
	id := b.add(ralph.Task{Title: "A", Verify: []string{command}})
	c := b.claim(l, id, "ann")
	write(t, filepath.Join(workspaceOf(c), "made"), "x")
	b.say(c, signals.Done{Summary: "made it"})
	type ending struct {
		d   signals.Decision
		err error
	}
	closed := make(chan ending, 1)
	go func() {
		_, d, err := c.Close(context.WithoutCancel(t.Context()))
		closed <- ending{d, err}
	}()
	until(t, "the verification", func() bool { return exists(running) })
	b.passed.Store(int64(session.Lease + 5*time.Minute))
	err := l.Lapse(t.Context())
	task := b.task(id)
	write(t, proceed, "")
	if err != nil || task.Status != ralph.InProgress {
		t.Errorf("the claim lapsed while it was verified: %v, %s", err, task.Status)
	}
	if e := <-closed; e.err != nil || e.d.Status != ralph.Completed {
		t.Errorf("got %+v", e)
	}
}

// A worker is told if its task is amended during the check of its done:
// the done does not count, and the next session is told why (decision 3).
func TestADoneThatIsCheckedWhileTheTaskIsAmendedDoesNotCount(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	marks := t.TempDir()
	command, running, proceed := blocker(marks)
	l := b.tree()
	id := b.add(ralph.Task{Title: "A", Verify: []string{command}})
	c := b.claim(l, id, "ann")
	write(t, filepath.Join(workspaceOf(c), "made"), "x")
	b.say(c, signals.Done{Summary: "made it"})
	closed := make(chan error, 1)
	go func() {
		_, _, err := c.Close(context.WithoutCancel(t.Context()))
		closed <- err
	}()
	until(t, "the verification", func() bool { return exists(running) })
	verify := []string{"true"}
	err := b.db.Tx(t.Context(), func(tx *store.Tx) error {
		m, err := tx.Propose(ralph.Amendment{TaskID: id, Author: "human", AuthorKind: ralph.ByHuman, Rationale: "r", Patch: ralph.Patch{Contracts: &ralph.Contract{Verify: &verify}}})
		if err != nil {
			return err
		}
		dropped, err := tx.ApproveAmendment(m, "", "eve")
		if !dropped {
			t.Error("the claim is not dropped")
		}
		return err
	})
	write(t, proceed, "")
	if err != nil {
		t.Fatal(err)
	}
	var dropped *loop.DroppedError
	if err := <-closed; !errors.As(err, &dropped) || dropped.Why != "eve changed the task" {
		t.Errorf("got %v", err)
	}
	var s ralph.Session
	if err := b.db.View(t.Context(), func(tx *store.Tx) (err error) { s, err = tx.Session(c.SessionID()); return err }); err != nil {
		t.Fatal(err)
	}
	if task := b.task(id); task.Status != ralph.Pending || task.Attempts != 0 || s.Ending != ralph.Interrupted || s.Reason != "interrupted: eve changed the task" {
		t.Errorf("got %s, %d attempts, %s: %s", task.Status, task.Attempts, s.Ending, s.Reason)
	}
}

// A worker that calls while somebody decides on its lapsed claim keeps the claim.
func TestAClaimThatIsRenewedInTimeDoesNotLapse(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	marks := t.TempDir()
	command, running, proceed := blocker(marks)
	l := b.tree()
	id := b.add(ralph.Task{Title: "A", Verify: []string{command}})
	c := b.claim(l, id, "ann")
	write(t, filepath.Join(workspaceOf(c), "made"), "x")
	b.say(c, signals.Done{Summary: "made it"})
	b.passed.Store(int64(session.Lease + time.Second))
	lapsed := make(chan error, 1)
	go func() { lapsed <- l.Lapse(context.WithoutCancel(t.Context())) }()
	until(t, "the verification", func() bool { return exists(running) })
	err := c.Renew(t.Context())
	write(t, proceed, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := <-lapsed; err != nil {
		t.Error(err)
	}
	if task := b.task(id); task.Status != ralph.InProgress || task.ClaimedBy != c.SessionID() {
		t.Errorf("got %s, claimed by %q", task.Status, task.ClaimedBy)
	}
}

func TestReleasingTellsTheTasksStatus(t *testing.T) {
	t.Parallel()
	yes := true
	for _, tt := range []struct {
		name string
		said signals.Payload
		want ralph.Status
	}{
		{"nothing was said", nil, ralph.Pending},
		{"a question is open", signals.Ask{Question: "which?", Blocking: &yes}, ralph.NeedsInput},
		{"something is missing", signals.Blocked{On: "the key", Kind: "external"}, ralph.Blocked},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.tree()
			id := b.add(ralph.Task{Title: "A"})
			c := b.claim(l, id, "ann")
			if tt.said != nil {
				b.say(c, tt.said)
			}
			d, err := c.Release(t.Context())
			if task := b.task(id); err != nil || d.Status != tt.want || task.Status != tt.want || task.Attempts != 0 {
				t.Errorf("got %s, %+v, %v", d.Status, task, err)
			}
		})
	}
}

// A worker's task has a baseline like the loop's, or earlier test failures
// would count against it (decision 1).
func TestAClaimTakesTheBaseline(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	const red = `echo '{"Action":"run","Package":"p","Test":"TestOld"}'; echo '{"Action":"fail","Package":"p","Test":"TestOld"}'; echo '{"Action":"fail","Package":"p"}'; exit 1`
	l := b.tree(red)
	id := b.add(ralph.Task{Title: "A"})
	c := b.claim(l, id, "ann")
	write(t, filepath.Join(workspaceOf(c), "made"), "x")
	b.say(c, signals.Done{Summary: "made it"})
	again, d, err := c.Close(t.Context())
	if err != nil || d.Status != ralph.Completed {
		t.Errorf("got %q, %s %s, %v", again, d.Status, d.StatusReason, err)
	}
}

func TestATaskWhoseAttemptsAreUsedUpIsNotHandedOut(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	spent, fresh := b.add(ralph.Task{Title: "Spent"}), b.add(ralph.Task{Title: "Fresh"})
	c := b.claim(l, spent, "ann")
	b.say(c, signals.Partial{Summary: "half", Remaining: "half"})
	if _, _, err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.Limits.Attempts = 1 // lowered in the meantime
	next, ok, err := l.Next(t.Context())
	if err != nil || !ok || next.ID != fresh {
		t.Errorf("got TASK-%d, %t, %v", next.ID, ok, err)
	}
	if task := b.task(spent); task.Status != ralph.Failed {
		t.Errorf("got %s", task.Status)
	}
}

// TestATaskWhoseAttemptsAreUsedUpIsCancelledMeanwhile: it stays cancelled, and the next one is picked.
func TestATaskWhoseAttemptsAreUsedUpIsCancelledMeanwhile(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	spent := b.add(ralph.Task{Title: "Spent"})
	c := b.claim(l, spent, "ann")
	b.say(c, signals.Partial{Summary: "half", Remaining: "half"})
	if _, _, err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	fresh := b.add(ralph.Task{Title: "Fresh"})
	l.Limits.Attempts = 1 // lowered in the meantime
	next, ok, _, err := loop.Pick(t.Context(), l, func() {
		if b.task(spent).Status == ralph.Pending {
			b.tx(func(tx *store.Tx) error { return tx.Move(spent, ralph.Cancelled, ralph.Person, "no need") })
		}
	})
	if err != nil || !ok || next.ID != fresh || b.task(spent).Status != ralph.Cancelled {
		t.Errorf("got TASK-%d, %t, %v; the spent one is %s", next.ID, ok, err, b.task(spent).Status)
	}
}

// TestATaskWhoseAttemptsAreUsedUpInARun is named at the end of the run. A
// task that has ended is left alone.
func TestATaskWhoseAttemptsAreUsedUpInARun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		fails  bool // the database fails when the task is to fail
		say    signals.Payload
		only   bool
		exit   int
		reason string
		want   ralph.Status
	}{
		{"it fails", false, halt, false, ralph.ExitFailed, "failed: TASK-1", ralph.Failed},
		{"a run for it alone", false, halt, true, ralph.ExitFailed, "failed: TASK-1", ralph.Failed},
		{"a run for one that is completed", false, finish, true, ralph.ExitOK, "", ralph.Completed},
		{"which cannot be recorded", true, halt, false, ralph.ExitFailure, "the disk is full", ralph.Pending},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.tree()
			id := b.add(ralph.Task{Title: "A"})
			answer := map[bool]string{true: "over"}[tt.want == ralph.Completed]
			b.once(l, &speech{b: b, turns: []turn{{write: []string{"made"}, say: tt.say, answer: answer}}, ending: ralph.Finished})
			if tt.fails {
				b.refuse("UPDATE OF status", "tasks", "TRUE", "the disk is full")
			}
			l.Limits.MaxSessions, l.Limits.Attempts = 9, 1 // lowered in the meantime
			if tt.only {
				l.Task = id
			}
			result, err := l.Run(t.Context())
			if said := fmt.Sprint(result.Reasons, err); result.Status != tt.exit || !strings.Contains(said, tt.reason) || (err != nil) != tt.fails {
				t.Errorf("exit status %d: %s", result.Status, said)
			}
			if task := b.task(id); task.Status != tt.want {
				t.Errorf("it is %s: %s", task.Status, task.StatusReason)
			}
		})
	}
}

func TestALateClaimLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	id := b.add(ralph.Task{Title: "A"})
	b.claim(l, id, "ann")
	_, err := l.Claim(t.Context(), id, "bob")
	if !errors.Is(err, ralph.ErrConflict) || !strings.Contains(err.Error(), "ann") {
		t.Errorf("got %v", err)
	}
	marked := filepath.Join(t.TempDir(), "marked")
	if _, err := b.tree("touch "+marked).Claim(t.Context(), id, "bob"); !errors.Is(err, ralph.ErrConflict) || exists(marked) {
		t.Errorf("the baseline of a task is taken that cannot be claimed: %v", err)
	}
	// Somebody else was faster, between the look and the claim.
	other := b.add(ralph.Task{Title: "B"})
	rival := b.tree()
	slow := b.tree("true")
	taken := false
	slow.Heart = beat(func() { // while the baseline is taken
		if !taken {
			taken = true
			if err := loop.ClaimBefore(t.Context(), rival, other, "ann"); err != nil { // it does not queue up behind slow
				t.Error(err)
			}
		}
	})
	if _, err := slow.Claim(t.Context(), other, "bob"); !errors.Is(err, ralph.ErrConflict) || !strings.Contains(err.Error(), "ann") {
		t.Errorf("got %v", err)
	}
	folders, err := filepath.Glob(filepath.Join(b.state, "sessions", "*"))
	var sessions []ralph.Session
	verr := b.db.View(t.Context(), func(tx *store.Tx) (err error) { sessions, err = tx.Sessions(store.SessionFilter{}); return err })
	if err != nil || verr != nil || len(folders) != len(sessions) {
		t.Errorf("%d sessions and %d folders, %v, %v", len(sessions), len(folders), err, verr)
	}
}

type beat func()

func (b beat) Beat(time.Duration) { b() }
func (b beat) Status(string)      {}

// A client that leaves may kill its server while it releases the task: the
// claim ends at once all the same, not half an hour later.
func TestAClaimThatIsNotGivenBackToTheEndLapsesAtOnce(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l, other := b.tree(), b.tree()
	id := b.add(ralph.Task{Title: "A"})
	c := b.claim(l, id, "ann")
	// The session cannot be closed, as if the server had been killed before.
	allow := b.refuse("UPDATE OF completed_at", "sessions", "TRUE", "killed")
	if _, err := c.Release(t.Context()); err == nil {
		t.Fatal("the claim was decided")
	}
	allow()
	b.passed.Store(int64(time.Second))
	if err := other.Lapse(t.Context()); err != nil {
		t.Fatal(err)
	}
	if task := b.task(id); task.Status != ralph.Pending {
		t.Errorf("it is %s", task.Status)
	}
}

// If a done is being checked while its worker releases the task, only that check judges it.
func TestADoneThatIsCheckedAtTheReleaseIsJudgedThere(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	command, running, proceed := blocker(t.TempDir())
	l, other := b.tree(), b.tree()
	id := b.add(ralph.Task{Title: "A", Verify: []string{command}})
	c := b.claim(l, id, "ann")
	write(t, filepath.Join(workspaceOf(c), "made"), "x")
	b.say(c, signals.Done{Summary: "made it"})
	released := make(chan error, 1)
	go func() {
		_, err := c.Release(context.WithoutCancel(t.Context()))
		released <- err
	}()
	until(t, "the verification", func() bool { return exists(running) })
	b.passed.Store(int64(time.Minute))
	err := other.Lapse(t.Context())
	write(t, proceed, "")
	if err := errors.Join(err, <-released); err != nil {
		t.Error(err)
	}
	if task := b.task(id); task.Status != ralph.Completed {
		t.Errorf("it is %s: %s", task.Status, task.StatusReason)
	}
}

// TestALapsedClaimIsDecidedOnce: a process leaves a claim alone that another one is deciding on.
func TestALapsedClaimIsDecidedOnce(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	command, running, proceed := blocker(t.TempDir())
	l, other := b.tree(), b.tree()
	id := b.add(ralph.Task{Title: "A", Verify: []string{command}})
	c := b.claim(l, id, "ann")
	write(t, filepath.Join(workspaceOf(c), "made"), "x")
	b.say(c, signals.Done{Summary: "made it"})
	b.passed.Store(int64(session.Lease + time.Second))
	decided := make(chan error, 1)
	go func() { decided <- l.Lapse(context.WithoutCancel(t.Context())) }()
	until(t, "the verification", func() bool { return exists(running) })
	err := other.Lapse(t.Context())
	if task := b.task(id); task.Status != ralph.InProgress {
		t.Errorf("meanwhile it is %s: %s", task.Status, task.StatusReason)
	}
	write(t, proceed, "")
	if err := errors.Join(err, <-decided); err != nil {
		t.Error(err)
	}
	if task := b.task(id); task.Status != ralph.Merging {
		t.Errorf("it is %s: %s", task.Status, task.StatusReason)
	}
}

// TestAClaimThatLapsesWhileItIsGivenBackIsOver for its worker, and its workspace free.
func TestAClaimThatLapsesWhileItIsGivenBackIsOver(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	command, running, proceed := blocker(t.TempDir())
	l, other := b.tree(), b.tree()
	c := b.claim(l, b.add(ralph.Task{Title: "A", Verify: []string{command}}), "ann")
	dir, _ := c.Workspace()
	write(t, filepath.Join(dir, "made"), "x")
	b.say(c, signals.Done{Summary: "made it"})
	type ending struct {
		d   signals.Decision
		err error
	}
	released := make(chan ending, 1)
	go func() {
		d, err := c.Release(context.WithoutCancel(t.Context()))
		released <- ending{d, err}
	}()
	until(t, "the verification", func() bool { return exists(running) })
	b.passed.Store(int64(session.Lease))
	err := other.Lapse(t.Context())
	write(t, proceed, "")
	if e := <-released; err != nil || e.err != nil || e.d.Status != "" {
		t.Errorf("it lapsed with %v, and was given back with %v as %q", err, e.err, e.d.Status)
	}
	p, err := l.Pool.TakeNow(t.Context(), workspace.FirstWorker)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Release(); err != nil {
		t.Error(err)
	}
}
