package loop

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"ralph/loop/agent"

	"github.com/gofrs/flock"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// ClaimFor has a person take a task, to work on it with a chat (human, "In the
// terminal"). The loop leaves it alone until it is completed or released. What is
// returned is the session and what the person gives to the chat. The error wraps
// [ralph.ErrConflict] if the task cannot be taken, and says why.
func (l *Loop) ClaimFor(ctx context.Context, task int64, person string) (ralph.Session, string, error) {
	if err := l.Lapse(ctx); err != nil {
		return ralph.Session{}, "", err
	}
	var t ralph.Task
	if err := l.Store.View(ctx, func(tx *store.Tx) (err error) {
		if t, err = tx.Task(task); err != nil {
			return err
		}
		return tx.Claimable(t)
	}); err != nil {
		return ralph.Session{}, "", err
	}
	if err := l.verifier().Greet(ctx); err != nil {
		return ralph.Session{}, "", err
	}
	if err := l.verifier().Baseline(ctx, t); err != nil {
		return ralph.Session{}, "", err
	}
	if ctx.Err() != nil {
		return ralph.Session{}, "", context.Cause(ctx)
	}
	s, err := l.open(ctx, store.Start{Origin: ralph.FromHuman, Worker: person}, t)
	if err != nil {
		return ralph.Session{}, "", err
	}
	return s.row, s.prompt, nil
}

// A Completion is a person's or a chat's word that a claimed task is done.
type Completion struct {
	Author    string // who says so
	Summary   string
	Learnings []string
	// Confirm asks the person once the checks have passed, if there is a way; nil if
	// the person has said so already. What is returned says why not; "" is yes.
	Confirm func(ctx context.Context, checked Checked) (no string, err error)
}

// Checked is what a person is asked about.
type Checked struct {
	Checks    []ralph.Check
	Untouched bool // the work tree is as it was when the task was claimed
}

// Complete completes a claimed task as a done does: by the verification, then by
// the same rules (human, "MCP tools of this profile"). If it is refused, refused
// says why, nothing is recorded, and the task stays claimed.
func (l *Loop) Complete(ctx context.Context, task int64, c Completion) (refused string, d signals.Decision, err error) {
	s, unlock, err := l.held(ctx, task)
	if err != nil {
		return "", d, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if s.row.Dir != l.Place.Dir {
		return "", d, fmt.Errorf("TASK-%d was claimed in another work tree, where the work is to be checked: complete it in %s: %w", task, s.row.Dir, ralph.ErrConflict)
	}
	found, err := s.check(ctx)
	if err != nil {
		return "", d, err
	}
	if ctx.Err() != nil {
		return "", d, context.Cause(ctx)
	}
	if len(found.hiding) > 0 {
		return "ralph cannot tell whether protected files were changed in " + strings.Join(found.hiding, ", ") +
			"; make that readable, then complete it again. The task stays claimed.", d, nil
	}
	if signals.Refused(found.checks, found.protected, found.evidence, s.Rules) != "" {
		return failing(found), d, nil
	}
	if c.Confirm != nil {
		no, err := c.Confirm(ctx, Checked{Checks: found.checks, Untouched: !s.changed.workTree})
		if err != nil || no != "" {
			return no, d, err
		}
	}
	s.found, s.confirmed = found, true
	scope := "" // the feature's
	if s.task.Feature == "" {
		scope = ralph.ScopeProject
	}
	for _, text := range c.Learnings {
		if _, err := l.Store.Say(ctx, task, s.row.ID, c.Author, "", signals.Learned{Text: text, Kind: "discovery", Scope: scope}); err != nil {
			return "", d, err
		}
	}
	if _, err := l.Store.Say(ctx, task, s.row.ID, c.Author, "", signals.Done{Summary: c.Summary}); err != nil {
		return "", d, err
	}
	d, _, err = s.settle(context.WithoutCancel(ctx), agent.Report{Ending: ralph.Finished, Reason: c.Author + " completed it", CostKnown: true})
	return "", d, err
}

// ReleaseFor gives a claimed task back, from any work tree. No counter moves, but
// what was said on it counts: a question holds it back.
func (l *Loop) ReleaseFor(ctx context.Context, task int64, person string) (d signals.Decision, err error) {
	s, unlock, err := l.held(ctx, task)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	d, _, err = s.settle(ctx, agent.Report{Ending: ralph.Interrupted, Reason: "interrupted: " + person + " gave it back", CostKnown: true})
	return d, err
}

// held opens the session of a task that a person has claimed, for this process
// alone: a terminal and several chats may want to end it at once.
func (l *Loop) held(ctx context.Context, task int64) (s *session, unlock func() error, err error) {
	var row ralph.Session
	if err := l.Store.View(ctx, func(tx *store.Tx) (err error) { row, err = tx.ClaimOfPerson(task); return err }); err != nil {
		return nil, nil, err
	}
	if s, err = l.reopen(ctx, row); err != nil {
		return nil, nil, err
	}
	lock := flock.New(filepath.Join(s.logDir(), "ending.lock"))
	ok, err := lock.TryLock()
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("lock of the session: %w", err)
	case !ok:
		return nil, nil, fmt.Errorf("TASK-%d is being completed or released already: %w", task, ralph.ErrConflict)
	}
	return s, lock.Unlock, nil
}

// failing says what a completion is refused for.
func failing(f *finding) string {
	var b strings.Builder
	b.WriteString("ralph checked the work, and it does not hold; the task stays claimed. Mend what fails, then complete it again.\n")
	explainRefusal(&b, f)
	return b.String()
}
