package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"ralph"
	"ralph/loop"
	"ralph/signals"
	"ralph/store"
)

// A worker is one client's connection, which pulls tasks from the queue,
// one at a time. The results of its methods are sent to the client.
type worker struct {
	loop *loop.Loop
	name string // the name that it signals and comments under

	mu    sync.Mutex                 // held by calls that may end the claim, even during the check
	claim atomic.Pointer[loop.Claim] // nil if there is none
}

// leave releases the claim, if there is one.
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

// renewed returns the claim after renewing it; the error explains its loss. The caller holds the
// lock.
func (w *worker) renewed(ctx context.Context) (*loop.Claim, error) {
	claim := w.claim.Load()
	if claim == nil {
		return nil, ralph.Conflict("you have not claimed a task; call claim_task first")
	}
	return claim, w.over(claim.Renew(ctx))
}

// over drops the claim if the error means that it has ended.
func (w *worker) over(err error) error {
	if _, ok := errors.AsType[*loop.DroppedError](err); ok {
		w.claim.Store(nil)
	}
	return err
}

// alive renews the claim, like any call. The error explains its loss.
func (w *worker) alive(ctx context.Context) error {
	if !w.mu.TryLock() {
		return nil // another call is in progress and has renewed it
	}
	defer w.mu.Unlock()
	if w.claim.Load() == nil {
		return nil
	}
	_, err := w.renewed(ctx)
	return err
}

// next describes the task that the worker would claim.
func (w *worker) next(ctx context.Context, _ struct{}) (any, error) {
	if err := w.alive(ctx); err != nil {
		return nil, err
	}
	t, ok, err := w.loop.Next(ctx)
	if err != nil {
		return nil, err
	}
	if !ok {
		return "No task can be claimed now.", nil
	}
	return fmt.Sprintf("TASK-%d %s (priority %d)\n\n%s\n\nTake it with claim_task.",
		t.ID, t.Title, t.Priority, t.Description), nil
}

// take claims a task, or the next one for 0. If another client claims the next task first, it tries the one after it.
func (w *worker) take(ctx context.Context, in onTask) (any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.claim.Load() != nil {
		c, err := w.renewed(ctx)
		if err != nil {
			return nil, err
		}
		return nil, ralph.Conflict("you hold TASK-%d; close or release it first", c.TaskID())
	}
	for {
		id := int64(in.TaskID)
		if id == 0 {
			next, ok, err := w.loop.Next(ctx)
			if err != nil {
				return nil, err
			}
			if !ok {
				return "No task can be claimed now.", nil
			}
			id = next.ID
		}
		c, err := w.loop.Claim(ctx, id, w.name)
		if in.TaskID == 0 && errors.Is(err, ralph.ErrConflict) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		w.claim.Store(c)
		return fmt.Sprintf("You hold TASK-%d (session %s).\n\n%s%s",
			c.TaskID(), c.SessionID(), whereabouts(c.Workspace()), c.Prompt()), nil
	}
}

// whereabouts tells a worker where to work; "" if it works in a person's folder.
func whereabouts(dir string, env []string) string {
	if dir == "" {
		return ""
	}
	return fmt.Sprintf("Work in this folder, and set these variables for the commands you run there: changes "+
		"elsewhere is not part of your work, and is neither checked nor merged.\n\n%s\n\n%s\n\n",
		dir, strings.Join(env, "\n"))
}

// release gives the claimed task back.
func (w *worker) release(ctx context.Context, in onTask) (any, error) {
	task := int64(in.TaskID)
	w.mu.Lock()
	defer w.mu.Unlock()
	c, err := w.renewed(ctx)
	if err != nil {
		return nil, err
	}
	if task != 0 && task != c.TaskID() {
		return nil, ralph.Conflict("you hold TASK-%d, not TASK-%d", c.TaskID(), task)
	}
	d, err := c.Release(ctx)
	if err != nil {
		return nil, err
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

// say stores a signal and, if it closes the session, decides on the task.
func (w *worker) say(ctx context.Context, p signals.Payload) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, err := w.renewed(ctx)
	if err != nil {
		return "", err
	}
	id, err := w.loop.Store.Say(ctx, c.TaskID(), c.SessionID(), w.name, p)
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
	claim, err := w.renewed(ctx)
	if err != nil {
		return StateReply{}, err
	}
	return setState(ctx, w.loop.Store, claim.SessionID(), c)
}

// discuss adds to the discussion of any task, because a reviewer has claimed none.
func (w *worker) discuss(
	ctx context.Context, _ taskID, add func(tx *store.Tx, me speaker) (int64, error),
) (id int64, err error) {
	if err := w.alive(ctx); err != nil {
		return 0, err
	}
	err = w.loop.Store.Tx(ctx, func(tx *store.Tx) error {
		id, err = add(tx, speaker{w.sessionID(), w.name})
		return err
	})
	return id, err
}

// sessionID returns the id of the claim's session; "" without a claim. It does not block,
// because it is called within transactions.
func (w *worker) sessionID() string {
	claim := w.claim.Load()
	if claim == nil {
		return ""
	}
	return claim.SessionID()
}

func (w *worker) resolve(ctx context.Context, comment int64, decision string) error {
	return w.loop.Store.Tx(ctx, func(tx *store.Tx) error { return tx.ResolveAsAgent(comment, decision, w.name) })
}
