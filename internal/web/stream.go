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
	pollStream = 300 * time.Millisecond // how often it is looked for what a session has said
	beatStream = 15 * time.Second       // how often a silent one shows that it is there
	writeTime  = 20 * time.Second       // what a client is given to take what it is sent
)

// maxEvents is how many events are read at a time.
const maxEvents = 200

// maxStreams is how many streams there may be at once.
const maxStreams = 200

// news is what a browser is told of an event: not what it says, only that it is
// worth a look.
type news struct {
	Type    string `json:"type"`
	TaskID  int64  `json:"task_id,omitempty"`
	Session string `json:"session_id,omitempty"`
}

// A position is how far a stream has come. As a text it is the id of what is
// sent, which a browser gives back when it connects again.
type position struct{ event, entry int64 }

func (p position) String() string { return fmt.Sprintf("%d.%d", p.event, p.entry) }

// startOf is where a stream begins: behind what the browser has seen last, or where
// its page ended.
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

// stream sends what happens, in order and without a gap, until the browser leaves
// or the server ends.
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
		a.Log.Debug("stream", "error", err) // the browser has gone, or comes back and goes on
	}
}

// A subscription is one stream of news to a browser.
type subscription struct {
	app     *app
	w       http.ResponseWriter
	control *http.ResponseController
	at      position
	task    string // "" for every task
	session string // whose transcript is followed; "" for none
	over    bool   // it has ended
}

// find finds the session that is to be followed.
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
	// Browsers come back by themselves after this time.
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

// news sends what there is of it.
func (s *subscription) news(ctx context.Context) error {
	for {
		n, err := s.page(ctx)
		if err != nil || n < maxEvents {
			return err
		}
	}
}

// page sends a page of the news, and returns how much it was. It also looks whether the
// session that is followed has ended.
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
		// What an agent stands still for is on every page.
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

// maxSent is how many entries are sent at a time.
const maxSent = 100

// entries sends what the session has done since.
func (s *subscription) entries() error {
	if s.session == "" {
		return nil
	}
	j := s.app.transcripts.journal(s.session)
	all, err := j.catchUp(s.over)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has not begun to speak
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
