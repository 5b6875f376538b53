// Package follow prints things as they happen: events, a run's plan, progress and end, the reports of people's chats,
// the transcript of a session.
package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"ralph"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/internal/words"
	"ralph/store"
)

// poll is the interval at which a follower checks whether its output is still read.
const poll = 200 * time.Millisecond

// Events prints events, one line each.
type Events struct {
	Store  *store.DB
	Out    io.Writer
	Screen term.Screen // Out's
	JSON   bool
	After  int64    // the last event seen
	Types  []string // only these types; all if empty
	Task   int64    // only this task; 0 for all

	// Over reports whether no more events follow; nil means never.
	Over func(ctx context.Context) (bool, error)
}

// Print prints the existing events.
func (r *Events) Print(ctx context.Context) error {
	for e, err := range r.Store.EventsAfter(ctx, r.After) {
		if err != nil {
			return err
		}
		r.After = e.ID
		if err := r.one(e); err != nil {
			return err
		}
	}
	return nil
}

// away reports whether an error is that of a database's server that is away. Followers wait for the server.
func away(db *store.DB, err error) bool { return db.Shared() && store.Passes(err) }

// Follow prints events as they come. It returns when ctx ends, when the events are over, or when its output's
// reader has gone, which is not an error. While the database's server is away it waits.
func (r *Events) Follow(ctx context.Context) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		changed := r.Store.Changed()
		over, err := r.over(ctx) // before the read of earlier events
		if err == nil {
			err = r.Print(ctx)
		}
		if err != nil && ctx.Err() != nil && (errors.Is(err, context.Canceled) || away(r.Store, err)) {
			return nil
		}
		if err != nil && !away(r.Store, err) {
			return err
		}
		if over && err == nil {
			return nil
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
				waiting = false
			case <-tick.C:
				if readerGone(r.Out) {
					return nil
				}
				if over, err := r.over(ctx); over || err != nil { // a run that was killed writes nothing
					waiting = false
				}
			}
		}
	}
}

func (r *Events) over(ctx context.Context) (bool, error) {
	if r.Over == nil {
		return false, nil
	}
	return r.Over(ctx)
}

func (r *Events) one(e ralph.Event) error {
	if r.Task != 0 && e.TaskID != r.Task || len(r.Types) > 0 && !slices.Contains(r.Types, e.Type) {
		return nil
	}
	if r.JSON {
		return json.NewEncoder(text.Escaping(r.Out)).Encode(e)
	}
	at := e.Created.Local().Format("2006-01-02 15:04:05")
	_, err := fmt.Fprintln(r.Out, r.Screen.Fit(fmt.Sprintf("%6d  %s  %s", e.ID, at, words.Listed(e, time.Now()))))
	return err
}
