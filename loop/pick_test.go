package loop

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/loop/merging"
	"ralph/loop/order"
	"ralph/signals"
	"ralph/store"
)

// TestTasksThatFitBesideOthers: scopes are hints within one priority, no task waits forever, and a discipline's limit
// holds.
func TestTasksThatFitBesideOthers(t *testing.T) {
	t.Parallel()
	task := func(id int64, priority int, kind string) ralph.Task {
		return ralph.Task{ID: id, Priority: priority, Discipline: kind}
	}
	queue := []ralph.Task{task(1, 1, "ui"), task(2, 1, "db"), task(3, 1, "db"), task(4, 2, ""), task(5, 1, "")} // the last one was lost, and waits behind all others
	scopes := map[int64][]string{1: {"web/**"}, 2: {"store/a.go"}, 3: {"store/*.go", "doc.md"}}
	for _, tt := range []struct {
		name   string
		b      inWork
		want   int
		passes []int64
	}{
		{"nothing else is worked on", inWork{}, 0, nil},
		{"the first does not meet it", inWork{files: []string{"store/b.go"}}, 0, nil},
		{"the first meets it", inWork{files: []string{"web/index.html"}}, 1, []int64{1}},
		{"the first two meet it", inWork{files: []string{"web/x", "store/a.go"}}, 0, nil},
		{"one of a lower priority would fit", inWork{files: []string{"web/x", "store/**"}}, 0, nil},
		{"it was passed over often enough", inWork{files: []string{"web/x"}, passed: map[int64]int{1: 5}}, 0, nil},
		{"it was passed over often", inWork{files: []string{"web/x"}, passed: map[int64]int{1: 4}}, 1, []int64{1}},
		{"a job is at it", inWork{tasks: map[int64]bool{1: true}}, 1, nil},
		{"as many as may are of its discipline", inWork{kinds: map[string]int{"ui": 2}, most: map[string]int{"ui": 2}}, 1, nil},
		{"one more may be", inWork{kinds: map[string]int{"ui": 1}, most: map[string]int{"ui": 2}}, 0, nil},
		{
			"all that may be are of a lower priority",
			inWork{tasks: map[int64]bool{1: true}, kinds: map[string]int{"db": 1}, most: map[string]int{"db": 1}, files: []string{"**"}},
			3, nil,
		},
		{
			"none", inWork{
				tasks: map[int64]bool{1: true, 4: true, 5: true}, kinds: map[string]int{"db": 1}, most: map[string]int{"db": 1},
			}, -1, nil,
		},
	} {
		tt.b.scopes = func(id int64) []string { return scopes[id] }
		if i, passes := tt.b.fit(queue); i != tt.want || !slices.Equal(passes, tt.passes) {
			t.Errorf("%s: got %d after %v, want %d after %v", tt.name, i, passes, tt.want, tt.passes)
		}
	}
}

// TestLostSessionsAreCountedInARow: only a session that shows that agent and machine work resets the count.
func TestLostSessionsAreCountedInARow(t *testing.T) {
	t.Parallel()
	r := &runner{}
	task, lost := ralph.Task{ID: 1, LostCount: 2}, signals.Decision{LostCount: 3}
	for i, next := range []struct {
		times  int
		ending ralph.Ending
		d      signals.Decision
		ends   bool
	}{
		{9, ralph.Lost, lost, false},
		{1, ralph.Finished, signals.Decision{}, false},
		{9, ralph.Lost, lost, false},
		{1, ralph.Interrupted, signals.Decision{LostCount: 2}, false},
		{1, ralph.RateLimited, signals.Decision{LostCount: 2}, false},
		{1, ralph.Lost, lost, true},
	} {
		for range next.times {
			if err := r.bounded(task, next.ending, next.d); (err != nil) != next.ends {
				t.Errorf("step %d: it ends the run: %v", i, err)
			}
		}
	}
}

// TestATaskThatIsMissedTwiceIsLeftAMoment; a lost race is not an error, and other errors are.
func TestATaskThatIsMissedTwiceIsLeftAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &runner{course: courseOf(&Loop{
			Config: order.Config{
				Limits: ralph.Limits{MaxSeconds: 3600},
			},
			Store: &store.DB{},
		}, 0), started: time.Now()}
		broken, conflict := errors.New("broken"), ralph.Conflict("taken")
		for i, next := range []struct {
			task  int64
			err   error
			fails bool
			takes time.Duration
		}{
			{1, conflict, false, 0}, {2, conflict, false, 0}, {2, errHeld, false, 0}, {2, order.ErrSpent, false, 0}, {2, conflict, false, time.Second}, {2, broken, true, 0},
		} {
			began := time.Now()
			err := r.missed(t.Context(), next.task, next.err)
			if took := time.Since(began); (err != nil) != next.fails || took != next.takes {
				t.Errorf("step %d: it returns %v after %s", i, err, took)
			}
		}
	})
}

// TestMaxOpen: no new task begins while merge.max_open pull requests are open. A task of one that was sent back does.
func TestMaxOpen(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                   string
		pulls                  bool
		most, reviewing, again int // pull requests that wait, and those whose task is to go on
		queued                 int
		want                   int64 // the task; the first ones have pull requests; 0 for none
		held                   string
	}{
		{"merged without", false, 1, 3, 0, 1, 4, ""},
		{"none open", true, 1, 0, 0, 1, 1, ""},
		{"fewer than that", true, 2, 1, 0, 1, 2, ""},
		{"so many", true, 2, 2, 0, 1, 0, "no new task begins until one of 2 open pull requests is merged or closed (merge.max_open)"},
		{"one, and one may be", true, 1, 1, 0, 9, 0, "no new task begins until one of 1 open pull request is merged or closed (merge.max_open)"},
		{"so many, and nothing is queued", true, 2, 2, 0, 0, 0, ""},
		{"one was sent back", true, 2, 1, 1, 40, 2, ""},
		{"more than that, and all were sent back", true, 1, 0, 3, 2, 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			r := &runner{course: courseOf(&Loop{Store: db, Merger: &merging.Merger{
				Rules: merging.Rules{Pulls: tt.pulls, MaxOpen: tt.most},
			}}, 0), held: "what held it before"}
			if err := db.Tx(t.Context(), func(tx *store.Tx) error {
				for n := range tt.reviewing + tt.again + tt.queued {
					id, err := tx.AddTask(ralph.Task{Title: fmt.Sprint("Task ", n), Priority: 2}, "human")
					if err != nil {
						return err
					}
					if n < tt.reviewing+tt.again {
						if err := inReview(tx, id, n >= tt.reviewing); err != nil {
							return err
						}
					}
				}
				task, ok, err := r.choose(tx)
				if ok != (tt.want != 0) || task.ID != tt.want || r.held != tt.held {
					t.Errorf("it begins TASK-%d: %v; held %q", task.ID, ok, r.held)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// inReview has a task wait for its pull request; with again, that was reviewed, and the task goes on.
func inReview(tx *store.Tx, id int64, again bool) error {
	session := fmt.Sprintf("00000000-0000-4000-8000-%012d", id)
	if _, err := tx.StartSession(store.Start{ID: session, Task: id, Origin: ralph.FromLoop}); err != nil {
		return err
	}
	s, err := tx.Session(session)
	if err != nil {
		return err
	}
	s.Change, s.Ending = &ralph.Change{Base: "base", Head: fmt.Sprintf("%040d", id), Tree: "tree"}, ralph.Finished
	if err := tx.Apply(s, signals.Facts{}, signals.Decision{
		Accepted: true, Status: ralph.Merging, Mover: ralph.Verdict, StatusReason: "done", Attempts: 1, Outcome: ralph.OutcomeSuccess,
	}); err != nil {
		return err
	}
	c, _, err := tx.ChangeOf(id)
	if err != nil {
		return err
	}
	c.To = c.Head
	if err := errors.Join(tx.BeginMove(c), tx.BeginReview(c)); err != nil {
		return err
	}
	if c, _, err = tx.ChangeOf(id); err != nil || !again {
		return err
	}
	return errors.Join(tx.PutForgePull(store.ForgePull{Number: id, TaskID: id, ChangeID: c.ID, Branch: "b", Open: true}),
		tx.ReviewRound(c, c.Head, c.Tree, "a review", "", nil))
}

// TestATaskThatIsGoneIsNoError, nor is one that waits for the remote; anything else that is not found is one.
func TestATaskThatIsGoneIsNoError(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var id int64
	if err := db.Tx(t.Context(), func(tx *store.Tx) (err error) { id, err = tx.AddTask(ralph.Task{Title: "A"}, "human"); return err }); err != nil {
		t.Fatal(err)
	}
	r := &runner{course: courseOf(&Loop{Store: db, Log: slog.New(slog.DiscardHandler)}, 0)}
	if err := r.missed(t.Context(), id+1, ralph.ErrNotFound); err != nil {
		t.Errorf("of a task that is gone it says %v", err)
	}
	if err := r.missed(t.Context(), id, ralph.ErrNotFound); !errors.Is(err, ralph.ErrNotFound) {
		t.Errorf("of a task that is there it says %v", err)
	}
	began := time.Now()
	if err := r.missed(t.Context(), id, merging.ErrAway); err != nil || r.missedTask != 0 || r.remoteNext.Before(began.Add(step)) {
		t.Errorf("without the remote it says %v, and waits until %s", err, r.remoteNext)
	}
}
