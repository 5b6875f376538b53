package loop_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/mattn/go-sqlite3"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/session"
	"ralph/store"
)

// A saboteur refuses one statement on a database, and records which function asked for each.
type saboteur struct {
	mu      sync.Mutex
	on      bool
	asked   []string // the functions that asked so far
	fails   string   // the function whose first statement is refused; "" for none
	refused bool     // a statement was refused
}

const denied = "not authorized" // in SQLite's words

// sabotage has every statement of a connection that is opened from here on looked at by the saboteur of its database, which is
// found by the database's path.
func sabotage(t *testing.T) (saboteurs *sync.Map) {
	t.Helper()
	db, err := sql.Open("sqlite3", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	driver, ok := db.Driver().(*sqlite3.SQLiteDriver)
	if !ok {
		t.Fatalf("the driver is %T", db.Driver())
	}
	saboteurs = &sync.Map{}
	before := driver.ConnectHook
	driver.ConnectHook = func(c *sqlite3.SQLiteConn) error {
		path := c.GetFilename("main")
		c.RegisterAuthorizer(func(op int, _, _, _ string) int {
			if s, ok := saboteurs.Load(path); ok {
				return s.(*saboteur).authorize(op) //nolint:forcetypeassert // there are no others
			}
			return sqlite3.SQLITE_OK
		})
		if before != nil {
			return before(c)
		}
		return nil
	}
	t.Cleanup(func() { driver.ConnectHook = before })
	return saboteurs
}

func (s *saboteur) authorize(op int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch op {
	case sqlite3.SQLITE_SELECT, sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE:
		if !s.on {
			break
		}
		who := asker()
		if s.asked = append(s.asked, who); who == s.fails && !s.refused {
			s.refused = true
			return sqlite3.SQLITE_DENY
		}
	}
	return sqlite3.SQLITE_OK
}

// asker names the functions in loop that wait for the statement, innermost first.
func asker() string {
	pcs := make([]uintptr, 100)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	var places []string
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "ralph/loop") && !strings.HasSuffix(f.File, "_test.go") {
			places = append(places, fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line))
		}
		if !more || len(places) == 3 {
			return strings.Join(places, " < ")
		}
	}
}

// begin starts counting statements.
func (s *saboteur) begin(fails string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on, s.asked, s.fails, s.refused = true, nil, fails, false
}

func (s *saboteur) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = false
}

// TestNoFailureOfTheDatabaseIsReadAsAnAbsence: if any one statement fails,
// somebody is told, by an error, in a reason that people read, or in the log.
func TestNoFailureOfTheDatabaseIsReadAsAnAbsence(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: make check has it")
	}
	pgtest.Files(t) // what refuses the statements is SQLite's own
	saboteurs := sabotage(t)
	known := map[string]bool{}
	for _, scene := range []struct {
		name  string
		least int    // minimum number of statements that are made to fail
		of    string // only statements of a function of this file
		play  func(b *workshop, l *loop.Loop, begin func()) error
	}{
		{"a run", 40, "", func(b *workshop, l *loop.Loop, begin func()) error {
			begin()
			_, err := l.Run(b.t.Context())
			return err
		}},
		{"a run after one that was killed", 1, "", func(b *workshop, l *loop.Loop, begin func()) error {
			start := store.Start{ID: uuid.NewString(), Task: 1, Dir: l.Here.Dir}
			b.tx(func(tx *store.Tx) error { _, err := tx.StartSession(start); return err })
			l.Limits.MaxSessions = 0
			begin()
			_, err := l.Run(b.t.Context())
			return err
		}},
		{"a worker", 1, "", func(b *workshop, l *loop.Loop, begin func()) error {
			c := b.claim(l, 1, "ann")
			b.say(c, finish)
			write(b.t, filepath.Join(workspaceOf(c), "made"), "x")
			b.passed.Add(int64(time.Second))
			b.tx(func(tx *store.Tx) error {
				_, err := tx.AddComment(ralph.Comment{TaskID: 1, Author: "eve", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: "mind"})
				return err
			})
			begin()
			_, err := c.Heard(b.t.Context())
			err = errors.Join(err, c.Renew(b.t.Context()))
			_, _, closed := c.Close(b.t.Context())
			return errors.Join(err, closed)
		}},
		{"a worker that gives up", 1, "", func(b *workshop, l *loop.Loop, begin func()) error {
			c := b.claim(l, 1, "ann")
			begin()
			_, err := c.Release(b.t.Context())
			return err
		}},
		{"a worker that is gone", 1, "", func(b *workshop, l *loop.Loop, begin func()) error {
			b.claim(l, 1, "ann")
			b.passed.Store(int64(2 * session.Lease))
			begin()
			_, _, err := l.Next(b.t.Context())
			return err
		}},
		{"a run with sessions beside each other", 4, "pick.go", func(b *workshop, l *loop.Loop, begin func()) error {
			apart := b.tree()
			apart.Log, apart.Merger.Log, apart.OnRed, apart.Limits, apart.Parallel = l.Log, l.Log, l.OnRed, l.Limits, 2
			apart.Limits.MaxSessions, apart.Limits.MaxTasks = 2, 2
			b.tx(func(tx *store.Tx) error {
				first, err := tx.Task(1)
				first.Files = []string{"made"}
				return errors.Join(err, tx.UpdateTask(first))
			})
			b.add(ralph.Task{Title: "B"})
			apart.Agent = l.Agent
			begin()
			_, err := apart.Run(b.t.Context())
			return err
		}},
	} {
		t.Run(scene.name, func(t *testing.T) {
			before := len(known)
			s := &saboteur{}
			s.watch(t, saboteurs, "", scene.play)
			for _, asker := range s.asked {
				// Functions that poll look again soon.
				if known[asker] || !strings.Contains(asker, scene.of) || strings.Contains(asker, "watch.go") || strings.Contains(asker, "control.go") {
					continue
				}
				known[asker] = true
				t.Run(asker, func(t *testing.T) {
					t.Parallel()
					s := &saboteur{}
					if told := s.watch(t, saboteurs, asker, scene.play); s.refused && !strings.Contains(told, denied) {
						t.Errorf("a statement that %s asked for fails, and nobody is told:\n%s", asker, told)
					}
				})
			}
			if n := len(known) - before; n < scene.least {
				t.Errorf("only %d statements were made to fail", n)
			}
		})
	}
}

// watch plays a scene with one refused statement, and returns the reports about it.
func (s *saboteur) watch(
	t *testing.T, saboteurs *sync.Map, fails string, play func(*workshop, *loop.Loop, func()) error,
) (told string) {
	t.Helper()
	b := newWorkshop(t)
	state, err := filepath.EvalSymlinks(b.state)
	if err != nil {
		t.Fatal(err)
	}
	saboteurs.Store(filepath.Join(state, "ralph.db"), s)
	l := b.tree("true")
	var log bytes.Buffer
	l.Log, l.OnRed = slog.New(slog.NewTextHandler(&log, nil)), loop.RedGo
	l.Limits = ralph.Limits{
		MaxSessions: 1, MaxTasks: 1, MaxSeconds: 3600, MaxCostUSD: 100, MaxDayCostUSD: 100, MaxMonthCostUSD: 100,
		SessionSeconds: 3600, IdleSeconds: 3600, SessionCostUSD: 10, Attempts: 10, StagnantMaximum: 2,
	}
	l.Agent = deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		write(t, filepath.Join(a.Dir, "made"), "x")
		_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", finish)
		a.TurnEnded(ctx, agent.Turn{})
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	})
	id := b.add(ralph.Task{Title: "A"})
	err = play(b, l, func() { s.begin(fails) })
	s.end()
	lines := []string{fmt.Sprint(err), log.String(), b.task(id).StatusReason}
	b.tx(func(tx *store.Tx) error {
		undecided, err := tx.Undecided()
		lines = append(lines, fmt.Sprint(undecided))
		return err
	})
	return strings.Join(lines, "\n")
}

// TestAnUnreadableStateOfAgentsIsReported: the choice of another agent depends on it.
func TestAnUnreadableStateOfAgentsIsReported(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	b.tx(func(tx *store.Tx) error { return tx.PutDiscipline(ralph.Discipline{Name: "ui"}) })
	b.add(ralph.Task{Title: "A", Discipline: "ui"})
	l.NoWait, l.OnRed, l.Limits = true, loop.RedGo, ralph.Limits{
		MaxSessions: 9, MaxTasks: 9, MaxSeconds: 3600, MaxCostUSD: 9, MaxDayCostUSD: 9, MaxMonthCostUSD: 9, SessionSeconds: 3600, IdleSeconds: 3600,
		SessionCostUSD: 9, Attempts: 9, StagnantMaximum: 9,
	}
	l.Agent = deed(func(context.Context, agent.Assignment) (agent.Report, error) {
		b.raw(`UPDATE disciplines SET created = 'x'`)
		return agent.Report{Ending: ralph.RateLimited, CostKnown: true}, nil
	})
	if result, err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("it ended with %+v, %v", result, err)
	}
}

// TestAnUnreadableResultBeforeASessionIsReported: without a baseline the session would be judged by other rules.
func TestAnUnreadableResultBeforeASessionIsReported(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree("true")
	b.add(ralph.Task{Title: "A"})
	b.add(ralph.Task{Title: "B"})
	l.OnRed, l.Rules.Attempts, l.Limits = loop.RedGo, 1, ralph.Limits{
		MaxSessions: 9, MaxTasks: 9, MaxSeconds: 3600, MaxCostUSD: 9, MaxDayCostUSD: 9, MaxMonthCostUSD: 9, SessionSeconds: 3600, IdleSeconds: 3600,
		SessionCostUSD: 9, Attempts: 1, StagnantMaximum: 9,
	}
	sessions := 0
	l.Agent = deed(func(context.Context, agent.Assignment) (agent.Report, error) {
		sessions++
		b.raw(`UPDATE verifications SET result = '{'`)
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, nil
	})
	if result, err := l.Run(t.Context()); err == nil || sessions != 1 {
		t.Errorf("after %d sessions it ended with %+v, %v", sessions, result, err)
	}
}

// TestAnUnreadableOrderIsReported, and no session begins.
func TestAnUnreadableOrderIsReported(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	id := b.add(ralph.Task{Title: "A"})
	b.tx(func(tx *store.Tx) error {
		_, err := tx.AddComment(ralph.Comment{TaskID: id, Author: "eve", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: "mind"})
		return err
	})
	b.raw(`UPDATE task_comments SET created = 'x'`)
	l.OnRed, l.Limits = loop.RedGo, ralph.Limits{
		MaxSessions: 9, MaxTasks: 9, MaxSeconds: 3600, MaxCostUSD: 9, MaxDayCostUSD: 9, MaxMonthCostUSD: 9, SessionSeconds: 3600, IdleSeconds: 3600,
		SessionCostUSD: 9, Attempts: 9, StagnantMaximum: 9,
	}
	l.Agent = deed(func(context.Context, agent.Assignment) (agent.Report, error) {
		t.Error("a session began")
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, nil
	})
	if result, err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("it ended with %+v, %v", result, err)
	}
}
