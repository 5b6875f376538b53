package claude

import (
	"maps"
	"slices"

	"ralph/loop/agent"
)

// NewReader returns a reader of the CLI's transcripts.
func NewReader() agent.Reader { return &reader{} }

// A reader converts a transcript to events.
type reader struct{ history }

// Line implements [agent.Reader].
func (r *reader) Line(line []byte) []agent.Event {
	e, ok := parse(line)
	if !ok {
		return nil
	}
	return r.add(e)
}

// Clone implements [agent.Reader].
func (r *reader) Clone() agent.Reader {
	c := *r
	c.stream.open, c.usages = maps.Clone(r.stream.open), maps.Clone(r.usages)
	c.denied, c.denials = slices.Clone(r.denied), slices.Clone(r.denials)
	return &c
}
