package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// Why a session was stopped before its end: the cause of its context.
var (
	errTimeout   = errors.New("its time is up")
	errRunLimit  = errors.New("the run's time is up")
	errRunStop   = errors.New("the run was stopped")
	errCancelled = errors.New("its task was cancelled")
	errContract  = errors.New("what its task asks for was changed")
)

// A session is one run of the agent on one task, from claim to verdict.
type session struct {
	*Loop
	row       ralph.Session // as it is in the database, and what is learned of it
	task      ralph.Task
	verify    []string // commands that check a done
	prompt    string
	reference hashes // what the work tree is compared with at the end
	changed   parts  // what is known to have changed already
	checks    []ralph.Check
	checked   bool // checks are of the agent's last turn
	reminded  int
	retried   int
	clock     *clock
}

// open claims the task and records the session, before anything is launched: a
// crash from here on leaves a session that the next run finds.
func (l *Loop) open(ctx context.Context, run int64, task ralph.Task) (*session, error) {
	s := &session{Loop: l, task: task, row: ralph.Session{ID: uuid.NewString(), TaskID: task.ID}}
	if err := os.MkdirAll(s.logDir(), 0o700); err != nil {
		return nil, fmt.Errorf("folder of the session's transcript: %w", err)
	}
	var discipline ralph.Discipline
	err := l.Store.View(ctx, func(tx *store.Tx) (err error) {
		if s.verify, err = l.verifyCommands(tx, task); err != nil {
			return err
		}
		if task.Discipline != "" {
			if discipline, err = tx.Discipline(task.Discipline); err != nil {
				return err
			}
		}
		built, err := l.BuildPrompt(tx, task)
		s.prompt = built.Text
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("prompt of TASK-%d: %w", task.ID, err)
	}
	if err := os.WriteFile(filepath.Join(s.logDir(), "prompt.md"), []byte(s.prompt), 0o600); err != nil {
		return nil, err
	}
	snapshot, err := l.Tree.Snapshot(ctx, s.scratch())
	if err != nil {
		return nil, fmt.Errorf("state of the work tree: %w", err)
	}
	model := l.chooseModel(task, discipline)
	err = l.Store.Tx(ctx, func(tx *store.Tx) error {
		if s.reference, err = l.hash(tx, task.ID, snapshot); err != nil {
			return err
		}
		s.row, err = tx.StartSession(store.Start{ID: s.row.ID, Task: task.ID, Run: run, Model: model,
			CostLimitUSD: l.Limits.SessionCostUSD, Snapshot: snapshot, Hashes: s.reference})
		return err
	})
	return s, err
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
func (s *session) logDir() string { return filepath.Join(s.State, "sessions", s.row.ID) }

// scratch is where the objects of its snapshots are kept until it is settled.
func (s *session) scratch() string { return filepath.Join(s.logDir(), "objects") }

// run has the agent work and tells how that ended. Everything that can stop a
// session meanwhile ends its context with a cause.
func (s *session) run(ctx context.Context, deadline time.Time) (Report, error) {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	limit := seconds(s.Limits.SessionSeconds)
	s.clock = newClock(limit, func() { stop(errTimeout) })
	defer s.clock.pause()
	say := make(chan Message)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(work, stop, say, deadline)
	}()
	report, err := s.Agent.Work(work, Assignment{
		SessionID: s.row.ID, TaskID: s.row.TaskID, Discipline: s.task.Discipline, Prompt: s.prompt, Model: s.Model,
		MaxTurns: s.Limits.SessionTurns, MaxCost: s.Limits.SessionCostUSD, Dir: s.Dir, LogDir: s.logDir(),
		Say: say, TurnEnded: s.turnEnded,
	})
	cause := context.Cause(work)
	stop(nil)
	<-watched
	if err != nil {
		return report, err
	}
	return withCause(report, cause, limit), nil
}

// withCause says why an interrupted session was: a session that had ended by
// itself when it was to be stopped has ended by itself.
func withCause(report Report, cause error, limit time.Duration) Report {
	if report.Ending != ralph.Interrupted || cause == nil {
		return report
	}
	report.Reason = "interrupted: " + cause.Error()
	if errors.Is(cause, context.Canceled) {
		report.Reason = "interrupted: the run was stopped at once"
	}
	if errors.Is(cause, errTimeout) {
		report.Ending, report.Reason = ralph.TimedOut, "timed out after "+limit.String()
	}
	return report
}

// turnEnded is told when the agent waits on its open stdin, and says what it is
// told: a comment that came meanwhile, a reminder to close, or why its done is
// refused. The session's clock stands still while ralph itself takes time.
func (s *session) turnEnded(ctx context.Context) (string, error) {
	s.clock.pause()
	defer s.clock.resume()
	s.checked = false
	var closing signals.Payload
	if err := s.Store.View(ctx, func(tx *store.Tx) error {
		said, err := tx.SessionSignals(s.row.ID)
		closing = signals.Closing(said)
		return err
	}); err != nil {
		return "", err
	}
	if closing == nil {
		if s.reminded >= s.ClosingReminders {
			return "", nil
		}
		s.reminded++
		return reminder, nil
	}
	if closing.Verb() != ralph.VerbDone || len(s.verify) == 0 {
		return "", nil
	}
	if err := s.check(ctx); err != nil || ctx.Err() != nil {
		return "", err
	}
	if passed(s.checks) || s.retried >= s.Verification.InSessionRetries {
		s.checked = true
		return "", nil
	}
	s.retried++
	return refusal(s.checks), nil
}

// check runs the verification, and keeps what it changes itself from counting as
// the session's doing (decision 19).
func (s *session) check(ctx context.Context) error {
	if err := s.compare(ctx); err != nil {
		return err
	}
	checks, err := s.Verification.run(ctx, s.Dir, s.logDir(), s.row.ID, s.verify)
	if err != nil {
		return err
	}
	s.checks = checks
	after, err := s.now(ctx)
	if err != nil {
		return err
	}
	s.reference = after
	return nil
}

// compare notes which parts differ from the reference.
func (s *session) compare(ctx context.Context) error {
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	s.changed = s.changed.or(now.differ(s.reference))
	return nil
}

// now takes the hashes.
func (s *session) now(ctx context.Context) (h hashes, err error) {
	snapshot, err := s.Tree.Snapshot(ctx, s.scratch())
	if err != nil {
		return h, fmt.Errorf("state of the work tree: %w", err)
	}
	err = s.Store.View(ctx, func(tx *store.Tx) error {
		if h, err = s.hash(tx, s.row.TaskID, snapshot); err != nil {
			return err
		}
		edited, err := tx.PeopleEdited(s.row.ID)
		if edited {
			h.Definitions = s.reference.Definitions
		}
		return err
	})
	return h, err
}
