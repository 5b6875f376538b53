package acp

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/jsonrpc"
	"ralph/loop/agent"
)

var rewrite = flag.Bool("update", false, "write what is seen of the recordings")

// price returns the tests' price: a dollar a million tokens of any kind.
func price(_ string, t ralph.Tokens) (float64, bool) { return float64(t.Sum()) / 1e6, true }

// profileOf returns the profile of a recording's agent.
func profileOf(t *testing.T, name string) *Profile {
	t.Helper()
	of, _, _ := strings.Cut(name, "-")
	for _, p := range Profiles {
		if strings.HasPrefix(p.Name, of) {
			return p
		}
	}
	t.Fatalf("whose is %s?", name)
	return nil
}

// seenOf returns a recording's questions, as rules see them, its entries for people, and its end.
func seenOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	profile := profileOf(t, filepath.Base(path))
	var b strings.Builder
	reader := NewReader()
	for line := range bytes.Lines(text) {
		for _, e := range reader.Clone().Line(line) {
			fmt.Fprintf(&b, "%s %s%s: %.100q", e.Kind, e.Tool, map[bool]string{true: " failed"}[e.Failed], e.Text)
			for _, edit := range e.Edits {
				fmt.Fprintf(&b, " %q → %q", edit.Old, edit.New)
			}
			b.WriteString("\n")
		}
		reader.Line(line)
		var l jsonrpc.Line
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		if l.Message.Method != "session/request_permission" {
			continue
		}
		uses, ok := profile.uses(read[question](l.Message.Params).Call)
		fmt.Fprintf(&b, "  asks, %t:", ok)
		for _, u := range uses {
			fmt.Fprintf(&b, " %s %s", u.Tool, u.Input)
		}
		b.WriteString("\n")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, agent.TranscriptFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := New(Options{Profile: profile, Cost: price}).Salvage(dir, agent.Unseen)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "%s: %s; model %q, version %q, %d turns, %d calls, %+v, $%.5f %t, began %t, %q\n", r.Ending, r.Reason, r.Model,
		r.Version, r.Turns, r.ToolCalls, r.Tokens, r.CostUSD, r.CostKnown, r.Began, r.LastWords)
	return b.String()
}

// TestRecordings replays conversations with the real agents: their questions, their entries for people, their use, and
// their endings.
func TestRecordings(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "*.jsonl"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no recordings", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			got, golden := seenOf(t, path), strings.TrimSuffix(path, "jsonl")+"seen"
			if *rewrite {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s is stale: run `go test ./loop/agent/acp -update` and read the difference\ngot:\n%s", golden, got)
			}
		})
	}
}
