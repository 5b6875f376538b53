package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// TestAChangeThatIsInAnotherState is not taken by a process that read it before: two mergers cannot both have it.
func TestAChangeThatIsInAnotherState(t *testing.T) {
	db, s := working(t)
	var id int64
	write(t, db, func(tx *store.Tx) (err error) {
		id, err = tx.AddChange(ralph.Change{TaskID: s.TaskID, SessionID: s.ID, Base: "a", Head: "b", Tree: "c", State: ralph.Queued})
		return err
	})
	write(t, db, func(tx *store.Tx) error { return tx.SetChange(id, ralph.Queued, ralph.Held) })
	err := db.Tx(t.Context(), func(tx *store.Tx) error { return tx.SetChange(id, ralph.Queued, ralph.Moving) })
	if !errors.Is(err, ralph.ErrConflict) {
		t.Errorf("it was taken: %v", err)
	}
	write(t, db, func(tx *store.Tx) error {
		c, err := tx.Change(id)
		if c.State != ralph.Held {
			t.Errorf("it is %s", c.State)
		}
		return err
	})
}

// passed returns a database with a task whose only session was accepted, and its change, which is queued.
func passed(t *testing.T) (*store.DB, ralph.Change) {
	t.Helper()
	db, s := working(t)
	s.Change = &ralph.Change{Base: "base", Head: "head", Tree: "tree"}
	var c ralph.Change
	write(t, db, func(tx *store.Tx) error {
		if err := tx.Apply(s, signals.Facts{}, signals.Decision{
			Status: ralph.Merging, Mover: ralph.Verdict, StatusReason: "done and verified",
			Accepted: true, Attempts: 1, Outcome: ralph.OutcomeSuccess,
		}); err != nil {
			return err
		}
		var err error
		c, _, err = tx.ChangeOf(s.TaskID)
		return err
	})
	return db, c
}

// moved begins the merge of a change.
func moved(tx *store.Tx, c ralph.Change) error {
	c.From, c.To, c.Commit, c.Files = "from", "to", "own", []ralph.FileChange{{Path: "a.go", Added: 1, Status: "added"}}
	return tx.BeginMove(c)
}

// eventsOf lists the types of a task's events from the id on that is given.
func eventsOf(tx *store.Tx, after int64) (list []string, err error) {
	events, err := tx.Events(after, 100)
	for _, e := range events {
		list = append(list, e.Type)
	}
	return list, err
}

// TestActionsOnAChange of people, and of ralph on its way into the branch, by the change's state.
func TestActionsOnAChange(t *testing.T) {
	dropped, sentBack := ralph.EventType(ralph.ChangeDropped{}), ralph.EventType(ralph.ChangeSentBack{})
	added, commented := ralph.EventType(ralph.ChangeQueued{}), ralph.EventType(ralph.CommentAdded{})
	status := ralph.EventType(ralph.TaskStatusChanged{})
	edit := func(tx *store.Tx, c ralph.Change) error {
		task, err := tx.Task(c.TaskID)
		task.Acceptance = []string{"it is there"}
		return errors.Join(err, tx.UpdateTask(task))
	}
	drop := func(tx *store.Tx, c ralph.Change) error { return tx.DropChange(c.TaskID, "ann") }
	cancel := func(tx *store.Tx, c ralph.Change) error {
		_, err := tx.Cancel(c.TaskID, "ann")
		return err
	}
	retry := func(tx *store.Tx, c ralph.Change) error { return tx.RetryChange(c.TaskID, "ann") }
	again := func(tx *store.Tx, c ralph.Change) error {
		_, err := tx.AddChange(ralph.Change{TaskID: c.TaskID, SessionID: c.SessionID, State: ralph.Held})
		return err
	}
	queue := func(tx *store.Tx, c ralph.Change) error {
		_, err := tx.AddChange(ralph.Change{TaskID: c.TaskID, SessionID: c.SessionID, State: ralph.Queued})
		return err
	}
	sendBack := func(tx *store.Tx, c ralph.Change) error { return tx.SendBack(c, "it conflicts", []string{"a.go"}, "") }
	giveUp := func(tx *store.Tx, c ralph.Change) error { return tx.SendBack(c, "it conflicts", nil, "look at it") }
	block := func(tx *store.Tx, c ralph.Change) error { return tx.BlockChange(c, "the branch is gone") }
	undoing := func(tx *store.Tx, c ralph.Change) error {
		if err := errors.Join(moved(tx, c), tx.CompleteChange(ralph.Change{ID: c.ID, TaskID: c.TaskID, SessionID: c.SessionID, To: "to"}, 0, "main", "")); err != nil {
			return err
		}
		if err := tx.Move(c.TaskID, ralph.Merging, ralph.Person, "undone"); err != nil {
			return err
		}
		_, err := tx.AddChange(ralph.Change{TaskID: c.TaskID, SessionID: c.SessionID, State: ralph.Queued, Undo: ralph.Cancelled})
		return err
	}
	conflicting := func(tx *store.Tx, c ralph.Change) error { // its merge was begun
		err := moved(tx, c)
		c.State = ralph.Moving
		return errors.Join(err, sendBack(tx, c))
	}
	gone := func(tx *store.Tx, c ralph.Change) error { return tx.SetChange(c.ID, ralph.Queued, ralph.Merged) }
	type step = func(*store.Tx, ralph.Change) error
	for _, tt := range []struct {
		name   string
		before step // nil leaves it queued
		act    step
		fails  bool
		state  ralph.ChangeState // of the first change then
		reason string
		task   ralph.Status
		events []string
	}{
		{
			"an edit, queued", nil, edit, false, ralph.Held, "the task was changed before its change was merged", ralph.Pending,
			[]string{ralph.EventType(ralph.TaskUpdated{}), status},
		},
		{"an edit, moving", moved, edit, true, ralph.Moving, "", ralph.Merging, nil},
		{"dropped, queued", nil, drop, false, ralph.Dropped, "dropped by ann", ralph.Pending, []string{dropped, status}},
		{"dropped, moving", moved, drop, true, ralph.Moving, "", ralph.Merging, nil},
		{"dropped, sent back", sendBack, drop, false, ralph.Dropped, "it conflicts", ralph.Pending, nil},
		{"dropped, held", edit, drop, false, ralph.Dropped, "dropped by ann", ralph.Pending, []string{dropped}},
		{"cancelled, queued", nil, cancel, false, ralph.Dropped, "its task is cancelled", ralph.Cancelled, []string{dropped, status}},
		{"cancelled, moving", moved, cancel, true, ralph.Moving, "", ralph.Merging, nil},
		{"another one, queued", nil, again, false, ralph.Dropped, ralph.Superseded, ralph.Merging, []string{dropped}},
		{"another one to merge, queued", nil, queue, false, ralph.Dropped, ralph.Superseded, ralph.Merging, []string{dropped, added}},
		{"another one, moving", moved, again, true, ralph.Moving, "", ralph.Merging, nil},
		{"another one, sent back", sendBack, again, false, ralph.SentBack, "it conflicts", ralph.Pending, nil},
		{"sent back", nil, sendBack, false, ralph.SentBack, "it conflicts", ralph.Pending, []string{sentBack, status}},
		{"sent back for a person", nil, giveUp, false, ralph.SentBack, "it conflicts", ralph.Blocked, []string{sentBack, commented, status, status}},
		{"blocked", nil, block, false, ralph.Held, "the branch is gone", ralph.Blocked, []string{commented, status, status}},
		{"tried again, queued", nil, retry, true, ralph.Queued, "", ralph.Merging, nil},
		{"tried again, sent back", sendBack, retry, false, ralph.Queued, "", ralph.Merging, []string{added, status}},
		{"tried again, sent back as it was moved", conflicting, retry, false, ralph.Queued, "", ralph.Merging, []string{added, status}},
		{"an edit, without an open change", gone, edit, false, ralph.Merged, "", ralph.Pending, []string{ralph.EventType(ralph.TaskUpdated{}), status}},
		{"tried again, blocked", block, retry, false, ralph.Queued, "", ralph.Merging, []string{ralph.EventType(ralph.CommentResolved{}), status, added, status}},
		{"an edit while it is undone", undoing, edit, true, ralph.Merged, "", ralph.Merging, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db, c := passed(t)
			if tt.before != nil {
				write(t, db, func(tx *store.Tx) error { return tt.before(tx, c) })
			}
			var last int64
			write(t, db, func(tx *store.Tx) (err error) { last, err = tx.LastEvent(); return err })
			err := db.Tx(t.Context(), func(tx *store.Tx) error { return tt.act(tx, c) })
			if failed := err != nil; failed != tt.fails || failed && !errors.Is(err, ralph.ErrConflict) {
				t.Errorf("got the error %v", err)
			}
			write(t, db, func(tx *store.Tx) error {
				got, err := tx.Change(c.ID)
				task, terr := tx.Task(c.TaskID)
				events, eerr := eventsOf(tx, last)
				if got.State != tt.state || got.Reason != tt.reason || task.Status != tt.task || !slices.Equal(events, tt.events) {
					t.Errorf("the change is %s (%q), its task %s, after %q", got.State, got.Reason, task.Status, events)
				}
				if got.State == ralph.Queued && (got.From+got.To+got.Commit != "" || len(got.Files)+len(got.Conflicts) > 0 || task.TimesSentBack != 0) {
					t.Errorf("it is queued as %+v, sent back %d times", got, task.TimesSentBack)
				}
				return errors.Join(err, terr, eerr)
			})
		})
	}
}

// TestTheStepsOfAMerge: the records of a change while it is merged, and their reversal when the merge begins again.
func TestTheStepsOfAMerge(t *testing.T) {
	db, c := passed(t)
	look := func(state ralph.ChangeState, from, to, own string, files int) {
		t.Helper()
		write(t, db, func(tx *store.Tx) error {
			got, err := tx.Change(c.ID)
			if got.State != state || got.From != from || got.To != to || got.Commit != own || len(got.Files) != files {
				t.Errorf("got %+v, want %s from %q to %q by %q with %d files", got, state, from, to, own, files)
			}
			return err
		})
	}
	write(t, db, func(tx *store.Tx) error { return moved(tx, c) })
	look(ralph.Moving, "from", "to", "own", 1)
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return moved(tx, c) }); !errors.Is(err, ralph.ErrConflict) {
		t.Errorf("it is moved from the state that it had before: %v", err)
	}
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return tx.Requeue(c.ID, ralph.Verifying) }); !errors.Is(err, ralph.ErrConflict) {
		t.Errorf("it is queued again from a state that it is not in: %v", err)
	}
	look(ralph.Moving, "from", "to", "own", 1)
	write(t, db, func(tx *store.Tx) error { return tx.Requeue(c.ID, ralph.Moving) })
	look(ralph.Queued, "", "", "", 0)
	for i, want := range []bool{true, false, false} {
		write(t, db, func(tx *store.Tx) error {
			first, err := tx.BeginAfter(c.ID)
			if first != want {
				t.Errorf("the commands for its branch are about to run for the first time at look %d: %v", i, first)
			}
			return err
		})
	}
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { _, err := tx.BeginAfter(99); return err }); err == nil {
		t.Error("a change that is not there has begun")
	}
}

// TestTheLine: a change keeps its place from the beginning of its check, unless its session goes on. A change that is
// queued again goes behind all others.
func TestTheLine(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	session := func(task int) string { return fmt.Sprintf("%08d-1111-4111-8111-111111111111", task) }
	change := func(task int, head string) ralph.Change {
		return ralph.Change{TaskID: int64(task), SessionID: session(task), Head: head}
	}
	line := func(what string, want ...string) {
		t.Helper()
		write(t, db, func(tx *store.Tx) error {
			list, err := tx.Line()
			var got []string
			for _, c := range list {
				got = append(got, fmt.Sprintf("%d %s", c.TaskID, c.State))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: the line is %q, want %q", what, got, want)
			}
			return err
		})
	}
	end := func(task int, c *ralph.Change, to ralph.Status) {
		t.Helper()
		write(t, db, func(tx *store.Tx) error {
			s, err := tx.Session(session(task))
			s.Change, s.Ending = c, ralph.Finished
			return errors.Join(err, tx.Apply(s, signals.Facts{}, signals.Decision{
				Status: to, Mover: ralph.Verdict, StatusReason: "decided", Outcome: ralph.OutcomeSuccess, Accepted: to == ralph.Merging,
			}))
		})
	}
	write(t, db, func(tx *store.Tx) error {
		for i := range 4 {
			id, err := tx.AddTask(ralph.Task{Title: string(rune('A' + i))}, "human")
			if err != nil {
				return err
			}
			if _, err := tx.StartSession(store.Start{ID: session(int(id)), Task: id}); err != nil {
				return err
			}
		}
		for task := 1; task <= 4; task++ {
			if err := tx.JoinLine(change(task, "a")); err != nil {
				return err
			}
		}
		return tx.JoinLine(change(1, "a"))
	})
	line("they are checked", "1 checking", "2 checking", "3 checking", "4 checking")
	write(t, db, func(tx *store.Tx) error {
		if _, open, err := tx.OpenChange(1); err != nil || open {
			t.Errorf("what is being checked is its session's alone: %t, %v", open, err)
		}
		return tx.JoinLine(change(1, "b"))
	})
	line("the first has gone on", "2 checking", "3 checking", "4 checking", "1 checking")
	write(t, db, func(tx *store.Tx) error { return tx.LeaveLine(session(3)) })
	line("the third has left", "2 checking", "4 checking", "1 checking")
	end(4, &ralph.Change{Head: "a"}, ralph.Merging)
	end(1, &ralph.Change{Head: "b"}, ralph.Merging)
	line("two have passed", "2 checking", "4 queued", "1 queued")
	end(2, nil, ralph.Pending)
	line("the other one has come to nothing", "4 queued", "1 queued")
	write(t, db, func(tx *store.Tx) error {
		c, _, err := tx.OpenChange(4)
		return errors.Join(err, tx.BlockChange(c, "the branch is gone"), tx.RetryChange(4, "ann"))
	})
	line("one was queued again", "1 queued", "4 queued")
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return tx.JoinLine(change(2, "c")) }); !errors.Is(err, ralph.ErrConflict) {
		t.Errorf("a session that was decided joins the line: %v", err)
	}
}

// TestATaskThatIsMergedAlone was sent back too often.
func TestATaskThatIsMergedAlone(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	write(t, db, func(tx *store.Tx) (err error) {
		for i := range 4 {
			if _, err = tx.AddTask(ralph.Task{Title: string(rune('A' + i))}, "human"); err != nil {
				return err
			}
		}
		return nil
	})
	sendBack := func(task int64, times int) {
		t.Helper()
		write(t, db, func(tx *store.Tx) error {
			for range times {
				if err := tx.NoteSentBack(ralph.Session{TaskID: task}, "it conflicts", nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
	sendBack(2, 1)
	sendBack(4, 2)
	for times, want := range map[int]int64{0: 2, 1: 2, 2: 4, 3: 0} {
		write(t, db, func(tx *store.Tx) error {
			alone, err := tx.MergesAlone(times)
			if alone != want {
				t.Errorf("with %d times TASK-%d is merged alone, want TASK-%d", times, alone, want)
			}
			return err
		})
	}
}

// TestRetriesThatReleaseABlocker: the inbox item of a blocker allows the retry that releases it, and its task needs a
// person.
func TestRetriesThatReleaseABlocker(t *testing.T) {
	for _, tt := range []struct {
		name, action string
		accepted     bool
		decision     signals.Decision
	}{
		{"a change that cannot be merged", "as is", true, signals.Decision{Status: ralph.Merging}},
		{"a session that was lost", "retry", false, signals.Decision{Status: ralph.Blocked, Blocker: "look at it"}},
		{"a flag that holds the task", "", false, signals.Decision{Status: ralph.Blocked, Holds: []signals.Hold{{Why: "a done waits for it"}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db, s := working(t)
			s.Change = &ralph.Change{Base: "base", Head: "head", Tree: "tree"}
			tt.decision.Accepted = tt.accepted
			if len(tt.decision.Holds) > 0 {
				tt.decision.Holds[0].Comment = says(t, db, s, signals.Flag{What: "it leaks", Severity: "blocking", Category: "bug"})[0]
			}
			write(t, db, func(tx *store.Tx) error {
				err := apply(tx, s, tt.decision)
				c, _, cerr := tx.ChangeOf(s.TaskID)
				if err = errors.Join(err, cerr); err == nil && tt.accepted {
					err = tx.BlockChange(c, "the branch is gone")
				}
				return err
			})
			write(t, db, func(tx *store.Tx) error {
				items, err := tx.InboxOf("blocker")
				if len(items) != 1 || items[0].Action != tt.action {
					t.Errorf("got %+v", items)
				}
				task, terr := tx.Task(s.TaskID)
				if task.Waits.Blockers != 1 || !task.NeedsPerson() {
					t.Errorf("the task waits for %+v", task.Waits)
				}
				return errors.Join(err, terr)
			})
		})
	}
}
