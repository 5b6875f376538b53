package follow

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/internal/words"
	"ralph/store"
)

// Chats follows the reports of people's chats.
type Chats struct {
	Store *store.DB
	Out   io.Writer
	JSON  bool
	Task  int64 // 0 for all claimed ones
	// Context says how full a chat's context is, in percent; nil if it is not known.
	Context func(*store.Tx, ralph.Session) (*float64, error)

	after   int64 // the last event seen
	watched map[string]bool
}

// Follow prints the chats' reports until no task is claimed any more or ctx ends. While the database's server is away
// it waits. The error wraps [ralph.ErrConflict] if none is claimed at first.
func (w *Chats) Follow(ctx context.Context) error {
	w.watched = map[string]bool{}
	begin := func(tx *store.Tx) (err error) {
		if w.after, err = tx.LastEvent(); err != nil {
			return err
		}
		claims, err := w.claims(tx)
		if err != nil {
			return err
		}
		for _, s := range claims {
			if err := w.introduce(tx, s); err != nil {
				return err
			}
		}
		if len(claims) == 0 {
			return ralph.Conflict("no active session; claim a task with `ralph chat claim`")
		}
		return nil
	}
	changed := w.Store.Changed()
	if err := w.Store.View(ctx, begin); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		changed = w.Store.Changed()
		over, err := w.poll(ctx)
		switch {
		case ctx.Err() != nil && (over || err != nil):
			return nil
		case err != nil && !away(w.Store, err), err == nil && over:
			return err
		}
	}
}

// claims returns the sessions that are followed.
func (w *Chats) claims(tx *store.Tx) ([]ralph.Session, error) {
	if w.Task == 0 {
		return tx.ClaimsOfPeople()
	}
	s, err := tx.ClaimOfPerson(w.Task)
	return []ralph.Session{s}, err
}

func (w *Chats) introduce(tx *store.Tx, s ralph.Session) error {
	w.watched[s.ID] = true
	if w.JSON {
		return nil
	}
	t, err := tx.Task(s.TaskID)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.Out, "TASK-%d %s, claimed %s by %s\n",
		t.ID, text.Line(t.Title, 100), s.StartedAt.Local().Format("15:04:05"), s.Worker)
	if s.Progress != nil {
		at := s.Progress.Timestamp.Local().Format("15:04:05")
		_, err = fmt.Fprintf(w.Out, "%s  %s\n", at, words.Progress(*s.Progress))
	}
	return err
}

// poll prints new events; over reports that nothing is left to follow.
func (w *Chats) poll(ctx context.Context) (over bool, err error) {
	for e, err := range w.Store.EventsAfter(ctx, w.after) {
		if err != nil {
			return false, err
		}
		if err := w.Store.View(ctx, func(tx *store.Tx) error { return w.show(tx, e) }); err != nil {
			return false, err
		}
		w.after = e.ID
	}
	err = w.Store.View(ctx, func(tx *store.Tx) error {
		claims, err := tx.ClaimsOfPeople()
		over = true
		for _, s := range claims {
			over = over && w.Task != 0 && s.TaskID != w.Task
		}
		return err
	})
	return over, err
}

func (w *Chats) show(tx *store.Tx, e ralph.Event) error {
	if e.Type == ralph.EventType(ralph.SessionStarted{}) && w.Task == 0 {
		s, err := tx.Session(e.SessionID)
		if err != nil || s.Origin != ralph.FromHuman {
			return err
		}
		return w.introduce(tx, s)
	}
	if !w.watched[e.SessionID] {
		return nil
	}
	if w.JSON {
		return json.NewEncoder(text.Escaping(w.Out)).Encode(e)
	}
	line, err := w.line(tx, e)
	if err != nil || line == "" {
		return err
	}
	if w.Task == 0 && len(w.watched) > 1 {
		line = fmt.Sprintf("TASK-%d  %s", e.TaskID, line)
	}
	_, err = fmt.Fprintf(w.Out, "%s  %s\n", e.Created.Local().Format("15:04:05"), line)
	return err
}

// line formats an event of a chat for people; "" for events that do not matter.
func (w *Chats) line(tx *store.Tx, e ralph.Event) (string, error) {
	line := words.Chat(e, time.Now())
	if e.Type != ralph.EventType(ralph.SessionProgressed{}) {
		return line, nil
	}
	s, err := tx.Session(e.SessionID)
	if err != nil {
		return "", err
	}
	if percent, err := w.Context(tx, s); err == nil && percent != nil {
		line += fmt.Sprintf("  (context %.0f %% full)", *percent)
	}
	return line, nil
}
