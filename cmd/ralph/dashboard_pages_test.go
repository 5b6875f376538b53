package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/state"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// evil is text that pages may only show.
const evil = `<script>window.evil=1</script><img src=x onerror="window.evil=1">"'><svg onload=window.evil=1> [x](javascript:window.evil=1) ![i](http://evil.example/i.png) </title></textarea></pre>{{.}} ` + "\x1b[31mred\x1b[0m\x1b]0;title\x07\u202e"

// A showcase is a project with something of everything in it, most of it hostile.
type showcase struct {
	*scriptedProject
	running, ended string // sessions
	state, feature string
}

// newShowcase fills a project. The texts are t where they may be anything.
func newShowcase(t *testing.T, text string) *showcase {
	t.Helper()
	s := &showcase{scriptedProject: newScriptedProject(t, "", ""), running: "aaaaaaaa-0000-4000-8000-000000000001", ended: "bbbbbbbb-0000-4000-8000-000000000002"}
	home, err := state.Locate(t.Context(), s.dir, s.env)
	if err == nil {
		err = home.Make(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	s.state = home.State
	title := strings.Join(strings.Fields(strings.ReplaceAll(text, "\n", " ")), " ")
	if len(title) > 300 {
		title = title[:300]
	}
	db, err := store.Open(t.Context(), filepath.Join(s.state, state.Database), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx := func(f func(tx *store.Tx) error) {
		t.Helper()
		if err := db.Tx(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	say := func(session string, task int64, p signals.Payload) {
		t.Helper()
		if _, err := db.Say(t.Context(), task, session, "backend", p); err != nil {
			t.Fatal(err)
		}
	}
	s.feature = "urls & " + title[:min(len(title), 40)]
	tx(func(tx *store.Tx) error {
		if err := tx.PutFeature(ralph.Feature{Name: s.feature, Description: text, Learnings: text, Verify: []string{"go test ./..."}}); err != nil {
			return err
		}
		for _, task := range []ralph.Task{
			{Title: "Parse " + title, Description: text, Acceptance: []string{text, "an empty URL is an error"}, Verify: []string{"go test ./..."}, Feature: s.feature, Priority: 1},
			{Title: "Write the manual " + title, Description: text, Priority: 2},
			{Title: "Suggested " + title, Description: text, Status: ralph.Proposed, Origin: ralph.ByAgent, Priority: 2},
			{Title: "Behind", Priority: 3, DependsOn: []int64{2}},
			{Title: "Queued", Priority: 3, Feature: s.feature},
		} {
			if _, err := tx.AddTask(task, "human"); err != nil {
				return err
			}
		}
		run, err := tx.StartRun("", ralph.Limits{MaxSessions: 10, MaxTasks: 10, MaxSeconds: 3600, MaxCostUSD: 5, MaxDayCostUSD: 10, MaxMonthCostUSD: 10}, "bubblewrap")
		if err != nil {
			return err
		}
		for task, id := range map[int64]string{2: s.ended, 1: s.running} {
			if _, err := tx.StartSession(store.Start{ID: id, Task: task, Run: run.ID, Model: "opus", Snapshot: struct{}{}, Hashes: struct{}{}}); err != nil {
				return err
			}
		}
		return tx.PutUsageWindow(ralph.UsageWindow{Name: "five_hour", Utilization: 0.83, ResetsAt: ralph.At(tx.Now().Add(3600e9))})
	})
	say(s.running, 1, signals.Ask{Question: text, Options: []string{title, "reject it"}, Preferred: "reject it", Blocking: new(true)})
	say(s.running, 1, signals.Flag{What: text, Severity: "blocking", Category: "security"})
	say(s.running, 1, signals.Learned{Text: text, Kind: "decision", Rationale: text, Scope: "project"})
	say(s.running, 1, signals.Suggest{What: text, Kind: "alternative", Why: text})
	say(s.ended, 2, signals.Blocked{On: text, Kind: "external", Detail: text})
	say(s.ended, 2, signals.Partial{Summary: text, Remaining: text})
	say(s.ended, 2, signals.Stuck{Reason: text})
	say(s.ended, 2, signals.Done{Summary: text})
	tx(func(tx *store.Tx) error {
		if _, err := tx.ReportState(s.running, ralph.PhaseImplementing, nil); err != nil {
			return err
		}
		for _, c := range []ralph.Comment{
			{TaskID: 1, Author: "ada", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: text},
			{TaskID: 1, Author: title[:min(40, len(title))], AuthorKind: ralph.ByAgent, Kind: ralph.Nack, Body: text, Rationale: text},
			{TaskID: 1, Author: "ada", AuthorKind: ralph.ByHuman, Kind: ralph.Blocker, Body: text, Rationale: text},
			{TaskID: 1, Author: "ada", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: text, ParentID: new(int64(1))},
		} {
			if _, err := tx.AddComment(c); err != nil {
				return err
			}
		}
		if _, err := tx.Propose(ralph.Amendment{TaskID: 1, Author: "backend", AuthorKind: ralph.ByAgent, Rationale: text, Patch: ralph.Patch{Title: &title, Description: &text}}); err != nil {
			return err
		}
		for _, pinned := range []bool{true, false} {
			if _, err := tx.AddLearning(ralph.Learning{Text: text, Kind: "convention", Scope: ralph.ScopeProject, Rationale: text, Author: "ada", Pinned: pinned}); err != nil {
				return err
			}
		}
		return nil
	})
	if _, err := db.AddPermission(t.Context(), ralph.Permission{TaskID: 1, SessionID: s.running, Tool: "Bash", Input: `{"command":"` + title[:min(60, len(title))] + `"}`, Decision: "ask"}); err != nil {
		t.Fatal(err)
	}
	tx(func(tx *store.Tx) error {
		row, err := tx.Session(s.ended)
		if err != nil {
			return err
		}
		facts, err := tx.Facts(s.ended)
		if err != nil {
			return err
		}
		facts.Ending = ralph.Finished
		d := signals.Decide(facts)
		row.Ending, row.CostUSD, row.CostKnown, row.Turns = ralph.Finished, 0.42, true, 12
		row.Tokens = ralph.Tokens{Input: 12_345, Output: 6_789, CacheRead: 1_234_567}
		row.Files = []ralph.FileChange{{Path: "docs/" + title, Added: 3, Removed: 1, Status: "modified"}, {Path: "a.go", Added: 2, Status: "added"}}
		row.Verify = []ralph.Check{{Command: "go test " + title, Exit: 1, Seconds: 2.5, Tail: text + "\n" + text, Failures: []string{title}}, {Command: "go vet", Passed: true, Seconds: 0.4, Tail: "ok"}}
		row.LastWords, row.StderrTail, row.Denials, row.Leftovers, row.Commits = text, text, []string{title}, []string{title}, []string{"0123456789abcdef"}
		return tx.Apply(row, facts, d)
	})
	for _, id := range []string{s.running, s.ended} {
		s.transcribe(t, id, []string{text, "I read the files first."}, title)
	}
	return s
}

// transcribe writes the files of a session as the agent leaves them.
func (s *showcase) transcribe(t *testing.T, session string, said []string, command string) {
	t.Helper()
	dir := filepath.Join(s.state, "sessions", session)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	line := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(text, '\n'))
	}
	type object = map[string]any
	line(object{"type": "system", "subtype": "init", "claude_code_version": "2.1.197", "model": "opus", "cwd": "/p"})
	line(object{"type": "user", "isReplay": true, "message": object{"content": "the prompt " + said[0]}})
	for i, text := range said {
		line(object{"type": "assistant", "message": object{"content": []any{object{"type": "text", "text": text}}, "usage": object{"input_tokens": 1000, "output_tokens": 100}}})
		line(object{"type": "assistant", "message": object{"content": []any{object{"type": "tool_use", "id": fmt.Sprint("e", i), "name": "Edit", "input": object{"file_path": "/p/a.go", "old_string": "old " + command, "new_string": "new " + command}}}}})
		line(object{"type": "assistant", "message": object{"content": []any{object{"type": "tool_use", "id": fmt.Sprint("b", i), "name": "Bash", "input": object{"command": command}}}}})
		line(object{"type": "user", "message": object{"content": []any{object{"type": "tool_result", "tool_use_id": fmt.Sprint("b", i), "is_error": true, "content": "Exit code 1\n" + text}}}})
	}
	line(object{"type": "assistant", "message": object{"content": []any{object{"type": "tool_use", "id": "s", "name": "mcp__ralph__ralph_signal_flag", "input": object{"what": command}}}}})
	b.WriteString(`{"type":"result","num_turns":3,"total_cost_usd":0.4}`)
	for name, text := range map[string]string{agent.TranscriptFile: b.String(), "prompt.md": "# Prompt\n" + said[0]} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// pages returns all that there are.
func (s *showcase) pages() map[string]string {
	return map[string]string{
		"overview": "/", "board": "/board", "tasks": "/tasks?status=queued", "task": "/tasks/1", "task-blocked": "/tasks/2", "task-proposed": "/tasks/3", "inbox": "/inbox",
		"sessions": "/sessions", "session-running": "/sessions/" + s.running, "session-ended": "/sessions/" + s.ended, "prompt": "/sessions/" + s.ended + "/prompt",
		"learnings": "/learnings", "features": "/features", "feature": "/feature?name=" + url.QueryEscape(s.feature), "runs": "/runs", "run": "/runs/1", "charts": "/charts", "missing": "/tasks/99",
	}
}

// friendly is a text as agents write them.
const friendly = "The parser accepts an **empty URL**, which `net/url` does not reject:\n\n- `Parse(\"\")` returns no error\n- neither does `Parse(\"/\")`\n\n1. first\n2. second\n\n```go\nif raw == \"\" {\n\treturn nil, ErrEmpty\n}\n```\n\n> It was like this before.\n\n| input | now |\n|---|---|\n| `\"\"` | nil |\n\nSee https://go.dev/issue/1 for more."

// TestEveryPageIsAccessible according to axe-core, in light and dark, on a screen and on a phone.
// RALPH_TEST_SCREENSHOTS is a folder for pictures of the pages.
func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	needPages(t)
	axe := axeSource(t)
	s := newShowcase(t, friendly)
	d := serveProject(t, s.scriptedProject, "127.0.0.1:0")
	p := newTab(t)
	p.look(1280, 900, "light")
	p.open(d.url + "/sign-in")
	s.check(p, axe, "signin", "light")
	p.signIn(s.scriptedProject, d)
	for name, path := range s.pages() {
		p.look(1280, 900, "light")
		p.open(d.url + path)
		s.check(p, axe, name, "light")
		p.look(1280, 900, "dark")
		s.check(p, axe, name, "dark", "color-contrast")
		p.look(390, 844, "dark")
		p.sees("it is as wide as the screen", "document.documentElement.scrollWidth <= 390")
		s.check(p, axe, name, "phone", "color-contrast", "target-size")
	}
}

// check asks axe-core for violations, of some rules or of all, and leaves a picture.
func (s *showcase) check(p *tab, axe, page, look string, rules ...string) {
	p.t.Helper()
	s.picture(p, page+"-"+look)
	s.axe(p, axe, page, look, rules...)
}

// axe asks axe-core for violations.
func (s *showcase) axe(p *tab, axe, page, look string, rules ...string) {
	p.t.Helper()
	if !eval[bool](p, `"axe" in window`) {
		eval[bool](p, axe+";true")
	}
	only := ""
	if rules != nil {
		only = `, runOnly: ["` + strings.Join(rules, `", "`) + `"]`
	}
	found := eval[[]string](p, `axe.run(document, {resultTypes: ["violations"]`+only+`}).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + v.help + "\n" + n.html.slice(0, 200) + "\n" + n.failureSummary)))`)
	for _, f := range found {
		p.t.Errorf("%s, %s: %s", page, look, f)
	}
}

// TestHostileTextsOnlyShow on every page: no script of theirs runs, nothing is
// asked of another host, and the page is as wide as the screen.
func TestHostileTextsOnlyShow(t *testing.T) {
	t.Parallel()
	needPages(t)
	p := newTab(t)
	p.look(390, 844, "light")
	for name, text := range map[string]string{"markup": evil, "long": "x" + strings.Repeat("lorem", 12_000), "nested": strings.Repeat(">", 5000) + strings.Repeat("[", 5000) + strings.Repeat("*a", 5000)} {
		s := newShowcase(t, text)
		// A line of 1 MB, as some tools print it.
		s.transcribe(t, s.running, []string{text, strings.Repeat("y", 1<<20)}, text[:min(len(text), 3000)])
		d := serveProject(t, s.scriptedProject, "127.0.0.1:0")
		p.signIn(s.scriptedProject, d)
		for page, path := range s.pages() {
			p.open(d.url + path)
			if eval[bool](p, `"evil" in window || document.title.includes("red") && document.title.includes("\u001b")`) {
				t.Errorf("%s: a script of %s ran", page, name)
			}
			if n := eval[int](p, `document.querySelectorAll("main img, main script, main iframe, main [onerror], main [onload], main [style], a[href^='javascript:']").length`); n > 0 {
				t.Errorf("%s: %d elements of %s are in the page", page, n, name)
			}
			if foreign := eval[[]string](p, `performance.getEntriesByType("resource").map((r) => r.name).filter((n) => !n.startsWith(location.origin))`); len(foreign) > 0 {
				t.Errorf("%s: asks %v", page, foreign)
			}
			if wide := eval[int](p, `document.documentElement.scrollWidth`); wide > 390 {
				t.Errorf("%s with %s is %d wide", page, name, wide)
			}
			if bad := eval[bool](p, `/[\u0000-\u0008\u001b\u202a-\u202e]/.test(document.body.innerText)`); bad {
				t.Errorf("%s shows what steers a terminal", page)
			}
		}
		d.stop(t, 0)
	}
}
