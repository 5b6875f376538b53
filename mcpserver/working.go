package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"ralph"
	"ralph/loop"
	"ralph/loop/session"
	"ralph/signals"
	"ralph/store"
)

// A worker is one client's connection: it pulls tasks from the queue, one at a time.
// What its methods return is told to the client.
type worker struct {
	loop *loop.Loop
	name string // under which it signals and comments

	mu    sync.Mutex                    // held by a call that may end the claim, also while it is checked
	claim atomic.Pointer[session.Claim] // nil if there is none
}

// leave gives back what is claimed.
func (w *worker) leave(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	claim := w.claim.Load()
	if claim == nil {
		return nil
	}
	_, err := claim.Release(ctx)
	if err == nil {
		w.claim.Store(nil)
	}
	return err
}

// held is the claim, renewed; an error says why there is none any more. The caller
// holds the lock.
func (w *worker) held(ctx context.Context) (*session.Claim, error) {
	claim := w.claim.Load()
	if claim == nil {
		return nil, fmt.Errorf("you have not claimed a task; call claim_task first: %w", ralph.ErrConflict)
	}
	return claim, w.over(claim.Held(ctx))
}

// over forgets the claim if the error says that there is none any more.
func (w *worker) over(err error) error {
	var dropped *session.DroppedError
	if errors.As(err, &dropped) {
		w.claim.Store(nil)
	}
	return err
}

// alive renews the claim: any call does. An error says why there is none any more.
func (w *worker) alive(ctx context.Context) error {
	if !w.mu.TryLock() {
		return nil // another call is under way, which has renewed it
	}
	defer w.mu.Unlock()
	if w.claim.Load() == nil {
		return nil
	}
	_, err := w.held(ctx)
	return err
}

// next is the task that would be claimed.
func (w *worker) next(ctx context.Context) (string, error) {
	if err := w.alive(ctx); err != nil {
		return "", err
	}
	t, ok, err := w.loop.Next(ctx)
	if err != nil {
		return "", err
	}
	if !ok {
		return "No task can be claimed now.", nil
	}
	return fmt.Sprintf("TASK-%d %s (priority %d)\n\n%s\n\nTake it with claim_task.",
		t.ID, t.Title, t.Priority, t.Description), nil
}

// take takes a task, or the next one for 0. Where the next task is asked for and somebody
// is faster, the one behind it is tried.
func (w *worker) take(ctx context.Context, task int64) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.claim.Load() != nil {
		c, err := w.held(ctx)
		if err != nil {
			return "", err
		}
		return "", fmt.Errorf("you hold TASK-%d; close or release it first: %w", c.TaskID(), ralph.ErrConflict)
	}
	for {
		id := task
		if id == 0 {
			next, ok, err := w.loop.Next(ctx)
			if err != nil {
				return "", err
			}
			if !ok {
				return "No task can be claimed now.", nil
			}
			id = next.ID
		}
		c, err := w.loop.Claim(ctx, id, w.name)
		if task == 0 && errors.Is(err, ralph.ErrConflict) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return "", err
		}
		w.claim.Store(c)
		return fmt.Sprintf("You hold TASK-%d (session %s).\n\n%s", c.TaskID(), c.SessionID(), c.Prompt()), nil
	}
}

// release gives the claimed task back.
func (w *worker) release(ctx context.Context, task int64) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, err := w.held(ctx)
	if err != nil {
		return "", err
	}
	if task != 0 && task != c.TaskID() {
		return "", fmt.Errorf("you hold TASK-%d, not TASK-%d: %w", c.TaskID(), task, ralph.ErrConflict)
	}
	d, err := c.Release(ctx)
	if err != nil {
		return "", err
	}
	w.claim.Store(nil)
	switch d.Status {
	case ralph.Pending:
		return fmt.Sprintf("TASK-%d is back in the queue.", c.TaskID()), nil
	case "":
		return fmt.Sprintf("TASK-%d was not yours any more.", c.TaskID()), nil
	}
	return fmt.Sprintf("You do not hold TASK-%d any more. It is %s: %s", c.TaskID(), d.Status, d.StatusReason), nil
}

// say keeps a signal and, for a closing verb, settles the task.
func (w *worker) say(ctx context.Context, p signals.Payload) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, err := w.held(ctx)
	if err != nil {
		return "", err
	}
	id, err := w.loop.Store.Say(ctx, c.TaskID(), c.SessionID(), w.name, "", p)
	if err != nil {
		return "", err
	}
	said := fmt.Sprintf("Recorded %s as comment %d.", p.Verb(), id)
	if !p.Verb().Closes() {
		heard, err := c.Heard(ctx)
		return said + heard, err
	}
	again, d, err := c.Close(ctx)
	if err != nil {
		return "", w.over(err)
	}
	if again != "" {
		heard, err := c.Heard(ctx)
		return said + " It does not close the task yet:\n\n" + again + heard, err
	}
	w.claim.Store(nil)
	return fmt.Sprintf("%s TASK-%d is %s: %s", said, c.TaskID(), d.Status, d.StatusReason), nil
}

func (w *worker) setState(ctx context.Context, c StateChange) (StateReply, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	claim, err := w.held(ctx)
	if err != nil {
		return StateReply{}, err
	}
	return setState(ctx, w.loop.Store, claim.SessionID(), c)
}

// comment is allowed on any task, since a reviewer holds none.
func (w *worker) comment(ctx context.Context, c CommentCall) (id int64, err error) {
	if err := w.alive(ctx); err != nil {
		return 0, err
	}
	err = w.loop.Store.Tx(ctx, func(tx *store.Tx) error {
		id, err = speaker{w.sessionID(), w.name}.comment(tx, c)
		return err
	})
	return id, err
}

func (w *worker) propose(ctx context.Context, c AmendmentCall) (id int64, err error) {
	if err := w.alive(ctx); err != nil {
		return 0, err
	}
	err = w.loop.Store.Tx(ctx, func(tx *store.Tx) error {
		id, err = speaker{w.sessionID(), w.name}.propose(tx, c)
		return err
	})
	return id, err
}

// sessionID is of the session that the claim opened; "" without a claim. It waits for nothing:
// it is asked within transactions.
func (w *worker) sessionID() string {
	claim := w.claim.Load()
	if claim == nil {
		return ""
	}
	return claim.SessionID()
}

func (w *worker) resolve(ctx context.Context, comment int64, decision string) error {
	if err := w.alive(ctx); err != nil {
		return err
	}
	return w.loop.Store.Tx(ctx, func(tx *store.Tx) error { return tx.ResolveAsAgent(comment, decision, w.name) })
}

func (w *worker) comments(
	ctx context.Context, task int64, kind ralph.CommentKind, openOnly bool,
) ([]ralph.Comment, error) {
	if err := w.alive(ctx); err != nil {
		return nil, err
	}
	return commentsOf(ctx, w.loop.Store, task, kind, openOnly)
}

func (w *worker) amendments(ctx context.Context, task int64) ([]ralph.Amendment, error) {
	if err := w.alive(ctx); err != nil {
		return nil, err
	}
	return proposedFor(ctx, w.loop.Store, task)
}
