package loop

import (
	"context"
	"errors"
	"time"

	"ralph/loop/agent"
	"ralph/loop/check"

	"ralph"
	"ralph/internal/worktree"
	"ralph/store"
)

// Why a session was stopped before its end: the cause of its context.
var (
	errTimeout   = errors.New("its time is up")
	errIdle      = errors.New("it was idle")
	errRunLimit  = errors.New("the run's time is up")
	errRunStop   = errors.New("the run was stopped")
	errCancelled = errors.New("its task was cancelled")
	errContract  = errors.New("what its task asks for was changed")
	errHalted    = errors.New("a person stopped it")
)

// A session is one run of the agent on one task, from claim to verdict.
type session struct {
	*Loop
	row        ralph.Session // as it is in the database, and what is learned of it
	task       ralph.Task
	verify     check.Commands
	before     []check.Outcome // the baseline
	prompt     string
	reference  hashes            // what the work tree is compared with at the end
	left       hashes            // as it was looked at last
	began      worktree.Snapshot // as the session found it; known when its work has been looked at
	changed    parts             // what is known to have changed already
	found      *finding          // of the agent's last turn, after which nothing of it moved; nil if it is to be looked at
	called     error             // why its check was called off by people; nil if it was not
	checked    worktree.Snapshot
	checkMade  map[string]bool // files that nobody but the verification has changed, as they were then
	killed     []string        // what the agent had left running when its done was checked: pid and command
	reminded   int
	retried    int
	doubted    int64 // the done that the agent was asked to confirm
	warned     bool  // it was told that it has committed files of a person's
	heard      int64 // the last comment for which the conversation went on
	confirmed  bool  // a person stands for the done
	clock      *clock
	idle       *idleness
	observer   *observer
	permission bool // a person is asked whether it may use a tool
	held       bool // its clock stands still for that
	windows    map[string]int64
	maxCost    float64 // what the session may spend, in USD

	reopened bool // another process began it

	hidden []string // places of protected files that could not be read when it began
}

// chooseModel is decision 20's order: the flag, the task's, escalation if it is
// due, the discipline's, the configuration's.
func (l *Loop) chooseModel(t ralph.Task, d ralph.Discipline) string {
	escalation := ""
	if t.StuckCount >= 2 {
		escalation = l.EscalationModel
	}
	for _, m := range []string{l.Model, t.Model, escalation, d.Model, l.ConfigModel} {
		if m != "" {
			return m
		}
	}
	return ""
}

// logDir is where the session's transcript is kept.
func (s *session) logDir() string { return s.Place.Folder(s.row.ID) }

// scratch is where the objects of its snapshots are kept until it is settled.
func (s *session) scratch() string { return s.Place.Scratch(s.row.ID) }

// run has the agent work and tells how that ended. Everything that can stop a
// session meanwhile ends its context with a cause.
func (s *session) run(ctx context.Context, deadline time.Time) (agent.Report, error) {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	limit := seconds(s.Limits.SessionSeconds)
	s.clock = newClock(limit, func() { stop(errTimeout) })
	defer s.clock.pause()
	s.idle = newIdleness(seconds(s.Limits.IdleSeconds), s.cpu, s.content)
	s.observer = newObserver(s.verify.All(), s.windows, s.CheckpointAt)
	say := make(chan agent.Message)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(work, stop, say, deadline)
	}()
	report, err := s.Agent.Work(work, agent.Assignment{
		SessionID: s.row.ID, TaskID: s.row.TaskID, Discipline: s.task.Discipline, Prompt: s.prompt, Model: s.row.Model,
		MaxTurns: s.Limits.SessionTurns, MaxCost: s.maxCost, Dir: s.Place.Dir, LogDir: s.logDir(),
		Say: say, TurnEnded: s.turnEnded, Seen: func(e agent.Event) { s.idle.event(); s.observer.event(e, time.Now()) },
	})
	cause := context.Cause(work)
	stop(nil)
	<-watched
	s.observed(ctx)
	if err != nil {
		return report, err
	}
	return withCause(report, cause, limit, s.idle.limit), nil
}

// content is the digest of the work tree.
func (s *session) content(ctx context.Context) (string, error) {
	look, err := s.Place.Look(ctx, s.idleScratch())
	return look.Digest(), err
}

// cpu is what its processes have used of the processors.
func (s *session) cpu() (time.Duration, error) { return s.Place.CPUTime(s.row.ID) }

// idleScratch is [session.scratch] for those looks at the work tree that are taken
// while the session's own may be under way.
func (s *session) idleScratch() string { return s.scratch() + "-idle" }

// withCause says why an interrupted session was: a session that had ended by
// itself when it was to be stopped has ended by itself.
func withCause(report agent.Report, cause error, limit, idle time.Duration) agent.Report {
	if report.Ending != ralph.Interrupted || cause == nil {
		return report
	}
	report.Reason = "interrupted: " + cause.Error()
	if errors.Is(cause, context.Canceled) {
		report.Reason = "interrupted: the run was stopped at once"
	}
	switch {
	case errors.Is(cause, errTimeout):
		report.Ending, report.Reason = ralph.TimedOut, "timed out after "+limit.String()
	case errors.Is(cause, errIdle):
		report.Ending, report.Reason = ralph.TimedOut, "timed out: idle for "+idle.String()+", without an event, a signal, CPU use or a change in the work tree"
	}
	return report
}

// prepare reads how the session's done is checked.
func (s *session) prepare(tx *store.Tx) (err error) {
	if s.verify, err = s.Check.Of(tx, s.task); err != nil {
		return err
	}
	if s.windows, err = tx.ContextWindows(); err != nil {
		return err
	}
	_, err = tx.Baseline(s.task.ID, &s.before)
	return err
}

// now takes the hashes.
func (s *session) now(ctx context.Context, snapshot worktree.Snapshot) (h hashes, err error) {
	files := s.Place.Files()
	err = s.Store.View(ctx, func(tx *store.Tx) error {
		if h, err = hash(tx, s.row.TaskID, snapshot, files); err != nil {
			return err
		}
		edited, err := tx.PeopleEdited(s.row.ID)
		if edited {
			h.Definitions = s.reference.Definitions
		}
		return err
	})
	s.left = h
	return h, err
}
