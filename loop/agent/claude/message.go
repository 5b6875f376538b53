package claude

import (
	"encoding/json"
	"strings"

	"ralph/loop/agent"
)

// userMessage returns a line of stream-json input: one message with a block per text, each followed by its pictures.
// A text that begins with "/" gets a newline before it, or the CLI would treat it as one of its commands.
func userMessage(texts []string, pictures func(text string) []agent.Picture) []byte {
	type source struct {
		Type  string `json:"type"`
		Media string `json:"media_type"`
		Data  string `json:"data"`
	}
	type block struct {
		Type   string  `json:"type"`
		Text   string  `json:"text,omitempty"`
		Source *source `json:"source,omitempty"`
	}
	var blocks []block
	for _, t := range texts {
		if strings.HasPrefix(t, "/") {
			t = "\n" + t
		}
		blocks = append(blocks, block{Type: "text", Text: t})
		for _, p := range pictures(t) {
			blocks = append(blocks, block{Type: "image", Source: &source{"base64", p.Type, p.Data}})
		}
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
