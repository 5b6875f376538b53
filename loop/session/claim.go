package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ralph/loop/agent"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// Lease is how long a worker's claim lasts since its last call (decision 13).
const Lease = 30 * time.Minute

// A Claim is a task that a worker has taken: an agent that pulls work by itself.
// It is settled by the same rules as a session of the loop.
type Claim struct {
	s *Session
}

// Claim has a worker take a task. The error wraps [ralph.ErrConflict] if it cannot
// be taken, and says why.
func (n Needs) Claim(ctx context.Context, task int64, worker string) (*Claim, error) {
	s, err := n.Open(ctx, store.Start{Worker: worker, Lease: Lease}, task)
	if err != nil {
		return nil, err
	}
	s.clock = newClock(time.Hour, func() {})
	s.clock.pause() // a worker's time is its lease
	return &Claim{s}, nil
}

// SessionID is the session that the claim opened.
func (c *Claim) SessionID() string { return c.s.Row.ID }

// TaskID is the task.
func (c *Claim) TaskID() int64 { return c.s.Row.TaskID }

// Prompt is what the worker is told.
func (c *Claim) Prompt() string { return c.s.prompt }

// A DroppedError says that a claim is over although its worker did not end it. It
// wraps [ralph.ErrConflict].
type DroppedError struct {
	Task int64
	Why  string
}

// Error says what happened and what it means for the worker.
func (e *DroppedError) Error() string {
	return fmt.Sprintf("your claim on TASK-%d is over: %s; what you did stays, and nothing more is recorded",
		e.Task, e.Why)
}

// Unwrap is [ralph.ErrConflict].
func (e *DroppedError) Unwrap() error { return ralph.ErrConflict }

// Held renews the claim. The error is a [DroppedError] if it is over: a person has
// cancelled or amended the task meanwhile, or the lease has lapsed.
func (c *Claim) Held(ctx context.Context) error {
	why := ""
	err := c.s.Store.Tx(ctx, func(tx *store.Tx) error {
		row, err := tx.Session(c.s.Row.ID)
		if err != nil {
			return err
		}
		if !row.CompletedAt.IsZero() {
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
	if _, err := c.end(ctx, ralph.Interrupted, "interrupted: "+why); err != nil {
		return err
	}
	return &DroppedError{c.TaskID(), why}
}

// Close is called after a closing verb. It checks a done as the loop does: what it
// returns is either what is told to the worker, who goes on, or how the task was
// settled. The lease lasts for the time that the check may take (decision 18). The
// error is a [DroppedError] if the task was amended during the check.
func (c *Claim) Close(ctx context.Context) (again string, d signals.Decision, err error) {
	if err := c.renew(ctx, Lease+c.checkTime()); err != nil {
		return "", d, err
	}
	// A worker's agent is not ralph's to hold: it may go on while it is checked.
	if again = c.s.turnEnded(ctx, agent.Turn{}).Text; again != "" {
		return again, d, c.renew(ctx, Lease)
	}
	request, err := store.Read(ctx, c.s.Store, func(tx *store.Tx) (request string, err error) {
		request, _, err = tx.StopRequest(c.s.Row.ID)
		return request, err
	})
	if err != nil {
		return "", d, err
	}
	if request == "contract" { // what was checked is not what is asked for any more
		return "", d, c.Held(ctx)
	}
	d, err = c.s.Settle(ctx, ended(ralph.Finished, "the worker closed it"))
	return "", d, err
}

// checkTime is what checking a done may take.
func (c *Claim) checkTime() time.Duration {
	return time.Duration(len(c.s.verify.All())) * c.s.Check.Timeout
}

// renew has the lease end that much later than now.
func (c *Claim) renew(ctx context.Context, lease time.Duration) error {
	return c.s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.RenewClaim(c.s.Row.ID, tx.Now().Add(lease)) })
}

// Heard is what people have said on the task since it was claimed, for the worker,
// who has it then; "" for nothing.
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

// Release gives the task back. No counter moves, but what was said counts: a
// question holds the task back, and a done is checked (decision 3).
func (c *Claim) Release(ctx context.Context) (signals.Decision, error) {
	// A client that leaves may kill its server before this is done. The claim lapses
	// at once then, and whoever looks next settles it; but nobody else judges a done
	// while it is checked here.
	closing, err := c.s.closing(ctx)
	if err != nil {
		return signals.Decision{}, err
	}
	lease := time.Duration(0)
	if closing.Payload != nil && closing.Payload.Verb() == ralph.VerbDone {
		lease = c.checkTime()
	}
	if err := c.renew(ctx, lease); err != nil {
		return signals.Decision{}, err
	}
	return c.end(ctx, ralph.Interrupted, "interrupted: its worker gave the task back")
}

// end settles a claim that its worker did not close; the decision is the zero value
// if somebody else has settled or renewed it meanwhile.
func (c *Claim) end(ctx context.Context, how ralph.Ending, why string) (d signals.Decision, err error) {
	d, err = c.s.Settle(ctx, ended(how, why))
	if errors.Is(err, ralph.ErrConflict) {
		return signals.Decision{}, nil
	}
	return d, err
}

// Lapse settles a claim whose lease has run out: its task goes back to the queue, and
// what was signalled counts; but a done is judged only where its worker had its work
// tree. What a person works on ends so when it was called off or amended.
func (n Needs) Lapse(ctx context.Context, row ralph.Session) error {
	how, why := ralph.Lost, fmt.Sprintf("lost: its worker %s is gone, or has not called for %s", row.Worker, Lease)
	if row.Origin == ralph.FromHuman {
		how, why = ralph.Interrupted, "interrupted: its task was called off or amended"
	}
	s, err := n.reopen(ctx, row)
	if err != nil {
		return err
	}
	_, err = (&Claim{s}).end(ctx, how, why)
	return err
}
