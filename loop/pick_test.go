package loop

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/loop/order"
	"ralph/signals"
	"ralph/store"
)

// TestWhichTaskFitsBesideOthers: scopes are hints within one priority, no
// task waits forever, and a discipline's limit holds.
func TestWhichTaskFitsBesideOthers(t *testing.T) {
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

// TestLostSessionsAreCountedInARow: only a session that shows that agent and machine work begins anew.
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

// TestATaskThatIsMissedTwiceIsLeftAMoment; a lost race is no error, and other errors are.
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

// TestATaskThatIsGoneIsNoError; anything else that is not found is one.
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
	r := &runner{course: courseOf(&Loop{Store: db}, 0)}
	if err := r.missed(t.Context(), id+1, ralph.ErrNotFound); err != nil {
		t.Errorf("of a task that is gone it says %v", err)
	}
	if err := r.missed(t.Context(), id, ralph.ErrNotFound); !errors.Is(err, ralph.ErrNotFound) {
		t.Errorf("of a task that is there it says %v", err)
	}
}
