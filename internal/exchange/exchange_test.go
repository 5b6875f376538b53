package exchange_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/exchange"
)

var update = flag.Bool("update", false, "write the golden files anew")

// dump returns an import as text, for the golden files.
func dump(in ralph.Import) string {
	var b strings.Builder
	fmt.Fprintf(&b, "format %s\n", in.Format)
	for _, f := range in.Features {
		fmt.Fprintf(&b, "feature %q\n", f.Name)
		for line := range strings.Lines(f.Description) {
			fmt.Fprintf(&b, "  | %s\n", strings.TrimRight(line, "\n"))
		}
	}
	for _, t := range in.Tasks {
		fmt.Fprintf(&b, "\nline %d: %s\n  id %s of %s\n  %s, priority %d, feature %q\n", t.Line, t.Title, t.ExternalID, t.ExternalSource, t.Status, t.Priority, t.Feature)
		if t.StatusReason != "" {
			fmt.Fprintf(&b, "  because: %s\n", t.StatusReason)
		}
		for line := range strings.Lines(t.Description) {
			fmt.Fprintf(&b, "  | %s\n", strings.TrimRight(line, "\n"))
		}
		for _, c := range t.Acceptance {
			fmt.Fprintf(&b, "  accept: %s\n", c)
		}
		for _, c := range t.Verify {
			fmt.Fprintf(&b, "  verify: %s\n", c)
		}
		for _, n := range t.Needs {
			fmt.Fprintf(&b, "  needs %s (optional: %t)\n", n.Key, n.Optional)
		}
	}
	for _, l := range in.Learnings {
		fmt.Fprintf(&b, "\nlearned (%s, %s): %q\n", l.Kind, l.Scope, l.Text)
	}
	for _, o := range in.Offers {
		fmt.Fprintf(&b, "\noffered in line %d (%s): %s\n", o.Line, o.Section, o.Command)
	}
	for _, n := range in.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", n)
	}
	if r := in.Read; r != nil {
		fmt.Fprintf(&b, "\nboxes %+v, headings %+v, lines %+v\n", r.Boxes, r.Headings, r.Lines)
	}
	return b.String()
}

func TestFilesOfOtherToolsAreRead(t *testing.T) {
	for name, format := range map[string]string{
		"snarktank.json": "prd.json", "features.json": "prd.json", "tasks-that-pass.json": "prd.json", "ralph-tui.json": "prd.json", "iannuttall.json": "stories",
		"taskmaster.json": "taskmaster", "taskmaster-flat.json": "taskmaster", "beads.jsonl": "beads", "github.json": "github",
		"github-api.json": "github", "github-view.json": "github",
		"checklist.md": "markdown", "plan.md": "markdown",
		"backlog.md": "backlog.md", "agentic.yaml": "agentic-agent", "spec-kit.md": "markdown",
		"kiro.md": "markdown", "stories.md": "markdown", "epics.md": "markdown", "aufgaben.md": "markdown", "steps.md": "markdown", "todo.md": "markdown", "tables.md": "markdown",
	} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			in, err := exchange.Parse(data, "")
			if err != nil {
				t.Fatal(err)
			}
			if in.Format != format {
				t.Errorf("taken for %s, want %s", in.Format, format)
			}
			golden := filepath.Join("testdata", name+".golden")
			got := dump(in)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || got != string(want) {
				t.Errorf("not as in %s (%v):\n%s", golden, err, got)
			}
			again, err := exchange.Parse(data, format)
			if err != nil || dump(again) != got {
				t.Errorf("read differently when told the format: %v", err)
			}
		})
	}
}

func TestMistakesNameTheirLine(t *testing.T) {
	for _, tt := range []struct {
		name, text, format string
		line               int
		problem            string
	}{
		{"an empty file", " \n", "", 0, "is empty"},
		{"no task at all", "# Title\n\nText.\n", "", 0, "holds no task (as markdown; --format reads it as another format)"},
		{"a list without boxes", "# Plan\n\n- Back off\n- Count\n", "", 0, "a task is a line with a box, \"- [ ] Reject empty URLs\", and this list has none"},
		{"no UTF-8", "- [ ] a\n- [ ] \xff\n", "", 2, "is not UTF-8 text; save the file as UTF-8"},
		{"JSON that ends", "{\n \"userStories\": [\n", "", 3, "the JSON ends in the middle"},
		{"JSON that is broken", "{\"userStories\": [\n {\"id\": \"a\"\n \"title\": 1}]}", "prd.json", 3, "is not valid JSON"},
		{"something behind the JSON", "{\"userStories\": []}\nx", "prd.json", 2, "something stands after the end of the JSON"},
		{"JSON of no known kind", `{"a": 1}`, "", 1, "none of the known formats"},
		{"a text where a list is expected", "{\"userStories\": [\n {\"id\": \"a\", \"title\": \"t\",\n \"labels\": \"x\"}]}", "", 3, "\"labels\" holds a string, where a list is expected"},
		{"an object where the list of stories is expected", "{\n\"userStories\": {}}", "", 2, `"userStories" must be a list`},
		{"a story with a priority of its own", "{\"userStories\": [\n{\"title\": \"t\", \"priority\": \"soon\"}]}", "", 2, `the priority "soon" is not known`},
		{"a story without a title", "{\"userStories\": [\n{\"id\": \"a\"}]}", "", 2, "a task has no title"},
		{"an id twice", "{\"userStories\": [\n{\"id\": \"a\", \"title\": \"t\"},\n{\"id\": \"a\", \"title\": \"u\"}]}", "", 3, "the id a is in line 2 already"},
		{"an unknown status", "{\"stories\": [\n{\"id\": 1, \"title\": \"t\", \"status\": \"maybe\"}]}", "", 2, `the status "maybe" is not known (accepted: done, in_progress, open)`},
		{"an id that is a list", "{\"stories\": [\n{\"id\": [], \"title\": \"t\"}]}", "", 2, "an id must be a text or a number"},
		{"an unknown priority", "{\"tasks\": [\n{\"id\": 1, \"title\": \"t\", \"priority\": \"huge\"}]}", "", 2, `the priority "huge" is not known (accepted: critical, high, medium, low)`},
		{"a broken line", "{\"id\":\"bd-1\",\"title\":\"t\"}\n{\"id\":\n", "", 2, "ends in the middle"},
		{"a conflict of git", "{\"id\":\"bd-1\",\"title\":\"t\"}\n<<<<<<< HEAD\n", "", 2, "conflict of git"},
		{"an unknown status of beads", "{\"id\":\"bd-1\",\"title\":\"t\",\"status\":\"odd\"}\n{\"id\":\"bd-2\",\"title\":\"t\"}\n", "", 1, `the status "odd" is not known`},
		{"an issue without a number", "[\n{\"title\": \"t\"}]", "github", 2, `an issue has no "number"`},
		{"YAML that is broken", "tasks:\n  - title: a\n   b: c\n", "", 3, "not allowed in this context"},
		{"an origin that is none", "{\"ralph\":\"learning\",\"text\":\"x\",\"origin\":\"alien\"}\n", "", 1, `the origin "alien" is not known`},
		{"YAML without tasks", "things: []\n", "agentic-agent", 1, `there is no "tasks"`},
		{"YAML with tasks that are no list", "tasks:\n  a: b\n", "", 1, `"tasks" must be a list`},
		{"a YAML task without a title", "tasks:\n  - id: 1\n    title: a\n    priority: low\n  - id: 2\n", "", 5, `a task has no "id" or no "title"`},
		{"YAML full of brackets", "tasks: " + strings.Repeat("[", 1000), "agentic-agent", 1, "too many brackets"},
		{"a line of no kind", "{\"ralph\":\"dance\"}\n", "", 1, `"ralph" is "dance" (accepted: feature, discipline, task, learning)`},
		{"a command that is too long", "{\"stories\": [{\"id\": 1, \"title\": \"t\", \"acceptanceCriteria\": [\"`accept: " + strings.Repeat("x", ralph.MaxText+1) + "`\"]}]}", "", 1, "a text of 1 is longer than 64 KiB"},
		{"a NUL", "{\"stories\": [{\"id\": 1, \"title\": \"t\", \"description\": \"a\\u0000b\"}]}", "", 1, "must not contain a NUL byte"},
		{"a file that is too large", strings.Repeat("x", exchange.MaxFile+1), "", 0, "is larger than 16 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := exchange.Parse([]byte(tt.text), tt.format)
			var bad *exchange.Error
			if !errors.As(err, &bad) || bad.Line != tt.line || !strings.Contains(bad.Problem, tt.problem) {
				t.Errorf("got %v, want line %d: …%s…", err, tt.line, tt.problem)
			}
		})
	}
	var own []byte
	for i := 0; len(own) <= exchange.MaxFile; i++ {
		own = fmt.Appendf(own, `{"ralph":"task","id":"t%d","title":"t","description":"%s"}`+"\n", i, strings.Repeat("x", 60<<10))
	}
	if in, err := exchange.Parse(own, ""); err != nil || len(in.Tasks) < 200 {
		t.Errorf("an export of %d bytes: %v", len(own), err)
	}
	if _, err := exchange.Parse([]byte("x"), "excel"); err == nil || !strings.Contains(err.Error(), "accepted: agentic-agent, backlog.md, beads, github,") {
		t.Errorf("got %v", err)
	}
}

func TestChecklists(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string // lines of the dump, in order
	}{
		{"tabs indent too", "- [ ] a\n\t- [ ] b\n", []string{"line 2: b", "| Part of:", "| a", "line 1: a", "needs markdown#a/b"}},
		{"numbered boxes", "1. [ ] a\n2) [x] b\n", []string{"line 1: a", "pending", "line 2: b", "completed"}},
		{"the same words twice", "- [ ] test\n- [ ] test\n", []string{"id test of markdown\n", "id test (2) of markdown\n"}},
		{
			"the same id in two boxes", "- [ ] T001 a\n- [ ] T002 b\n- [ ] T001 c\n- [ ] T003 d\n",
			[]string{"id T001 of", "id T001 (2) of", "line 4: d", "needs markdown#T001 (2)", "ids that are in the file already, and have a number here: T001 (line 3)"},
		},
		{"a box below a paragraph of a section", "# P\n## Parse\nFast.\n- [ ] a\n", []string{"From the section Parse:", "| Fast."}},
		{"sections that only begin like one that is no work", "## Optional chaining\n- [ ] a\n## Context menu\n- [ ] b\n", []string{"line 2: a", "line 4: b"}},
		{"criteria of a document with one task", "- [ ] a\n## Success criteria\n- [ ] fast\n", []string{"line 1: a", "accept: fast"}},
		{"criteria of a document without a name", "- [ ] a\n- [ ] b\n## Success criteria\n- [ ] fast\n", []string{"line 1: a", "accept: fast", "line 2: b", "accept: fast"}},
		{"a task heading whose boxes are all ticked", "## Task 1: A\n- [x] b\n", []string{"line 1: A", "completed"}},
		{"a task heading without boxes", "## **Task 1.2: A**\nDo it.\n", []string{"line 1: A", "pending", "| Do it."}},
		{"bold ids", "- [ ] **US-7:** Fly\n", []string{"line 1: Fly", "id US-7 of markdown\n"}},
		{"commands without code are no commands", "- [ ] a\n## Validation commands\n- run the tests\n- `make test`\n", []string{"offered in line 4 (Validation commands): make test"}},
		{"an indented fence belongs to the task", "- [ ] a\n  ```sh\n  - [ ] no box\n  ```\n", []string{"line 1: a", "| ```sh", "| - [ ] no box"}},
		{"a word in brackets is no id", "- [ ] [front-end] a\n- [ ] [front-end] b\n", []string{"line 1: [front-end] a", "line 2: [front-end] b"}},
		{"a fence ends with one as long as it began", "````md\n```\n- [ ] no box\n```\n- [ ] no box\n````\n- [ ] a\n", []string{"format markdown\n\nline 7: a\n"}},
		{"a fence with a language ends none", "```\n```go\n- [ ] no box\n```\n- [ ] a\n", []string{"format markdown\n\nline 5: a\n"}},
		{"code within a line is no fence", "```inline``` code\n- [ ] a\n", []string{"line 2: a"}},
		{"a task heading in a section that is no work", "- [ ] a\n## Nice to have\n### Task 9: b\n- [ ] c\n", []string{"line 1: a", "pending, priority 2, feature \"\"\n\nnote: left out: lines of the section \"Nice to have\", which is not work: 3\n"}},
		{"criteria below a box", "- [ ] a\n  - Acceptance criteria:\n    - b\n      - c\n    - [ ] d\n  - Test plan:\n    - e\n  - [ ] f\n", []string{"line 8: f", "line 1: a", "| - Test plan:", "|   - e", "accept: b; c", "accept: d"}},
		{"criteria of a section", "# P\n- [ ] a\n- [ ] b\n\n**Acceptance criteria:**\n- [ ] c\n", []string{"| **Acceptance criteria:**", "| - [ ] c", "line 2: a", "line 3: b"}},
		{"stories without an id", "# P\n## A\n**Acceptance Criteria:**\n- [ ] x\n## B\nText.\n### Acceptance criteria\n- y\n", []string{"line 2: A", "accept: x", "line 5: B", "| Text.", "accept: y"}},
		{"phases are no tasks", "## Phase 1: A\n- [ ] a\n## Sprint 2 - B\n- [ ] b\n", []string{"line 2: a", "From the section Phase 1: A", "line 4: b", "From the section Sprint 2 - B"}},
		{"a phase with tasks", "## Phase 1: A\n### Task 1: B\n- [ ] c\n", []string{"line 2: B", "From the section Phase 1: A", "accept: c"}},
		{"any word with a number", "### Tâche 1 : A\n- [ ] a\n### 任务2：B\n- [ ] b\n", []string{"line 1: A", "accept: a", "line 3: B", "accept: b"}},
		{"headings with an id", "### AUTH-1: A\n- [ ] a\n### [AUTH-2] B\n- [x] b\n", []string{"line 1: A", "id AUTH-1 of", "line 3: B", "id AUTH-2 of", "completed"}},
		{"priorities are no tasks", "## P0: now\n- [ ] a\n## P1 - later\n- [ ] b\n", []string{"line 2: a", "line 4: b"}},
		{"a summary of headings", "# P\n- [x] US-1: A\n- [ ] US-2: B\n### US-1: A\n### US-2: B\n", []string{"| - [x] US-1: A", "line 4: A", "completed", "line 5: B", "pending"}},
		{"a heading with a box", "## 1. [x] A\n## 2. [ ] B\nText.\n", []string{"line 1: 1. A", "completed", "line 2: 2. B", "pending", "| Text."}},
		{"boxes beside headings", "### Task 1: A\n- [ ] a\n## Zum Schluss\n- [ ] b\n", []string{"line 1: A", "| ## Zum Schluss", "| - [ ] b", "accept: a", "boxes that are not tasks, now in the description of each task: 1 (line 4)"}},
		{"more boxes beside headings", "- [ ] a\n- [ ] b\n## Bug 1: A\n- [ ] c\n", []string{"line 1: a", "line 2: b", "line 3: A", "accept: c"}},
		{"ranges", "- [ ] T001 a\n- [ ] 1.1 b\n- [ ] 1.2 c\n- [ ] 1.3 d\n- [ ] e (after 1.1-1.3)\n", []string{"line 5: e", "1 1 b", "1 2 c", "1 3 d"}},
		{"numbers that begin anew", "## A\n- [ ] 1. a\n- [ ] 2. b (requires 1)\n## B\n- [ ] 1. c\n- [ ] 2. d (requires 1)\n", []string{"line 3: 2. b", "needs markdown#a/1 a", "line 6: 2. d", "needs markdown#b/1 c"}},
		{"an id that is nowhere", "### US-2: B\nDepends on: US-1\n", []string{"needs markdown#US-1 (optional: true)"}},
		{"what needs nothing", "### US-2: B\n**Dependencies:** None\n", []string{"| **Dependencies:** None\n\nboxes"}},
		{"code at the edge below a box", "- [ ] a\n  ```\nb\n  ```\n- [ ] c\n", []string{"line 1: a", "| b", "line 5: c"}},
		{"an unknown mark twice", "- [!] a\n- [?] b\n- [!] c\n", []string{`marked [!] there, and pending here: "a" (line 1), "c" (line 3)`, `marked [?] there, and pending here: "b" (line 2)`}},
		{"a box without a text", "- [ ]\n- [ ] a\n", []string{"line 2: a", "left out: boxes without a text: 1", "boxes {Read:2 Made:1 Folded:0 Left:1}"}},
		{"names with a digit are no ids", "## ES6 modules\n- [ ] a\n## UTF-8 names\n- [ ] b\n", []string{"line 2: a", "line 4: b"}},
		{"criteria in groups", "### US-1: A\n#### Acceptance Criteria\n##### Fast\n- b\n##### Safe\n- [ ] c\n", []string{"line 1: A", "accept: b", "accept: c"}},
		{"a word and a number alone", "### Task 1\nDo it.\n### Task 2 Then this\n- [ ] a\n", []string{"line 1: Task 1", "| Do it.", "line 3: Then this", "accept: a"}},
		{"emoji before titles", "## 🚀 Task 1: A\n#### 🎯 Acceptance Criteria\n- a\n**✅ Done when:**\n- b\n## ✅ Task 2: B\n", []string{"line 1: A", "pending", "accept: a", "accept: b", "line 6: B", "completed"}},
		{"a number before the id", "### 3.1 US-001: A\n- [ ] a\n### 2. Task 4: B\n- [ ] b\n", []string{"line 1: A", "id US-001 of", "line 3: B", "accept: b"}},
		{"a heading that waits", "### Task 1: A\n### Task 2: B (depends on Task 1)\n", []string{"line 2: B (depends on Task 1)", "needs markdown#a (optional: true)"}},
		{"citations are no boxes", "- [ ] a\n- [P] = parallel\n- [1] Smith\n", []string{"line 1: a", "boxes {Read:1 "}},
		{"boxes in a quote", "> [!todo] Now\n> - [ ] a\n>   - [x] b\n> - [ ] c\n", []string{"line 3: b", "line 2: a", "line 4: c", "boxes {Read:3 "}},
		{"no blank behind a box", "- [ ]a\n- [x]b\n- [x](b.md) link\n- []string\n", []string{"line 1: a", "line 2: b", "completed", "boxes {Read:2 "}},
		{"marks that make no box", "- [ ] a\n- [D] b\n- [WIP] c\n– [ ] d\n- **[ ]** e\n<li>[x] f</li>\n［　］ g\n- \\[ \\] h\n- `[ ]` i\n- [x](j) k\n", []string{"| - [D] b", "marks that make no box: 7 (line 2, 3, 4, 5, 6, 7, 8)"}},
		{"a word with a number of two parts", "### Sub 3.1\n- [ ] a\n- [ ] b\n", []string{"line 2: a", "line 3: b"}},
		{"four digits", "### Task 1000: A\n- [ ] a\n### March 2026: B\n- [ ] b\n- [ ] c\n", []string{"line 1: A", "line 4: b", "line 5: c"}},
		{"scripts with marks, without blanks, with digits of their own", "### タスク1：A\n- [ ] a\n### कार्य 5: B\n- [ ] b\n### مهمة ٦: C\n- [ ] c\n", []string{"line 1: A", "line 3: B", "line 5: C"}},
		{"dependencies in a list", "### US-1: A\n### US-2: B\n**Depends on:**\n- US-1\n\n- [ ] x\n### US-3: C\n#### Dependencies\n- US-1\n- [ ] US-2\n#### Acceptance Criteria\n- y\n", []string{"line 2: B", "accept: x", "needs markdown#US-1 (", "line 7: C", "| - US-1", "accept: y", "needs markdown#US-1 (", "needs markdown#US-2 ("}},
		{"dependencies by title", "- [ ] Add OAuth 2\n- [ ] 2. b\n- [ ] c\n  Blocked by: add OAuth 2, `2. b`\n", []string{"line 3: c", "needs markdown#add oauth 2 (", "needs markdown#2 b ("}},
		{"dependencies that name none", "### T1: A\nDepends on: T1, T9\n### T2: B (depends on 7.1)\n### T3: C (requires Python 3)\n", []string{"line 4: C", "of the file, or several: T1 (line 1), T9 (line 1), 7.1 (line 3)\n"}},
		{"an id of two tasks", "- [ ] T-1: a\n- [ ] T-1: b\n- [ ] T-2: c\n  Depends on: T-1\n", []string{"line 3: c", "needs markdown#T-1 (", "needs markdown#T-1 (2) ("}},
		{"code in an item of a list", "1. ```sh\n   - [ ] no box\n   ```\n- [ ] a\n- ~~~\n  - [ ] no box\n  ~~~\n- [ ] b\n", []string{"format markdown\n\nline 4: a\n", "line 8: b\n", "boxes {Read:2 "}},
		{"code in a quote", "> ```\n> - [ ] no box\n> ```\n- [ ] a\n> ```\n> - [ ] no box\n- [ ] b\n", []string{"format markdown\n\nline 4: a\n", "line 7: b\n", "boxes {Read:2 "}},
		{"code without an end", "- [ ] a\n```\n- [ ] b\nc\n- [ ] d\n", []string{"line 1: a\n", "boxes in the code that begins in line 2 and does not end: 2 (line 3, 5)\n", "boxes {Read:1 "}},
		{"blanks and bullets of web pages", "-\u00a0[\u00a0] a\n\u00a0\u00a0•\u00a0[x]\u00a0b\na. [ ] c\n- [\u00a0]\u00a0d\n", []string{"line 2: b\n", "completed", "line 1: a\n", "pending", "line 3: c\n", "line 4: d\n", "boxes {Read:4 "}},
		{"a comment that begins within a line", "Why. <!-- not now\n- [ ] no box\n-->\n- [ ] a `<!--`\n- [ ] b <!-- x -->\n- [ ] c <!--\n", []string{"format markdown\n\nline 4: a `<!--`\n", "line 5: b", "line 6: c", "boxes {Read:3 "}},
		{"a title of several kilobytes", "- [ ] " + strings.Repeat("long ", 200) + "\n", []string{"…", "| long long"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, err := exchange.Parse([]byte(tt.text), "markdown")
			if err != nil {
				t.Fatal(err)
			}
			got, rest := dump(in), ""
			rest = got
			for _, w := range tt.want {
				_, after, ok := strings.Cut(rest, w)
				if !ok {
					t.Fatalf("%q is missing, or not in its place:\n%s", w, got)
				}
				rest = after
			}
		})
	}
}

// TestOwnChecklistsAreReadBack: an exported task is read as it was, whatever its texts look like.
func TestOwnChecklistsAreReadBack(t *testing.T) {
	for _, text := range []string{
		"- [ ] a box\n# heading\n  - [x] b", "- Verify: rm x\n- Depends on: TASK-2\n- Acceptance: c",
		"Do `accept: rm x`.", "**Acceptance Criteria:**\n- a\nDepends on: TASK-2",
		"a\n\nb\n---\nc\n\nd\n===\n---", "| a | ok |\n|---|---|\n| b | [ ] |", "☐ a\n> quote\n> - [ ] b",
		"<!-- a", "a <!-- b\n-->", "> ralph: a note", "```\n- [ ] code\n- Verify: a\n\\# a\n```", "```\nno end", "> ```\n> no end\na",
		`\- [ ] a` + "\n" + `\\# b` + "\n" + `\begin` + "\n" + `\` + "```", "1. ```sh\n   - [ ] z\n   ```\n    # deep", "~~a~~", "a (depends on TASK-2)",
		"T001 [P] a", "**a** b", "US-1: a", "a: `accept: rm x`", "[ ] a", "[TASK-9] a",
	} {
		want := []ralph.Task{{ID: 1, Title: "a", Description: text, Status: ralph.Pending}, {ID: 2, Title: "b", Status: ralph.Pending}}
		if !strings.Contains(text, "\n") {
			want[0].Title = text
		}
		var b strings.Builder
		if err := exchange.Write(&b, "markdown", exchange.Queue{Project: "p", Tasks: want}); err != nil {
			t.Fatal(err)
		}
		in, err := exchange.Parse([]byte(b.String()), "")
		if err != nil || len(in.Tasks) != 2 {
			t.Errorf("%d tasks, %v:\n%s", len(in.Tasks), err, b.String())
			continue
		}
		for i, got := range in.Tasks {
			if got.Title != want[i].Title || got.Description != want[i].Description || got.Status != ralph.Pending ||
				len(got.Verify)+len(got.Acceptance)+len(got.Needs) > 0 {
				t.Errorf("%+v from:\n%s", got, b.String())
			}
		}
	}
}

// TestIssuesWait: the words of an issue name others of its repository.
func TestIssuesWait(t *testing.T) {
	for body, want := range map[string]string{
		"Depends on #1 and #2.":                             "1 2",
		"Depends on:\n\n- #1\n- #2\n\n- [ ] x #3\n":         "1 2",
		"## Blocked by\n- #1: the base\n## Notes\n#2":       "1",
		"Blocked by https://github.com/o/r/issues/1, o/r#2": "1 2",
		"Blocked by other/r#1":                              "",
		"Blocked by #4":                                     "",
	} {
		text := fmt.Sprintf(`[{"number": 4, "title": "a", "body": %q, "url": "https://github.com/o/r/issues/4"}]`, body)
		in, err := exchange.Parse([]byte(text), "")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range in.Tasks[0].Needs {
			got = append(got, strings.TrimPrefix(n.Key, "github/github.com/o/r#"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q waits for %q, want %q", body, got, want)
		}
		if other := strings.Contains(body, "other"); other != (len(in.Notes) > 0) {
			t.Errorf("%q: notes %q", body, in.Notes)
		}
	}
}

// TestLongTextsAreCut: the rest of the file is imported, and a note names the cut text.
func TestLongTextsAreCut(t *testing.T) {
	long := strings.Repeat(strings.Repeat("ü", 50)+"\n", 1000)
	for name, tt := range map[string]struct{ text, note string }{
		"an issue":  {fmt.Sprintf(`[{"number": 7, "title": "Long", "body": %q}, {"number": 8, "title": "b"}]`, long), "line 1: the description of 7 (Long) is longer than 64 KiB; its last "},
		"a heading": {"### US-1: Long\n" + long + "### US-2: b\n", "line 1: the description of US-1 (Long) is longer"},
		"a feature": {"# F\n" + long + "- [ ] a\n- [ ] b\n", "line 1: the description of the feature F is longer"},
		"one line":  {fmt.Sprintf(`[{"number": 7, "title": "Long", "body": "a%s"}, {"number": 8, "title": "b"}]`, strings.Repeat("ü", 40000)), "the description of 7"},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := exchange.Parse([]byte(tt.text), "")
			if err != nil || len(in.Tasks) != 2 || len(in.Notes) != 1 || !strings.Contains(in.Notes[0], tt.note) {
				t.Fatalf("%d tasks, notes %q, %v", len(in.Tasks), in.Notes, err)
			}
			text := in.Tasks[0].Description
			if text == "" {
				text = in.Features[0].Description
			}
			if err := ralph.CheckText("it", text, true); err != nil || !strings.HasSuffix(text, "(cut here: the rest is in the file)") {
				t.Errorf("%v: …%s", err, text[len(text)-100:])
			}
		})
	}
}

func TestASubtaskMayWaitForATask(t *testing.T) {
	in, err := exchange.Parse([]byte(`{"tasks":[{"id":7,"title":"a"},{"id":8,"title":"b","subtasks":[{"id":1,"title":"c","dependencies":[7]},{"id":2,"title":"d","dependencies":[1]}]}]}`), "")
	if err != nil {
		t.Fatal(err)
	}
	got := dump(in)
	for _, want := range []string{"id 8.1 of taskmaster/master\n  pending, priority 2, feature \"\"\n  | Part of:\n  | b\n  needs taskmaster/master#7 (", "needs taskmaster/master#8.1 ("} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
}

// TestASubtaskMayHaveTheIdOfAnother: files of Task Master have that, and the rest of them is imported.
func TestASubtaskMayHaveTheIdOfAnother(t *testing.T) {
	in, err := exchange.Parse([]byte(`{"tasks":[{"id":7,"title":"a","subtasks":[{"id":1,"title":"b"},{"id":1,"title":"c"}]}]}`), "")
	if err != nil {
		t.Fatal(err)
	}
	got := dump(in)
	for _, want := range []string{"id 7.1 of", "id 7.1 (2) of", "note: an id twice: a subtask of 7 is 7.1 (2) here"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
}

func TestAChecklistMayCallItsBoxesTasks(t *testing.T) {
	in, err := exchange.Parse([]byte("What to do as\ntasks:\n- [ ] a\n"), "")
	if err != nil || in.Format != "markdown" || len(in.Tasks) != 1 {
		t.Errorf("got %+v, %v", in, err)
	}
}

func TestTasksWithoutAnIdAreKnownByTheirTitles(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"the same title twice", "- [ ] Test\n- [ ] test!\n", "test, test (2)"},
		{"a box without letters", "- [ ] 🚀\n", "🚀"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, err := exchange.Parse([]byte(tt.text), "")
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, task := range in.Tasks {
				ids = append(ids, task.ExternalID)
			}
			if got := strings.Join(ids, ", "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// FuzzParse: for any text the result is an import that can be stored, or an error with a line of the text.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // the folder of the fuzzer's own findings
		}
		f.Add(string(data), "")
	}
	for _, format := range exchange.Formats() {
		f.Add("- [ ] a\n", format)
		f.Add(`{"a":[{"id":1}]}`, format)
	}
	f.Fuzz(func(t *testing.T, text, format string) {
		in, err := exchange.Parse([]byte(text), format)
		var bad *exchange.Error
		if errors.As(err, &bad) {
			if bad.Line < 0 || bad.Line > 2+strings.Count(text, "\n") {
				t.Errorf("line %d of %q", bad.Line, text)
			}
			return
		}
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, task := range in.Tasks {
			if err := ralph.CheckTitle("title", task.Title); err != nil || task.ExternalID == "" || seen[task.Key] {
				t.Errorf("task %+v: %v", task, err)
			}
			seen[task.Key] = true
		}
	})
}
