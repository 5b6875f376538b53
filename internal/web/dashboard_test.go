package web_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/internal/web"
	"ralph/loop/agent/claude"
	"ralph/signals"
	"ralph/store"
)

const token = "a-token-of-twenty-and-more-characters"

// A site is a dashboard of a project with a database of its own.
type site struct {
	t      testing.TB
	db     *store.DB
	server *web.Server
	mu     sync.Mutex
	files  map[string]string // of sessions, as "session/transcript"
	log    *bytes.Buffer
	undone []string // what was asked to be taken back
}

func newSite(t testing.TB) *site {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s := &site{t: t, db: db, files: map[string]string{}, log: &bytes.Buffer{}}
	s.server = &web.Server{
		Store: db, Project: "calc", Person: "ada", Version: "test", Token: token,
		Limits: ralph.Limits{MaxSessions: 10, MaxSeconds: 3600, MaxCostUSD: 5, MaxDayCostUSD: 20, MaxMonthCostUSD: 20},
		Log:    slog.New(slog.NewTextHandler(s.log, nil)),
		Reader: claude.NewReader,
		Undo: func(_ context.Context, task int64, to ralph.Status, why string, byAgent bool) (string, error) {
			s.undone = append(s.undone, fmt.Sprintf("%d %s %q %t", task, to, why, byAgent))
			return fmt.Sprintf("TASK-%d will be undone.", task), nil
		},
		Control: func(ctx context.Context, what string) error {
			return db.Tx(ctx, func(tx *store.Tx) error { return tx.Control(what) })
		},
		Open: func(session string, file web.SessionFile) (io.ReadCloser, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			text, ok := s.files[session+"/"+string(file)]
			if !ok {
				return nil, fs.ErrNotExist
			}
			return io.NopCloser(strings.NewReader(text)), nil
		},
	}
	return s
}

// write changes the database.
func (s *site) write(f func(tx *store.Tx) error) {
	s.t.Helper()
	if err := s.db.Tx(s.t.Context(), f); err != nil {
		s.t.Fatal(err)
	}
}

// addTask adds a task.
func (s *site) addTask(t ralph.Task) (id int64) {
	s.t.Helper()
	s.write(func(tx *store.Tx) (err error) { id, err = tx.AddTask(t, "human"); return err })
	return id
}

// start has a session work on a task.
func (s *site) start(task int64, id string) {
	s.t.Helper()
	s.write(func(tx *store.Tx) error {
		_, err := tx.StartSession(store.Start{ID: id, Task: task, Model: "opus", Snapshot: struct{}{}, Hashes: struct{}{}})
		return err
	})
}

// say gives a signal of a session.
func (s *site) say(task int64, session string, p signals.Payload) int64 {
	s.t.Helper()
	id, err := s.db.Say(s.t.Context(), task, session, "backend", p)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// A browser keeps cookies and follows no redirect by itself.
type browser struct {
	*site
	handler http.Handler
	cookies map[string]string
	header  http.Header
	host    string
	remote  string
}

func (s *site) browser() *browser {
	s.t.Helper()
	h, err := s.server.Handler()
	if err != nil {
		s.t.Fatal(err)
	}
	return &browser{site: s, handler: h, cookies: map[string]string{}, header: http.Header{"Accept": {"text/html"}}, host: "127.0.0.1:7474", remote: "127.0.0.1:50000"}
}

func (b *browser) send(method, path string, form url.Values) *httptest.ResponseRecorder {
	b.t.Helper()
	r := httptest.NewRequestWithContext(b.t.Context(), method, path, strings.NewReader(form.Encode()))
	for name, values := range b.header {
		r.Header[name] = values
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Host, r.RemoteAddr = b.host, b.remote
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		b.cookies[c.Name] = c.Value
	}
	return w
}

func (b *browser) get(path string) string {
	b.t.Helper()
	w := b.send(http.MethodGet, path, nil)
	if w.Code != http.StatusOK {
		b.t.Fatalf("GET %s: %d\n%s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

// inbox returns the inbox with all of its items whole.
func (b *browser) inbox() string {
	b.t.Helper()
	page := b.get("/inbox")
	all, _, _ := strings.Cut(page, `id="pane"`)
	for _, link := range regexp.MustCompile(`href="(/inbox\?item=[^"]+)"`).FindAllStringSubmatch(all, -1) {
		_, whole, _ := strings.Cut(b.get(link[1]), `id="pane"`)
		whole, _, _ = strings.Cut(whole, "</section>")
		all += whole
	}
	return all
}

func (b *browser) signIn() *browser {
	b.t.Helper()
	if w := b.send(http.MethodPost, "/sign-in", url.Values{"token": {token}, "next": {"/inbox"}}); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/inbox" {
		b.t.Fatalf("sign in: %d to %q\n%s", w.Code, w.Header().Get("Location"), w.Body)
	}
	return b
}

var hidden = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// post sends a form as its page has it.
func (b *browser) post(path string, fields ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	m := hidden.FindStringSubmatch(b.get("/"))
	if m == nil {
		b.t.Fatal("the page has no form")
	}
	form := url.Values{"csrf": {m[1]}, "back": {"/"}}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return b.send(http.MethodPost, path, form)
}

// done sends a form that has to be accepted, and returns the text of the next page.
func (b *browser) done(path string, fields ...string) string {
	b.t.Helper()
	if w := b.post(path, fields...); w.Code != http.StatusSeeOther {
		b.t.Fatalf("POST %s: %d\n%s", path, w.Code, w.Body)
	}
	m := regexp.MustCompile(`(?s)<p class="flash" role="status"[^>]*>(.*?)</p>`).FindStringSubmatch(b.get("/"))
	if m == nil {
		b.t.Fatal("the next page does not say what was done")
	}
	return m[1]
}

func (s *site) taskNow(id int64) (t ralph.Task) {
	s.t.Helper()
	if err := s.db.View(s.t.Context(), func(tx *store.Tx) (err error) { t, err = tx.Task(id); return err }); err != nil {
		s.t.Fatal(err)
	}
	return t
}

func (s *site) commentNow(id int64) (c ralph.Comment) {
	s.t.Helper()
	if err := s.db.View(s.t.Context(), func(tx *store.Tx) (err error) { c, err = tx.Comment(id); return err }); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// has fails unless a page has all of these.
func has(t *testing.T, page string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(page, w) {
			t.Errorf("the page lacks %q:\n%s", w, page)
		}
	}
}

// unlinked returns a page without its links, which surround the numbers of the summary.
func unlinked(page string) string { return links.ReplaceAllString(page, "") }

var links = regexp.MustCompile(`</?a( [^>]*)?>`)
