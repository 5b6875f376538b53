package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/transcript"
	"ralph/signals"
	"ralph/store"
)

// TestWhatAPersonDecidesOnIsSeenWhole on every page where it stands.
func TestWhatAPersonDecidesOnIsSeenWhole(t *testing.T) {
	t.Parallel()
	var said []string
	text := func(of string) string {
		s := of + ": use <b>x</b> <!-- drop the log --> [r]: http://evil.example \"t\" &amp; \\<y> \u202egnp.exe " + strings.Repeat("and so on ", 200) + "end of " + of
		said = append(said, s)
		return s
	}
	s := newSite(t)
	long := text("title")[:strings.Index(said[0], "and so on")] + strings.Repeat("x", 300)
	said[0] = transcript.Visible(long)
	id := s.addTask(ralph.Task{Title: strings.ReplaceAll(long, "\u202e", ""), Description: text("description"), Acceptance: []string{text("acceptance")}, Verify: []string{text("verify")}})
	said[0] = strings.ReplaceAll(long, "\u202e", "")
	s.start(id, session)
	s.say(id, session, signals.Ask{Question: text("question"), Options: []string{text("option one"), text("option two")}, Preferred: text("preferred"), Blocking: new(true)})
	s.say(id, session, signals.Flag{What: text("flag"), Severity: "blocking", Category: "bug"})
	s.say(id, session, signals.Learned{Text: text("learning"), Rationale: text("why learned"), Kind: "decision"})
	s.say(id, session, signals.Suggest{What: text("suggestion"), Why: text("why suggested"), Kind: "refactor"})
	s.say(id, session, signals.Blocked{On: text("blocked on"), Detail: text("detail"), Kind: "external"})
	title, description := "amended title <i>", text("amended description")
	s.write(func(tx *store.Tx) error {
		for _, c := range []ralph.Comment{
			{Kind: ralph.Note, Body: text("note")}, {Kind: ralph.Question, Body: text("asked beside")}, {Kind: ralph.Blocker, Body: text("blocker"), Rationale: text("why blocked")}, {Kind: ralph.Nack, Body: text("nack"), Rationale: text("why not")},
		} {
			c.TaskID, c.Author, c.AuthorKind = id, "agent", ralph.ByAgent
			if _, err := tx.AddComment(c); err != nil {
				return err
			}
		}
		_, err := tx.Propose(ralph.Amendment{TaskID: id, Author: "agent", AuthorKind: ralph.ByAgent, Patch: ralph.Patch{Title: &title, Description: &description}, Rationale: text("why amended")})
		return err
	})
	proposed := s.addTask(ralph.Task{Title: "Proposed", Description: text("proposed"), Status: ralph.Proposed, Origin: ralph.ByAgent})
	for _, b := range []*browser{s.browser(), s.browser().signIn()} {
		task, inbox := readable(t, b.get("/tasks/1")+b.get(fmt.Sprintf("/tasks/%d", proposed))), readable(t, b.get("/inbox"))
		for _, want := range said {
			of, _, _ := strings.Cut(want, ":")
			want = strings.Join(strings.Fields(transcript.Visible(want)), "")
			if !strings.Contains(task, want) {
				t.Errorf("the task's page does not show %s whole", of)
			}
			switch of {
			case "description", "acceptance", "verify", "learning", "why learned", "note", "blocked on", "detail": // nobody decides on them there
			default:
				if !strings.Contains(inbox, want) {
					t.Errorf("the inbox does not show %s whole", of)
				}
			}
		}
	}
}
