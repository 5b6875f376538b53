package loop_test

import (
	"os/exec"
	"testing"

	"github.com/google/uuid"

	"ralph"
	"ralph/internal/machine"
	"ralph/loop"
	"ralph/store"
)

// TestLooksAtTheWorkTreeEndWithTheRunThatWasKilled: a leftover git scan
// would write to the files of the next one.
func TestLooksAtTheWorkTreeEndWithTheRunThatWasKilled(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"killed", "ended", "none"} {
		b := newWorkshop(t)
		l := b.tree()
		l.Agent, l.Here.Tree.Marker = everybody{}, "RALPH_LOOK="+b.state
		l.Limits = ralph.Limits{MaxSessions: 1, MaxTasks: 1, MaxSeconds: 60, MaxCostUSD: 1, MaxDayCostUSD: 1, MaxMonthCostUSD: 1, SessionCostUSD: 1, StagnantMaximum: 1, Attempts: 1}
		b.tx(func(tx *store.Tx) error {
			if before == "none" {
				return nil
			}
			run, err := tx.StartRun(gone(), l.Limits, l.Sandbox)
			if err == nil && before == "ended" {
				err = tx.EndRun(run.ID, 0, "nothing is left to do")
			}
			return err
		})
		look := exec.Command("sleep", "600")
		look.Env = []string{l.Here.Tree.Marker}
		if err := look.Start(); err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() {
			if look.Wait() == nil {
				t.Error("the look ended by itself")
			}
			close(gone)
		}()
		run(t, l)
		if before == "killed" {
			<-gone // or until the test's time limit
			continue
		}
		select {
		case <-gone:
			t.Errorf("a look was ended though the run before was not killed: %s", before)
		default:
			if err := look.Process.Kill(); err != nil {
				t.Error(err)
			}
			<-gone
		}
	}
}

// gone is a process that is not any more.
func gone() string {
	process, leave := machine.Join()
	leave()
	return process
}

// TestARunThatWorksElsewhereKeepsItsSessions: a run with another state folder on the same database takes over only the
// sessions of lost runs.
func TestARunThatWorksElsewhereKeepsItsSessions(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	l.Agent = everybody{}
	l.Limits = ralph.Limits{MaxSessions: 1, MaxTasks: 1, MaxSeconds: 60, MaxCostUSD: 1, MaxDayCostUSD: 1, MaxMonthCostUSD: 1, SessionCostUSD: 1, StagnantMaximum: 1, Attempts: 1}
	stop := make(chan struct{})
	close(stop) // it begins no session of its own
	l.Stop = stop
	process, leave := machine.Join()
	defer leave()
	id := uuid.NewString()
	var other ralph.Run
	err := b.db.Tx(t.Context(), func(tx *store.Tx) (err error) {
		task, err := tx.AddTask(ralph.Task{Title: "Theirs"}, "human")
		if err == nil {
			other, err = tx.StartRun(process, l.Limits, "")
		}
		if err == nil {
			_, err = tx.StartSession(store.Start{ID: id, Task: task, Run: other.ID, Dir: "/elsewhere/1/tree"})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, works := range []bool{true, false} {
		if !works {
			leave()
		}
		if _, err := l.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := b.db.View(t.Context(), func(tx *store.Tx) error {
			s, err := tx.Session(id)
			if err == nil && (s.CompletedAt.IsZero() != works || !works && s.Ending != ralph.Lost) {
				t.Errorf("while its run works %t: the session has ended %q at %s", works, s.Ending, s.CompletedAt)
			}
			if other, err = tx.Run(other.ID); err == nil && other.EndedAt.IsZero() != works {
				t.Errorf("while it works %t: the run has ended at %s", works, other.EndedAt)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// run lets a loop do the open work.
func run(t *testing.T, l *loop.Loop) {
	t.Helper()
	if result, err := l.Run(t.Context()); err != nil || result.Status != ralph.ExitOK {
		t.Fatalf("got %+v, %v", result, err)
	}
}
