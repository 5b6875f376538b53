package loop

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"ralph"
	"ralph/internal/worktree"
	"ralph/loop/session"
	"ralph/signals"
	"ralph/store"
)

// Claim has a worker take a task. The error wraps [ralph.ErrConflict] if it cannot
// be taken, and says why.
func (l *Loop) Claim(ctx context.Context, task int64, worker string) (*session.Claim, error) {
	if err := l.Lapse(ctx); err != nil {
		return nil, err
	}
	if _, _, _, err := l.pick(ctx, task); err != nil { // it fails if its attempts are used up
		return nil, err
	}
	if err := l.prepare(ctx, task); err != nil {
		return nil, err
	}
	// Whether it may be taken is looked at again in the transaction that takes it.
	defer l.queueUp(ctx)()
	if _, err := l.claimable(ctx, task); err != nil {
		return nil, err
	}
	claim, err := l.needs().Claim(ctx, task, worker)
	if err != nil {
		_, herr := l.holdBack(ctx, task, err)
		return nil, errors.Join(err, herr)
	}
	return claim, nil
}

// ClaimFor has a person take a task, to work on it with a chat (human, "In the
// terminal"). The loop leaves it alone until it is completed or released. What is
// returned is the session and what the person gives to the chat. The error wraps
// [ralph.ErrConflict] if the task cannot be taken, and says why.
func (l *Loop) ClaimFor(ctx context.Context, task int64, person string) (ralph.Session, string, error) {
	if err := l.Lapse(ctx); err != nil {
		return ralph.Session{}, "", err
	}
	if err := l.prepare(ctx, task); err != nil {
		return ralph.Session{}, "", err
	}
	n := l.needs()
	n.Model = nil // a person's chat has one of its own
	n.Prompt = func(tx *store.Tx, t ralph.Task, _ []string) (string, error) {
		built, err := l.ChatPrompt(tx, t)
		return built.Text, err
	}
	return n.ClaimFor(ctx, task, person)
}

// Complete is [session.Needs.Complete].
func (l *Loop) Complete(
	ctx context.Context, task int64, c session.Completion,
) (refused string, d signals.Decision, err error) {
	return l.needs().Complete(ctx, task, c)
}

// ReleaseFor is [session.Needs.ReleaseFor].
func (l *Loop) ReleaseFor(ctx context.Context, task int64, person string) (signals.Decision, error) {
	return l.needs().ReleaseFor(ctx, task, person)
}

// Strangers is [session.Needs.Strangers].
func (l *Loop) Strangers(ctx context.Context, task int64) (files []worktree.Loose, branch string, err error) {
	return l.needs().Strangers(ctx, task)
}

// prepare does what comes before the claim of a task: what is people's is looked at, and
// the verification is run for the first time.
func (l *Loop) prepare(ctx context.Context, task int64) error {
	t, err := l.claimable(ctx, task)
	if err != nil {
		return err
	}
	v := l.verifier()
	if err := v.Greet(ctx); err != nil {
		return err
	}
	if err := v.Baseline(ctx, t); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// claimable is a task that can be claimed; the error says why it cannot be.
func (l *Loop) claimable(ctx context.Context, task int64) (ralph.Task, error) {
	return store.Read(ctx, l.Store, func(tx *store.Tx) (ralph.Task, error) {
		t, err := tx.Task(task)
		if err != nil {
			return t, err
		}
		return t, tx.Claimable(t)
	})
}

// queueTime is how long a worker waits for those before it.
const queueTime = 20 * time.Second

// queueUp waits while another worker claims: all look at their work trees for the
// same first task, which takes long, and all but one in vain. It only spares work;
// if the other takes too long they go on side by side.
func (l *Loop) queueUp(ctx context.Context) (unlock func()) {
	limited, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	lock := flock.New(filepath.Join(l.Place.State, "claim.lock"))
	if _, err := lock.TryLockContext(limited, 20*time.Millisecond); err != nil && limited.Err() == nil {
		l.Log.Warn("workers cannot wait for each other", "error", err)
	}
	return func() {
		if err := lock.Unlock(); err != nil {
			l.Log.Warn("the lock of claims could not be released", "error", err)
		}
	}
}

// Lapse settles the claims whose lease has run out. It also ends what people work on and
// have called off or amended.
func (l *Loop) Lapse(ctx context.Context) error {
	lapsed, err := store.Read(ctx, l.Store, (*store.Tx).LapsedClaims)
	if err != nil {
		return err
	}
	return l.each(ctx, lapsed, l.needs().Lapse)
}
