package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ralph/internal/tools/messagesapi"
	"ralph/loop/agent/claude"
	"ralph/loop/agent/scripted"
)

// TestRealPages: a reader of the README gets to a verified task with the real CLI, letter by letter. The model follows
// the page's script; the other pages are left to the scripted agent.
func TestRealPages(t *testing.T) {
	t.Parallel()
	claude := realClaude(t)
	for _, path := range testedPages(t)[:1] {
		t.Run(pageName(path), func(t *testing.T) {
			t.Parallel()
			p := readPage(t, path)
			r := newReader(t, path)
			api := messagesapi.New(scriptedModel(t, r.script))
			t.Cleanup(api.Close)
			r.environ = append(r.environ, "ANTHROPIC_BASE_URL="+api.URL, "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
			r.install(t, "claude", "exec '"+claude+"' \"$@\"\n")
			r.execute(t, p)
			for _, b := range p.blocks {
				for _, c := range b.commands {
					c.compare(t, path)
				}
			}
		})
	}
}

// scriptedModel returns a model that uses the tools which a script of the scripted agent names, one step for each
// request.
func scriptedModel(t *testing.T, path string) func(int, messagesapi.Request) messagesapi.Turn {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	script, err := scripted.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	chosen := map[string][]messagesapi.Turn{} // by the conversation's first message
	return func(_ int, r messagesapi.Request) messagesapi.Turn {
		mu.Lock()
		defer mu.Unlock()
		var body struct {
			Messages []struct {
				Role    string
				Content json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(r.Body), &body); err != nil || len(body.Messages) == 0 {
			return messagesapi.Turn{Status: 400, Kind: "invalid_request_error", Text: "no messages"}
		}
		first, said := string(body.Messages[0].Content), 0
		for _, m := range body.Messages {
			if m.Role == "assistant" {
				said++
			}
		}
		if chosen[first] == nil {
			_, prompt, _ := strings.Cut(r.Text, "# You work unattended")
			for _, turn := range script.Select(prompt, 1) {
				chosen[first] = append(chosen[first], answers(turn)...)
			}
		}
		if said >= len(chosen[first]) {
			return messagesapi.Turn{Text: "There is nothing for me to do."}
		}
		return chosen[first][said]
	}
}

// answers returns a model's answers, one after the other, for the steps of a turn.
func answers(turn scripted.Turn) []messagesapi.Turn {
	var list []messagesapi.Turn
	for _, step := range turn {
		switch step.Verb {
		case "run":
			list = append(list, tools(messagesapi.Tool{Name: "Bash", Input: map[string]any{"command": step.Arg, "description": "work"}}))
		case "write":
			command := "cat >" + step.Arg + " <<'END OF FILE'\n" + step.Text + "END OF FILE"
			list = append(list, tools(messagesapi.Tool{Name: "Bash", Input: map[string]any{"command": command, "description": "write " + filepath.Base(step.Arg)}}))
		case "call":
			list = append(list, tools(messagesapi.Tool{Name: claude.SignalPrefix + step.Arg, Input: json.RawMessage(step.Text)}))
		}
	}
	return append(list, messagesapi.Turn{Text: "I have said what there is to say."})
}
