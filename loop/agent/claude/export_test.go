package claude

import (
	"io"

	"ralph/internal/jsonl"
	"ralph/loop/agent"
)

// Read reads a stream to its end, as a session does, and classifies it.
func Read(r io.Reader, spool io.Writer, tools []string, d agent.Death) (agent.Report, error) {
	h := &history{tools: tools}
	if err := h.read(r, spool); err != nil {
		return agent.Report{}, err
	}
	return h.report(d), nil
}

// Squeeze returns a line as kept in memory if strings are cut to limit.
func Squeeze(line []byte, limit int) []byte {
	s := jsonl.Squeezer{MaxString: limit, MaxLine: maxLine}
	s.Add(line)
	return s.Line()
}

// IsEvent reports whether a line is an event.
func IsEvent(line []byte) bool {
	_, ok := parse(line)
	return ok
}

// UserMessage returns a message for the agent's stdin.
func UserMessage(texts ...string) string {
	return string(userMessage(texts, func(string) []agent.Picture { return nil }))
}
