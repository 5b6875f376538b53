package transcript

import (
	"fmt"
	"strings"

	"ralph/internal/text"
)

// maxText is the number of bytes of prose that are shown.
const maxText = 8 << 10

// A Line is one line of an entry as shown to people.
type Line struct {
	Kind string // the entry's; " ", "-", "+" and "…" in a diff
	Lead string // indentation and mark before the text
	Text string
}

// marks are put before entries by kind.
var marks = map[string]string{Tool: "→ ", Answer: "  ✓ ", Error: "  ✕ ", Told: "« ", Result: "= ", Note: "! "}

// Lines returns an entry's lines, unwrapped: the caller wraps the text, and indents further rows by
// the width of the lead.
func (e Entry) Lines() (lines []Line) {
	lead := strings.Repeat("    ", e.Depth)
	mark, said := marks[e.Kind], e.Text
	switch verb, signal := strings.CutPrefix(e.Tool, "signal_"); {
	case e.Kind == Tool && signal:
		mark, said = "◆ ", verb+": "+e.Text
	case e.Kind == Tool:
		said = strings.TrimSpace(e.Tool + " " + e.Text)
	case e.Kind == Answer:
		said = e.Tool
	case e.Kind == Error && e.Tool != "":
		said = e.Tool + ": " + e.Text
	}
	first, rest, more := strings.Cut(said, "\n")
	if e.Seconds >= 1 {
		first += " (" + text.Span(e.Seconds) + ")"
	}
	lines = append(lines, Line{e.Kind, lead + mark, untabbed(first)})
	lead += strings.Repeat(" ", len([]rune(mark)))
	if more {
		for l := range strings.SplitSeq(rest, "\n") {
			lines = append(lines, Line{e.Kind, lead, untabbed(l)})
		}
	}
	for _, d := range e.Diff {
		sign := string([]rune(d)[:1])
		lines = append(lines, Line{sign, lead + "  ", strings.TrimRight(untabbed(d), " ")})
	}
	return lines
}

func untabbed(s string) string { return strings.ReplaceAll(s, "\t", "    ") }

// prose cuts a text of several lines.
func prose(s string) string {
	short := text.Head(s, maxText)
	if len(short) < len(s) {
		short += "\n… cut"
	}
	return strings.TrimSpace(text.Clean(short))
}

// errorLines is the number of lines of an error that are shown: the reason is at the end.
const errorLines = 6

// failure shortens a tool's error.
func failure(s string) string {
	if len(s) > maxText {
		s = s[:200] + "\n" + s[len(s)-maxText:]
	}
	lines := strings.Split(strings.TrimSpace(text.Clean(s)), "\n")
	if n := len(lines) - errorLines; n > 1 {
		// The first line of a failed command is its exit status.
		lines = append([]string{lines[0], fmt.Sprintf("… %d lines", n-1)}, lines[n:]...)
	}
	for i, l := range lines {
		lines[i] = indented(l)
	}
	return strings.Join(lines, "\n")
}

// maxLine is the number of characters of a line that are shown.
const maxLine = 200

// line shortens a text to one line.
func line(s string) string { return text.Short(s, maxLine) }

// indented shortens one line and keeps its indentation.
func indented(s string) string { return text.Clip(text.Clean(text.Head(s, 8*maxLine)), maxLine) }
