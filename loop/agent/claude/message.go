package claude

import (
	"encoding/json"
	"strings"
)

// userMessage returns a line of stream-json input: one message with a block per text. A text that
// begins with "/" gets a newline before it, or the CLI would take it for one of its commands.
func userMessage(texts []string) []byte {
	type block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	blocks := make([]block, len(texts))
	for i, t := range texts {
		if strings.HasPrefix(t, "/") {
			t = "\n" + t
		}
		blocks[i] = block{"text", t}
	}
	line, err := json.Marshal(map[string]any{
		"type":    "user",
		"message": map[string]any{"role": "user", "content": blocks},
	})
	if err != nil {
		panic(err) // strings always marshal
	}
	return append(line, '\n')
}
