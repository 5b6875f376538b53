package web_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/store"
)

// TestTheDatabaseIsAway for longer than pages wait: they say so and reload by themselves, none is live meanwhile, the
// contents of a form are not lost, and a stream continues without a gap.
func TestTheDatabaseIsAway(t *testing.T) {
	server := pgtest.Start(t, "", nil)
	db, err := store.Open(t.Context(), strings.Replace(server.URL, "/postgres?", "/ralph?", 1), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	lease := store.LeaseTime
	store.LeaseTime = time.Millisecond
	db.Outlast()
	store.LeaseTime = lease
	t.Parallel()
	s := newSite(t)
	s.db, s.server.Store = db, db
	b := s.browser().signIn()
	form := url.Values{"csrf": {hidden.FindStringSubmatch(b.get("/"))[1]}, "back": {"/"}, "text": {"remember me"}, "kind": {"note"}}
	task := s.addTask(ralph.Task{Title: "The first"})
	site := s.serve(t)
	l := s.listen(t, site, "/events?after=0", "")
	seen := l.next().id

	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	for l.lines.Scan() { // its browser says so once it has ended
	}
	for _, path := range []string{"/", "/inbox", "/events"} {
		resp, err := site.Client().Get(site.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Refresh") == "" {
			t.Errorf("%s: %v, %s, refresh %q", path, err, resp.Status, resp.Header.Get("Refresh"))
		}
		has(t, string(page), "This is not possible now", "the server does not answer")
	}
	has(t, b.send(http.MethodPost, "/tasks/1/comment", form).Body.String(), "the server does not answer", "remember me")

	if err := server.Restart(0); err != nil {
		t.Fatal(err)
	}
	status := 0
	for status != http.StatusOK {
		resp, err := site.Client().Get(site.URL + "/tasks")
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if status = resp.StatusCode; err != nil || status == http.StatusOK && !strings.Contains(string(page), "The first") {
			t.Fatalf("%v\n%s", err, page)
		}
	}
	s.write(func(tx *store.Tx) error { return tx.Move(task, ralph.Cancelled, ralph.Person, "enough") })
	if m := s.listen(t, site, "/events", seen).next(); !strings.Contains(m.data, ralph.EventType(ralph.TaskStatusChanged{})) {
		t.Errorf("after what was seen it tells %+v", m)
	}
	if strings.Contains(s.log.String(), "level=ERROR") {
		t.Error(s.log.String())
	}
}
