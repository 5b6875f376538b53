package show_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/show"
	"ralph/internal/term"
)

func TestATranscriptFitsTheTerminal(t *testing.T) {
	const stream = `{"type":"assistant","message":{"content":[{"type":"text","text":"I look at the form first. It has a validator already…"}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"go test ./internal/form -run TestEmpty -count 1"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"no"}]}}
{"type":"assistant","message":{"content":[{"type":"text","text":"Hm."}]}}
` + "\x1b[2Jno\u202e JSON\n"
	for _, tt := range []struct {
		name   string
		screen term.Screen
		raw    bool
		want   string
	}{
		{"a file", term.Screen{}, false, `I look at the form first. It has a validator already…
→ Bash go test ./internal/form -run TestEmpty -count 1
  ✕ Bash: no

Hm.
`},
		{"a narrow terminal", term.Screen{Columns: 30}, false, `I look at the form first. It
has a validator already…
→ Bash go test ./internal/form
  -run TestEmpty -count 1
  ✕ Bash: no

Hm.
`},
		{"colours", term.Screen{Columns: 200, Colours: true}, false, "I look at the form first. It has a validator already…\n" +
			"→ \x1b[34mBash go test ./internal/form -run TestEmpty -count 1\x1b[0m\n  ✕ \x1b[31mBash: no\x1b[0m\n\nHm.\n"},
		{"as it was, in a file", term.Screen{}, true, stream},
		{"as it was, on a terminal", term.Screen{Columns: 80}, true, strings.NewReplacer("\x1b", "\uFFFD", "\u202e", "\uFFFD").Replace(stream)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			p := show.NewPrinter(&out, tt.screen, tt.raw, false)
			for piece := range slices.Chunk([]byte(stream), 7) {
				if _, err := p.Write(piece); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.End(ralph.Session{}); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
