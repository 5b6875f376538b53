package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/store"
)

// Times of a stream.
const (
	pollStream = 300 * time.Millisecond // interval of checks for new transcript entries
	beatStream = 15 * time.Second       // interval of heartbeats
	writeTime  = 20 * time.Second       // time limit for a client to accept data
)

// maxEvents is the number of events read at a time.
const maxEvents = 200

// maxStreams is the maximum number of open streams.
const maxStreams = 200

// news tells a browser that an event happened, so that it reloads, but not its content.
type news struct {
	Type    string `json:"type"`
	TaskID  int64  `json:"task_id,omitempty"`
	Session string `json:"session_id,omitempty"`
}

// A position is the progress of a stream. Its text is the id of a message, which the browser sends
// back when it reconnects.
type position struct{ event, entry int64 }

func (p position) String() string { return fmt.Sprintf("%d.%d", p.event, p.entry) }

// startOf returns where a stream starts: after the last message that the browser has seen, or after
// the content of its page.
func startOf(r *http.Request) (p position) {
	q := r.URL.Query()
	p.event, _ = strconv.ParseInt(q.Get("after"), 10, 64)
	p.entry, _ = strconv.ParseInt(q.Get("entry"), 10, 64)
	var last position
	if n, err := fmt.Sscanf(r.Header.Get("Last-Event-ID"), "%d.%d", &last.event, &last.entry); err == nil && n == 2 {
		p = last
	}
	return position{max(0, p.event), max(0, p.entry)}
}

// stream sends updates, in order and without gaps, until the browser leaves or the server ends.
func (a *app) stream(w http.ResponseWriter, r *http.Request) {
	if a.streams.Add(1) > maxStreams {
		a.streams.Add(-1)
		http.Error(w, "Too many pages are open.", http.StatusServiceUnavailable)
		return
	}
	defer a.streams.Add(-1)
	s := &subscription{
		app: a, w: w, control: http.NewResponseController(w),
		at: startOf(r), task: r.URL.Query().Get("task"),
	}
	if err := s.find(r); err != nil {
		a.fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	if err := s.run(r.Context()); err != nil && r.Context().Err() == nil {
		a.Log.Debug("stream", "error", err) // the browser has gone, or will reconnect and continue
	}
}

// A subscription is one stream to a browser.
type subscription struct {
	app     *app
	w       http.ResponseWriter
	control *http.ResponseController
	at      position
	task    string // "" for all tasks
	session string // its transcript is followed; "" for none
	over    bool   // the session has ended
}

// find finds the session to follow.
func (s *subscription) find(r *http.Request) error {
	id := r.URL.Query().Get("session")
	if id == "" {
		return nil
	}
	return s.app.Store.View(r.Context(), func(tx *store.Tx) error {
		session, err := tx.Session(id)
		s.session = session.ID
		return err
	})
}

func (s *subscription) run(ctx context.Context) error {
	// Browsers reconnect by themselves after this time.
	if err := s.send("retry: 1000\n\n"); err != nil {
		return err
	}
	beat := time.NewTicker(beatStream)
	defer beat.Stop()
	var tick <-chan time.Time
	if s.session != "" {
		ticker := time.NewTicker(pollStream)
		defer ticker.Stop()
		tick = ticker.C
	}
	var changed <-chan struct{}
	for {
		if changed == nil {
			changed = s.app.Store.Changed()
			if err := s.news(ctx); err != nil {
				return err
			}
		}
		if err := s.entries(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			changed = nil
		case <-tick:
		case <-beat.C:
			if err := s.send(": still here\n\n"); err != nil {
				return err
			}
		}
	}
}

// news sends all new events.
func (s *subscription) news(ctx context.Context) error {
	for {
		n, err := s.page(ctx)
		if err != nil || n < maxEvents {
			return err
		}
	}
}

// page sends a batch of events and returns its size. It also checks whether the followed session
// has ended.
func (s *subscription) page(ctx context.Context) (int, error) {
	var events []ralph.Event
	if err := s.app.Store.View(ctx, func(tx *store.Tx) (err error) {
		if s.session != "" {
			row, err := tx.Session(s.session)
			if err != nil {
				return err
			}
			s.over = !row.CompletedAt.IsZero()
		}
		events, err = tx.Events(s.at.event, maxEvents)
		return err
	}); err != nil {
		return 0, err
	}
	for _, e := range events {
		s.at.event = e.ID
		// Every page shows the permissions that agents wait for.
		everywhere := e.Type == ralph.EventPermissionAsked || e.Type == ralph.EventPermissionDecided ||
			e.Type == ralph.EventSessionEnded
		if s.task != "" && s.task != strconv.FormatInt(e.TaskID, 10) && !everywhere {
			continue
		}
		data, err := json.Marshal(news{e.Type, e.TaskID, e.SessionID})
		if err != nil {
			return 0, err
		}
		if err := s.send(fmt.Sprintf("id: %s\nevent: change\ndata: %s\n\n", s.at, data)); err != nil {
			return 0, err
		}
	}
	return len(events), nil
}

// maxSent is the number of entries sent at a time.
const maxSent = 100

// entries sends the new entries of the transcript.
func (s *subscription) entries() error {
	if s.session == "" {
		return nil
	}
	j := s.app.transcripts.journal(s.session)
	all, err := j.catchUp(s.over)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has not said anything yet
	}
	if err != nil {
		return err
	}
	for s.at.entry < int64(all) {
		list, err := j.part(int(s.at.entry), maxSent)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, e := range list {
			var b bytes.Buffer
			if err := s.app.pages.byName["session"].ExecuteTemplate(&b, "entry", newEntry(e)); err != nil {
				return err
			}
			s.at.entry++
			data := strings.NewReplacer("\r", "", "\n", "\ndata: ").Replace(strings.TrimSpace(b.String()))
			if err := s.send(fmt.Sprintf("id: %s\nevent: entry\ndata: %s\n\n", s.at, data)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *subscription) send(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
