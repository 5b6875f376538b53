package web_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/web"
	"ralph/signals"
)

// TestEveryLookIsDrawn: no page needs a font that has its characters.
func TestEveryLookIsDrawn(t *testing.T) {
	t.Parallel()
	for _, character := range web.Looks() {
		if got := string(web.Icon(character)); !strings.HasPrefix(got, "<svg ") || !strings.Contains(got, `aria-hidden="true"`) {
			t.Errorf("%q is shown as %s", character, got)
		}
	}
	if got := string(web.Icon("<b>")); got != `<span aria-hidden="true">&lt;b&gt;</span>` {
		t.Errorf("what is not drawn is shown as %s", got)
	}
	s := newSite(t)
	id := s.addTask(ralph.Task{Title: "One"})
	s.start(id, session)
	s.say(id, session, signals.Ask{Question: "Which?", Options: []string{"a", "b"}, Preferred: "a", Blocking: new(true)})
	s.say(id, session, signals.Flag{What: "Old", Severity: "warning", Category: "stale"})
	b := s.browser().signIn()
	emoji := regexp.MustCompile(`[\x{2600}-\x{27BF}\x{1F000}-\x{1FAFF}]`)
	for _, path := range []string{"/", "/inbox", "/tasks/1", "/board", "/sessions/" + session} {
		if found := emoji.FindString(b.get(path)); found != "" {
			t.Errorf("%s has the character %s", path, found)
		}
	}
}

// TestButtonsNameTheirDecision: no two deciding buttons of a page have the same name.
func TestButtonsNameTheirDecision(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, title := range []string{"One", "Two"} {
		id := s.addTask(ralph.Task{Title: title})
		work := fmt.Sprint(session[:len(session)-1], id)
		s.start(id, work)
		s.say(id, work, signals.Ask{Question: title + "?", Options: []string{"a " + title}, Preferred: "a " + title, Blocking: new(true)})
		s.say(id, work, signals.Flag{What: title, Severity: "warning", Category: "stale"})
		s.say(id, work, signals.Suggest{What: title, Kind: "refactor", Why: "it is old"})
		s.say(id, work, signals.Suggest{What: title, Kind: "alternative", Why: "it is old"})
		s.addTask(ralph.Task{Title: title + " too", Status: ralph.Proposed, Origin: ralph.ByAgent})
	}
	page := s.browser().signIn().inbox()
	named := regexp.MustCompile(`(?s)<button([^>]*)>(.*?)</button>`)
	label := regexp.MustCompile(`aria-label="([^"]*)"`)
	seen := map[string]bool{}
	for _, m := range named.FindAllStringSubmatch(page, -1) {
		name := strings.TrimSpace(m[2])
		if said := label.FindStringSubmatch(m[1]); said != nil {
			name = said[1]
		}
		if seen[name] {
			t.Errorf("two buttons are named %q", name)
		}
		seen[name] = true
	}
	if len(seen) < 12 {
		t.Errorf("there are only the buttons %v", seen)
	}
}
