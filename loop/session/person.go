package session

import (
	"context"
	"errors"
	"strings"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// A Completion is a person's or chat's statement that a claimed task is done.
type Completion struct {
	Author    string // the name of the person
	Summary   string
	Learnings []string
	// Confirm asks the person once the checks have passed; nil if the person
	// has already confirmed. It returns the objection, or "" for yes.
	Confirm func(ctx context.Context, checked Checked) (no string, err error)
}

// Checked is a check's result, for the question to the person.
type Checked struct {
	Checks    []ralph.Check
	Untouched bool   // the work tree has not changed since the claim
	Tree      string // the id of the tree that was checked
}

// Complete handles a claimed task like a done: it runs the verification and applies the
// same rules (human, "MCP tools of this profile"). If the work is refused, refused
// explains why, nothing is recorded, and the task stays claimed.
func (p Parts) Complete(ctx context.Context, task int64, c Completion) (refused string, d signals.Decision, err error) {
	s, unlock, err := p.openClaim(ctx, task)
	if err != nil {
		return "", d, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if !s.Workspace.Has(s.Row.Dir) {
		return "", d, ralph.Conflict("TASK-%d was claimed in another work tree, where the work is to be checked: "+
			"complete it in %s", task, s.Row.Dir)
	}
	if _, err := s.closing(ctx); err != nil {
		return "", d, err
	}
	found, err := s.checkDone(ctx)
	if err != nil {
		return "", d, err
	}
	if ctx.Err() != nil {
		return "", d, context.Cause(ctx)
	}
	if refusal := s.refusal(found); refusal.Any() {
		return failing(found, refusal), d, nil
	}
	if c.Confirm != nil {
		no, err := c.Confirm(ctx, Checked{found.checks, !s.changed.workTree, found.made.Tree})
		if err != nil || no != "" {
			return no, d, err
		}
	}
	s.found, s.confirmed = found, true
	scope := "" // the feature
	if s.Task.Feature == "" {
		scope = ralph.ScopeProject
	}
	for _, text := range c.Learnings {
		learned := signals.Learned{Text: text, Kind: "discovery", Scope: scope}
		if _, err := p.Store.Say(ctx, task, s.Row.ID, c.Author, learned); err != nil {
			return "", d, err
		}
	}
	if _, err := p.Store.Say(ctx, task, s.Row.ID, c.Author, signals.Done{Summary: c.Summary}); err != nil {
		return "", d, err
	}
	d, err = s.Decide(context.WithoutCancel(ctx), Ended(ralph.Finished, c.Author+" completed it"))
	return "", d, err
}

// ReleaseFor gives a claimed task back, from any work tree. No counter
// changes, but signals count: a question holds the task back.
func (p Parts) ReleaseFor(ctx context.Context, task int64, person string) (d signals.Decision, err error) {
	s, unlock, err := p.openClaim(ctx, task)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	d, err = s.Decide(ctx, Ended(ralph.Interrupted, "interrupted: "+person+" gave it back"))
	return d, err
}

// openClaim opens the session of a task that a person has claimed, and locks
// it: a terminal and several chats may want to end it at once.
func (p Parts) openClaim(ctx context.Context, task int64) (s *Session, unlock func() error, err error) {
	row, err := store.Read(ctx, p.Store, func(tx *store.Tx) (ralph.Session, error) { return tx.ClaimOfPerson(task) })
	if err != nil {
		return nil, nil, err
	}
	if s, err = p.reopen(ctx, Place{Workspace: p.Pool.Here}, row); err != nil {
		return nil, nil, err
	}
	if unlock, err = s.tryEnding(); err == nil && unlock == nil {
		err = ralph.Conflict("TASK-%d is being completed or released already", task)
	}
	return s, unlock, err
}

// failing explains why a completion is refused.
func failing(f *finding, refusal signals.Refusal) string {
	var b strings.Builder
	b.WriteString("ralph checked the work, and it does not hold; the task stays claimed. " +
		"Mend the failures, then complete it again.\n")
	explainRefusal(&b, refusal, f)
	return b.String()
}
