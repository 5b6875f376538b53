package kinds

import (
	"bytes"

	"ralph/loop/agent"
)

// A reader recognizes the writer of a transcript by its first line.
type reader struct{ of agent.Reader }

// exchanged reports whether a line belongs to a JSON-RPC conversation with an agent, and
// negotiated whether it is the first line, which ralph sends, of an ACP conversation.
func exchanged(line []byte) bool  { return bytes.HasPrefix(line, []byte(`{"to":"`)) }
func negotiated(line []byte) bool { return bytes.Contains(line, []byte(`"protocolVersion"`)) }

// Line implements [agent.Reader].
func (r *reader) Line(line []byte) []agent.Event {
	if len(bytes.TrimSpace(line)) == 0 && r.of == nil {
		return nil
	}
	for _, k := range kinds {
		if r.of == nil && k.wrote(line) {
			r.of = k.reader()
		}
	}
	return r.of.Line(line)
}

// Clone implements [agent.Reader].
func (r *reader) Clone() agent.Reader {
	if r.of == nil {
		return &reader{}
	}
	return &reader{r.of.Clone()}
}
