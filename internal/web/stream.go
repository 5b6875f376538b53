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
	"ralph/internal/transcript"
	"ralph/store"
)

// Times of a stream.
const (
	pollStream = 300 * time.Millisecond // interval of checks for new transcript entries
	beatStream = 15 * time.Second       // interval of heartbeats
	writeTime  = 20 * time.Second       // time limit for a client to accept data
	lookTime   = 5 * time.Second        // how long the database's server may be unreachable before a page says so
)

// maxEvents is the number of events read at a time.
const maxEvents = 200

// maxStreams is the maximum number of open streams.
const maxStreams = 200

// A news tells a browser of an event, so that it reloads, but not of its content.
type news struct {
	id      int64
	Type    string `json:"type"`
	TaskID  int64  `json:"task_id,omitempty"`
	Session string `json:"session_id,omitempty"`
}

// events returns at most maxEvents events after an id, oldest first.
func (a *app) events(ctx context.Context, after int64) (list []news, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	since := func(tx *store.Tx) ([]ralph.Event, error) { return tx.Events(after, maxEvents) }
	events, err := store.Read(ctx, a.Store, since)
	for _, e := range events {
		list = append(list, news{e.ID, e.Type, e.TaskID, e.SessionID})
	}
	return list, err
}

// A position is the progress of a stream. Its text is the id of a message, which the browser sends
// when it reconnects.
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
	err := s.find(r)
	if err == nil { // pages are not live while the database is unreachable
		_, err = a.events(r.Context(), s.at.event)
	}
	if err != nil {
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
	limited, cancel := context.WithTimeout(r.Context(), lookTime)
	defer cancel()
	return s.app.Store.View(limited, func(tx *store.Tx) error {
		session, err := tx.Session(id)
		s.session, s.over = session.ID, !session.CompletedAt.IsZero()
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
			var err error
			if changed, err = s.news(ctx); err != nil {
				return err
			}
		}
		if err := s.entries(); err != nil {
			return err
		}
		if s.over {
			tick = nil // its transcript has ended
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

// news sends all new events, and returns a channel that is closed when there may be more.
func (s *subscription) news(ctx context.Context) (<-chan struct{}, error) {
	for {
		changed := s.app.Store.Changed() // taken before reading, so that no change is missed
		list, err := s.app.events(ctx, s.at.event)
		if err != nil {
			return nil, err
		}
		for _, n := range list {
			if err := s.tell(n); err != nil {
				return nil, err
			}
		}
		if len(list) < maxEvents {
			return changed, nil
		}
	}
}

// tell sends an event if it concerns the page. It also notices the end of the followed session.
func (s *subscription) tell(n news) error {
	s.at.event = n.id
	ended := n.Type == ralph.EventType(ralph.SessionEnded{})
	s.over = s.over || ended && n.Session == s.session
	// Every page shows the permissions that agents wait for.
	everywhere := ended || n.Type == ralph.EventType(ralph.PermissionAsked{}) ||
		n.Type == ralph.EventType(ralph.PermissionDecided{})
	if s.task != "" && s.task != strconv.FormatInt(n.TaskID, 10) && !everywhere {
		return nil
	}
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return s.send(fmt.Sprintf("id: %s\nevent: change\ndata: %s\n\n", s.at, data))
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
		return nil // it has no transcript yet
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
			data, err := s.app.entryText(e)
			if err != nil {
				return err
			}
			s.at.entry++
			if err := s.send(fmt.Sprintf("id: %s\nevent: entry\ndata: %s\n\n", s.at, data)); err != nil {
				return err
			}
		}
	}
	return nil
}

// entryText returns an entry as the data of a message.
func (a *app) entryText(e transcript.Entry) (string, error) {
	var b bytes.Buffer
	if err := a.pages.templates.ExecuteTemplate(&b, "entry", newEntry(e)); err != nil {
		return "", err
	}
	return strings.NewReplacer("\r", "", "\n", "\ndata: ").Replace(strings.TrimSpace(b.String())), nil
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
