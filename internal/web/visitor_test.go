package web_test

import (
	"net/http"
	"os"
	"regexp"
	"testing"

	"ralph"
	"ralph/internal/pgtest"
)

// TestVisitorsDoNotShareTheirState: the proof of their forms, and the message with the result.
func TestVisitorsDoNotShareTheirState(t *testing.T) {
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

// TestADatabaseThatComesBackIsShownAgain: that it was gone is said, and not kept.
func TestADatabaseThatComesBackIsShownAgain(t *testing.T) {
	t.Parallel()
	pgtest.Files(t)
	s := newSite(t)
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
