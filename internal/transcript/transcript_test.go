package transcript_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"ralph/internal/transcript"
	"ralph/loop/agent/claude"
)

var update = flag.Bool("update", false, "write the golden files anew")

// entries returns the entries of a stream that arrives in pieces of a size.
func entries(stream []byte, size int) (list []transcript.Entry) {
	r := transcript.NewReader(claude.NewReader())
	for piece := range slices.Chunk(stream, size) {
		list = append(list, r.Feed(piece)...)
	}
	return append(list, r.End()...)
}

// shown returns a stream as people see it.
func shown(stream []byte) string {
	var b strings.Builder
	for _, e := range entries(stream, 1<<20) {
		for _, l := range e.Lines() {
			b.WriteString(strings.TrimRight(l.Lead+l.Text, " ") + "\n")
		}
	}
	return b.String()
}

// TestRecordedSessionsAreReadable: the golden files show the real CLI's output as people see it.
func TestRecordedSessionsAreReadable(t *testing.T) {
	paths := []string{filepath.Join("testdata", "work.jsonl")}
	for _, name := range []string{
		"done", "rate_limit_after_work", "rate_limit_subscription", "two_turns", "overloaded", "max_turns", "max_budget", "interrupted_by_sigint",
		"mcp_server_failed", "permission_denied", "messages_after_the_result", "auth_failed",
	} {
		paths = append(paths, filepath.Join("..", "..", "loop", "agent", "claude", "testdata", name+".jsonl"))
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		t.Run(name, func(t *testing.T) {
			stream, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, golden := shown(stream), filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || got != string(want) {
				t.Errorf("not as in %s (%v):\n%s", golden, err, got)
			}
			if diff := cmp.Diff(entries(stream, 1<<20), entries(stream, 7)); diff != "" {
				t.Errorf("it depends on the pieces in which it comes:\n%s", diff)
			}
		})
	}
}

// use returns a line of the stream in which the agent calls a tool.
func use(name, input string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":%q,"input":%s}]}}`, name, input)
}

func TestATool(t *testing.T) {
	for _, tt := range []struct{ name, tool, input, want string }{
		{"a command", "Bash", `{"command":"go test \\\n  ./...","description":"test"}`, "→ Bash go test \\ ./..."},
		{"one that goes on", "Bash", `{"command":"npm start","run_in_background":true}`, "→ Bash npm start (in the background)"},
		{"a file of the project", "Read", `{"file_path":"/p/a.go","offset":10,"limit":5}`, "→ Read a.go from line 10"},
		{"a file elsewhere", "Read", `{"file_path":"/etc/hosts"}`, "→ Read /etc/hosts"},
		{"a search", "Grep", `{"pattern":"func A","path":"/p/internal"}`, "→ Grep func A internal"},
		{"an edit", "Edit", `{"file_path":"/p/a.go","old_string":"a\n\tb\nc","new_string":"a\n\tB\nc"}`, "→ Edit a.go\n      a\n    -     b\n    +     B\n      c"},
		{"an edit everywhere", "Edit", `{"file_path":"/p/a.go","old_string":"a","new_string":"b","replace_all":true}`, "→ Edit a.go (every occurrence)\n    - a\n    + b"},
		{"what is taken away", "Edit", `{"file_path":"/p/a.go","old_string":"a\nb\n","new_string":""}`, "→ Edit a.go\n    - a\n    - b"},
		{"an edit of nothing", "Edit", `{"file_path":"/p/a.go","old_string":"a","new_string":"a"}`, "→ Edit a.go"},
		{"several edits", "MultiEdit", `{"file_path":"/p/a.go","edits":[{"old_string":"a","new_string":"b"},{"old_string":"","new_string":"c"}]}`, "→ MultiEdit a.go\n    - a\n    + b\n    …\n    + c"},
		{"a new file", "Write", `{"file_path":"/p/a.go","content":"a\n\nb\n"}`, "→ Write a.go\n    + a\n    +\n    + b"},
		{"a long file", "Write", `{"file_path":"/p/a.go","content":"` + strings.Repeat(`x\n`, 40) + `"}`, "→ Write a.go" + strings.Repeat("\n    + x", 24) + "\n    … 16 more lines"},
		{"a cell of a notebook", "NotebookEdit", `{"notebook_path":"/p/a.ipynb","new_source":"x"}`, "→ NotebookEdit a.ipynb\n    + x"},
		{"a sub-agent", "Task", `{"subagent_type":"Explore","description":"Find it","prompt":"long"}`, "→ Task Explore Find it"},
		{"a list of things to do", "TodoWrite", `{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress"}]}`, "→ TodoWrite 1 of 2 done; now: b"},
		{"an address", "WebFetch", `{"url":"https://example.com","prompt":"what is it?"}`, "→ WebFetch https://example.com"},
		{"a signal", "mcp__ralph__ralph_signal_done", `{"summary":"made it"}`, "◆ done: made it"},
		{"a state", "mcp__ralph__update_session_state", `{"state":"testing"}`, "→ update_session_state testing"},
		{
			"what was reported with it", "mcp__ralph__update_session_state", `{"state":"testing","metadata":{"testResults":{"passed":3}}}`,
			`→ update_session_state testing {"testResults":{"passed":3}}`,
		},
		{"nothing was reported with it", "mcp__ralph__update_session_state", `{"state":"testing","metadata":{}}`, "→ update_session_state testing"},
		{"a tool that nobody knows", "mcp__db__query", `{"table":"a","rows":3,"deep":{"x":1},"all":true}`, "→ mcp__db__query all=true rows=3 table=a"},
		{"no input", "Stop", `{}`, "→ Stop"},
		{"input that is none", "Odd", `[1,2]`, "→ Odd [1,2]"},
		{"what steers a terminal", "Bash", `{"command":"echo \u001b[31mred\u001b]0;x\u0007 \u202eeno"}`, "→ Bash echo red eno"},
		{"a long command", "Bash", `{"command":"` + strings.Repeat("x", 500) + `"}`, "→ Bash " + strings.Repeat("x", 199) + "…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := shown([]byte(`{"type":"system","subtype":"init","cwd":"/p"}` + "\n" + use(tt.tool, tt.input)))
			if want := "claude , model\n" + tt.want + "\n"; got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestHowLongAToolTook(t *testing.T) {
	answer := func(at, rest string) string {
		return `{"type":"user","timestamp":"2026-03-01T10:00:` + at + `Z","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}` + rest + `}`
	}
	begin := `{"type":"user","isReplay":true,"timestamp":"2026-03-01T10:00:00.000Z","message":{"content":"begin"}}`
	for _, tt := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"a short one is not worth a word", []string{begin, use("Bash", `{"command":"a"}`), answer("01.900", "")}, "« begin\n→ Bash a\n"},
		{"a long one is", []string{begin, use("Bash", `{"command":"a"}`), answer("12.000", "")}, "« begin\n→ Bash a\n  ✓ Bash (12 s)\n"},
		{"what the agent tells is better", []string{begin, use("WebFetch", `{"url":"a"}`), answer("50.000", `,"tool_use_result":{"durationMs":2500}`)}, "« begin\n→ WebFetch a\n  ✓ WebFetch (2.5 s)\n"},
		{"a sub-agent's words and time", []string{begin, use("Task", `{"subagent_type":"a","description":"b"}`), answer("50.000", `,"tool_use_result":{"totalDurationMs":63000,"content":[{"type":"text","text":"found"}]}`)}, "« begin\n→ Task a b\n    found\n  ✓ Task (1 min 3 s)\n"},
		{"nobody knows when it began", []string{use("Bash", `{"command":"a"}`), answer("50.000", "")}, "→ Bash a\n"},
		{"a clock that was set back", []string{answer("50.000", ""), use("Bash", `{"command":"a"}`), answer("10.000", "")}, "→ Bash a\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := shown([]byte(strings.Join(tt.lines, "\n"))); got != tt.want {
				t.Errorf("got\n%swant\n%s", got, tt.want)
			}
		})
	}
}

// TestLongEntriesAreCut: after a megabyte of anything, the rest is still read.
func TestLongEntriesAreCut(t *testing.T) {
	big := strings.Repeat(`word \n`, 1<<20)
	stream := `{"type":"assistant","message":{"content":[{"type":"text","text":"` + big + `"}]}}` + "\n" +
		use("Write", `{"file_path":"a","content":"`+big+`"}`) + "\n" + use("Bash", `{"command":"`+big+`"}`) + "\n" +
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"` + big + `"}]}}` + "\n" +
		strings.Repeat("x", 64<<20) + "\n" + use("Read", `{"file_path":"b"}`)
	got := entries([]byte(stream), 64<<10)
	if len(got) != 5 || got[4].Text != "b" {
		t.Fatalf("%d entries", len(got))
	}
	for _, e := range got {
		b, err := json.Marshal(e)
		if err != nil || len(b) > 32<<10 {
			t.Errorf("%s: %d bytes are shown, %v", e.Kind, len(b), err)
		}
	}
}

// FuzzReader: the display of any agent's output steers no terminal and is not long.
func FuzzReader(f *testing.F) {
	work, err := os.ReadFile(filepath.Join("testdata", "work.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(work) {
		f.Add(string(line))
	}
	f.Add(`{"type":"assistant","message":{"content":[{"type":"text","text":"\u001b[31mred\u202e"}]}}`)
	f.Add(use("MultiEdit", `{"file_path":"a","edits":[{"old_string":"b\nc","new_string":"\u0007"}]}`))
	f.Add(`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","rateLimitType":"five_hour","resetsAt":1e99}}`)
	f.Fuzz(func(t *testing.T, line string) {
		for _, e := range entries([]byte(line+"\n"+line), 5) {
			b, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) > 256<<10 {
				t.Errorf("%d bytes", len(b))
			}
			for _, l := range e.Lines() {
				if strings.ContainsFunc(l.Lead+l.Text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
					t.Errorf("%q", l.Text)
				}
			}
		}
	})
}
