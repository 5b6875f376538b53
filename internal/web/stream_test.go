package web_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// A listener reads a stream of events.
type listener struct {
	t     *testing.T
	lines *bufio.Scanner
	end   context.CancelFunc
	done  func() error
}

// A message is one event of a stream.
type message struct{ id, event, data string }

// listen connects to a stream as a browser does that has seen last.
func (s *site) listen(t *testing.T, server *httptest.Server, path, last string) *listener {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the stream is %d, %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	t.Cleanup(func() { end(); resp.Body.Close() })
	return &listener{t: t, lines: bufio.NewScanner(resp.Body), end: end, done: resp.Body.Close}
}

// next waits for the next event.
func (l *listener) next() (m message) {
	l.t.Helper()
	for l.lines.Scan() {
		switch name, value, _ := strings.Cut(l.lines.Text(), ": "); name {
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
			m.data += value
		case "":
			if m.event != "" {
				return m
			}
		}
	}
	l.t.Fatalf("the stream ended: %v", l.lines.Err())
	return m
}

func (s *site) serve(t *testing.T) *httptest.Server {
	t.Helper()
	h, err := s.server.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}

// TestAStreamGoesOnWhereItWas: nothing is lost and nothing comes twice, for events of all writers and wherever the
// connection broke.
func TestAStreamGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addTask(ralph.Task{Title: "One"})
	server := s.serve(t)
	l := s.listen(t, server, "/events?after=0", "")
	if m := l.next(); m.event != "change" || !strings.Contains(m.data, "task.created") || m.id != "1.0" {
		t.Errorf("got %+v", m)
	}
	var last string
	for i := range 5 {
		s.addTask(ralph.Task{Title: fmt.Sprint("Task ", i)})
		last = l.next().id
	}
	l.end()
	server.CloseClientConnections()
	s.addTask(ralph.Task{Title: "Meanwhile"})
	s.addTask(ralph.Task{Title: "And another"})
	again := s.listen(t, s.serve(t), "/events?after=0", last)
	for i, want := range []string{"7.0", "8.0"} {
		if m := again.next(); m.id != want || !strings.Contains(m.data, fmt.Sprintf(`"task_id":%d`, i+7)) {
			t.Errorf("got %+v, want %s", m, want)
		}
	}
}

func TestAStreamOfATaskHasNoOtherNews(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addTask(ralph.Task{Title: "One"})
	s.addTask(ralph.Task{Title: "Two"})
	l := s.listen(t, s.serve(t), "/events?after=0&task=2", "")
	if m := l.next(); !strings.Contains(m.data, `"task_id":2`) {
		t.Errorf("got %+v", m)
	}
	s.addTask(ralph.Task{Title: "Three"})
	s.write(func(tx *store.Tx) error {
		_, err := tx.AddComment(ralph.Comment{TaskID: 2, Author: "ada", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: "x"})
		return err
	})
	if m := l.next(); !strings.Contains(m.data, "task.comment.added") || !strings.Contains(m.data, `"task_id":2`) {
		t.Errorf("got %+v", m)
	}
}

// TestAStreamTellsNoTexts: only pages show the contents of events, to visitors who may see them.
func TestAStreamTellsNoTexts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.addTask(ralph.Task{Title: "between us"})
	s.start(id, session)
	s.say(id, session, signals.Done{Summary: "between us"})
	l := s.listen(t, s.serve(t), "/events?after=0", "")
	for range 4 {
		if m := l.next(); strings.Contains(m.data, "between us") {
			t.Errorf("got %+v", m)
		}
	}
}

// TestASessionIsFollowed from where its page ended, entry by entry, to its last
// line.
func TestASessionIsFollowed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.addTask(ralph.Task{Title: "One"})
	s.start(id, session)
	say := func(text string) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"content":[{"type":"text","text":%q}]}}`, text) + "\n"
	}
	s.setTranscript(say("one <b>") + say("two"))
	last, err := store.Read(t.Context(), s.db, (*store.Tx).LastEvent)
	if err != nil {
		t.Fatal(err)
	}
	from := fmt.Sprintf("/events?after=%d&session=%s", last, session)
	l := s.listen(t, s.serve(t), from+"&entry=1", "")
	if m := l.next(); m.event != "entry" || m.id != fmt.Sprintf("%d.2", last) || !strings.Contains(m.data, "<p>two</p>") {
		t.Errorf("got %+v", m)
	}
	s.setTranscript(say("one <b>") + say("two") + say("three") + `{"type":"assist`)
	if m := l.next(); m.id != fmt.Sprintf("%d.3", last) || !strings.Contains(m.data, "three") {
		t.Errorf("got %+v", m)
	}
	s.setTranscript(say("one <b>") + say("two") + say("three") + strings.TrimSuffix(say("four"), "\n"))
	s.write(func(tx *store.Tx) error {
		row, err := tx.Session(session)
		if err != nil {
			return err
		}
		facts, err := tx.Facts(session)
		if err != nil {
			return err
		}
		row.Ending, facts.Ending = ralph.Finished, ralph.Finished
		return tx.Apply(row, facts, signals.Decide(facts))
	})
	for {
		m := l.next()
		if m.event == "entry" {
			if !strings.Contains(m.data, "four") {
				t.Errorf("the last line without an end is not there: %+v", m)
			}
			break
		}
	}
	// From the beginning, the agent's words are escaped.
	again := s.listen(t, s.serve(t), from, "")
	for {
		if m := again.next(); m.event == "entry" {
			if !strings.HasSuffix(m.id, ".1") || strings.Contains(m.data, "<b>") {
				t.Errorf("got %+v", m)
			}
			break
		}
	}
}

// TestAStreamThatFellBehindMissesNothing, although events are read in parts.
func TestAStreamThatFellBehindMissesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	server := s.serve(t)
	const more = 1500
	s.write(func(tx *store.Tx) error {
		for i := range more {
			if _, err := tx.AddTask(ralph.Task{Title: fmt.Sprint("Task ", i)}, "human"); err != nil {
				return err
			}
		}
		return nil
	})
	l := s.listen(t, server, "/events?after=0", "")
	for i := range int64(more) {
		if m := l.next(); m.id != fmt.Sprintf("%d.0", i+1) {
			t.Fatalf("event %d is %+v", i+1, m)
		}
	}
}
