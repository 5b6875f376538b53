package loop_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ralph"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/session"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// A deed is an agent that does one thing in each session.
type deed func(ctx context.Context, a agent.Assignment) (agent.Report, error)

func (d deed) Work(ctx context.Context, a agent.Assignment) (agent.Report, error) { return d(ctx, a) }

func (deed) Salvage(string, agent.Death) (agent.Report, error) { return agent.Report{}, nil }

// control sends a request to the active run.
func (b *workshop) control(c string) func() {
	return func() { b.tx(func(tx *store.Tx) error { return tx.Control(c) }) }
}

// TestADoneOfARunThatIsStopped: a done that could not be checked is
// nobody's fault, and a done that needs no check counts.
func TestADoneOfARunThatIsStopped(t *testing.T) {
	t.Parallel()
	const stopped = "the run was stopped before the claim could be checked"
	for _, tt := range []struct {
		name    string
		verify  bool
		grace   time.Duration
		before  bool   // it is stopped before the check begins, not while it runs
		how     string // a control, "signal", "skip", or "at once"
		proceed bool   // the check then ends by itself
		want    ralph.Status
		reason  string
	}{
		{"at once, before the check", true, 0, true, "at once", true, ralph.Pending, stopped},
		{"at once, where nothing is checked", false, 0, true, "at once", true, ralph.Completed, "done (nothing is configured"},
		{"at once, during the check", true, time.Hour, false, "at once", false, ralph.Pending, stopped},
		{"by a control for at once, during the check", true, time.Hour, false, ralph.ControlStopNow, false, ralph.Pending, stopped},
		{"by a control, without a grace", true, 0, false, ralph.ControlStop, false, ralph.Pending, stopped},
		{"by a control, with its grace", true, time.Hour, false, ralph.ControlStop, true, ralph.Completed, "done and verified"},
		{"by a control, and its grace is over", true, time.Millisecond, false, ralph.ControlStop, false, ralph.Pending, stopped},
		{"by a signal, without a grace", true, 0, false, "signal", false, ralph.Pending, stopped},
		{"by a signal, with its grace", true, time.Hour, false, "signal", true, ralph.Completed, "done and verified"},
		{"by a skip, before the check", true, time.Hour, true, "skip", true, ralph.Pending, "a person stopped it before the claim could be checked"},
		{"by a skip, during the check", true, time.Hour, false, "skip", false, ralph.Pending, "a person stopped it before the claim could be checked"},
		// A paused run checks its limits all the same: it has had its one session.
		{"paused, during the check", true, 0, false, ralph.ControlPause, true, ralph.Completed, "done and verified"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.tree()
			task := ralph.Task{Title: "A"}
			command, running, proceed := blocker(t.TempDir())
			if tt.verify {
				task.Verify = []string{command}
			}
			id := b.add(task)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			signal := make(chan struct{})
			l.Stop, l.Session.Grace = signal, tt.grace
			stop := map[string]func(){"at once": cancel, "signal": func() { close(signal) }, "skip": func() {
				b.tx(func(tx *store.Tx) error { _, err := tx.HaltSession("", true, "ann"); return err })
			}}[tt.how]
			if stop == nil {
				stop = b.control(tt.how)
			}
			l.Limits = ralph.Limits{
				MaxSessions: 1, MaxTasks: 1, MaxSeconds: 3600, MaxCostUSD: 1, MaxDayCostUSD: 1, MaxMonthCostUSD: 1, SessionSeconds: 3600, IdleSeconds: 3600, SessionCostUSD: 1,
				Attempts: 10, StagnantMaximum: 2,
			}
			l.Agent = deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
				write(t, filepath.Join(a.Dir, "made"), "x")
				_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", finish)
				if tt.before {
					stop()
				}
				return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
			})
			ended := make(chan error, 1)
			go func() {
				_, err := l.Run(ctx)
				ended <- err
			}()
			if !tt.before {
				until(t, "the verification", func() bool { return exists(running) })
				stop()
			}
			if tt.proceed {
				write(t, proceed, "")
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			attempts := map[bool]int{true: 0, false: 1}[tt.want == ralph.Pending]
			if got := b.task(id); got.Status != tt.want || !strings.Contains(got.StatusReason, tt.reason) || got.Attempts != attempts || got.LostCount != 0 {
				t.Errorf("it is %s after %d attempts, %d lost: %s", got.Status, got.Attempts, got.LostCount, got.StatusReason)
			}
		})
	}
}

// TestAGraceFollowsARequestToStop: without a request to stop, a check may
// take longer than the grace period.
func TestAGraceFollowsARequestToStop(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree("sleep 1") // longer than the first look and the grace period after it
	id := b.add(ralph.Task{Title: "A"})
	l.Session.Grace = time.Millisecond
	b.once(l, &speech{b: b, turns: []turn{{write: []string{"made"}, say: finish, answer: "over"}}, ending: ralph.Finished})
	if got := b.task(id); got.Status != ralph.Completed {
		t.Errorf("it is %s: %s", got.Status, got.StatusReason)
	}
}

// A salvager is an agent whose sessions have ended when the run begins.
type salvager struct {
	deed
	report agent.Report
	err    error
}

func (s salvager) Salvage(string, agent.Death) (agent.Report, error) { return s.report, s.err }

// TestLeftoversOfALostSession are decided by the next run, by the usual rules.
func TestLeftoversOfALostSession(t *testing.T) {
	t.Parallel()
	broken := errors.New("no transcript")
	for _, tt := range []struct {
		name                                        string
		say                                         signals.Payload
		made                                        bool
		elsewhere, worker, person, noFolder, orphan bool
		agent                                       salvager
		want                                        ralph.Status
		reason                                      string
		lost                                        int
		refused                                     int
		cost                                        float64
		known                                       bool
	}{
		{name: "nothing was said", want: ralph.Pending, reason: "lost: ralph or its machine stopped", lost: 1, known: true},
		{name: "a done that holds", say: finish, made: true, want: ralph.Completed, reason: "done and verified", known: true},
		{name: "a done that does not", say: finish, want: ralph.Pending, reason: "done was refused", lost: 1, refused: 1, known: true},
		{name: "a done from another work tree", say: finish, made: true, elsewhere: true, want: ralph.Pending, reason: "in another work tree: ", lost: 1, known: true},
		{name: "a partial", say: halt, made: true, want: ralph.Pending, reason: "partial: the rest", lost: 1, known: true},
		{name: "a partial from another work tree", say: halt, made: true, elsewhere: true, want: ralph.Pending, reason: "partial: the rest", lost: 1, known: true},
		{name: "a worker has its claim still", worker: true, want: ralph.InProgress},
		{name: "a person has", person: true, want: ralph.InProgress},
		{name: "what it cost is known", agent: salvager{report: agent.Report{CostUSD: 2, CostKnown: true}}, want: ralph.Pending, reason: "lost: ", lost: 1, cost: 2, known: true},
		{name: "its transcript cannot be read", agent: salvager{err: broken}, want: ralph.Pending, reason: "lost: ", lost: 1, cost: 7},
		{name: "its folder is gone", noFolder: true, agent: salvager{report: agent.Report{CostKnown: true}}, want: ralph.Pending, reason: "lost: ", lost: 1, cost: 7},
		{name: "what it left running is ended", say: finish, made: true, orphan: true, want: ralph.Completed, reason: "killed: sleep 600", known: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.tree("test -e made")
			l.Agent, l.OnRed = tt.agent, loop.RedGo
			id := b.add(ralph.Task{Title: "A"})
			start := store.Start{ID: uuid.NewString(), Task: id, Dir: l.Here.Dir, CostLimitUSD: 7}
			if tt.elsewhere {
				start.Dir = t.TempDir()
			}
			if tt.worker {
				start.Worker, start.Lease = "ann", session.Lease
			}
			if tt.person {
				start.Worker, start.Origin = "ann", ralph.FromHuman
			}
			b.tx(func(tx *store.Tx) error { _, err := tx.StartSession(start); return err })
			if !tt.noFolder {
				if err := os.MkdirAll(filepath.Join(b.state, "sessions", start.ID), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if tt.say != nil {
				if _, err := b.db.Say(t.Context(), id, start.ID, "agent", tt.say); err != nil {
					t.Fatal(err)
				}
			}
			if tt.made {
				write(t, filepath.Join(l.Here.Dir, "made"), "x")
			}
			channel := workspace.Channel(start.ID)
			if err := os.MkdirAll(channel, 0o700); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(channel) })
			gone := make(chan struct{})
			close(gone)
			if tt.orphan {
				left := exec.Command("sleep", "600")
				left.Env = []string{"RALPH_SESSION_ID=" + start.ID}
				if err := left.Start(); err != nil {
					t.Fatal(err)
				}
				gone = make(chan struct{})
				go func() {
					if left.Wait() == nil {
						t.Error("it ended by itself")
					}
					close(gone)
				}()
			}
			if _, err := l.Run(t.Context()); err != nil { // no session of its own: none is allowed
				t.Fatal(err)
			}
			<-gone
			got, s := b.task(id), b.last()
			if got.Status != tt.want || !strings.Contains(got.StatusReason, tt.reason) || got.LostCount != tt.lost || got.VerifyFailures != tt.refused {
				t.Errorf("it is %s, %d lost, %d refused: %s", got.Status, got.LostCount, got.VerifyFailures, got.StatusReason)
			}
			if got.NotBefore.After(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)) {
				t.Errorf("it waits until %s", got.NotBefore)
			}
			if s.CostUSD != tt.cost || s.CostKnown != tt.known {
				t.Errorf("it cost %g, known %t", s.CostUSD, s.CostKnown)
			}
			if tt.want != ralph.InProgress && s.Ending != ralph.Lost {
				t.Errorf("it ended as %s", s.Ending)
			}
			if _, err := os.Stat(channel); (err == nil) != (tt.want == ralph.InProgress) {
				t.Errorf("of its channel: %v", err)
			}
			if tt.noFolder {
				info, err := os.Stat(filepath.Join(b.state, "sessions", start.ID))
				if err != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("its folder is not made anew for its owner alone: %v, %v", info, err)
				}
			}
			b.tx(func(tx *store.Tx) error {
				list, err := tx.Undecided()
				if len(list) > 0 {
					t.Errorf("it could not be decided: %+v", list)
				}
				return err
			})
		})
	}
}
