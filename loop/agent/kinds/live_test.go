package kinds_test

import (
	"os"
	"path/filepath"
	"testing"

	"ralph"
	"ralph/internal/transcript"
	"ralph/loop/agent/kinds"
)

// TestUseIsKnownDuringASession: each agent's recording has, up to its end, everything that a screen shows of a session
// in progress. If an agent reports only tokens, its model gives the price, if known.
func TestUseIsKnownDuringASession(t *testing.T) {
	for _, tt := range []struct {
		file    string
		usd     bool // a cost is shown
		tokens  ralph.Tokens
		context int64
	}{
		{"troubles/claude/killed.jsonl", true, ralph.Tokens{Input: 1200, Output: 12}, 1201},
		{"troubles/codex/killed.jsonl", true, ralph.Tokens{Input: 1000, Output: 50, CacheRead: 200, ContextWindow: 258400}, 1250},
		// copilot tells tokens when a turn ends, and no cost.
		{"troubles/copilot/killed.jsonl", false, ralph.Tokens{}, 12261},
		{"troubles/copilot/429-later.jsonl", false, ralph.Tokens{Input: 1000, Output: 50, CacheRead: 200}, 12335},
		// gemini tells tokens when a turn ends, with the model.
		{"troubles/gemini/killed.jsonl", false, ralph.Tokens{}, 0},
		{"../../acp/testdata/gemini-basic.jsonl", true, ralph.Tokens{Input: 6000, Output: 250}, 0},
		{"troubles/opencode/429-later.jsonl", true, ralph.Tokens{}, 0},
		{"../../acp/testdata/opencode-ask.jsonl", true, ralph.Tokens{Input: 1000, Output: 50, CacheRead: 200}, 1200},
		{"troubles/qwen/killed.jsonl", false, ralph.Tokens{Input: 1000, Output: 50, CacheRead: 200}, 0},
		{"../../acp/testdata/claude-basic.jsonl", true, ralph.Tokens{Input: 5000, Output: 250, CacheRead: 1000}, 1250},
	} {
		t.Run(tt.file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []int{len(text), 1000} { // as a whole, and as it grows
				r := transcript.NewReader(kinds.NewReader())
				for rest := text; len(rest) > 0; {
					n := min(part, len(rest))
					r.Feed(rest[:n])
					rest = rest[n:]
				}
				if used := r.Used(); used.Tokens != tt.tokens || used.Context != tt.context || used.CostUSD > 0 != tt.usd {
					t.Errorf("in parts of %d bytes: %+v", part, used)
				}
			}
		})
	}
}
