package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ralph"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// Lease is how long a worker's claim lasts after its last call (decision 13).
const Lease = 30 * time.Minute

// A Claim is a task that a worker has claimed. A worker is an agent that
// pulls its own work. Its session is decided by the same rules as the loop's.
type Claim struct {
	s *Session
}

// Claim claims a task for a worker. The error wraps [ralph.ErrConflict] if
// the task cannot be claimed, and says why.
func (n Needs) Claim(ctx context.Context, task int64, worker string) (*Claim, error) {
	s, err := n.Open(ctx, store.Start{Worker: worker, Lease: Lease}, task)
	if err != nil {
		return nil, err
	}
	s.clock = newClock(time.Hour, func() {})
	s.clock.pause() // a worker's time is limited by its lease
	return &Claim{s}, nil
}

// SessionID returns the id of the claim's session.
func (c *Claim) SessionID() string { return c.s.Row.ID }

// TaskID returns the id of the claimed task.
func (c *Claim) TaskID() int64 { return c.s.Row.TaskID }

// Prompt returns the worker's prompt.
func (c *Claim) Prompt() string { return c.s.prompt }

// Workspace returns the folder in which the worker has to work, and the variables for what it runs
// there.
func (c *Claim) Workspace() (dir string, env []string) {
	return c.s.Workspace.Dir, c.s.Workspace.Environ()
}

// A DroppedError says that a claim ended although its worker did not end
// it. It wraps [ralph.ErrConflict].
type DroppedError struct {
	Task  int64
	Why   string
	Where string // where what was done is, in words; "" if it is only where it was done
}

// Error says what happened and what that means for the worker.
func (e *DroppedError) Error() string {
	return fmt.Sprintf("your claim on TASK-%d is over: %s; what you did stays%s, and nothing more is recorded",
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
		request, by, err := tx.StopRequest(row.ID)
		if err != nil {
			return err
		}
		halted, err := tx.Halted(row.ID)
		switch {
		case err != nil:
			return err
		case request == "cancel":
			why = by + " cancelled the task"
		case request == "contract":
			why = by + " changed what the task asks for"
		case halted != "":
			why = halted + " stopped it"
		default:
			return tx.RenewClaim(row.ID, tx.Now().Add(Lease))
		}
		return nil
	})
	if err != nil || why == "" {
		return err
	}
	where := ""
	if lapsed {
		where = c.keep(ctx)
		c.giveBack()
	} else {
		_, err = c.end(ctx, ralph.Interrupted, "interrupted: "+why)
	}
	if err != nil {
		return err
	}
	return &DroppedError{c.TaskID(), why, where}
}

// keep keeps what is in the workspace of a claim that has lapsed, unless whoever decided on that did: another machine
// could not. where says in words where it is; "" if that is nowhere else.
func (c *Claim) keep(ctx context.Context) (where string) {
	if c.s.Workspace.Clone == nil {
		return ""
	}
	ref := ralph.Change{SessionID: c.SessionID()}.Ref()
	kept, err := c.s.repository().Ref(ctx, ref)
	if err == nil && kept == "" {
		_, _, err = c.s.Workspace.Candidate(ctx, ref, "What was made under a claim that lapsed\n")
	}
	if err != nil { // whoever takes the workspace next keeps it
		c.s.Log.Warn("cannot keep what is in a worker's workspace now", "session", c.SessionID(), "error", err)
		return ""
	}
	return " as " + ref
}

// Close is called after a closing signal. It checks a done as the loop does, and
// returns either what to tell the worker, who then goes on, or the decision on
// the task. The lease is extended by the time that the check may take (decision
// 18). The error is a [DroppedError] if the task was amended during the check.
func (c *Claim) Close(ctx context.Context) (again string, d signals.Decision, err error) {
	if err := c.extend(ctx, Lease+c.checkTime()); err != nil {
		return "", d, err
	}
	if again = c.s.turnEnded(ctx, agent.Turn{}).Text; again != "" {
		return again, d, c.extend(ctx, Lease)
	}
	request, err := store.Read(ctx, c.s.Store, func(tx *store.Tx) (request string, err error) {
		request, _, err = tx.StopRequest(c.s.Row.ID)
		return request, err
	})
	if err != nil {
		return "", d, err
	}
	if request == "contract" { // what was checked is no longer what is asked for
		return "", d, c.Renew(ctx)
	}
	if d, err = c.decide(ctx, ralph.Finished, "the worker closed it"); err != nil {
		return "", d, err
	}
	return "", d, c.merge(ctx, &d)
}

// merge merges the accepted work of a workspace and sets what has become of the task then. Nothing
// is lost if it cannot be merged now: it is in the queue.
func (c *Claim) merge(ctx context.Context, d *signals.Decision) error {
	if d.Status != ralph.Merging {
		return nil
	}
	why, err := c.s.Merge(ctx)
	if err != nil {
		c.s.Log.Warn("cannot merge a worker's change now; it stays queued", "task", c.TaskID(), "error", err)
		why = Shortly(err)
	}
	t, err := store.Read(ctx, c.s.Store, func(tx *store.Tx) (ralph.Task, error) { return tx.Task(c.TaskID()) })
	if d.Status, d.StatusReason = t.Status, t.StatusReason; t.Status == ralph.Merging {
		d.StatusReason += "; not merged yet: " + why
	}
	return err
}

// checkTime returns the longest time that checking a done may take.
func (c *Claim) checkTime() time.Duration {
	return time.Duration(len(c.s.verify.All()))*c.s.Check.Timeout + c.s.reviewTime()
}

// extend sets the lease to end that much later than now.
func (c *Claim) extend(ctx context.Context, lease time.Duration) error {
	return c.s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.RenewClaim(c.s.Row.ID, tx.Now().Add(lease)) })
}

// Heard returns people's comments since the claim, for the worker, and
// marks them as delivered; "" if there are none.
func (c *Claim) Heard(ctx context.Context) (said string, err error) {
	err = c.s.Store.Tx(ctx, func(tx *store.Tx) error {
		said = ""
		comments, err := tx.Undelivered(c.s.Row.TaskID, c.s.Row.StartedAt)
		for _, comment := range comments {
			said += "\n\n" + steering(comment)
			err = errors.Join(err, tx.MarkDelivered(comment.ID, c.s.Row.ID))
		}
		return err
	})
	return said, err
}

// Release gives the task back. No counter changes, but signals count: a
// question holds the task back, and a done is checked (decision 3).
func (c *Claim) Release(ctx context.Context) (signals.Decision, error) {
	// A client that leaves may kill its server before this is finished. The claim then lapses
	// at once and somebody else decides on it, but not while a done is being checked here.
	closing, err := c.s.closing(ctx)
	if err != nil {
		return signals.Decision{}, err
	}
	lease := time.Duration(0)
	if closing.Payload != nil && closing.Payload.Verb() == ralph.VerbDone {
		lease = c.checkTime()
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

// end decides on a claim that its worker did not close. The decision is the
// zero value if somebody else has decided or renewed the claim meanwhile.
func (c *Claim) end(ctx context.Context, how ralph.Ending, why string) (d signals.Decision, err error) {
	d, err = c.decide(ctx, how, why)
	if errors.Is(err, ralph.ErrConflict) {
		c.giveBack()
		return signals.Decision{}, nil
	}
	return d, err
}

// decide decides on the claim and gives its workspace back.
func (c *Claim) decide(ctx context.Context, how ralph.Ending, why string) (d signals.Decision, err error) {
	if d, err = c.s.Decide(ctx, ended(how, why)); err == nil {
		c.giveBack()
	}
	return d, err
}

// giveBack gives the claim's workspace back, once nobody decides on it any more. The claim is
// over, whether that succeeds or not.
func (c *Claim) giveBack() {
	lock, err := c.s.endingLock()
	if err == nil {
		err = lock.Lock()
	}
	if err = errors.Join(err, c.s.Workspace.Release(), lock.Unlock()); err != nil {
		c.s.Log.Warn("cannot give back a worker's workspace in order", "session", c.SessionID(), "error", err)
	}
}

// Lapse decides on a claim whose lease has expired. Its task goes back to the queue,
// and its signals count, but a done is judged only in the worker's own work tree.
// It also decides on a person's session whose task was cancelled or amended.
func (n Needs) Lapse(ctx context.Context, row ralph.Session) error {
	how, why := ralph.Lost, fmt.Sprintf("lost: its worker %s is gone, or has not called for %s", row.Worker, Lease)
	if row.Origin == ralph.FromHuman {
		how, why = ralph.Interrupted, "interrupted: its task was called off or amended"
	}
	s, err := n.reopen(ctx, row)
	if err != nil {
		return err
	}
	unlock, err := s.tryEnding()
	if unlock == nil {
		return err
	}
	// Its worker may have ended it before the lock was taken. Its workspace may be another session's then,
	// whose files are not to be judged as this one's.
	err = s.Store.View(ctx, func(tx *store.Tx) error { return tx.CheckLapsed(row.ID) })
	if err == nil {
		err = n.loseReviewsOf(ctx, row.TaskID)
	}
	if err == nil {
		_, err = s.Decide(ctx, ended(how, why))
	}
	if errors.Is(err, ralph.ErrConflict) { // its worker has called meanwhile
		err = nil
	}
	return errors.Join(err, unlock())
}
