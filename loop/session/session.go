// Package session runs one session: an agent, a worker or a person works on one task in one place, from the claim to
// the decision.
//
//	open → work → turn ended → ended → observe → decide
//
// The start differs: workers and people open a session and work on their own, and recovery opens nothing. The end is
// the same for all. Problems on the way become facts for the decision; only the database's errors are returned.
package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"ralph"
	"ralph/internal/proc"
	"ralph/loop/agent"
	"ralph/loop/merging"
	"ralph/loop/order"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// Parts are shared by the sessions of a process.
type Parts struct {
	*order.Config
	Store    *store.DB
	Pool     *workspace.Pool
	Merger   *merging.Merger
	Log      *slog.Logger
	Stop     <-chan struct{} // closed when the run is to stop; nil for never
	Progress Progress
}

// A Progress receives news of a session.
type Progress interface {
	Busy(within time.Duration) // its next step may take this long
	Said(words string)         // words of an agent that plans
}

// A Place is the place of a session's work.
type Place struct {
	Workspace *workspace.Workspace
	// HandedOver means that the workspace has the work of a session from a lost machine.
	HandedOver bool
}

// A Session is a session from claim to verdict.
type Session struct {
	Parts
	order.Order
	Place
	Row  ralph.Session // the database row, and facts learned about the session
	Task ralph.Task

	start     store.Start // the parameters of its claim
	reference hashes      // the state at its start, to compare with
	reopened  bool        // another process started it
	late      bool        // its agent has ended, and cannot hear a check's result

	clock    *clock
	idle     *idleness
	observer *observer
	asking   bool // its clock is stopped, because a person is asked for a permission

	told      map[string]bool // notices that the agent was given, by key
	passedBy  map[string]bool // merged changes that touched none of its files, by key
	noticedAt time.Time

	replies []signals.Notice // all replies to the agent so far
	shown   string           // the target's tip that its workspace contains; "" if only its base

	found     *finding     // finding of the agent's last turn; nil if there is none yet
	called    Cause        // the person's request that cut the check short; "" if none
	closed    signals.Said // the checked closing signal, from [Session.closing]
	changed   parts        // the parts known to have changed so far
	killed    []string     // processes killed before its done was checked: pid and command
	confirmed bool         // a person vouches for the done

	desk *desk      // for a reviewing session; nil for others
	plan *planner   // for a planning session; nil for others
	Done []Reviewed // sessions that have reviewed this one's work
}

// An End describes how the work of a session ended.
type End struct {
	agent.Report
	Unusable error // why its agent could not be started; nil if it was
}

// Work runs the agent and returns how it ended. Cancel its context with a cause to stop the session
// early.
func (s *Session) Work(ctx context.Context) End {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.clock = newClock(s.Limits.Time, func() { stop(spent{timeUp, s.Limits.Time}) })
	defer s.clock.pause()
	s.idle = newIdleness(s.Limits.Idle, s.cpu, s.content)
	s.observer = newObserver(s.Verify.All(), s.Windows, s.Limits.CheckpointAt)
	s.told, s.passedBy = map[string]bool{}, map[string]bool{}
	say := make(chan agent.Message)
	task, err := s.assignment(ctx, say)
	if err != nil {
		return End{Ended(ralph.NoWork, err.Error()), err}
	}
	shut, err := s.open(&task)
	if err != nil {
		return End{Ended(ralph.NoWork, err.Error()), err}
	}
	watched, gauge := make(chan struct{}), s.Workspace.Gauge()
	go func() {
		defer close(watched)
		s.watch(work, stop, say, gauge)
	}()
	report, err := s.Agent.Work(work, task)
	cause := context.Cause(work)
	stop(nil)
	<-watched
	s.observed(ctx)
	over := causeOf(cause) == filled || gauge.Over()
	if over {
		if err := s.Workspace.Shed(context.WithoutCancel(ctx)); err != nil {
			s.Log.Warn("cannot remove all that a session filled the disk with", "session", s.Row.ID, "error", err)
		}
	}
	if err := shut(); err != nil {
		s.Log.Warn("cannot close a session's channel", "session", s.Row.ID, "error", err)
	}
	switch {
	case err == nil:
		return End{Report: withCause(s.Limits, report, cause)}
	case report.Ending != "" && over: // the agent's words could not be stored either
		report.Ending = ralph.Interrupted
		return End{Report: withCause(s.Limits, report, filled)}
	case report.Ending != "": // the agent was started: only this session failed, and the next one may succeed
		report.Ending, report.Reason = ralph.Lost, "lost: ralph could not hold it: "+Shortly(err)
		s.Log.Error("lost control of a session", "session", s.Row.ID, "task", s.Row.TaskID, "error", err)
		return End{Report: report}
	case errors.Is(err, proc.ErrSupervisorLost): // at the start already: only this session is lost
		return End{Report: Ended(ralph.Lost, "lost: "+err.Error())}
	}
	return End{Ended(ralph.NoWork, err.Error()), err}
}

// assignment returns the agent's assignment. Messages during the work come from say.
func (s *Session) assignment(ctx context.Context, say <-chan agent.Message) (task agent.Assignment, err error) {
	task = agent.Assignment{
		SessionID: s.Row.ID, TaskID: s.Row.TaskID, Discipline: s.Task.Discipline, Prompt: s.Prompt,
		MaxTurns: s.Limits.Turns, MaxCost: s.Limits.CostUSD, MaxTokens: s.Limits.Tokens,
		Dir: s.Workspace.Dir, LogDir: s.folder(),
		Env:     s.Workspace.Environ(),
		Profile: agent.ProfileOf(s.Agent), Say: say, TurnEnded: s.TurnEnded,
		Seen: func(e agent.Event) {
			if e.Kind != agent.Troubled { // a retry is not a sign of life
				s.idle.event()
			}
			s.observer.event(e, s.Store.Now())
			if s.desk != nil {
				s.desk.event(e)
			}
			if s.plan != nil && e.Kind == agent.Said {
				s.Progress.Said(e.Text)
			}
		},
	}
	task.Model, task.Effort = agent.SplitEffort(s.Row.Model)
	if here := s.Workspace.Here(); here != s.Workspace {
		task.Project = here.Dir
	}
	if s.desk == nil && s.Servers && task.Profile.NoServers == "" {
		if task.Servers, err = s.servers(ctx); err != nil {
			return task, err
		}
	}
	if s.desk != nil {
		task.TurnEnded, task.Review = s.desk.turnEnded, s.desk.review()
	}
	if s.Task.Role == ralph.RolePlan {
		if s.plan, err = newPlanner(ctx, s); err != nil {
			return task, err
		}
		task.TurnEnded, task.Plan = s.plan.turnEnded, s.plan.calls()
	}
	if task.Profile.NoIdentity {
		task.Author = s.Workspace.Tree.User(ctx)
	}
	return task, nil
}

// servers returns the project's servers for its agents, from the target branch: a session's additions start only after
// a person has approved them.
func (s *Session) servers(ctx context.Context) ([]agent.Server, error) {
	if s.Workspace.Clone == nil {
		return nil, nil
	}
	tree := s.Workspace.Here().Tree
	return agent.Servers(tree.Content(ctx, s.Workspace.Clone.Base, tree.Below(agent.ServersFile)))
}

// open creates the session's channel, which only its agent may see.
func (s *Session) open(a *agent.Assignment) (shut func() error, err error) {
	if s.Channel == nil {
		return func() error { return nil }, nil
	}
	folder := workspace.Channel(s.Row.ID)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, fmt.Errorf("folder of the session's channel: %w", err)
	}
	var closed func() error
	if a.Channel, closed, err = s.Channel(*a, folder); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return func() error { return errors.Join(closed(), os.RemoveAll(folder)) }, nil
}

// Ended returns the report of a session for which ralph started no agent. It costs nothing.
func Ended(how ralph.Ending, why string) agent.Report {
	return agent.Report{Ending: how, Reason: why, CostKnown: true}
}

// folder returns the folder of the session's transcript.
func (s *Session) folder() string { return s.Workspace.Folder(s.Row.ID) }

// endingLock returns the lock for a process, other than the agent's, that ends the session.
func (s *Session) endingLock() (*flock.Flock, error) {
	return flock.New(filepath.Join(s.folder(), "ending.lock")), os.MkdirAll(s.folder(), 0o700)
}

// tryEnding takes that lock. unlock is nil if another goroutine has it and is ending the session.
func (s *Session) tryEnding() (unlock func() error, err error) {
	lock, err := s.endingLock()
	ok := false
	if err == nil {
		ok, err = lock.TryLock()
	}
	if err != nil {
		return nil, fmt.Errorf("lock of the session: %w", err)
	}
	if !ok {
		return nil, nil
	}
	return lock.Unlock, nil
}

// scratch returns the folder for the objects of its snapshots, which is removed after the decision.
func (s *Session) scratch() string { return s.Workspace.Scratch(s.Row.ID) }

// idleScratch is like [Session.scratch], for scans that may run while another scan uses that one.
func (s *Session) idleScratch() string { return s.scratch() + "-idle" }

// content returns the digest of the work tree.
func (s *Session) content(ctx context.Context) (string, error) {
	seen, err := s.Workspace.Snapshot(ctx, s.idleScratch())
	return seen.Content, err
}

// cpu returns the CPU time that the session's processes have used.
func (s *Session) cpu() (time.Duration, error) { return s.Workspace.CPUTime(s.Row.ID) }
