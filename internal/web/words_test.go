package web_test

import (
	"fmt"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/text"
	"ralph/signals"
	"ralph/store"
)

// TestTextsToDecideOnAreShownInFull on every page.
func TestTextsToDecideOnAreShownInFull(t *testing.T) {
	t.Parallel()
	var said []string
	words := func(of string) string {
		s := of + ": use <b>x</b> <!-- drop the log --> [r]: http://evil.example \"t\" &amp; \\<y> \u202egnp.exe " + strings.Repeat("and so on ", 200) + "end of " + of
		said = append(said, s)
		return s
	}
	s := newSite(t)
	long := words("title")[:strings.Index(said[0], "and so on")] + strings.Repeat("x", 300)
	said[0] = text.Visible(long)
	id := s.addTask(ralph.Task{Title: strings.ReplaceAll(long, "\u202e", ""), Description: words("description"), Acceptance: []string{words("acceptance")}, Verify: []string{words("verify")}})
	said[0] = strings.ReplaceAll(long, "\u202e", "")
	s.start(id, session)
	s.say(id, session, signals.Ask{Question: words("question"), Options: []string{words("option one"), words("option two")}, Preferred: words("preferred"), Blocking: new(true)})
	s.say(id, session, signals.Flag{What: words("flag"), Severity: "blocking", Category: "bug"})
	s.say(id, session, signals.Learned{Text: words("learning"), Rationale: words("why learned"), Kind: "decision"})
	s.say(id, session, signals.Suggest{What: words("suggestion"), Why: words("why suggested"), Kind: "refactor"})
	s.say(id, session, signals.Blocked{On: words("blocked on"), Detail: words("detail"), Kind: "external"})
	title, description := "amended title <i>", words("amended description")
	s.write(func(tx *store.Tx) error {
		for _, c := range []ralph.Comment{
			{Kind: ralph.Note, Body: words("note")}, {Kind: ralph.Question, Body: words("asked beside")}, {Kind: ralph.Blocker, Body: words("blocker"), Rationale: words("why blocked")}, {Kind: ralph.Nack, Body: words("nack"), Rationale: words("why not")},
		} {
			c.TaskID, c.Author, c.AuthorKind = id, "agent", ralph.ByAgent
			if _, err := tx.AddComment(c); err != nil {
				return err
			}
		}
		_, err := tx.Propose(ralph.Amendment{TaskID: id, Author: "agent", AuthorKind: ralph.ByAgent, Patch: ralph.Patch{Title: &title, Description: &description}, Rationale: words("why amended")})
		return err
	})
	proposed := s.addTask(ralph.Task{Title: "Proposed", Description: words("proposed"), Status: ralph.Proposed, Origin: ralph.ByAgent})
	for _, b := range []*browser{s.browser(), s.browser().signIn()} {
		task, inbox := readable(t, b.get("/tasks/1")+b.get(fmt.Sprintf("/tasks/%d", proposed))), readable(t, b.inbox())
		for _, want := range said {
			of, _, _ := strings.Cut(want, ":")
			want = strings.Join(strings.Fields(text.Visible(want)), "")
			switch of {
			case "description", "acceptance", "verify", "learning", "why learned", "note", "blocked on", "detail":
				continue // nobody decides on them
			}
			if !strings.Contains(task, want) {
				t.Errorf("the task's page does not show %s whole", of)
			}
			if !strings.Contains(inbox, want) {
				t.Errorf("the inbox does not show %s whole", of)
			}
		}
	}
}
