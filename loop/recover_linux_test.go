package loop_test

import (
	"os/exec"
	"testing"

	"ralph"
	"ralph/loop"
	"ralph/store"
)

// TestLooksAtTheWorkTreeEndWithTheRunThatWasKilled: a leftover git scan
// would write to the files of the next one.
func TestLooksAtTheWorkTreeEndWithTheRunThatWasKilled(t *testing.T) {
	for _, ended := range []bool{false, true} {
		b := newWorkshop(t)
		l := b.tree()
		l.Agent, l.Here.Tree.Marker = everybody{}, "RALPH_LOOK="+b.state
		l.Limits = ralph.Limits{MaxSessions: 1, MaxTasks: 1, MaxSeconds: 60, MaxCostUSD: 1, MaxDayCostUSD: 1, MaxMonthCostUSD: 1, SessionCostUSD: 1, StagnantMaximum: 1, Attempts: 1}
		err := b.db.Tx(t.Context(), func(tx *store.Tx) error {
			run, err := tx.StartRun(1, l.Limits, l.Sandbox)
			if err == nil && ended {
				err = tx.EndRun(run.ID, 0, "nothing is left to do")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
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
		if !ended {
			<-gone // or until the test's time limit
			continue
		}
		select {
		case <-gone:
			t.Error("a look was ended though the run before had ended by itself")
		default:
			if err := look.Process.Kill(); err != nil {
				t.Error(err)
			}
			<-gone
		}
	}
}

// run has a loop do what there is.
func run(t *testing.T, l *loop.Loop) {
	t.Helper()
	if result, err := l.Run(t.Context()); err != nil || result.Status != ralph.ExitOK {
		t.Fatalf("got %+v, %v", result, err)
	}
}
