// Package transcript makes what an agent was seen to do readable: what it said, a line
// for each tool call with what matters of it, diffs, errors.
//
// It takes a stream in pieces of any length, whose lines the agent's own reader
// understands. What it returns is short and has no character that steers a terminal.
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

// Limits of what is kept of a line of the stream.
const (
	maxString = 1 << 20  // bytes of each JSON string
	maxInput  = 16 << 20 // bytes of a line whose strings have been cut
)

// Kinds of entries.
const (
	Start  = "start"  // the agent is up
	Text   = "text"   // it said something
	Tool   = "tool"   // it called a tool
	Answer = "answer" // the tool answered, after a time that is worth a word
	Error  = "error"  // a tool, or the service, answered with an error
	Told   = "said"   // somebody said something to it: ralph or a person
	Result = "result" // a turn of the conversation ended
	Note   = "note"   // something about the transcript itself
)

// An Entry is one thing that happened in a session.
type Entry struct {
	Kind    string   `json:"kind"`
	Depth   int      `json:"depth"` // 0 for the agent, 1 for its sub-agents, …
	Tool    string   `json:"tool,omitempty"`
	Text    string   `json:"text,omitempty"`    // prose; what matters of a tool's input; an error
	Diff    []string `json:"diff,omitempty"`    // lines with " ", "-", "+" or "…" before them
	Seconds float64  `json:"seconds,omitempty"` // see [agent.Event]
}

// A Reader turns a stream into entries.
type Reader struct {
	agent agent.Reader
	line  jsonl.Squeezer
	asked bool // the prompt has been seen

	context int64
	model   string
}

// NewReader reads what the agent's own reader understands.
func NewReader(of agent.Reader) Reader {
	return Reader{agent: of, line: jsonl.Squeezer{MaxString: maxString, MaxLine: maxInput}}
}

// Clone is a reader that goes on from the same place. The reader must stand
// between two lines.
func (r *Reader) Clone() Reader {
	c := NewReader(r.agent.Clone())
	c.asked, c.context, c.model = r.asked, r.context, r.model
	return c
}

// Context is how many tokens of the model's context the agent used last, and which
// model it is; 0 and "" as long as it has not been told.
func (r *Reader) Context() (tokens int64, model string) { return r.context, r.model }

// Feed goes on with the stream; p may end anywhere in a line.
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

// End reads a last line without a line break, as a killed agent leaves it.
func (r *Reader) End() (entries []Entry) {
	defer r.line.Reset()
	for _, e := range r.agent.Line(r.line.Line()) {
		if entry, ok := r.entry(e); ok {
			entries = append(entries, entry)
		}
	}
	return entries
}

// slow is from how many seconds on a tool's time is worth a word.
const slow = 2

// entry is what people read of an event, if it is worth a word.
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
		r.context = seen.Context
		return e, false
	default:
		return e, false
	}
	return e, true
}

// told is what somebody said to the agent. The first of it is the prompt, which
// nobody wants to read here.
func (r *Reader) told(s string) string {
	first := !r.asked
	r.asked = true
	if s = prose(s); !first || len(s) <= maxTold {
		return s
	}
	return fmt.Sprintf("the prompt (%d characters): %s", len([]rune(s)), text.Short(s, 60))
}

// maxTold is how many bytes of a prompt are shown.
const maxTold = 200

// Limits of what is shown of an edit.
const (
	maxDiff = 24       // lines
	maxSide = 64 << 10 // bytes of each side that are compared
)

// compare is what a call changes in a file.
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

// changed compares the two sides of an edit, with what is around a change.
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
	// The library wants whole lines, and begins with four of its own.
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
