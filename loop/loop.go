// Package loop works through the queue. It picks a task, starts an agent on it in a session, checks the agent's
// claims, applies the decision of signals.Decide, and continues until nothing is left to do or a limit is
// reached.
//
// It knows agents only through an interface, decides nothing about tasks itself, and keeps all lasting state in the
// database: after a kill at any moment, the next Run decides on the open sessions and continues. Run returns only
// after all processes of its sessions have ended.
package loop

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"ralph/internal/schedule"
	"ralph/loop/merging"
	"ralph/loop/order"
	"ralph/loop/session"
	"ralph/loop/workspace"
	"ralph/store"
)

// A Loop works through the queue of one project. Set its fields before Run
// and do not change them afterwards.
type Loop struct {
	order.Config
	Store  *store.DB
	Here   *workspace.Workspace // the person's folder
	Pool   *workspace.Pool      // the workspaces of sessions
	Merger *merging.Merger      // merges the results into the target branch
	Log    *slog.Logger

	Sandbox string // the sandbox of agents and checks, in words
	Backoff Backoff

	Task   int64           // work on this task only, in one session at a time; 0 for the whole queue
	NoWait bool            // end the run instead of waiting for the agent
	Stop   <-chan struct{} // closed when no further session may begin

	Daemon   bool             // wait for new tasks and answers instead of ending
	Schedule schedule.Cron    // when batches begin; see Serve
	Between  schedule.Between // the window for sessions
	Heart    Heart            // nil if nobody monitors the run

	OnRed    OnRed                    // reaction to a verification that fails before any work; "" is RedStop
	Commands func() ([]string, error) // returns the project's commands as configured now; nil if they never change
	Listen   func(words string)       // called with the words of planning sessions; may be nil

	stopOnce sync.Once
	stopped  time.Time // when Stop was first seen closed
}

// sinceStop returns the time since the run was told to stop. The steps after a session share the
// rest.
func (l *Loop) sinceStop() time.Duration {
	l.stopOnce.Do(func() { l.stopped = time.Now() })
	return time.Since(l.stopped)
}

// Backoff has the waiting times for an agent that cannot work now.
type Backoff struct {
	Initial time.Duration // after the first error
	Max     time.Duration // at most
	Tries   int           // errors in a row after which the run ends
}

// OnRed is a run's reaction to a verification that fails before any work.
type OnRed string

// The values of OnRed.
const (
	RedStop  OnRed = "stop"  // the run ends before anything is spent; a daemon waits
	RedFirst OnRed = "first" // one task works until the verification passes, the others wait
	RedGo    OnRed = "go"    // the run continues regardless
)

// A Heart receives a run's heartbeat, to notice when the run hangs.
type Heart interface {
	Beat(within time.Duration) // the run is alive, and will beat again within that time
	Status(text string)        // one line: the present activity
}

// A Result describes how a run ended.
type Result struct {
	RunID   int64
	Status  int      // exit status
	Reasons []string // every reason that applies, the deciding one first
}

// An end is a reason to end a run, with its exit status. A round returns it as its error.
type end struct {
	status int
	reason string
}

// Error returns the reason.
func (e *end) Error() string { return e.reason }

// errAgain starts the next round, after a wait or because something has changed.
var errAgain = errors.New("the round begins again")

// closed reports whether a channel is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

const (
	// stepTime is the longest time for a step of the loop that has no limit of
	// its own, such as a snapshot of the work tree.
	stepTime = 5 * time.Minute

	// lookAgain is the interval at which a paused run checks its limits, and at which a
	// daemon retries an undecided expired claim.
	lookAgain = time.Minute

	// lookAnyway is the interval at which a daemon looks for work without an event.
	lookAnyway = time.Hour
)

// shortWait is the delay before the first look for people's requests. Later looks follow each commit.
const shortWait = 200 * time.Millisecond

// step is the longest sleep between two looks at the clock, which may jump.
const step = time.Second

// A course is the part of a run that its goroutines share. Outside of a run its id is 0.
type course struct {
	*Loop
	*order.Config // as configured now
	id            int64
	heart         Heart                // nil if nobody monitors it
	slow          func(command string) // called with each command that runs outside of a session; may be nil
}

// outside returns a course that belongs to no run.
func (l *Loop) outside() course { return course{Loop: l, Config: &l.Config, heart: l.Heart} }

// parts returns the dependencies of the course's sessions.
func (c course) parts() session.Parts {
	return session.Parts{
		Config: c.Config, Store: c.Store, Pool: c.Pool, Merger: c.Merger, Log: c.Log, Stop: c.Stop, Progress: c,
	}
}

// Sessions returns the dependencies of the sessions of workers and people.
func (l *Loop) Sessions() session.Parts { return l.outside().parts() }

// Busy implements [session.Progress].
func (c course) Busy(within time.Duration) { c.beat(stepTime + within) }

// Said implements [session.Progress].
func (c course) Said(words string) {
	if c.Listen != nil {
		c.Listen(words)
	}
}

// beat reports that the course is alive and will beat again within d.
func (c course) beat(d time.Duration) {
	if c.heart != nil {
		c.heart.Beat(d)
	}
}

// says reports the course's current step in one line.
func (c course) says(text string) {
	if c.heart != nil {
		c.heart.Status(text)
	}
}

// control returns the request of `ralph stop|pause|resume`.
func (c course) control(ctx context.Context) (string, error) {
	return store.Read(context.WithoutCancel(ctx), c.Store, func(tx *store.Tx) (string, error) {
		return tx.RunControl(c.id)
	})
}
