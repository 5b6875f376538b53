package loop

import (
	"context"
	"errors"
	"sync"
	"time"

	"ralph/loop/agent"

	"ralph"
	"ralph/internal/worktree"
	"ralph/store"
)

// pollSession is how often a running session looks for what people ask of it.
const pollSession = 200 * time.Millisecond

// watch stops the session when somebody or something asks for it, and hands
// people's comments to the agent. It returns when ctx ends.
func (s *session) watch(ctx context.Context, stop context.CancelCauseFunc, say chan<- agent.Message, deadline time.Time) {
	tick := time.NewTicker(pollSession)
	defer tick.Stop()
	end := time.NewTimer(time.Until(deadline))
	defer end.Stop()
	look := time.NewTicker(s.idle.interval())
	defer look.Stop()
	stopping := s.Stop
	var grace <-chan time.Time
	drain := func() {
		if grace == nil {
			grace = time.After(s.ShutdownGrace)
		}
	}
	handed := map[int64]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			stop(errRunLimit)
		case <-grace:
			stop(errRunStop)
		case <-stopping:
			stopping = nil
			drain()
		case <-look.C:
			idle, err := s.idle.over(ctx, time.Now(), s.clock.paused())
			if err != nil && ctx.Err() == nil {
				s.Log.Warn("it cannot be told whether the session is idle", "session", s.row.ID, "error", err)
			}
			if idle {
				stop(errIdle)
			}
		case <-s.observer.news:
			s.observed(ctx)
		case <-tick.C:
			s.beat(stepTime)
			if err := errors.Join(s.Place.Tree.Intact(), s.Store.Intact()); errors.Is(err, worktree.ErrGone) || errors.Is(err, store.ErrGone) {
				stop(err) // what the session does could not be kept
			}
			asked, comments, err := s.asked(ctx)
			s.waitsForPermission()
			s.observed(ctx)
			switch {
			case err != nil:
				// The database is busy or the session is being stopped; the next look will tell.
				continue
			case asked == ralph.ControlStop:
				drain()
			case asked == ralph.ControlStopNow:
				stop(errRunStop)
			case asked == "cancel":
				stop(errCancelled)
			case asked == "contract":
				stop(errContract)
			case asked == "halt":
				stop(errHalted)
			}
			s.hand(ctx, comments, handed, say)
		}
	}
}

// asked reads what people want of the session: that it stops, and what they said.
func (s *session) asked(ctx context.Context) (request string, comments []ralph.Comment, err error) {
	err = s.Store.View(ctx, func(tx *store.Tx) error {
		if request, _, err = tx.StopRequest(s.row.ID); err != nil {
			return err
		}
		if request == "" {
			by, err := tx.Halted(s.row.ID)
			if err != nil {
				return err
			}
			if by != "" {
				request = "halt"
			}
		}
		if request == "" {
			run, err := tx.Run(s.row.RunID)
			if err != nil {
				return err
			}
			request = run.Control
		}
		if s.permission, err = tx.AsksPermission(s.row.ID); err != nil {
			return err
		}
		comments, err = tx.Undelivered(s.row.TaskID, s.row.StartedAt)
		return err
	})
	return request, comments, err
}

// hand gives comments to the agent, each once. One that the agent does not take
// goes into the next prompt, as all comments do.
func (s *session) hand(ctx context.Context, comments []ralph.Comment, handed map[int64]bool, say chan<- agent.Message) {
	for _, c := range comments {
		if handed[c.ID] {
			continue
		}
		message := agent.Message{Text: steering(c), Delivered: func() { s.delivered(c.ID) }}
		select {
		case say <- message:
			handed[c.ID] = true
		case <-ctx.Done():
			return
		case <-time.After(pollSession):
			return // the agent is busy with another message
		}
	}
}

// delivered records that the agent has a comment. If that fails the comment is
// shown once more in the next prompt, which does no harm.
func (s *session) delivered(comment int64) {
	err := s.Store.Tx(context.Background(), func(tx *store.Tx) error { return tx.MarkDelivered(comment, s.row.ID) })
	if err != nil {
		s.Log.Warn("a delivered comment could not be marked", "comment", comment, "error", err)
	}
}

// waitsForPermission stops the session's clock while a person is asked whether it
// may use a tool (decision 18).
func (s *session) waitsForPermission() {
	switch {
	case s.permission && !s.held:
		s.clock.pause()
	case !s.permission && s.held:
		s.clock.resume()
	}
	s.held = s.permission
}

// A clock runs a session's time down, except while ralph itself takes time
// (decision 18). Each pause has its resume; it stands still until the last one.
type clock struct {
	mu    sync.Mutex
	left  time.Duration
	since time.Time
	timer *time.Timer
	holds int // pauses that have not been resumed
}

// newClock starts a clock that calls ring once when d is used up.
func newClock(d time.Duration, ring func()) *clock {
	return &clock{left: d, since: time.Now(), timer: time.AfterFunc(d, ring)}
}

func (c *clock) paused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holds > 0
}

func (c *clock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds++; c.holds == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
}

func (c *clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds--; c.holds == 0 {
		c.since = time.Now()
		c.timer.Reset(max(c.left, time.Millisecond))
	}
}
