package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"ralph"
	"ralph/internal/worktree"
	"ralph/loop/agent"
	"ralph/loop/workspace"
	"ralph/store"
)

// pollSession is how often a running session is checked: whether its place still exists, its phase, and whether its
// agent accepts a message.
const pollSession = 200 * time.Millisecond

// watch stops the session on request, and passes people's comments to the agent. It returns when ctx ends.
func (s *Session) watch(
	ctx context.Context, stop context.CancelCauseFunc, say chan<- agent.Message, gauge *workspace.Gauge,
) {
	tick := time.NewTicker(pollSession)
	defer tick.Stop()
	var end <-chan time.Time // nil without a run: for workers, and for sessions of lost runs
	if !s.Limits.Deadline.IsZero() {
		timer := time.NewTimer(time.Until(s.Limits.Deadline))
		defer timer.Stop()
		end = timer.C
	}
	idles := time.NewTicker(s.idle.interval())
	defer idles.Stop()
	stopping := s.Stop
	var grace <-chan time.Time
	drain := func() {
		if grace == nil {
			grace = time.After(s.Limits.Grace)
		}
	}
	handed := map[int64]bool{}
	s.noticedAt = time.Now() // its prompt is up to date
	var asked wish
	var changed <-chan struct{} // nil: read people's requests
	for {
		select {
		case <-ctx.Done():
			return
		case <-end:
			stop(runLimit)
		case <-grace:
			stop(runStop)
		case <-stopping:
			stopping = nil
			drain()
		case <-idles.C:
			idle, err := s.idle.over(ctx, time.Now(), s.clock.paused())
			if err != nil && ctx.Err() == nil {
				s.Log.Warn("cannot tell whether the session is idle", "session", s.Row.ID, "error", err)
			}
			if idle {
				stop(spent{wasIdle, s.Limits.Idle})
			}
		case <-s.observer.news:
			s.observed(ctx)
		case <-changed:
			changed = nil
		case <-tick.C:
			s.takes(0)
			err := errors.Join(s.Workspace.Tree.Intact(), s.Store.Intact())
			if errors.Is(err, worktree.ErrGone) || errors.Is(err, store.ErrGone) {
				stop(err) // the session's results could not be stored
			}
			if gauge.Over() {
				stop(filled)
			}
			s.observed(ctx)
			s.hand(ctx, asked.comments, handed, say)
		}
		if changed != nil {
			continue
		}
		changed = s.Store.Changed()
		var err error
		if asked, err = s.asked(ctx); err != nil {
			changed = nil // the database is busy or the session is being stopped: look again at the next tick
			continue
		}
		s.waitsForPermission(asked.Asks)
		if asked.Request == ralph.ControlStop {
			drain()
		} else if stopping != nil { // people want the run to continue
			grace = nil
		}
		if cause, ok := requests[asked.Request]; ok {
			stop(cause)
		}
		s.hand(ctx, asked.comments, handed, say)
		s.tell(ctx, say)
	}
}

// A wish holds people's requests to a session, with the undelivered comments.
type wish struct {
	store.Wish
	comments []ralph.Comment
}

// asked reads people's requests to the session.
func (s *Session) asked(ctx context.Context) (wish, error) {
	return store.Read(ctx, s.Store, func(tx *store.Tx) (w wish, err error) {
		w.Wish, err = tx.Wish(s.Row.ID)
		if err == nil && w.Comments && s.desk == nil { // comments are for the worker on the task
			w.comments, err = tx.Undelivered(s.Row.TaskID, s.Row.StartedAt)
		}
		return w, err
	})
}

// hand passes comments to the agent, each once. The next prompt shows comments that the agent does not take, as it
// shows all comments.
func (s *Session) hand(ctx context.Context, comments []ralph.Comment, handed map[int64]bool, say chan<- agent.Message) {
	for _, c := range comments {
		if handed[c.ID] {
			continue
		}
		message := agent.Message{Text: steering(c), Delivered: func() { s.delivered(c.ID) }}
		if !s.send(ctx, message, say) {
			return
		}
		handed[c.ID] = true
	}
}

// delivered records that the agent has a comment. If that fails, the next prompt shows it again, which does no harm.
func (s *Session) delivered(comment int64) {
	err := s.Store.Tx(context.Background(), func(tx *store.Tx) error { return tx.MarkDelivered(comment, s.Row.ID) })
	if err != nil {
		s.Log.Warn("cannot mark a comment as delivered", "comment", comment, "error", err)
	}
}

// waitsForPermission stops the session's clock while a person is asked for a permission (decision 18).
func (s *Session) waitsForPermission(asked bool) {
	switch {
	case asked && !s.asking:
		s.clock.pause()
	case !asked && s.asking:
		s.clock.resume()
	}
	s.asking = asked
}

// A clock counts a session's time down, except while ralph itself works (decision 18). Pauses nest: the clock continues
// after the last resume. A nil clock counts nothing: a lease limits a worker's time.
type clock struct {
	mu     sync.Mutex
	left   time.Duration
	since  time.Time
	timer  *time.Timer
	pauses int // pauses that have not been resumed
}

// newClock starts a clock that calls ring once d is used up.
func newClock(d time.Duration, ring func()) *clock {
	return &clock{left: d, since: time.Now(), timer: time.AfterFunc(d, ring)}
}

func (c *clock) paused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pauses > 0
}

func (c *clock) pause() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses++; c.pauses == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
}

func (c *clock) resume() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses--; c.pauses == 0 {
		c.since = time.Now()
		c.timer.Reset(max(c.left, time.Millisecond))
	}
}
