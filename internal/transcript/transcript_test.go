package transcript_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"ralph/internal/transcript"
)

var update = flag.Bool("update", false, "write the golden files anew")

// shown is a transcript as text, for the golden files.
func shown(lines []byte) string {
	var r transcript.Reader
	var b strings.Builder
	for line := range bytes.Lines(lines) {
		for _, e := range r.Line(line) {
			fmt.Fprintf(&b, "%s%s %s %q %.1f\n", strings.Repeat("  ", e.Depth), e.Kind, e.Tool, e.Text, e.Seconds)
			for _, d := range e.Diff {
				fmt.Fprintf(&b, "%s    %s\n", strings.Repeat("  ", e.Depth), d)
			}
		}
	}
	return b.String()
}

func TestRecordedSessionsAreReadable(t *testing.T) {
	recordings := filepath.Join("..", "..", "loop", "claude", "testdata")
	for _, path := range []string{
		filepath.Join(recordings, "done.jsonl"), filepath.Join(recordings, "rate_limit_after_work.jsonl"),
		filepath.Join(recordings, "two_turns.jsonl"), filepath.Join(recordings, "overloaded.jsonl"), filepath.Join(recordings, "max_turns.jsonl"),
		filepath.Join("testdata", "subagent.jsonl"),
	} {
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		t.Run(name, func(t *testing.T) {
			lines, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, golden := shown(lines), filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || got != string(want) {
				t.Errorf("not as in %s (%v):\n%s", golden, err, got)
			}
		})
	}
}

// FuzzLine: whatever an agent writes, what is shown of it steers no terminal and
// is not long.
func FuzzLine(f *testing.F) {
	f.Add(`{"type":"assistant","message":{"content":[{"type":"text","text":"\u001b[31mred\u202e"}]}}`)
	f.Add(`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Edit","input":{"file_path":"a","old_string":"b\nc","new_string":"\u0007"}}]}}`)
	f.Add(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"x"}]}}`)
	f.Add(`{"type":"result","subtype":"success","result":"x"}`)
	f.Fuzz(func(t *testing.T, line string) {
		var r transcript.Reader
		for range 2 {
			for _, e := range r.Line([]byte(line)) {
				b, err := json.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				for _, text := range append([]string{e.Text, e.Tool}, e.Diff...) {
					if strings.ContainsFunc(text, func(r rune) bool {
						return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
					}) {
						t.Errorf("%q", text)
					}
				}
				if len(b) > 256<<10 {
					t.Errorf("%d bytes", len(b))
				}
			}
		}
	})
}
