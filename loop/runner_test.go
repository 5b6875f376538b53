package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/uuid"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/loop/agent"
	"ralph/loop/merging"
	"ralph/loop/order"
	"ralph/loop/session"
	"ralph/loop/workspace"
	"ralph/store"
)

// openStore opens a database with so many tasks and a run; raw writes to it without the store.
func openStore(t *testing.T, tasks int) (db *store.DB, run int64, raw func(statement string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ralph.db")
	db, err := store.Open(t.Context(), pgtest.Path(t, path), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		r, err := tx.StartRun("", ralph.Limits{}, "")
		run = r.ID
		for range tasks {
			_, terr := tx.AddTask(ralph.Task{Title: "A"}, "human")
			err = errors.Join(err, terr)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return db, run, func(statement string) {
		t.Helper()
		if _, err := pgtest.Raw(t, path).ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhenASessionMayBegin beside another one that may spend $7, and how much it may spend.
func TestWhenASessionMayBegin(t *testing.T) {
	t.Parallel()
	db, run, raw := openStore(t, 3)
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.StartSession(store.Start{ID: uuid.NewString(), Task: 3, Run: run, CostLimitUSD: 7})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	errUndone := errors.New("undone")
	try := func(set func(tx *store.Tx, l *job) error) (usd float64, err error) {
		l := &job{course: courseOf(&Loop{Store: db, Config: order.Config{Limits: ralph.Limits{
			MaxSessions: 9, MaxCostUSD: 100, MaxDayCostUSD: 100, MaxMonthCostUSD: 100, SessionCostUSD: 10, SessionMinUSD: 1,
		}}}, run)}
		if undone := db.Tx(t.Context(), func(tx *store.Tx) error {
			if err := set(tx, l); err != nil {
				return err
			}
			var s store.Spending
			if s, err = l.mayBegin(tx); err != nil {
				return errUndone
			}
			var o order.Order
			o, err = order.For(tx, l.Config, ralph.Task{ID: 2, Title: "A"}, nil, s)
			usd = o.Limits.CostUSD
			return errUndone
		}); !errors.Is(undone, errUndone) {
			t.Fatal(undone)
		}
		return usd, err
	}
	with := func(set func(l *job)) func(*store.Tx, *job) error {
		return func(_ *store.Tx, l *job) error { set(l); return nil }
	}
	as := with(func(*job) {})
	for _, tt := range []struct {
		name string
		set  func(tx *store.Tx, l *job) error
		usd  float64
		err  error
	}{
		{"it may", as, 10, nil},
		{"a signal stops the run", with(func(l *job) {
			stop := make(chan struct{})
			close(stop)
			l.Stop = stop
		}), 0, errHeld},
		{"the run is paused", func(tx *store.Tx, _ *job) error { return tx.Control(ralph.ControlPause) }, 0, errHeld},
		{"the other one may spend all", with(func(l *job) { l.Limits.MaxCostUSD = 7 }), 0, order.ErrSpent},
		{"it shares what is left with a third one", with(func(l *job) { l.Limits.MaxCostUSD, l.Parallel = 13, 3 }), 3, nil},
		{"it is the last one that may begin", with(func(l *job) { l.Limits.MaxSessions = 2 }), 10, nil},
		{"no other one may begin", with(func(l *job) { l.Limits.MaxSessions = 1 }), 0, order.ErrSpent},
	} {
		if usd, err := try(tt.set); !errors.Is(err, tt.err) || err == nil && usd != tt.usd {
			t.Errorf("%s: got $%g, %v; want $%g, %v", tt.name, usd, err, tt.usd, tt.err)
		}
	}
	if usd, err := try(with(func(l *job) { l.id++ })); err == nil || errors.Is(err, errHeld) {
		t.Errorf("of an unknown run: got $%g, %v", usd, err)
	}
	raw("ALTER TABLE sessions RENAME TO gone")
	if usd, err := try(as); err == nil || errors.Is(err, errHeld) || errors.Is(err, order.ErrSpent) {
		t.Errorf("without a record of what is spent: got $%g, %v", usd, err)
	}
}

// TestRoomForAnotherSession beside others, one of which may still spend $7.
func TestRoomForAnotherSession(t *testing.T) {
	t.Parallel()
	db, run, raw := openStore(t, 1)
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.StartSession(store.Start{ID: uuid.NewString(), Task: 1, Run: run, CostLimitUSD: 7})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	const reached = "the limit of 2 sessions per run is reached with those in progress"
	for _, tt := range []struct {
		name     string
		jobs     int
		sessions int
		usd      float64
		want     string
	}{
		{"there is", 1, 2, 100, ""},
		{"the last one gets ready", 2, 2, 100, reached},
		{"there is beside one that gets ready", 2, 3, 100, ""},
		{"the one may spend all", 1, 9, 7, "sessions in progress may spend all but $0.00, and another one needs at least $1.00"},
	} {
		r := newRunner(&Loop{
			Config: order.Config{
				Limits: ralph.Limits{
					MaxSessions: tt.sessions, MaxCostUSD: tt.usd, MaxDayCostUSD: 100, MaxMonthCostUSD: 100, SessionCostUSD: 10, SessionMinUSD: 1,
				},
			},
			Store: db,
		}, run)
		for i := range tt.jobs {
			r.jobs[i+1] = &job{}
		}
		seen, err := r.readOutlook(t.Context())
		if why := r.room(seen.spending); err != nil || why != tt.want {
			t.Errorf("%s: got %q, %v; want %q", tt.name, why, err, tt.want)
		}
	}
	raw("ALTER TABLE sessions RENAME TO gone")
	r := newRunner(&Loop{
		Config: order.Config{
			Limits: ralph.Limits{MaxSessions: 9},
		},
		Store: db,
	}, run)
	if seen, err := r.readOutlook(t.Context()); err == nil {
		t.Errorf("without a record of what is spent: got %+v", seen)
	}
}

// TestWhyASessionIsNotDecided: it is noted, unless the next look decides on it. A full disk ends the run.
func TestWhyASessionIsNotDecided(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why         error
		ends, noted bool
	}{
		{nil, false, false},
		{errors.New("broken"), false, true},
		{fmt.Errorf("it is late: %w", session.ErrSettled), false, false},
		{fmt.Errorf("nobody answers: %w", merging.ErrAway), false, false},
		{fmt.Errorf("write: %w", syscall.ENOSPC), true, false},
	} {
		db, run, _ := openStore(t, 1)
		row := ralph.Session{ID: uuid.NewString(), TaskID: 1}
		start := store.Start{ID: row.ID, Task: row.TaskID, Run: run}
		if err := db.Tx(t.Context(), func(tx *store.Tx) error { _, err := tx.StartSession(start); return err }); err != nil {
			t.Fatal(err)
		}
		c := courseOf(&Loop{Store: db, Log: slog.New(slog.DiscardHandler)}, run)
		if err := c.undecided(t.Context(), row, tt.why); (err != nil) != tt.ends || tt.ends && !errors.Is(err, tt.why) {
			t.Errorf("%v: got %v", tt.why, err)
		}
		if list, err := store.Read(t.Context(), db, (*store.Tx).Undecided); err != nil || (len(list) > 0) != tt.noted {
			t.Errorf("%v: noted is %+v, %v", tt.why, list, err)
		}
	}
}

// TestResultsNameTheirTask, and obstacles of the run before it.
func TestResultsNameTheirTask(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	s := &session.Session{}
	for _, tt := range []struct {
		name    string
		earlier bool // the task had a session before
		o       outcome
		fails   error
		counted bool // against the limit of tasks
		worked  bool
		goesOn  bool // nothing hinders it any more
		err     error
	}{
		{"no session was to begin", false, outcome{}, nil, false, false, false, nil},
		{"what it needs could not be made ready", false, outcome{}, broken, false, false, false, broken},
		{"no further session was to begin", true, outcome{}, nil, true, false, false, nil},
		{"a person has to see to it", false, outcome{held: true}, nil, false, true, false, nil},
		{"the run was paused before", false, outcome{refused: errHeld}, nil, false, false, false, nil},
		{"its session could not begin", false, outcome{refused: broken}, nil, false, false, false, broken},
		{"its session is over but not decided", false, outcome{s: s}, nil, true, true, true, nil},
		{"what it left could not be cleared away", false, outcome{s: s, decided: true}, broken, true, true, true, broken},
	} {
		r := newRunner(&Loop{Store: &store.DB{}}, 1)
		r.jobs[1], r.counted[5], r.missedTask, r.untold = &job{}, true, 4, 2
		err := r.apply(t.Context(), &job{number: 1, task: 5, counted: tt.earlier}, tt.o, tt.fails)
		if !errors.Is(err, tt.err) || r.counted[5] != tt.counted || r.worked[5] != tt.worked || len(r.jobs) > 0 {
			t.Errorf("%s: got %v; counted %t, worked %t, %d sessions", tt.name, err, r.counted[5], r.worked[5], len(r.jobs))
		}
		if goesOn := r.missedTask == 0 && r.untold == 0; goesOn != tt.goesOn {
			t.Errorf("%s: nothing hinders it: %t, want %t", tt.name, goesOn, tt.goesOn)
		}
	}
}

// TestReviewersCountAsAgents: what ended a review is remembered as what ended the session, and may end the run.
func TestReviewersCountAsAgents(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		review ralph.Ending
		ends   bool
		known  []string // agents that are found unable to work
	}{
		{ralph.RateLimited, false, []string{"maker", "reviewer"}},
		{ralph.Network, true, nil},
	} {
		db, run, _ := openStore(t, 1)
		r := newRunner(&Loop{Store: db, Backoff: Backoff{Initial: time.Minute, Max: time.Minute}}, run)
		r.merges = true // it has no queue
		row := ralph.Session{TaskID: 1, Agent: "reviewer"}
		o := outcome{s: &session.Session{Done: []session.Reviewed{{
			Session: &session.Session{Row: row}, Report: agent.Report{Ending: tt.review},
		}}}, decided: true}
		o.s.Row, o.end.Report = ralph.Session{TaskID: 1, Agent: "maker"}, agent.Report{Ending: ralph.RateLimited}
		if err := r.apply(t.Context(), &job{number: 1, task: 1}, o, nil); (err != nil) != tt.ends {
			t.Errorf("after a review that is %s it ends with %v", tt.review, err)
		}
		states, err := store.Read(t.Context(), db, (*store.Tx).AgentStates)
		var known []string
		for _, s := range states {
			known = append(known, s.Agent)
		}
		if slices.Sort(known); err != nil || !slices.Equal(known, tt.known) {
			t.Errorf("after a review that is %s these cannot work: %v, %v", tt.review, known, err)
		}
	}
}

// TestAWaitEndsWithAResult that came in before it began.
func TestAWaitEndsWithAResult(t *testing.T) {
	t.Parallel()
	db, run, _ := openStore(t, 1)
	r := &runner{
		course: courseOf(&Loop{
			Config: order.Config{
				Limits: ralph.Limits{MaxSeconds: 3600},
			},
			Store: db,
		}, run), started: time.Now(),
		ended: []func(context.Context) error{func(context.Context) error { return nil }},
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := r.await(ctx, time.Now().Add(time.Hour), nil); !errors.Is(err, errAgain) || ctx.Err() != nil {
		t.Errorf("it returns %v, at the end of the test: %v", err, ctx.Err())
	}
}

// TestNoTaskIsChosenBlindly: unreadable facts do not count as missing ones.
func TestNoTaskIsChosenBlindly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		jobs   int
		broken string
	}{
		{"the task that is to be merged before all others", 1, `UPDATE tasks SET times_sent_back = 2, status = 'in_progress', verify = '{' WHERE id = 1`},
		{"a task in progress", 2, `UPDATE tasks SET status = 'in_progress', verify = '{' WHERE id = 1`},
		{"the files that a task has touched", 2, `UPDATE tasks SET status = 'in_progress', files = '["a"]' WHERE id = 1;
			UPDATE tasks SET status = 'pending' WHERE id = 2; UPDATE sessions SET files = '{'`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db, run, raw := openStore(t, 3)
			l := &Loop{
				Config: order.Config{
					Parallel: tt.jobs,
				},
				Store:  db,
				Merger: &merging.Merger{Rules: merging.Rules{MaxSentBack: 2}},
			}
			r := &runner{course: courseOf(l, run), passed: map[int64]int{}}
			if err := db.Tx(t.Context(), func(tx *store.Tx) error {
				_, err := tx.StartSession(store.Start{ID: uuid.NewString(), Task: 2, Run: run})
				return err
			}); err != nil {
				t.Fatal(err)
			}
			raw(tt.broken)
			if err := db.View(t.Context(), func(tx *store.Tx) error {
				task, ok, err := r.choose(tx)
				if ok {
					t.Errorf("it chooses TASK-%d", task.ID)
				}
				return err
			}); err == nil {
				t.Error("nothing is said of it")
			}
		})
	}
}

// A watch is a heart that records for how long the last beat is good.
type watch struct{ within time.Duration }

func (w *watch) Beat(within time.Duration) { w.within = within }

func (*watch) Status(string) {}

// TestASchedulerIsWatchedWhileItAppliesAResult, although another session goes on for longer.
func TestASchedulerIsWatchedWhileItAppliesAResult(t *testing.T) {
	t.Parallel()
	w := &watch{}
	r := newRunner(&Loop{Heart: w}, 1)
	r.rests()
	r.pulse.of(2).Beat(time.Hour)
	if err := r.apply(t.Context(), &job{number: 1}, outcome{}, nil); err != nil || w.within > stepTime {
		t.Errorf("who watches may wait for %s, %v", w.within, err)
	}
}

// TestASessionIsWatchedFromItsBeginning, before its workspace is made ready.
func TestASessionIsWatchedFromItsBeginning(t *testing.T) {
	t.Parallel()
	db, run, _ := openStore(t, 1)
	w := &watch{}
	r := newRunner(&Loop{Store: db, Heart: w}, run)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	r.jobsCtx = over // it ends before it does anything
	err := r.begin(t.Context(), ralph.Task{ID: 1})
	<-r.over
	if r.rests(); err != nil || w.within == 0 {
		t.Errorf("nobody watches for it, %v", err)
	}
}

// TestTheGraceBeginsWithTheSignal: what is done after a session gets the rest of it.
func TestTheGraceBeginsWithTheSignal(t *testing.T) {
	t.Parallel()
	db, run, _ := openStore(t, 0)
	stop := make(chan struct{})
	close(stop)
	l := &Loop{Store: db, Stop: stop}
	l.stopOnce.Do(func() { l.stopped = time.Now().Add(-time.Hour) })
	work, release := courseOf(l, run).obeying(t.Context(), time.Hour)
	defer release()
	select {
	case <-work.Done():
	case <-time.After(10 * time.Second):
		t.Error("an hour after the signal the work has its grace of an hour")
	}
}

// TestARequestToStopEndsAWaitForAMerge of another process, also while one session works at a time.
func TestARequestToStopEndsAWaitForAMerge(t *testing.T) {
	t.Parallel()
	db, run, _ := openStore(t, 0)
	state := t.TempDir()
	lock := flock.New(filepath.Join(state, "merge.lock"))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	close(stop)
	r := newRunner(&Loop{Store: db, Stop: stop, Here: &workspace.Workspace{State: state}}, run)
	r.jobsCtx = t.Context()
	merged := make(chan error)
	go func() { merged <- r.merge(context.WithoutCancel(t.Context())) }()
	select {
	case err := <-merged:
		if err = errors.Join(err, lock.Unlock()); err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it still waits after a minute")
	}
}
