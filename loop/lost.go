package loop

import (
	"context"
	"errors"
	"fmt"

	"ralph"
	"ralph/loop/merging"
	"ralph/loop/order"
	"ralph/signals"
	"ralph/store"
)

// maxLost is the number of lost sessions in a row, of any tasks, that ends a run: then the agent or the machine is at
// fault.
const maxLost = 10

// bounded ends the run if too many sessions in a row were lost.
func (r *runner) bounded(task ralph.Task, ending ralph.Ending, d signals.Decision) error {
	switch {
	case d.LostCount > task.LostCount:
		r.lost++
	case ending != ralph.Interrupted && !ending.AgentError():
		r.lost = 0
	}
	if r.lost < maxLost {
		return nil
	}
	why := fmt.Sprintf("%d sessions in a row were lost, the last one of TASK-%d: %s", r.lost, task.ID, d.Reason)
	return &end{ralph.ExitAgent, why}
}

// waitForLost waits for the next retry after a lost session, if there is nothing else to do.
func (r *runner) waitForLost(ctx context.Context) error {
	var task ralph.Task
	var ok bool
	var now ralph.Time
	if err := r.Store.View(ctx, func(tx *store.Tx) (err error) {
		now = tx.Now()
		if r.Task == 0 {
			task, ok, err = tx.NextLost()
			return err
		}
		task, err = tx.Task(r.Task)
		ok = task.Status == ralph.Pending
		return err
	}); err != nil || !ok {
		return err
	}
	if !task.NotBefore.After(now.Time) {
		return errAgain // its time came since the last look
	}
	why := fmt.Sprintf("before TASK-%d is tried again (%s; %d in a row, %d are the limit)",
		task.ID, task.StatusReason, task.LostCount, signals.LostLimit)
	if r.NoWait {
		return &end{ralph.ExitAgent, "no session until " + task.NotBefore.String() + ", and --no-wait: " + why}
	}
	return r.wait(ctx, why, task.NotBefore.Time)
}

// missed handles a picked task that could not be claimed. A lost race is not an error:
// the run picks again, but pauses if the same task is missed twice in a row.
func (r *runner) missed(ctx context.Context, task int64, err error) error {
	switch {
	case errors.Is(err, errHeld), errors.Is(err, order.ErrSpent):
		return nil
	case errors.Is(err, merging.ErrAway):
		return r.awaitRemote(ctx, err)
	case errors.Is(err, ralph.ErrNotFound):
		// The task itself may be gone, which does not matter.
		return r.Store.View(ctx, func(tx *store.Tx) error {
			if _, gone := tx.Task(task); errors.Is(gone, ralph.ErrNotFound) {
				return nil
			}
			return err
		})
	case !errors.Is(err, ralph.ErrConflict):
		return err
	}
	if r.missedTask == task {
		r.changed = nil // a change is not a reason to retry sooner
		r.sleep(ctx, r.Store.Now().Add(step))
	}
	r.missedTask = task
	return nil
}
