package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"ralph"
	"ralph/internal/machine"
	"ralph/store"
)

// last returns the newest event with its payload.
func last(t *testing.T, db *store.DB) (e ralph.Event, payload map[string]any) {
	t.Helper()
	write(t, db, func(tx *store.Tx) error {
		id, err := tx.LastEvent()
		if err != nil {
			return err
		}
		events, err := tx.Events(id-1, 1)
		if err != nil {
			return err
		}
		e = events[0]
		return json.Unmarshal(e.Payload, &payload)
	})
	return e, payload
}

func TestTheEventOfABlockedTaskHasItsReasons(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	write(t, db, func(tx *store.Tx) error {
		for _, task := range []ralph.Task{{Title: "A", Priority: 2}, {Title: "B", Priority: 2, DependsOn: []int64{1}}} {
			if _, err := tx.AddTask(task, "human"); err != nil {
				return err
			}
		}
		return nil
	})
	if e, p := last(t, db); e.Type != ralph.EventType(ralph.TaskStatusChanged{}) || e.TaskID != 2 || fmt.Sprint(p["waits"]) != "map[blockers:0 questions:0 tasks:[1]]" {
		t.Errorf("a dependency: got %+v %v", e, p)
	}
	write(t, db, func(tx *store.Tx) error {
		_, err := tx.AddComment(ralph.Comment{TaskID: 1, Author: "x", AuthorKind: ralph.ByAgent, Kind: ralph.Blocker, Body: "b", Rationale: "r"})
		return err
	})
	if e, p := last(t, db); e.Type != ralph.EventType(ralph.TaskStatusChanged{}) || e.TaskID != 1 || fmt.Sprint(p["waits"]) != "map[blockers:1 questions:0 tasks:[]]" {
		t.Errorf("a blocker: got %+v %v", e, p)
	}
}

// TestReasonsToWaitChange: it resolves a blocker of a task that also depends on another one.
func TestReasonsToWaitChange(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	blocker := int64(0)
	write(t, db, func(tx *store.Tx) (err error) {
		if err := addTasks(tx, "A", "B"); err != nil {
			return err
		}
		if err := tx.AddDependency(2, 1, "human"); err != nil {
			return err
		}
		blocker, err = tx.AddComment(ralph.Comment{
			TaskID: 2, Author: "ann", AuthorKind: ralph.ByHuman, Kind: ralph.Blocker, Body: "b", Rationale: "r",
		})
		return err
	})
	is := func(person bool, reason string) {
		t.Helper()
		task, err := store.Read(t.Context(), db, func(tx *store.Tx) (ralph.Task, error) { return tx.Task(2) })
		if err != nil || task.Status != ralph.Blocked || task.NeedsPerson() != person || task.StatusReason != reason {
			t.Errorf("%v, %s, needs a person: %t, %q", err, task.Status, task.NeedsPerson(), task.StatusReason)
		}
	}
	tally := func(want string) {
		t.Helper()
		if got, err := store.Read(t.Context(), db, (*store.Tx).Tally); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%v: %v, not %s", err, got, want)
		}
	}
	is(true, "waits for a blocker to be resolved and TASK-1")
	tally("map[needs_you:1 queued:1]")
	write(t, db, func(tx *store.Tx) error { return tx.Resolve(blocker, "done", "ann") })
	is(false, "waits for TASK-1")
	tally("map[queued:1 waiting:1]")
	write(t, db, func(tx *store.Tx) error {
		_, err := tx.AddComment(ralph.Comment{
			TaskID: 1, Author: "x", AuthorKind: ralph.ByAgent, Kind: ralph.Blocker, Body: "b", Rationale: "r",
		})
		return err
	})
	tally("map[needs_you:1 waiting:1]")
}

func TestTheEventOfAWaitTellsIfItIsForTheAgent(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	until := time.Now().Add(time.Hour)
	write(t, db, func(tx *store.Tx) error {
		run, err := tx.StartRun("", ralph.Limits{}, "")
		if err != nil {
			return err
		}
		return tx.SetRunState(run.ID, "waiting", "the window opens", until)
	})
	if e, p := last(t, db); e.Type != ralph.EventType(ralph.RunWaiting{}) || p["agent"] != false {
		t.Errorf("a window: got %+v %v", e, p)
	}
	write(t, db, func(tx *store.Tx) error {
		if err := tx.SetAgentState(store.AgentState{Agent: "codex", WaitUntil: ralph.At(until), Reason: "rate limit", Failures: 1}); err != nil {
			return err
		}
		return tx.SetRunState(1, "waiting", "rate limit", until)
	})
	if e, p := last(t, db); e.Type != ralph.EventType(ralph.RunWaiting{}) || p["agent"] != true {
		t.Errorf("the agent: got %+v %v", e, p)
	}
}

// TestAnotherAccount: the state of an agent is forgotten when its account changes; that of other
// agents is not.
func TestAnotherAccount(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	write(t, db, func(tx *store.Tx) error {
		var err error
		for _, name := range []string{"claude", "codex"} {
			err = errors.Join(err, tx.SetAgentState(store.AgentState{Agent: name, WaitUntil: ralph.At(time.Now().Add(time.Hour)), Failures: 1}),
				tx.PutUsageWindow(ralph.UsageWindow{Agent: name, Name: "five_hour", Utilization: 1}))
		}
		return err
	})
	for _, tt := range []struct {
		account string
		known   int
	}{{"a", 2}, {"a", 2}, {"b", 1}, {"b", 1}} {
		write(t, db, func(tx *store.Tx) error {
			if err := tx.WorksWith("claude", tt.account); err != nil {
				return err
			}
			states, err := tx.AgentStates()
			if err != nil {
				return err
			}
			windows, err := tx.UsageWindows()
			if len(states) != tt.known || len(windows) != tt.known || states[len(states)-1].Agent != "codex" {
				t.Errorf("%s: %+v %+v", tt.account, states, windows)
			}
			return err
		})
	}
}

func TestALostRunEndsWithAnEventWhenTheNextBegins(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	var events []ralph.Event
	write(t, db, func(tx *store.Tx) (err error) {
		for range 2 {
			process, leave := machine.Join()
			leave()
			if _, err := tx.StartRun(process, ralph.Limits{}, ""); err != nil {
				return err
			}
		}
		events, err = tx.Events(0, 9)
		return err
	})
	if len(events) != 3 || events[1].Type != ralph.EventType(ralph.RunEnded{}) || events[1].RunID != 1 || events[2].Type != ralph.EventType(ralph.RunStarted{}) || events[2].RunID != 2 {
		t.Errorf("got %+v", events)
	}
}

func TestAReaderResumesWhereItStood(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ralph.db")
	db := open(t, path)
	write(t, db, func(tx *store.Tx) error {
		if _, ok, err := tx.ReaderPosition("a"); ok || err != nil {
			t.Errorf("a reader that never began: %v, %v", ok, err)
		}
		for _, at := range []int64{5, 7} {
			if err := tx.SetReaderPosition("a", at); err != nil {
				return err
			}
		}
		return tx.SetReaderPosition("b", 0)
	})
	again := open(t, path)
	write(t, again, func(tx *store.Tx) error {
		for reader, want := range map[string]int64{"a": 7, "b": 0} {
			if at, ok, err := tx.ReaderPosition(reader); at != want || !ok || err != nil {
				t.Errorf("%s: got %d, %v, %v", reader, at, ok, err)
			}
		}
		return nil
	})
}

// TestNoEventAppearsBehindOneThatWasRead: events of several writers, with rollbacks among them, have ids in the order
// in which they become visible. So a reader that continues after its last id misses none.
func TestNoEventAppearsBehindOneThatWasRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ralph.db")
	db := open(t, path)
	write(t, db, func(tx *store.Tx) error {
		_, err := tx.AddTask(ralph.Task{Title: "A", Priority: 2}, "human")
		return err
	})
	const writers, each = 4, 50
	givenUp := errors.New("given up")
	written := make(chan error, writers)
	for range writers {
		other := open(t, path)
		go func() {
			var all error
			for i := range each {
				err := other.Tx(t.Context(), func(tx *store.Tx) error {
					_, err := tx.AddComment(ralph.Comment{TaskID: 1, Author: "x", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: "b"})
					if err == nil && i%5 == 0 {
						err = givenUp
					}
					return err
				})
				if !errors.Is(err, givenUp) {
					all = errors.Join(all, err)
				}
			}
			written <- all
		}()
	}
	var seen, read, finished int64
	for {
		if finished < writers {
			select {
			case err := <-written:
				if err != nil {
					t.Fatal(err)
				}
				finished++
			default:
			}
		}
		over := finished == writers
		var page []ralph.Event
		if err := db.View(t.Context(), func(tx *store.Tx) (err error) { page, err = tx.Events(seen, 7); return err }); err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			if e.ID <= seen {
				t.Fatalf("event %d follows %d", e.ID, seen)
			}
			seen, read = e.ID, read+1
		}
		if over && len(page) == 0 {
			break
		}
	}
	if want := int64(1 + writers*each*4/5); read != want {
		t.Errorf("%d events were read, want %d", read, want)
	}
}
