// Package transcript makes an agent's activity readable: its texts, one line per tool call with the
// essential input, diffs, errors.
//
// It takes a stream in pieces of any length; the agent's own reader parses its lines. The results
// are short and contain no characters that control a terminal.
package transcript

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"ralph/internal/jsonl"
	"ralph/internal/text"
	"ralph/loop/agent"
)

// Bounds of a line of the stream in memory.
const (
	maxString = 1 << 20  // bytes of each JSON string
	maxInput  = 16 << 20 // bytes of a line after cutting its strings
)

// Kinds of entries.
const (
	Start  = "start"  // the agent has started
	Text   = "text"   // the agent said something
	Tool   = "tool"   // a tool call
	Answer = "answer" // a tool's result, after a noticeable time
	Error  = "error"  // an error of a tool or of the service
	Told   = "said"   // something said to the agent by ralph or a person
	Result = "result" // the end of a turn
	Note   = "note"   // a note about the transcript itself
)

// An Entry is one thing that happened in a session.
type Entry struct {
	Kind    string   `json:"kind"`
	Depth   int      `json:"depth"` // 0 for the agent, 1 for its sub-agents, …
	Tool    string   `json:"tool,omitempty"`
	Text    string   `json:"text,omitempty"`    // prose; the essential input of a tool; an error
	Diff    []string `json:"diff,omitempty"`    // lines starting with " ", "-", "+" or "…"
	Seconds float64  `json:"seconds,omitempty"` // see [agent.Event]
}

// A Reader converts a stream to entries.
type Reader struct {
	agent agent.Reader
	line  jsonl.Squeezer
	asked bool // the prompt has been seen

	used  agent.Event // the last one of its kind
	model string
}

// NewReader returns a Reader that uses an agent's own reader.
func NewReader(of agent.Reader) Reader {
	return Reader{agent: of, line: jsonl.Squeezer{MaxString: maxString, MaxLine: maxInput}}
}

// Clone returns a reader that continues from the same position, which must be between two lines.
func (r *Reader) Clone() Reader {
	c := NewReader(r.agent.Clone())
	c.asked, c.used, c.model = r.asked, r.used, r.model
	return c
}

// Context returns the number of tokens of context that the agent used last, and its model; 0 and ""
// while unknown.
func (r *Reader) Context() (tokens int64, model string) { return r.used.Context, r.model }

// Used returns the last event with the conversation's use so far; its kind is "" while there was none.
func (r *Reader) Used() agent.Event { return r.used }

// Feed continues with the stream; p may end anywhere in a line.
func (r *Reader) Feed(p []byte) (entries []Entry) {
	for {
		head, rest, complete := bytes.Cut(p, []byte("\n"))
		r.line.Add(head)
		if !complete {
			return entries
		}
		entries = append(entries, r.End()...)
		p = rest
	}
}

// End handles an incomplete last line, which a killed agent may leave.
func (r *Reader) End() (entries []Entry) {
	defer r.line.Reset()
	for _, e := range r.agent.Line(r.line.Line()) {
		if entry, ok := r.entry(e); ok {
			entries = append(entries, entry)
		}
	}
	return entries
}

// slow is the duration, in seconds, from which a tool's result is shown.
const slow = 2

// entry converts an event, if it is worth showing.
func (r *Reader) entry(seen agent.Event) (e Entry, ok bool) {
	e = Entry{Depth: seen.Depth, Tool: text.Short(seen.Tool, 60), Seconds: seen.Seconds}
	switch seen.Kind {
	case agent.Started:
		r.model = seen.Model
		e.Kind, e.Text = Start, line(fmt.Sprintf("%s, model %s", seen.Text, seen.Model))
	case agent.Said:
		if e.Kind, e.Text = Text, prose(seen.Text); seen.Failed {
			e.Kind = Error
		}
		return e, e.Text != ""
	case agent.Told:
		e.Kind, e.Text = Told, r.told(seen.Text)
		return e, e.Text != ""
	case agent.Read, agent.Edited, agent.Ran, agent.Asked, agent.Called:
		e.Kind, e.Text, e.Diff = Tool, strings.TrimSpace(line(seen.Text)+" "+seen.How), compare(seen.Edits)
	case agent.Answered:
		if e.Kind = Answer; seen.Failed {
			e.Kind, e.Text = Error, failure(seen.Text)
		}
		return e, seen.Failed || seen.Of == agent.Asked || seen.Seconds >= slow
	case agent.Ended:
		e.Kind, e.Text = Result, text.Short(seen.Text, 2*maxLine)
	case agent.Troubled:
		e.Kind, e.Text = Error, line(seen.Text)
	case agent.Noted:
		e.Kind, e.Text = Note, line(seen.Text)
	case agent.Used:
		r.used = seen
		return e, false
	default:
		return e, false
	}
	return e, true
}

// told returns a message to the agent. The first one is the prompt, which is cut to its beginning.
func (r *Reader) told(s string) string {
	first := !r.asked
	r.asked = true
	if s = prose(s); !first || len(s) <= maxTold {
		return s
	}
	return fmt.Sprintf("the prompt (%d characters): %s", len([]rune(s)), text.Short(s, 60))
}

// maxTold is the number of bytes of a prompt that are shown.
const maxTold = 200

// Limits of a shown edit.
const (
	maxDiff = 24       // lines
	maxSide = 64 << 10 // bytes of each side that are compared
)

// compare returns a call's changes to a file.
func compare(edits []agent.Edit) (lines []string) {
	for _, e := range edits {
		if lines != nil {
			lines = append(lines, "…")
		}
		lines = append(lines, changed(e)...)
	}
	if n := len(lines) - maxDiff; n > 1 {
		lines = append(lines[:maxDiff], "… "+text.Count(n, "more line"))
	}
	return lines
}

// changed compares the two sides of an edit and returns the changes with context.
func changed(e agent.Edit) (lines []string) {
	if e.Old == "" || e.New == "" {
		sign, text := "+", e.New
		if e.New == "" {
			sign, text = "-", e.Old
		}
		if text == "" {
			return nil
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			lines = append(lines, sign+" "+indented(line))
		}
		return lines
	}
	// The library requires whole lines, and starts with four lines of its own.
	unified := string(diff.Diff("", []byte(text.Head(e.Old, maxSide)+"\n"), "", []byte(text.Head(e.New, maxSide)+"\n")))
	for n, line := range strings.Split(strings.TrimSuffix(unified, "\n"), "\n") {
		switch {
		case n < 4:
		case line[0] == '@':
			lines = append(lines, "…")
		default:
			lines = append(lines, line[:1]+" "+indented(line[1:]))
		}
	}
	return lines
}
