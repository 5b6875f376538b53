package claude_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ralph/loop/agent"
	"ralph/loop/agent/claude"
)

// TestReadingAnEventCostsLittle counts allocations, which do not depend on
// the machine, for recorded events and for one with a large file in it.
func TestReadingAnEventCostsLittle(t *testing.T) {
	one, err := os.ReadFile(filepath.Join("testdata", "done.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	large := fmt.Appendf(nil, `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"x","content":%q}]}}`+"\n", bytes.Repeat([]byte("a line\n"), 100_000))
	works := claude.New(claude.Options{})
	allocations := func(stream []byte) float64 {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, agent.TranscriptFile), stream, 0o600); err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(5, func() {
			if _, err := works.Salvage(dir, agent.Unseen); err != nil {
				t.Fatal(err)
			}
		})
	}
	const times = 50
	for _, tt := range []struct {
		name   string
		stream []byte
		most   float64 // allocations per event
	}{
		{"a recorded event", one, 40},
		{"a large file", large, 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			events := float64(bytes.Count(tt.stream, []byte("\n")) * times)
			more := allocations(bytes.Repeat(tt.stream, times+1)) - allocations(tt.stream)
			if each := more / events; each > tt.most {
				t.Errorf("%.1f allocations, at most %.0f are allowed", each, tt.most)
			} else {
				t.Logf("%.1f allocations", each)
			}
		})
	}
}
