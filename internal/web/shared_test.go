package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ralph"
	"ralph/internal/web"
	"ralph/store"
)

// newCountedSite is a dashboard whose database tells each rendering of a page, by a statement that each makes once.
func newCountedSite(t *testing.T, rendering func()) *site {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ralph.db"), store.Options{Statement: func(query string) {
		if strings.Contains(query, "max(id), 0) FROM events") {
			rendering()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s := newSite(t)
	s.db, s.server.Store = db, db
	return s
}

// TestAPageIsRenderedOnceForAll who look at it: 200 browsers that are told of a change all ask for the page, and get
// it with the change.
func TestAPageIsRenderedOnceForAll(t *testing.T) {
	t.Parallel()
	const browsers, changes = 200, 5
	var renderings atomic.Int64
	s := newCountedSite(t, func() { renderings.Add(1) })
	server := s.serve(t)
	server.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = browsers
	s.addTask(ralph.Task{Title: "The first"})
	var listeners []*listener
	for range browsers {
		listeners = append(listeners, s.listen(t, server, "/events?after=1", ""))
	}
	begin := time.Now()
	for i := range changes {
		title := fmt.Sprintf("Change number %d", i)
		s.addTask(ralph.Task{Title: title})
		var all sync.WaitGroup
		for _, l := range listeners {
			l.next()
			all.Go(func() {
				resp, err := server.Client().Get(server.URL + "/tasks")
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if page, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(page), title) {
					t.Errorf("the page lacks %q: %v", title, err)
				}
			})
		}
		all.Wait()
	}
	// One for each change, and one for each time that it has become old meanwhile.
	most := int64(changes + 1 + time.Since(begin)/web.SharedFor)
	if n := renderings.Load(); n > most {
		t.Errorf("%d renderings for %d changes of a page that %d browsers show; at most %d are needed", n, changes, browsers, most)
	}
}

// TestWhatIsAVisitorsOwnIsNotShared: the proof of their forms and what came of these.
func TestWhatIsAVisitorsOwnIsNotShared(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addTask(ralph.Task{Title: "One"})
	ada := s.browser().signIn()
	bob := s.browser()
	bob.handler = ada.handler
	if page := bob.get("/tasks"); hidden.MatchString(page) {
		t.Error("who is not signed in has forms")
	}
	ada.get("/tasks")
	bob.signIn()
	proof := func(b *browser) string { return hidden.FindStringSubmatch(b.get("/tasks"))[1] }
	if a, b := proof(ada), proof(bob); a == b {
		t.Error("two visitors have the same proof in their forms")
	}
	ada.post("/tasks/1/comment", "text", "A word")
	if said := regexp.MustCompile(`class="flash"`); said.MatchString(bob.get("/")) || !said.MatchString(ada.get("/")) {
		t.Error("what came of a form is said to somebody else")
	}
	bob.done("/tasks/1/comment", "text", "Another word")
}

// TestOneWhoLeavesHoldsNobodyUp: the browser for which a page is being rendered goes away, and who waits for the same
// page gets it.
func TestOneWhoLeavesHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := newCountedSite(t, func() { once.Do(func() { close(begun); <-goOn }) })
	b := s.browser()
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		r.Host, r.RemoteAddr = b.host, b.remote
		b.handler.ServeHTTP(httptest.NewRecorder(), r)
	})
	<-begun
	for range 5 {
		all.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Host, r.RemoteAddr = b.host, b.remote
			w := httptest.NewRecorder()
			if b.handler.ServeHTTP(w, r); w.Code != http.StatusOK {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
		})
	}
	leave()
	close(goOn)
	all.Wait()
}

// A stuckWriter is a browser that does not read.
type stuckWriter struct {
	*httptest.ResponseRecorder
	stuck, free chan struct{}
}

func (w *stuckWriter) Write(p []byte) (int, error) { return w.WriteString(string(p)) }
func (w *stuckWriter) WriteString(p string) (int, error) {
	close(w.stuck)
	<-w.free
	return len(p), nil
}

// TestASlowReaderHoldsNobodyUp: a browser that does not read its page keeps it from nobody else.
func TestASlowReaderHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser()
	slow := &stuckWriter{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	var all sync.WaitGroup
	all.Go(func() {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Host, r.RemoteAddr = b.host, b.remote
		b.handler.ServeHTTP(slow, r)
	})
	<-slow.stuck
	b.get("/")
	s.addTask(ralph.Task{Title: "Meanwhile"})
	has(t, b.get("/"), "Meanwhile")
	close(slow.free)
	all.Wait()
}

// TestADatabaseThatComesBackIsShownAgain: that it was gone is said, and not kept.
func TestADatabaseThatComesBackIsShownAgain(t *testing.T) {
	t.Parallel()
	s := newCountedSite(t, func() {})
	b := s.browser()
	has(t, b.get("/tasks"), "<h1")
	away := s.db.Path() + ".away"
	if err := os.Rename(s.db.Path(), away); err != nil {
		t.Fatal(err)
	}
	if w := b.send(http.MethodGet, "/tasks", nil); w.Code != http.StatusInternalServerError {
		t.Errorf("%d while the database is gone:\n%s", w.Code, w.Body)
	}
	if err := os.Rename(away, s.db.Path()); err != nil {
		t.Fatal(err)
	}
	has(t, b.get("/tasks"), "<h1")
}
