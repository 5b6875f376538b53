// Package session is one session: an agent, a worker or a person works on one task in one
// place, from the claim to what was decided on it.
//
//	open → work → turn ended → ended → observe → settle
//
// The head differs: a worker and a person open a session and work by themselves, and
// recovery opens nothing. The tail is the same for all. What goes wrong on the way is a
// fact that the decision knows; the error is the database's alone.
package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"ralph"
	"ralph/internal/proc"
	"ralph/internal/worktree"
	"ralph/loop/agent"
	"ralph/loop/check"
	"ralph/loop/place"
	"ralph/signals"
	"ralph/store"
)

// Needs are what a session needs of whoever has it.
type Needs struct {
	Store *store.DB
	Place *place.Place
	Check *check.Verifier
	Agent agent.Agent // nil where a worker or a person works

	// Prompt is what is told to whoever works; strange are the uncommitted files that are
	// not theirs. Model is the one that is used; nil leaves it to them.
	Prompt func(tx *store.Tx, t ralph.Task, strange []string) (string, error)
	Model  func(t ralph.Task, d ralph.Discipline) string
	// Begin is asked in the transaction that claims a task whether a session may begin;
	// again says that the task was changed meanwhile. nil is yes.
	Begin func(tx *store.Tx, again bool) error

	Rules  signals.Rules
	Limits Limits
	Stop   <-chan struct{} // closed when the run is to stop
	Log    *slog.Logger
}

// Limits are those of one session.
type Limits struct {
	Time         time.Duration
	Idle         time.Duration // without any sign of life
	Deadline     time.Time     // of the run
	Turns        int
	CostUSD      float64       // its allowance
	Reminders    int           // how often a missing closing verb is asked for
	Retries      int           // refusals that are told to the agent in the same conversation
	Freeze       time.Duration // how long the agent stands still for a check before it is killed
	Grace        time.Duration // what it is given when the run is stopped
	CheckpointAt int           // percent of the model's context at which a checkpoint is made; 0 for never
}

// A Session is one from claim to verdict.
type Session struct {
	Needs
	Row  ralph.Session // as it is in the database, and what is learned of it
	Task ralph.Task

	verify    check.Commands
	before    []check.Outcome // the baseline
	prompt    string
	windows   map[string]int64
	reference hashes   // what the work tree is compared with at the end
	hidden    []string // places of protected files that could not be read when it began
	reopened  bool     // another process began it

	clock    *clock
	idle     *idleness
	observer *observer
	held     bool // its clock stands still, as a person is asked whether it may use a tool

	reminded int
	retried  int
	doubted  int64 // the done that the agent was asked to confirm
	warned   bool  // it was told that it has committed files of a person's
	heard    int64 // the last comment for which the conversation went on

	found     *finding          // of the agent's last turn, after which nothing of it moved; nil if it is to be looked at
	called    Cause             // why its check was called off by people; "" if it was not
	left      hashes            // as it was looked at last
	began     worktree.Snapshot // as the session found it; known when its work has been looked at
	changed   parts             // what is known to have changed already
	checked   worktree.Snapshot
	checkMade map[string]bool // files that nobody but the verification has changed, as they were then
	killed    []string        // what the agent had left running when its done was checked: pid and command
	confirmed bool            // a person stands for the done
}

// An End is how the work of a session ended.
type End struct {
	agent.Report
	Unusable error // why its agent could not be run at all; nil if it was
}

// Work has the agent work and tells how that ended. Everything that can stop a
// session meanwhile ends its context with a cause.
func (s *Session) Work(ctx context.Context) End {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.clock = newClock(s.Limits.Time, func() { stop(timeUp) })
	defer s.clock.pause()
	s.idle = newIdleness(s.Limits.Idle, s.cpu, s.content)
	s.observer = newObserver(s.verify.All(), s.windows, s.Limits.CheckpointAt)
	say := make(chan agent.Message)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(work, stop, say)
	}()
	report, err := s.Agent.Work(work, agent.Assignment{
		SessionID: s.Row.ID, TaskID: s.Row.TaskID, Discipline: s.Task.Discipline, Prompt: s.prompt, Model: s.Row.Model,
		MaxTurns: s.Limits.Turns, MaxCost: s.Limits.CostUSD, Dir: s.Place.Dir, LogDir: s.folder(),
		Say: say, TurnEnded: s.turnEnded,
		Seen: func(e agent.Event) { s.idle.event(); s.observer.event(e, time.Now()) },
	})
	cause := context.Cause(work)
	stop(nil)
	<-watched
	s.observed(ctx)
	switch {
	case err == nil:
		return End{Report: s.Limits.withCause(report, cause)}
	case report.Ending != "": // it was started: this session came to nothing, and the next one may
		report.Ending, report.Reason = ralph.Lost, "lost: ralph could not hold it: "+Shortly(err)
		s.Log.Error("a session could not be held", "session", s.Row.ID, "task", s.Row.TaskID, "error", err)
		return End{Report: report}
	case errors.Is(err, proc.ErrSupervisorLost): // as it started: that costs this session alone
		return End{Report: ended(ralph.Lost, "lost: "+err.Error())}
	}
	return End{ended(ralph.NoWork, err.Error()), err}
}

// ended is the report of a session that ralph started no agent of, and which so cost nothing.
func ended(how ralph.Ending, why string) agent.Report {
	return agent.Report{Ending: how, Reason: why, CostKnown: true}
}

// Recover settles a session whose process, or machine, stopped: the head is gone, the
// tail is the same. What it signalled is processed, once; what it left running is killed.
func (n Needs) Recover(ctx context.Context, row ralph.Session) (signals.Decision, error) {
	killed, err := n.Place.Sweep(row.ID)
	if err != nil {
		return signals.Decision{}, err
	}
	s, err := n.reopen(ctx, row)
	if err != nil {
		return signals.Decision{}, err
	}
	report, err := s.salvage()
	if err != nil {
		n.Log.Warn("the transcript of a lost session cannot be read", "session", row.ID, "error", err)
		report.Began = true // what it cost is unknown, and not nothing
	}
	report.Ending, report.Reason = ralph.Lost, "lost: ralph or its machine stopped while it was running"
	for _, k := range killed {
		report.Leftovers = append(report.Leftovers, fmt.Sprintf("%d %s", k.Pid, k.Command))
	}
	return s.Settle(ctx, report)
}

// salvage reads what the session's folder still tells of it. That the folder is gone
// tells nothing.
func (s *Session) salvage() (agent.Report, error) {
	folder := s.folder()
	if _, err := os.Stat(folder); err != nil {
		return agent.Report{}, errors.Join(err, os.MkdirAll(folder, 0o700))
	}
	return s.Agent.Salvage(folder)
}

// reopen reads an open session back that another process began.
func (n Needs) reopen(ctx context.Context, row ralph.Session) (*Session, error) {
	s := &Session{Needs: n, Row: row, reopened: true}
	return s, n.Store.View(ctx, func(tx *store.Tx) (err error) {
		if s.Task, err = tx.Task(row.TaskID); err != nil {
			return err
		}
		if err = s.prepare(tx); err != nil {
			return err
		}
		var snapshot struct{}
		s.Limits.CostUSD, err = tx.Beginning(row.ID, &snapshot, &s.reference)
		s.hidden = s.reference.Hidden
		return err
	})
}

// prepare reads how the session's done is checked.
func (s *Session) prepare(tx *store.Tx) (err error) {
	if s.verify, err = s.Check.Of(tx, s.Task); err != nil {
		return err
	}
	if s.windows, err = tx.ContextWindows(); err != nil {
		return err
	}
	_, err = tx.Baseline(s.Task.ID, &s.before)
	return err
}

// folder is where the session's transcript is kept.
func (s *Session) folder() string { return s.Place.Folder(s.Row.ID) }

// scratch is where the objects of its snapshots are kept until it is settled.
func (s *Session) scratch() string { return s.Place.Scratch(s.Row.ID) }

// idleScratch is [Session.scratch] for those looks at the work tree that are taken
// while the session's own may be under way.
func (s *Session) idleScratch() string { return s.scratch() + "-idle" }

// content is the digest of the work tree.
func (s *Session) content(ctx context.Context) (string, error) {
	look, err := s.Place.Look(ctx, s.idleScratch())
	return look.Digest(), err
}

// cpu is what its processes have used of the processors.
func (s *Session) cpu() (time.Duration, error) { return s.Place.CPUTime(s.Row.ID) }
