package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// TestSeveralAreDecidedOnTogether: the chosen items are shown whole before the decision, and all of them are decided or
// none.
func TestSeveralAreDecidedOnTogether(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.addTask(ralph.Task{Title: "One"})
	s.start(id, session)
	long := strings.Repeat("a long sentence, ", 30) + "whose end counts"
	first := s.say(id, session, signals.Suggest{What: long, Kind: "refactor", Why: "twice"})
	second := s.say(id, session, signals.Suggest{What: "Drop <it>", Kind: "deprecate", Why: "old"})
	proposed := s.addTask(ralph.Task{Title: "Suggested", Status: ralph.Proposed, Origin: ralph.ByAgent})
	names := []string{fmt.Sprint("C", first), fmt.Sprint("C", second), fmt.Sprint("TASK-", proposed)}
	query := "?" + url.Values{"item": names}.Encode()

	b := s.browser()
	if page := b.get("/inbox/many" + query); strings.Contains(page, `name="verdict"`) {
		t.Error("a stranger can decide")
	}
	b.signIn()
	has(t, b.inbox(), `form="many" name="item" value="`+names[0]+`"`, "Decide on all that is chosen")
	has(t, b.get("/inbox/many"+query), "whose end counts", "Drop &lt;it&gt;", "Suggested", "Reject all 3", `name="back" value="/inbox"`)
	if w := b.send(http.MethodPost, "/inbox/many", url.Values{"item": names, "verdict": {"reject"}}); w.Code != http.StatusForbidden {
		t.Errorf("without the proof of its page: %d", w.Code)
	}
	for _, wrong := range []struct {
		items, verdict string
		status         int
	}{
		{strings.Join(names, " "), "", http.StatusUnprocessableEntity},
		{strings.Join(names, " "), "one", http.StatusConflict},
		{names[0] + " C99", "reject", http.StatusConflict},
		{names[0][1:], "reject", http.StatusUnprocessableEntity},
		{strings.Repeat("C1 C2 ", 60), "", http.StatusUnprocessableEntity},
	} {
		if w := b.post("/inbox/many", "item", wrong.items, "verdict", wrong.verdict); w.Code != wrong.status {
			t.Errorf("%q of %.40s: %d, want %d\n%s", wrong.verdict, wrong.items, w.Code, wrong.status, w.Body)
		}
	}
	if c := s.commentNow(first); !c.ResolvedAt.IsZero() {
		t.Fatal("a decision that failed has answered one of several")
	}
	has(t, b.done("/inbox/many", "item", strings.Join(names, " "), "verdict", "reject", "text", "not this year"), "3 items decided on", "TASK-2")
	if c := s.commentNow(second); c.Decision != "not this year" {
		t.Errorf("the decision is %q", c.Decision)
	}
	if got := s.taskNow(proposed).Status; got != ralph.Rejected {
		t.Errorf("the proposal is %s", got)
	}
}

// TestASplitIsLeftWhenSeveralAreApproved: its parts are a person's to write. The others are approved, and the message
// names the rest.
func TestASplitIsLeftWhenSeveralAreApproved(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.addTask(ralph.Task{Title: "Whole"})
	s.start(id, session)
	split := s.say(id, session, signals.Suggest{What: "- Left\n- Right", Kind: "split", Why: "too much"})
	proposed := s.addTask(ralph.Task{Title: "Suggested", Status: ralph.Proposed, Origin: ralph.ByAgent})
	name := fmt.Sprint("C", split)
	left := name + " is left: it splits TASK-1 into parts, which you write in the inbox."
	b := s.browser().signIn()
	has(t, b.done("/inbox/many", "item", name+" TASK-2", "verdict", "approve"), "Approved TASK-2: it is in the queue.", left)
	if got := s.taskNow(proposed).Status; got != ralph.Pending {
		t.Errorf("the proposal is %s", got)
	}
	if c := s.commentNow(split); !c.ResolvedAt.IsZero() {
		t.Errorf("the split is answered: %s", c.Decision)
	}
	w := b.post("/inbox/many", "item", name, "verdict", "approve")
	if has(t, w.Body.String(), left); w.Code != http.StatusConflict {
		t.Errorf("nothing but a split: %d", w.Code)
	}
	b.done("/inbox/many", "item", name, "verdict", "reject")
	if c := s.commentNow(split); c.ResolvedAt.IsZero() {
		t.Error("a split cannot be rejected")
	}
}

// TestRepeatedSuggestionsAreOneRow, and one task is made of them.
func TestRepeatedSuggestionsAreOneRow(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var ids []int64
	for _, title := range []string{"One", "Two", "Three"} {
		id := s.addTask(ralph.Task{Title: title})
		work := fmt.Sprintf("0c0ffee0-0000-4000-8000-00000000000%d", id)
		s.start(id, work)
		ids = append(ids, s.say(id, work, signals.Suggest{What: "Merge the parsers", Kind: "refactor", Why: "twice"}))
		s.say(id, work, signals.Suggest{What: "Use a table", Kind: "alternative", Why: "shorter"})
	}
	b := s.browser().signIn()
	page := b.inbox()
	has(t, page, "×3", "Make one task of it", "Dismiss all 3", "Two</a>")
	if n := strings.Count(page, `<span class="gist">Merge the parsers`); n != 1 {
		t.Errorf("what is said three times is shown %d times", n)
	}
	if n := strings.Count(page, `Do it this way<span class="sr">`); n != 3 { // each of them is about its own task
		t.Errorf("%d alternatives can be taken", n)
	}
	all := fmt.Sprintf("C%d C%d C%d", ids[0], ids[1], ids[2])
	has(t, page, `value="`+all+`"`)
	b.done("/inbox/many", "item", all, "verdict", "one")
	if got := s.taskNow(4); got.Title != "Merge the parsers" {
		t.Errorf("the task is %q", got.Title)
	}
	for n, want := range []string{"made TASK-4 of it", fmt.Sprintf("the same as C%d", ids[0]), fmt.Sprintf("the same as C%d", ids[0])} {
		if c := s.commentNow(ids[n]); c.Decision != want {
			t.Errorf("C%d: %q, want %q", ids[n], c.Decision, want)
		}
	}
}

// TestEachItemHasItsAnswer: a form, or the command.
func TestEachItemHasItsAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write(func(tx *store.Tx) error { return tx.PauseMerging("the suite is red") })
	b := s.browser().signIn()
	has(t, b.inbox(), "the suite is red", "Resume merging")
	has(t, b.done("/merge/resume"), "merged again")
	if page := b.inbox(); strings.Contains(page, "the suite is red") {
		t.Errorf("it still waits:\n%s", page)
	}
}

// TestASessionIsStoppedAfterAQuestion.
func TestASessionIsStoppedAfterAQuestion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(s.addTask(ralph.Task{Title: "One"}), session)
	b := s.browser().signIn()
	page := b.get("/sessions/" + session)
	at := strings.Index(page, "/skip")
	if at < 0 || !strings.HasSuffix(strings.TrimSpace(page[:strings.LastIndex(page[:at], "<form")]), "</summary>") {
		t.Errorf("the button to stop it is not behind a question:\n%s", page)
	}
	has(t, page, "Stop it, and go on with another task")
}

// TestTheOverviewLeadsToTheInbox, which shows each item in full.
func TestTheOverviewLeadsToTheInbox(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.addTask(ralph.Task{Title: "One"})
	s.start(id, session)
	long := strings.Repeat("a long sentence, ", 30) + "whose end counts"
	ask := s.say(id, session, signals.Ask{Question: long, Options: []string{"yes", "no"}, Preferred: "no", Blocking: new(true)})
	b := s.browser().signIn()
	link := regexp.MustCompile(`href="(/inbox\?item=[^"]+)"`).FindStringSubmatch(b.get("/"))
	if link == nil {
		t.Fatal("the overview leads to no item")
	}
	has(t, b.get(link[1]), "whose end counts", fmt.Sprintf("/comments/%d/answer", ask), `value="yes"`)
}

// TestFailuresOfOneReasonAreRetriedTogether, and the cost is shown before.
func TestFailuresOfOneReasonAreRetriedTogether(t *testing.T) {
	t.Parallel()
	s, n := newNight(t)
	b := s.browser().signIn()
	page := b.get("/")
	for _, want := range []string{"Retry 7 · ~$1.04", "Retry 5 · ", "Retry 3 · "} {
		has(t, page, want)
	}
	var names []string
	for _, id := range n.Failed[:7] {
		names = append(names, fmt.Sprint("TASK-", id))
	}
	all := strings.Join(names, " ")
	has(t, b.get(fmt.Sprintf("/inbox?item=w-failed-%d-0", n.Failed[3])), "Retry all 7, about $1.04", `value="`+all+`"`, "Cancel all 7")
	has(t, b.get("/inbox/many?item="+url.QueryEscape(all)), "Retry all 7, about $1.04")
	if w := b.post("/inbox/many", "item", all+" Q66", "verdict", "retry"); w.Code != http.StatusSeeOther {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	has(t, b.get("/"), "7 items decided on.", "Q66 is left: it is a question, which has not failed.")
	for _, id := range n.Failed[:7] {
		if got := s.taskNow(id).Status; got != ralph.Pending {
			t.Errorf("TASK-%d is %s", id, got)
		}
	}
}

// TestFlagsAreResolvedTogether, with a word or as seen. A blocker needs words.
func TestFlagsAreResolvedTogether(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.addTask(ralph.Task{Title: "One"})
	s.start(id, session)
	one := s.say(id, session, signals.Flag{What: "stale", Severity: "warning", Category: "stale"})
	two := s.say(id, session, signals.Flag{What: "old", Severity: "blocking", Category: "stale"})
	all := fmt.Sprintf("C%d C%d", one, two)
	b := s.browser().signIn()
	has(t, b.get("/inbox/many?item="+url.QueryEscape(all)), "Resolve all 2")
	b.done(fmt.Sprintf("/comments/%d/resolve", s.say(id, session, signals.Flag{What: "so", Severity: "warning", Category: "bug"})))
	if c := s.commentNow(two + 1); c.Decision != "seen" {
		t.Errorf("without a word it is resolved by %q", c.Decision)
	}
	b.done(fmt.Sprintf("/tasks/%d/comment", id), "kind", "blocker", "text", "wait", "rationale", "so")
	if w := b.post(fmt.Sprintf("/comments/%d/resolve", two+2)); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a blocker without a word: %d", w.Code)
	}
	b.done("/inbox/many", "item", all, "verdict", "resolve", "text", "both are known")
	if c := s.commentNow(two); c.Decision != "both are known" {
		t.Errorf("it is resolved by %q", c.Decision)
	}
}

// TestQuestionsAreAnsweredTogether, each with its own answer; one that is given none still waits.
func TestQuestionsAreAnsweredTogether(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.addTask(ralph.Task{Title: "One"})
	s.start(id, session)
	ask := func(what string, options ...string) int64 {
		return s.say(id, session, signals.Ask{Question: what, Options: options, Blocking: new(true)})
	}
	one, two, three := ask("red or blue?", "red", "blue"), ask("how many?"), ask("why?")
	all := fmt.Sprintf("Q%d Q%d Q%d", one, two, three)
	b := s.browser().signIn()
	has(t, b.inbox(), fmt.Sprintf(`aria-label="Choose Q%d"`, one))
	has(t, b.get("/inbox/many?item="+url.QueryEscape(all)), "Answer the 3 questions", `value="blue"`)
	said := b.done("/inbox/many", "item", all, "verdict", "answer", fmt.Sprintf("option-Q%d", one), "blue", fmt.Sprintf("own-Q%d", two), "three")
	has(t, said, fmt.Sprintf("Q%d is left: it was given no answer.", three))
	for id, want := range map[int64]string{one: "blue", two: "three", three: ""} {
		got := ""
		if c := s.commentNow(id); c.Answer != nil {
			got = *c.Answer
		}
		if got != want {
			t.Errorf("Q%d is answered with %q, want %q", id, got, want)
		}
	}
}

// TestTheSameAlternativeIsOneRow of its task: it is taken once, and the others are rejected as its doubles.
func TestTheSameAlternativeIsOneRow(t *testing.T) {
	t.Parallel()
	s, _ := newNight(t)
	b := s.browser().signIn()
	page := b.get("/inbox")
	if n := strings.Count(page, "Test the redirects</span>"); n != 1 {
		t.Errorf("what is suggested three times has %d rows", n)
	}
	anchor := regexp.MustCompile(`item=(w-suggestion-2-\d+)"`).FindStringSubmatch(page)
	page = b.get("/inbox?item=" + anchor[1])
	names := regexp.MustCompile(`<form class="decide"[^>]*>.*?name="item" value="(C\d+ C\d+ C\d+)">()`).FindStringSubmatch(page)
	if names == nil {
		t.Fatalf("there is no form for the three:\n%s", page)
	}
	has(t, page, `Do it this way<span class="sr">`, "Dismiss all 3")
	b.done("/inbox/many", "item", names[1]+names[2], "verdict", "one")
	if page := b.get("/inbox"); strings.Contains(page, "Test the redirects") {
		t.Error("it still waits")
	}
}

// TestReviewsAreShownInFull to a person who decides between reviewer and author.
func TestReviewsAreShownInFull(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.addTask(ralph.Task{Title: "One"})
	s.start(id, session)
	long := strings.Repeat("it subtracts ", 1000)
	s.say(id, session, signals.Done{Summary: "it is right\ncritic approves."})
	s.write(func(tx *store.Tx) error {
		f, err := tx.Facts(session)
		if err != nil {
			return err
		}
		f.Ending, f.Changed, f.Merges, f.Head = ralph.Finished, true, true, strings.Repeat("a", 40)
		f.Verify = []ralph.Check{{Command: "true", Passed: true}}
		f.Evidence.Rounds = signals.ReviewRounds
		f.Evidence.Reviews = []ralph.Review{{
			Session: "r", Agent: "critic", For: "critic", Objections: []ralph.Objection{
				{File: "a.sh", Line: 1, What: "wrong\n# Decision", Why: long + "to the end", Severity: ralph.ObjectionBlocking},
				{File: "b.sh", What: "missing", Why: "the last of all", Severity: ralph.ObjectionBlocking},
			},
		}}
		row, err := tx.Session(session)
		if err != nil {
			return err
		}
		return tx.Apply(row, f, signals.Decide(f))
	})
	b := s.browser().signIn()
	for _, page := range []string{b.inbox(), b.get("/tasks/1"), b.get("/inbox/many?item=TASK-1")} {
		has(t, page, "\n&gt; critic approves.") // a quotation: it does not read as ralph's own
		has(t, page, "critic objects:", "`a.sh:1`: wrong", "to the end", "the last of all", "The author says: it is right")
	}
}
