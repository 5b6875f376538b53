package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

const session = "0c0ffee0-0000-4000-8000-000000000001"

func TestAQuestionIsAnswered(t *testing.T) {
	t.Parallel()
	for name, fields := range map[string][]string{
		"with an option":        {"option", "return 0"},
		"in a person's words":   {"text", "return 0"},
		"and the option counts": {"option", "return 0", "text", "half a thought"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			id := s.addTask(ralph.Task{Title: "Divide"})
			s.start(id, session)
			ask := s.say(id, session, signals.Ask{Question: "What if **B** is 0?", Options: []string{"return 0", "exit 1"}, Preferred: "exit 1", Blocking: new(true)})
			b := s.browser()
			page := b.get("/tasks/1")
			has(t, page, "What if **B** is 0?", "signal yellow", "Ask", "blocking", "return 0", "preferred", "Sign in")
			if strings.Contains(page, "<button name=\"option\"") {
				t.Error("a stranger has a button to answer")
			}
			b.signIn()
			has(t, b.get("/tasks/1"), `name="option" value="exit 1" formnovalidate class="choice preferred"`, fmt.Sprintf("/comments/%d/answer", ask))
			has(t, b.done(fmt.Sprintf("/comments/%d/answer", ask), fields...), "Answered")
			c := s.commentNow(ask)
			if c.Answer == nil || *c.Answer != "return 0" {
				t.Errorf("the answer is %v", c.Answer)
			}
			if w := b.post(fmt.Sprintf("/comments/%d/answer", ask), "text", "again"); w.Code != http.StatusConflict {
				t.Errorf("answered twice: %d", w.Code)
			} else {
				has(t, w.Body.String(), "answered already", "again")
			}
			has(t, b.get("/tasks/1"), "Answered:", "ada")
		})
	}
}

func TestATimelineIsFiltered(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.addTask(ralph.Task{Title: "Parse"})
	s.start(id, session)
	s.say(id, session, signals.Learned{Text: "learned-this", Kind: "discovery"})
	s.say(id, session, signals.Flag{What: "flagged-this", Severity: "warning", Category: "bug"})
	s.write(func(tx *store.Tx) error {
		_, err := tx.AddComment(ralph.Comment{TaskID: id, Author: "ada", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: "said-this"})
		return err
	})
	b := s.browser()
	for query, want := range map[string][]string{
		"":                     {"learned-this", "flagged-this", "said-this"},
		"?show=signals":        {"learned-this", "flagged-this"},
		"?show=comments":       {"said-this"},
		"?verb=flag":           {"flagged-this"},
		"?session=" + session:  {"learned-this", "flagged-this"},
		"?show=open":           {"flagged-this"},
		"?verb=nonsense&page=": {"learned-this", "flagged-this", "said-this"},
	} {
		page := b.get("/tasks/1" + query)
		for _, text := range []string{"learned-this", "flagged-this", "said-this"} {
			wanted := strings.Contains(strings.Join(want, " "), text)
			if strings.Contains(page, text) != wanted {
				t.Errorf("%q: %s is shown: %v, want %v", query, text, !wanted, wanted)
			}
		}
	}
}

func TestALongTimelineHasPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.addTask(ralph.Task{Title: "Talk"})
	s.write(func(tx *store.Tx) error {
		for i := range 120 {
			if _, err := tx.AddComment(ralph.Comment{TaskID: id, Author: "ada", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: fmt.Sprintf("word %d.", i)}); err != nil {
				return err
			}
		}
		return nil
	})
	b := s.browser()
	for page, want := range map[string][2]string{"": {"word 70.", "word 119."}, "?page=2": {"word 20.", "word 69."}, "?page=3": {"word 0.", "word 19."}} {
		text := b.get("/tasks/1" + page)
		has(t, text, want[0], want[1])
		if n := strings.Count(text, `<article class="card`); n != 50 && page != "?page=3" || n > 50 {
			t.Errorf("%q has %d cards", page, n)
		}
	}
}

func TestFormsOfATask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.addTask(ralph.Task{Title: "One"})
	proposed := s.addTask(ralph.Task{Title: "Suggested", Status: ralph.Proposed, Origin: ralph.ByAgent})
	refused := s.addTask(ralph.Task{Title: "Suggested too", Status: ralph.Proposed, Origin: ralph.ByAgent})
	b := s.browser().signIn()
	for _, path := range []string{"/board", "/tasks"} {
		if n := strings.Count(b.get(path), "suggested by an agent"); n != 2 {
			t.Errorf("%s says of %d tasks that an agent suggested them, want 2", path, n)
		}
	}
	steps := []struct {
		path   string
		fields []string
		task   int64
		want   ralph.Status
	}{
		{"/tasks/1/comment", []string{"kind", "blocker", "text", "wait for the contract", "rationale", "it is not signed"}, id, ralph.Blocked},
		{"/tasks/1/unblock", nil, id, ralph.Pending},
		{"/tasks/1/cancel", nil, id, ralph.Cancelled},
		{"/tasks/1/retry", nil, id, ralph.Pending},
		{"/tasks/2/approve", nil, proposed, ralph.Pending},
		{"/tasks/3/reject", []string{"text", "out of scope"}, refused, ralph.Rejected},
	}
	for _, step := range steps {
		b.done(step.path, step.fields...)
		if got := s.taskNow(step.task).Status; got != step.want {
			t.Errorf("after %s the task is %s, want %s", step.path, got, step.want)
		}
	}
	// The same rules as the commands'.
	for path, status := range map[string]int{"/tasks/2/approve": 409, "/tasks/2/retry": 409, "/tasks/99/retry": 404, "/tasks/x/retry": 404, "/comments/99/answer": 404} {
		if w := b.post(path, "text", "x"); w.Code != status {
			t.Errorf("%s: %d, want %d", path, w.Code, status)
		}
	}
	if w := b.post("/tasks/1/comment", "kind", "blocker", "text", "no reason given"); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a blocker without a rationale: %d", w.Code)
	} else {
		has(t, w.Body.String(), "rationale", "no reason given")
	}
}

// TestATasksMergedWorkIsUndone if there is any.
func TestATasksMergedWorkIsUndone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addTask(ralph.Task{Title: "Open"})
	b := s.browser().signIn()
	if strings.Contains(b.get("/tasks/1"), "/tasks/1/undo") {
		t.Error("a task that has merged nothing can be undone")
	}
	const undoneSession = "0b0e7ae4-51a5-4dd4-9d5b-7c2f6d2f1a01"
	task := s.addTask(ralph.Task{Title: "Merged"})
	s.start(task, undoneSession)
	s.write(func(tx *store.Tx) error {
		c := ralph.Change{TaskID: task, SessionID: undoneSession, State: ralph.Queued, Base: "b", Head: "h", Tree: "t", From: "b", To: "c", Commit: "c"}
		change, err := tx.AddChange(c)
		c.ID = change
		return errors.Join(err, tx.BeginMove(c), tx.SetChange(change, ralph.Moving, ralph.Merged), tx.Move(task, ralph.Completed, ralph.Verdict, "done"))
	})
	has(t, b.get(fmt.Sprintf("/tasks/%d", task)), fmt.Sprintf(`action="/tasks/%d/undo"`, task))
	b.done(fmt.Sprintf("/tasks/%d/undo", task), "why", "in capitals, please", "to", "cancelled")
	if want := fmt.Sprintf("%d cancelled %q false", task, "in capitals, please"); !slices.Equal(s.undone, []string{want}) {
		t.Errorf("asked for %q, want %q", s.undone, want)
	}
}

// TestTasksInReviewAreNamed on Now, whose link leads to them alone.
func TestTasksInReviewAreNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	task := s.addTask(ralph.Task{Title: "Proposed"})
	s.addTask(ralph.Task{Title: "Another"})
	s.start(task, session)
	b := s.browser().signIn()
	if page := b.get("/"); strings.Contains(page, "in review") {
		t.Error("a task without a change is in review")
	}
	s.write(func(tx *store.Tx) error {
		c := ralph.Change{TaskID: task, SessionID: session, State: ralph.Queued, Base: "b", Head: "h", Tree: "t", From: "b", To: "h", Commit: "h"}
		id, err := tx.AddChange(c)
		c.ID = id
		return errors.Join(err, tx.Move(task, ralph.Merging, ralph.Verdict, "done"), tx.BeginMove(c), tx.BeginReview(c))
	})
	const link = "/tasks?status=in_review"
	has(t, b.get("/"), "1 in review", `href="`+link+`"`)
	if page := b.get(link); !strings.Contains(page, "Proposed") || strings.Contains(page, "Another") {
		t.Error("the list has other tasks")
	}
}

// TestATaskIsAddedAndEdited with the checks of the commands.
func TestATaskIsAddedAndEdited(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser().signIn()
	fields := []string{"title", "Parse <Tabs>", "text", "Read docs/spec.md", "accept", "tabs parse\n\nspaces too", "verify", "make test", "priority", "1"}
	b.done("/tasks", fields...)
	b.done("/tasks", fields...) // a second click adds no second task, and other words do
	b.done("/tasks", slices.Replace(slices.Clone(fields), 5, 6, "tabs fail")...)
	s.write(func(tx *store.Tx) error {
		if n, err := tx.CountTasks(store.TaskFilter{}); err != nil || n != 2 {
			t.Errorf("%d tasks, %v; want 2", n, err)
		}
		return nil
	})
	task := s.taskNow(1)
	if task.Title != "Parse <Tabs>" || task.Description != "Read docs/spec.md" || task.Priority != 1 ||
		!slices.Equal(task.Acceptance, []string{"tabs parse", "spaces too"}) || !slices.Equal(task.Verify, []string{"make test"}) {
		t.Errorf("added: %+v", task)
	}
	has(t, b.get("/tasks/1"), "Edit the task", `value="Parse &lt;Tabs&gt;"`, "spaces too\n</textarea>")
	fields[9], fields[7] = "3", ""
	b.done("/tasks/1/edit", fields...)
	if task = s.taskNow(1); task.Priority != 3 || len(task.Verify) != 0 || len(task.Acceptance) != 2 {
		t.Errorf("edited: %+v", task)
	}
	stale := append(slices.Clone(fields), "was", was(t, b.get("/tasks/1"), "/tasks/1/edit"))
	s.write(func(tx *store.Tx) error {
		task.Verify = []string{"make all"}
		return tx.UpdateTask(task)
	})
	stale[3] = "Read docs/spec2.md"
	w := b.post("/tasks/1/edit", stale...)
	if task = s.taskNow(1); w.Code != http.StatusConflict || !slices.Equal(task.Verify, []string{"make all"}) {
		t.Errorf("a form that was filled before another's change: %d, %+v", w.Code, task)
	}
	has(t, w.Body.String(), "TASK-1 was changed while you edited it", "Read docs/spec2.md</textarea>")
	if strings.Contains(w.Body.String(), `name="was"`) {
		t.Error("trying again does not overwrite the change")
	}
	fields[1] = " "
	for _, path := range []string{"/tasks", "/tasks/1/edit"} {
		if w := b.post(path, fields...); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s without a title: %d", path, w.Code)
		}
	}
	if w := b.post("/tasks", "title", "x", "priority", "much"); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a priority that is none: %d", w.Code)
	}
}

// TestATaskIsSplitAndMoved by the rules of the commands.
func TestATaskIsSplitAndMoved(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	whole := s.addTask(ralph.Task{Title: "Whole", Priority: 1})
	s.start(whole, session)
	suggested := s.say(whole, session, signals.Suggest{What: "- Left\n- Right", Kind: "split", Why: "too much"})
	behind := s.addTask(ralph.Task{Title: "Behind", Priority: 3})
	b := s.browser().signIn()
	if w := b.post("/tasks/1/split", "text", "- a\n- b"); w.Code != http.StatusConflict {
		t.Errorf("a task that is worked on is split: %d", w.Code)
	}
	s.write(func(tx *store.Tx) error { return tx.Move(whole, ralph.Pending, ralph.Loop, "again") })
	form := "\n\n- Left\n- Right\n</textarea>"
	has(t, b.get("/inbox"), fmt.Sprintf("/comments/%d/split", suggested), form)
	has(t, b.get("/tasks/1"), form, "/tasks/1/split", "Move it in the queue")
	for text, status := range map[string]int{"- one": 422, "no part": 422, "# nothing\n": 422} {
		if w := b.post("/tasks/1/split", "text", text); w.Code != status {
			t.Errorf("%q: %d, want %d", text, w.Code, status)
		} else {
			has(t, w.Body.String(), ">"+text+"</textarea>") // what was written is not lost
		}
	}
	has(t, b.done(fmt.Sprintf("/comments/%d/split", suggested), "text", "- Left\n- Right\n  of it"), "TASK-1 is split into TASK-3, TASK-4.")
	if c := s.commentNow(suggested); c.Decision != "split into 2 tasks" || s.taskNow(whole).Status != ralph.Cancelled {
		t.Errorf("the suggestion: %q, the task %s", c.Decision, s.taskNow(whole).Status)
	}

	has(t, b.get("/"), `action="/tasks/2/move"`, `name="before" value="3"`, "Move TASK-2 before TASK-3")
	b.done("/tasks/2/move", "before", "3")
	if got := s.taskNow(behind).Priority; got != 1 {
		t.Errorf("its priority is %d", got)
	}
	has(t, b.get("/"), "Move TASK-3 before TASK-2")
	b.done("/tasks/2/move", "after", "TASK-3")
	for other, status := range map[string]int{"": 422, "x": 422, "2": 422, "99": 404} {
		if w := b.post("/tasks/2/move", "before", other); w.Code != status {
			t.Errorf("before %q: %d, want %d", other, w.Code, status)
		}
	}
}

// was returns the edition in the page's form for path.
func was(t *testing.T, page, path string) string {
	t.Helper()
	m := regexp.MustCompile(`action="` + path + `">.*name="was" value="([^"]+)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the form for %s does not say what it was filled with:\n%s", path, page)
	}
	return m[1]
}

// TestAFeatureIsAddedAndEdited with the checks of the commands.
func TestAFeatureIsAddedAndEdited(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser().signIn()
	has(t, b.get("/features"), "Add a feature")
	fields := []string{"name", "urls <1>", "text", "All of URLs", "learnings", "They are long", "verify", "make urls\n\nmake all"}
	b.done("/features", fields...)
	if w := b.post("/features", fields...); w.Code != http.StatusConflict {
		t.Errorf("added twice: %d", w.Code)
	} else {
		has(t, w.Body.String(), "They are long</textarea>", "make urls")
	}
	has(t, b.get("/feature?name=urls+%3C1%3E"), "They are long", "make urls\nmake all\n</textarea>")
	fields[3], fields[7] = "Some of URLs", ""
	stale := append(slices.Clone(fields), "change", "yes", "was", was(t, b.get("/feature?name=urls+%3C1%3E"), "/features"))
	b.done("/features", append(fields, "change", "yes")...)
	if w := b.post("/features", append(stale, "text", "None")...); w.Code != http.StatusConflict {
		t.Errorf("a form that was filled before another's change: %d", w.Code)
	}
	s.write(func(tx *store.Tx) error {
		f, err := tx.Feature("urls <1>")
		if f.Description != "Some of URLs" || len(f.Verify) != 0 || f.Learnings != "They are long" {
			t.Errorf("edited: %+v", f)
		}
		return err
	})
	for status, wrong := range map[int][]string{422: {"name", " "}, 404: {"name", "other", "change", "yes"}} {
		if w := b.post("/features", wrong...); w.Code != status {
			t.Errorf("%v: %d, want %d", wrong, w.Code, status)
		}
	}
}

// TestARunIsStartedWhereOneCanBe, and never without a sign-in.
func TestARunIsStartedWhereOneCanBe(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if w := s.browser().signIn().post("/run/start"); w.Code != http.StatusNotFound {
		t.Errorf("without a way to start one: %d", w.Code)
	}
	started := 0
	s.server.Start = func(context.Context) (string, error) {
		if started++; started > 1 {
			return "", ralph.Conflict("a run is active already")
		}
		return "The run has begun.", nil
	}
	b := s.browser()
	if page := b.get("/"); strings.Contains(page, "/run/start") {
		t.Error("a stranger has the button")
	}
	if w := b.send(http.MethodPost, "/run/start", nil); w.Code != http.StatusUnauthorized {
		t.Errorf("a stranger starts one: %d", w.Code)
	}
	b.signIn()
	if w := b.send(http.MethodPost, "/run/start", nil); w.Code != http.StatusForbidden || started != 0 {
		t.Errorf("without the proof of its page: %d, %d started", w.Code, started)
	}
	has(t, b.get("/"), "Start a run")
	has(t, b.done("/run/start"), "has begun")
	if w := b.post("/run/start"); w.Code != http.StatusConflict {
		t.Errorf("a second one: %d", w.Code)
	}
}

func TestAProposalToCancelIsDecidedOn(t *testing.T) {
	t.Parallel()
	for verdict, want := range map[string]ralph.Status{"approve": ralph.Cancelled, "refuse": ralph.Pending} {
		s := newSite(t)
		id := s.addTask(ralph.Task{Title: "One"})
		var nack int64
		s.write(func(tx *store.Tx) (err error) {
			nack, err = tx.AddComment(ralph.Comment{TaskID: id, Author: "reviewer", AuthorKind: ralph.ByAgent, Kind: ralph.Nack, Body: "obsolete", Rationale: "it is there"})
			return err
		})
		b := s.browser().signIn()
		if w := b.post(fmt.Sprintf("/comments/%d/resolve", nack), "text", "well"); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("without a verdict: %d", w.Code)
		}
		b.done(fmt.Sprintf("/comments/%d/resolve", nack), "verdict", verdict)
		if got := s.taskNow(id).Status; got != want {
			t.Errorf("%s: the task is %s, want %s", verdict, got, want)
		}
	}
}
