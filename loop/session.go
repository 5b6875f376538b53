package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"ralph"
	"ralph/internal/worktree"
	"ralph/signals"
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
	verify     commands
	before     []outcome // the baseline
	prompt     string
	reference  hashes            // what the work tree is compared with at the end
	left       hashes            // as it was looked at last
	found      worktree.Snapshot // as the session found it; known when it is settled
	changed    parts             // what is known to have changed already
	checks     []ralph.Check
	protected  []string // protected files that are not as people left them
	checked    bool     // checks and protected are of the agent's last turn
	reminded   int
	retried    int
	doubted    int64 // the done that the agent was asked to confirm
	confirmed  bool  // a person stands for the done
	clock      *clock
	idle       *idleness
	observer   *observer
	permission bool // a person is asked whether it may use a tool
	held       bool // its clock stands still for that
	windows    map[string]int64
	maxCost    float64 // what the session may spend, in USD
}

// open claims the task and records the session, before anything is launched: a
// crash from here on leaves a session that the next run finds. What start says of
// the claim is given; the rest of it is filled in.
func (l *Loop) open(ctx context.Context, start store.Start, task ralph.Task) (s *session, err error) {
	s = &session{Loop: l, task: task, maxCost: start.CostLimitUSD, row: ralph.Session{ID: uuid.NewString(), TaskID: task.ID}}
	folder := s.logDir()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("folder of the session's transcript: %w", err)
	}
	defer func() {
		if err != nil { // somebody may have been faster: there is no such session
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	strange := l.strange(ctx, task.ID)
	var discipline ralph.Discipline
	err = l.Store.View(ctx, func(tx *store.Tx) (err error) {
		if err = s.prepare(tx); err != nil {
			return err
		}
		if task.Discipline != "" {
			if discipline, err = tx.Discipline(task.Discipline); err != nil {
				return err
			}
		}
		built, err := l.BuildPrompt(tx, task, strange...)
		if start.Origin == ralph.FromHuman {
			built, err = l.ChatPrompt(tx, task)
		}
		s.prompt = built.Text
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("prompt of TASK-%d: %w", task.ID, err)
	}
	if err := os.WriteFile(filepath.Join(s.logDir(), "prompt.md"), []byte(s.prompt), 0o600); err != nil {
		return nil, err
	}
	snapshot, ignored, err := l.look(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("state of the work tree: %w", err)
	}
	uncommitted, err := l.saveWork(ctx, s, snapshot, ignored)
	if err != nil {
		return nil, fmt.Errorf("uncommitted files before TASK-%d (git.snapshot: false leaves them alone): %w", task.ID, err)
	}
	protected, err := digestProtected(l.Dir, l.Verification.Protect)
	if err != nil {
		return nil, err
	}
	start.ID, start.Task, start.Snapshot, start.Uncommitted, start.Dir = s.row.ID, task.ID, snapshot, uncommitted, l.Dir
	if start.Origin == ralph.FromHuman {
		start.Branch = strings.TrimPrefix(snapshot.Branch, "refs/heads/")
	} else { // a person's chat has a model of its own
		start.Model = l.chooseModel(task, discipline)
	}
	err = l.Store.Tx(ctx, func(tx *store.Tx) error {
		if s.reference, err = l.hash(tx, task.ID, snapshot); err != nil {
			return err
		}
		known, err := l.protectedFiles(tx)
		if err != nil {
			return err
		}
		if err := tx.KeepProtectedFiles(welcome(known, protected)); err != nil {
			return err
		}
		start.Hashes = s.reference
		s.row, err = tx.StartSession(start)
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
	s.idle = newIdleness(seconds(s.Limits.IdleSeconds), s.content)
	s.observer = newObserver(s.verify.all(), s.windows, s.CheckpointAt)
	say := make(chan Message)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(work, stop, say, deadline)
	}()
	report, err := s.Agent.Work(work, Assignment{
		SessionID: s.row.ID, TaskID: s.row.TaskID, Discipline: s.task.Discipline, Prompt: s.prompt, Model: s.row.Model,
		MaxTurns: s.Limits.SessionTurns, MaxCost: s.maxCost, Dir: s.Dir, LogDir: s.logDir(),
		Say: say, TurnEnded: s.turnEnded, Seen: func(e Event) { s.idle.event(); s.observer.event(e, time.Now()) },
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
	look, err := s.Tree.Look(ctx, s.idleScratch())
	return look.Content, err
}

// idleScratch is [session.scratch] for those looks at the work tree that are taken
// while the session's own may be under way.
func (s *session) idleScratch() string { return s.scratch() + "-idle" }

// withCause says why an interrupted session was: a session that had ended by
// itself when it was to be stopped has ended by itself.
func withCause(report Report, cause error, limit, idle time.Duration) Report {
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
	if s.verify, err = s.verifyCommands(tx, s.task); err != nil {
		return err
	}
	if s.windows, err = tx.ContextWindows(); err != nil {
		return err
	}
	_, err = tx.Baseline(s.task.ID, &s.before)
	return err
}

// turnEnded is told when the agent waits on its open stdin, and says what it is
// told: a comment that came meanwhile, a reminder to close, or why its done is
// refused. The session's clock stands still while ralph itself takes time.
func (s *session) turnEnded(ctx context.Context) (string, error) {
	s.clock.pause()
	defer s.clock.resume()
	s.checked = false
	closing, err := s.closing(ctx)
	if err != nil {
		return "", err
	}
	if closing.Payload == nil {
		if s.reminded >= s.ClosingReminders {
			return "", nil
		}
		s.reminded++
		return reminder, nil
	}
	if closing.Payload.Verb() != ralph.VerbDone {
		return "", nil
	}
	if err := s.check(ctx); err != nil || ctx.Err() != nil {
		return "", err
	}
	said, refused := s.objection(closing.ID)
	if refused != "" {
		err = s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.NoteRefusal(s.row.ID, refused) })
	}
	return said, err
}

// objection is what the agent is told about a done that has just been checked, and
// what it is refused for, in one line; "" if there is nothing more to say to it.
func (s *session) objection(done int64) (said, refused string) {
	refused = signals.Refused(s.checks, s.protected, s.Rules)
	switch {
	case refused != "" && s.retried < s.Verification.InSessionRetries:
		s.retried++
		return refusal(s.checks, s.protected), refused
	case refused == "" && len(s.checks) == 0 && !s.changed.workTree && s.doubted == 0:
		s.doubted = done
		return confirmation, ""
	}
	s.checked = true
	return "", ""
}

// closing is the session's closing signal so far; its payload is nil if there is
// none.
func (s *session) closing(ctx context.Context) (closing signals.Said, err error) {
	err = s.Store.View(ctx, func(tx *store.Tx) error {
		said, err := tx.SessionSignals(s.row.ID)
		closing = signals.Closing(said)
		return err
	})
	return closing, err
}

// check looks at protected files and runs the verification, and keeps what that
// changes itself from counting as the session's doing (decision 19).
func (s *session) check(ctx context.Context) error {
	if err := s.checkProtected(ctx); err != nil {
		return err
	}
	s.checks = nil
	unverified := len(s.verify.all()) == 0
	if unverified && s.doubted != 0 {
		return nil // nothing depends on the work tree before the session is settled, which looks at it
	}
	now, err := s.compare(ctx)
	if err != nil || unverified {
		return err
	}
	s.beat(stepTime + time.Duration(len(s.verify.all()))*s.Verification.Timeout)
	results, err := s.Verification.run(ctx, job{dir: s.Dir, marker: "RALPH_SESSION_ID=" + s.row.ID, log: s.verifyLog()}, s.verify.all())
	if err != nil {
		return err
	}
	for _, r := range results {
		s.checks = append(s.checks, judge(r, s.before, s.verify.shared, s.Verification.Strict))
	}
	if ctx.Err() != nil {
		return nil // commands that were stopped say nothing of the work tree
	}
	if err := s.keep(ctx, now.WorkTree, results); err != nil {
		return err
	}
	look, err := s.Tree.Look(ctx, s.scratch())
	if err != nil {
		return fmt.Errorf("state of the work tree: %w", err)
	}
	s.reference, err = s.now(ctx, look)
	return err
}

// checkProtected finds the protected files that are not as people left them.
func (s *session) checkProtected(ctx context.Context) error {
	now, err := digestProtected(s.Dir, s.Verification.Protect)
	if err != nil {
		return err
	}
	return s.Store.View(ctx, func(tx *store.Tx) error {
		known, err := s.protectedFiles(tx)
		if err != nil {
			return err
		}
		waiting, err := tx.UnderReview()
		s.protected = slices.DeleteFunc(tampered(known, now), func(path string) bool {
			// Another task's change that a person is to decide on is not this one's.
			return s.Rules.ReviewProtect && waiting[path] && known[path].Seen == now[path]
		})
		return err
	})
}

// compare notes which parts differ from the reference.
func (s *session) compare(ctx context.Context) (hashes, error) {
	look, err := s.Tree.Look(ctx, s.scratch())
	if err != nil {
		return hashes{}, fmt.Errorf("state of the work tree: %w", err)
	}
	return s.compareWith(ctx, look)
}

// compareWith is compare for a work tree that has been looked at.
func (s *session) compareWith(ctx context.Context, look worktree.Snapshot) (hashes, error) {
	now, err := s.now(ctx, look)
	if err == nil {
		s.changed = s.changed.or(now.differ(s.reference))
	}
	return now, err
}

// now takes the hashes.
func (s *session) now(ctx context.Context, snapshot worktree.Snapshot) (h hashes, err error) {
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
	s.left = h
	return h, err
}
