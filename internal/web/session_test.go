package web_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// setTranscript sets the agent's output in the session.
func (s *site) setTranscript(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[session+"/transcript"] = text
}

// TestALongTranscriptHasParts that make up the whole, wherever they begin.
func TestALongTranscriptHasParts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(s.addTask(ralph.Task{Title: "One"}), session)
	const n = 1500
	s.setTranscript(longTranscript(n))
	b := s.browser()
	word := regexp.MustCompile(`Word (\d+):`)
	seen := map[int]int{}
	path, pages := "/sessions/"+session, 0
	for path != "" {
		page := b.get(path)
		entries := strings.Count(page, `<li class="e-`)
		if entries > 200 {
			t.Errorf("%s has %d entries", path, entries)
		}
		for _, m := range word.FindAllStringSubmatch(page, -1) {
			i, _ := strconv.Atoi(m[1])
			seen[i]++
		}
		pages++
		m := regexp.MustCompile(`<a href="([^"#]*)#doing">(?:Earlier|\d+ earlier steps)</a>`).FindStringSubmatch(page)
		path = ""
		if m != nil {
			path = strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	if pages != 8 || len(seen) != n/2 {
		t.Errorf("%d pages with %d words, want 8 with %d", pages, len(seen), n/2)
	}
	for i, times := range seen {
		if times != 1 {
			t.Errorf("word %d is shown %d times", i, times)
		}
	}
}

func TestASessionsPageShowsItsResult(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.addTask(ralph.Task{Title: "One", Verify: []string{"go test"}})
	s.start(id, session)
	b := s.browser()
	has(t, b.get("/sessions/"+session), "The agent has not said anything yet.", "Where it is", `aria-current="page">`)
	s.setTranscript(`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Edit","input":{"file_path":"a.go","old_string":"old words","new_string":"new words"}}]}}` + "\n")
	s.files[session+"/prompt"] = "# You work unattended"
	for decision, input := range map[string]string{"allow": "ls-of-old", "deny": "push-to-main"} {
		if _, err := s.db.AddPermission(t.Context(), ralph.Permission{
			TaskID: id, SessionID: session, Tool: "Bash", Input: input, Decision: decision,
		}); err != nil {
			t.Fatal(err)
		}
	}
	s.say(id, session, signals.Done{Summary: "did it"})
	s.write(func(tx *store.Tx) error {
		if _, err := tx.ReportState(session, ralph.PhaseTesting, nil); err != nil {
			return err
		}
		row, err := tx.Session(session)
		if err != nil {
			return err
		}
		facts, err := tx.Facts(session)
		if err != nil {
			return err
		}
		row.Ending, facts.Ending = ralph.Finished, ralph.Finished
		row.Files = []ralph.FileChange{{Path: "a.go", Added: 1, Removed: 1, Status: "modified"}, {Path: "b.go", Added: 9, Status: "added"}}
		row.Verify = []ralph.Check{{Command: "go test", Exit: 1, Tail: "--- FAIL: TestX", Failures: []string{"TestX"}}}
		facts.Verify = row.Verify
		return tx.Apply(row, facts, signals.Decide(facts))
	})
	page := b.get("/sessions/" + session)
	has(t, page, "Transcript", "Why: the rules that decided", "exit 1", "--- FAIL: TestX", "old words", "new words", "a command changed it", "unusual order", "<ol class=\"why\"><li>", "The prompt as it was sent")
	s.mu.Lock()
	s.files[session+"/diffs"] = `{"files":[{"path":"b.go","diff":"@@ -4,2 +4,2 @@\n a<b>\n-old\n+new\u202e\n"},{"path":"a.go","left":"it is not text"}]}`
	s.mu.Unlock()
	page = s.browser().get("/sessions/" + session) // of a server that has not shown it before
	has(t, page, `<span class="no">4</span><span class="no">4</span> a&lt;b&gt;`, `<span class="del"><span class="no">5</span><span class="no"></span>-old`,
		`<span class="add"><span class="no"></span><span class="no">5</span>&#43;new&lt;U&#43;202E&gt;`, "Its lines were not kept: it is not text.")
	s.mu.Lock()
	s.files[session+"/diffs"] = `{"files":`
	s.mu.Unlock()
	has(t, s.browser().get("/sessions/"+session), "what session 0c0ffee0 changed: unexpected end of JSON input")
	if has(t, page, "push-to-main"); strings.Contains(page, "ls-of-old") {
		t.Error("what the rules allowed is among what they did not")
	}
	has(t, b.get("/sessions/"+session+"/prompt"), "# You work unattended")
	has(t, b.get("/sessions"), "TASK-1", session[:8])
	has(t, b.get("/charts"), "Cost per day", "The limit is $20.00 a day.", "Cost by model", "Testing", "Failed here")
	for _, path := range []string{"/sessions/ffffffff", "/sessions/%2e%2e", "/sessions/x/prompt"} {
		if w := b.send(http.MethodGet, path, nil); w.Code != http.StatusNotFound && w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// TestARunningSessionShowsItsSpending, as far as its agent has reported it.
func TestARunningSessionShowsItsSpending(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(s.addTask(ralph.Task{Title: "One"}), session)
	b := s.browser()
	for _, path := range []string{"/", "/sessions/" + session} {
		if page := b.get(path); strings.Contains(page, "about $") || strings.Contains(page, "so far") {
			t.Errorf("%s says what nobody knows:\n%s", path, page)
		}
	}
	text := `{"type":"system","subtype":"init","model":"claude-sonnet-5","cwd":"/p"}` + "\n"
	for i := range 2 {
		text += fmt.Sprintf(`{"type":"assistant","message":{"id":"m%d","model":"claude-sonnet-5","content":[{"type":"text","text":"hm"}],`+
			`"usage":{"input_tokens":100000,"output_tokens":10000,"cache_read_input_tokens":1000}}}`, i) + "\n"
	}
	s.setTranscript(text)
	// 200,000 tokens at $3 a million, 20,000 at $15, 2,000 at $0.30.
	b = s.browser() // of a server that has not shown it before
	has(t, b.get("/"), "$0.90")
	has(t, b.get("/sessions/"+session), "attempt 1", "<b>$0.90</b>", "200 000 in", "Context</dt><dd>111")
}

// TestItemsAreAnsweredInTheInbox, each kind by its form.
func TestItemsAreAnsweredInTheInbox(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.addTask(ralph.Task{Title: "One"})
	s.start(id, session)
	alternative := s.say(id, session, signals.Suggest{What: "Use a table", Kind: "alternative", Why: "shorter"})
	refactor := s.say(id, session, signals.Suggest{What: "Merge the parsers", Kind: "refactor", Why: "twice"})
	dismissed := s.say(id, session, signals.Suggest{What: "Drop it", Kind: "deprecate", Why: "old"})
	permission, err := s.db.AddPermission(t.Context(), ralph.Permission{TaskID: id, SessionID: session, Tool: "Bash", Input: `{"command":"git push"}`, Decision: "ask"})
	if err != nil {
		t.Fatal(err)
	}
	title := "Two"
	var amendment int64
	s.write(func(tx *store.Tx) (err error) {
		amendment, err = tx.Propose(ralph.Amendment{TaskID: id, Author: "agent", AuthorKind: ralph.ByAgent, Rationale: "clearer", Patch: ralph.Patch{Title: &title}})
		return err
	})
	b := s.browser()
	has(t, b.inbox(), "ralph approve C1 · ralph reject C1", "git push", "&#43;   Two", ">Inbox <span id=\"nav-waiting\" class=\"waiting\">5<", "All 4<", "1 above<")
	b.signIn()
	for _, step := range []struct {
		path   string
		fields []string
		said   string
	}{
		{fmt.Sprintf("/comments/%d/resolve", alternative), []string{"verdict", "adopt"}, "is to be done that way"},
		{fmt.Sprintf("/comments/%d/resolve", refactor), []string{"verdict", "task"}, "TASK-2 was made of it"},
		{fmt.Sprintf("/comments/%d/resolve", dismissed), []string{"text", "not now"}, "nothing is done about it"},
		{fmt.Sprintf("/permissions/%d/decide", permission), []string{"verdict", "deny", "text", "ask me later"}, "denied; the session goes on"},
		{fmt.Sprintf("/amendments/%d/decide", amendment), []string{"verdict", "approve"}, "TASK-1 is changed"},
		{fmt.Sprintf("/amendments/%d/rollback", amendment), nil, "is rolled back"},
		{"/learnings", []string{"text", "Tests need Redis", "kind", "convention"}, "Learning 1 is known"},
		{"/learnings/1/pin", nil, "before all others"},
		{"/learnings/1/forget", nil, "in no prompt"},
		{"/learnings/1/remember", nil, "remembered"},
		{"/sessions/" + session + "/skip", nil, "is being stopped"},
	} {
		if said := b.done(step.path, step.fields...); !strings.Contains(said, step.said) {
			t.Errorf("%s: %q, want %q", step.path, said, step.said)
		}
	}
	if page := b.inbox(); !strings.Contains(page, "Nothing waits for you") {
		t.Errorf("something still waits:\n%s", page)
	}
	has(t, b.get("/learnings"), "Tests need Redis", "pinned")
	for path, status := range map[string]int{
		"/amendments/1/decide": http.StatusConflict, "/permissions/1/decide": http.StatusConflict, "/amendments/9/rollback": http.StatusNotFound,
		"/learnings/1/nonsense": http.StatusNotFound, "/sessions/ffffffff/skip": http.StatusNotFound,
	} {
		if w := b.post(path, "verdict", map[bool]string{true: "allow", false: "approve"}[strings.HasPrefix(path, "/perm")]); w.Code != status {
			t.Errorf("%s again: %d, want %d\n%s", path, w.Code, status, w.Body)
		}
	}
}

// TestTheRunIsControlled as by the commands.
func TestTheRunIsControlled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser().signIn()
	if w := b.post("/run/pause"); w.Code != http.StatusConflict {
		t.Errorf("pausing no run: %d", w.Code)
	}
	s.write(func(tx *store.Tx) error {
		_, err := tx.StartRun("", ralph.Limits{MaxSessions: 9, MaxCostUSD: 5, MaxDayCostUSD: 9, MaxMonthCostUSD: 9, MaxSeconds: 60}, "")
		return err
	})
	has(t, b.get("/"), "running", "of $5.00", "Pause")
	for _, step := range []struct {
		path    string
		refused bool
		want    string
	}{
		{"/run/pause", false, ralph.ControlPause},
		{"/run/stop", false, ralph.ControlStop},
		{"/run/pause", true, ralph.ControlStop}, // somebody else's request does not keep the run from stopping
		{"/run/stop", false, ralph.ControlStop},
		{"/run/stop-now", false, ralph.ControlStopNow},
		{"/run/stop", true, ralph.ControlStopNow},
		{"/run/pause", true, ralph.ControlStopNow},
		{"/run/resume", false, ralph.ControlNone},
		{"/run/pause", false, ralph.ControlPause},
	} {
		if w := b.post(step.path); step.refused != (w.Code == http.StatusConflict) {
			t.Errorf("%s: %d %s", step.path, w.Code, w.Body)
		}
		s.write(func(tx *store.Tx) error {
			run, _, err := tx.LastRun()
			if run.Control != step.want {
				t.Errorf("%s: the run is told %q, want %q", step.path, run.Control, step.want)
			}
			return err
		})
	}
	has(t, b.get("/runs"), "Run 1")
	has(t, b.get("/runs/1"), "of 9")
}

func TestFeaturesShowHowFarTheyAre(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	name := `login/out & "<more>"`
	s.write(func(tx *store.Tx) error { return tx.PutFeature(ralph.Feature{Name: name, Description: "Getting in."}) })
	s.addTask(ralph.Task{Title: "One", Feature: name})
	b := s.browser()
	page := b.get("/features")
	has(t, page, "0 of 1 task completed")
	link := regexp.MustCompile(`href="(/feature\?[^"]+)"`).FindStringSubmatch(page)
	if link == nil {
		t.Fatal("there is no link")
	}
	has(t, b.get(link[1]), "Getting in.", "Queued")
	board := regexp.MustCompile(`href="(/board[^"]+)"`).FindStringSubmatch(b.get(link[1]))
	has(t, b.get(strings.ReplaceAll(board[1], "&amp;", "&")), "TASK-1")
}

// TestTheOverviewBeginsWithTheMorning as the run, the report and status show it, before the spending and the queue.
func TestTheOverviewBeginsWithTheMorning(t *testing.T) {
	s := newSite(t)
	id := s.addTask(ralph.Task{Title: "One"})
	s.write(func(tx *store.Tx) error {
		run, err := tx.StartRun("", ralph.Limits{}, "")
		if err != nil {
			return err
		}
		if _, err := tx.StartSession(store.Start{ID: "0b0e7ae4-51a5-4dd4-9d5b-7c2f6d2f1a01", Task: id, Run: run.ID}); err != nil {
			return err
		}
		return tx.EndRun(run.ID, ralph.ExitLimit, "the limit of 9 sessions per run is reached")
	})
	page := s.browser().get("/")
	has(t, unlinked(page), "1 task, ", "0 merged, 1 not finished", "The last run ended", "the limit of 9 sessions per run is reached")
	if !strings.Contains(page, "0 merged") || strings.Index(page, "0 merged") > strings.Index(page, `id="spent-h"`) {
		t.Error("the morning is not first")
	}
}

// TestAFollowedPageFetchesOnlyWhatIsNew: its transcript comes by the stream, compressed.
func TestAFollowedPageFetchesOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(s.addTask(ralph.Task{Title: "One"}), session)
	s.setTranscript(`{"type":"assistant","message":{"content":[{"type":"text","text":"first words"}]}}` + "\n")
	get := func(header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:7474/sessions/"+session, nil)
		r.RemoteAddr = "127.0.0.1:5"
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		h, err := s.server.Handler()
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	if page := get(); page.Header().Get("Content-Encoding") != "" || !strings.Contains(page.Body.String(), "first words") {
		t.Errorf("the page is %v: %s", page.Header(), page.Body)
	}
	if page := get("X-Refresh", "yes").Body.String(); strings.Contains(page, "first words") || !strings.Contains(page, "Where it is") {
		t.Errorf("a page that follows gets %s", page)
	}
	w := get("Accept-Encoding", "gzip")
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if page, err := io.ReadAll(z); err != nil || !strings.Contains(string(page), "first words") {
		t.Errorf("compressed it is %s, %v", page, err)
	}
}
