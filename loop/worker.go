package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ralph"
	"ralph/loop/agent"
	"ralph/loop/session"
	"ralph/signals"
	"ralph/store"
)

// A Claim is a task that a worker has claimed. A worker is an agent that
// pulls its own work. Its session is decided by the same rules as the loop's.
type Claim struct {
	l *Loop
	s *session.Session
}

// SessionID returns the id of the claim's session.
func (c *Claim) SessionID() string { return c.s.Row.ID }

// TaskID returns the id of the claimed task.
func (c *Claim) TaskID() int64 { return c.s.Row.TaskID }

// Prompt returns the worker's prompt.
func (c *Claim) Prompt() string { return c.s.Prompt }

// Workspace returns the folder in which the worker has to work, and the variables for its processes.
func (c *Claim) Workspace() (dir string, env []string) {
	return c.s.Workspace.Dir, c.s.Workspace.Environ()
}

// A DroppedError means that a claim ended without its worker. It wraps [ralph.ErrConflict].
type DroppedError struct {
	Task  int64
	Why   string
	Where string // the place of the saved work, in words; "" if it is only in its folder
}

// Error describes the error and its effect on the worker.
func (e *DroppedError) Error() string {
	return fmt.Sprintf("your claim on TASK-%d is over: %s; your work stays%s, and nothing more is recorded",
		e.Task, e.Why, e.Where)
}

// Unwrap returns [ralph.ErrConflict].
func (e *DroppedError) Unwrap() error { return ralph.ErrConflict }

// Renew renews the claim. The error is a [DroppedError] if the claim is over because a person
// cancelled or amended the task or stopped the session, or because the lease expired.
func (c *Claim) Renew(ctx context.Context) error {
	why, lapsed := "", false
	err := c.s.Store.Tx(ctx, func(tx *store.Tx) error {
		row, err := tx.Session(c.s.Row.ID)
		if err != nil {
			return err
		}
		if lapsed = !row.CompletedAt.IsZero(); lapsed {
			why = "it has lapsed: " + row.Reason
			return nil
		}
		switch {
		case row.StopRequest == "cancel":
			why = row.StopBy + " cancelled the task"
		case row.StopRequest == "contract":
			why = row.StopBy + " changed the task"
		case row.HaltedBy != "":
			why = row.HaltedBy + " stopped it"
		default:
			return tx.RenewClaim(row.ID, tx.Now().Add(session.Lease))
		}
		return nil
	})
	if err != nil || why == "" {
		return err
	}
	where := ""
	if lapsed {
		where = c.s.Keep(ctx)
		c.s.GiveBack()
	} else {
		_, err = c.end(ctx, ralph.Interrupted, "interrupted: "+why)
	}
	if err != nil {
		return err
	}
	return &DroppedError{c.TaskID(), why, where}
}

// Close is called after a closing signal. It checks a done as the loop does, and returns either a reply to the
// worker, which then continues, or the decision on the task. The lease is extended by the maximum time of the check
// (decision 18). The error is a [DroppedError] if the task was amended during the check.
func (c *Claim) Close(ctx context.Context) (again string, d signals.Decision, err error) {
	if err := c.extend(ctx, session.Lease+c.s.CheckTime()); err != nil {
		return "", d, err
	}
	if again = c.s.TurnEnded(ctx, agent.Turn{}).Text; again != "" {
		return again, d, c.extend(ctx, session.Lease)
	}
	row, err := store.Read(ctx, c.s.Store, func(tx *store.Tx) (ralph.Session, error) { return tx.Session(c.s.Row.ID) })
	if err != nil {
		return "", d, err
	}
	if row.StopRequest == "contract" { // the check used outdated terms
		return "", d, c.Renew(ctx)
	}
	if d, err = c.decide(ctx, ralph.Finished, "the worker closed it"); err != nil {
		return "", d, err
	}
	return "", d, c.merge(ctx, &d)
}

// merge merges the accepted work of a workspace and then sets the task's result. If that is impossible now, the work
// stays in the queue.
func (c *Claim) merge(ctx context.Context, d *signals.Decision) error {
	if d.Status != ralph.Merging {
		return nil
	}
	why, err := c.l.mergeFor(ctx, c.s.Workspace, mergeWait)
	if err != nil {
		c.s.Log.Warn("cannot merge a worker's change now; it stays queued", "task", c.TaskID(), "error", err)
		why = session.Shortly(err)
	}
	t, err := store.Read(ctx, c.s.Store, func(tx *store.Tx) (ralph.Task, error) { return tx.Task(c.TaskID()) })
	if d.Status, d.StatusReason = t.Status, t.StatusReason; t.Status == ralph.Merging {
		d.StatusReason += "; not merged yet: " + why
	}
	return err
}

// extend sets the lease to end after that time from now.
func (c *Claim) extend(ctx context.Context, lease time.Duration) error {
	return c.s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.RenewClaim(c.s.Row.ID, tx.Now().Add(lease)) })
}

// Heard calls [session.Session.Heard].
func (c *Claim) Heard(ctx context.Context) (said string, err error) { return c.s.Heard(ctx) }

// Release gives the task back. No counter changes, but signals count: a
// question holds the task back, and a done is checked (decision 3).
func (c *Claim) Release(ctx context.Context) (signals.Decision, error) {
	// A client that leaves may kill its server before this is finished. The claim then lapses
	// at once and somebody else decides on it, but not while a done is being checked here.
	done, err := c.s.Claimed(ctx)
	if err != nil {
		return signals.Decision{}, err
	}
	lease := time.Duration(0)
	if done {
		lease = c.s.CheckTime()
	}
	if err := c.extend(ctx, lease); err != nil {
		return signals.Decision{}, err
	}
	d, err := c.end(ctx, ralph.Interrupted, "interrupted: its worker gave the task back")
	if err != nil {
		return d, err
	}
	return d, c.merge(ctx, &d)
}

// end decides on a claim that its worker did not close. The decision is the zero value if another process has decided
// or renewed the claim meanwhile.
func (c *Claim) end(ctx context.Context, how ralph.Ending, why string) (d signals.Decision, err error) {
	d, err = c.decide(ctx, how, why)
	if errors.Is(err, ralph.ErrConflict) {
		c.s.GiveBack()
		return signals.Decision{}, nil
	}
	return d, err
}

// decide decides on the claim and gives its workspace back.
func (c *Claim) decide(ctx context.Context, how ralph.Ending, why string) (d signals.Decision, err error) {
	if d, err = c.s.Decide(ctx, session.Ended(how, why)); err == nil {
		c.s.GiveBack()
	}
	return d, err
}
