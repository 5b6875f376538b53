package transcript

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// maxText is how many bytes of prose are shown.
const maxText = 8 << 10

// A Line is one line of an entry as people read it.
type Line struct {
	Kind string // the entry's; " ", "-", "+" and "…" in a diff
	Lead string // what stands before it: its place and its mark
	Text string
}

// marks stand before entries of a kind.
var marks = map[string]string{Tool: "→ ", Answer: "  ✓ ", Error: "  ✕ ", Said: "« ", Result: "= ", Note: "! "}

// Lines are an entry's lines. They are as long as they are: whoever shows them
// breaks the text, and leaves room of the width of the lead before each further row.
func (e Entry) Lines() (lines []Line) {
	lead := strings.Repeat("    ", e.Depth)
	mark, text := marks[e.Kind], e.Text
	switch verb, signal := strings.CutPrefix(e.Tool, "signal_"); {
	case e.Kind == Tool && signal:
		mark, text = "◆ ", verb+": "+e.Text
	case e.Kind == Tool:
		text = strings.TrimSpace(e.Tool + " " + e.Text)
	case e.Kind == Answer:
		text = e.Tool
	case e.Kind == Error && e.Tool != "":
		text = e.Tool + ": " + e.Text
	}
	first, rest, more := strings.Cut(text, "\n")
	if e.Seconds >= 1 {
		first += " (" + Span(e.Seconds) + ")"
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

// Span is a time in seconds for people.
func Span(seconds float64) string {
	if seconds < 10 {
		return fmt.Sprintf("%.1f s", seconds)
	}
	d := time.Duration(min(seconds, 1e9)) * time.Second
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

func untabbed(s string) string { return strings.ReplaceAll(s, "\t", "    ") }

// prose is a text of several lines, cut.
func prose(s string) string {
	short := head(s, maxText)
	if len(short) < len(s) {
		short += "\n… cut"
	}
	return strings.TrimSpace(Clean(short))
}

// errorLines is how many lines of an error are shown: its reason stands at its end.
const errorLines = 6

// failure is what a tool answers with an error.
func failure(s string) string {
	if len(s) > maxText {
		s = s[:200] + "\n" + s[len(s)-maxText:]
	}
	s = strings.ReplaceAll(strings.ReplaceAll(Clean(s), "<tool_use_error>", ""), "</tool_use_error>", "")
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if n := len(lines) - errorLines; n > 1 {
		// The first line of a command's is its exit status.
		lines = append([]string{lines[0], fmt.Sprintf("… %d lines", n-1)}, lines[n:]...)
	}
	for i, l := range lines {
		lines[i] = shortenIndented(l, maxLine)
	}
	return strings.Join(lines, "\n")
}

// shorten is a text on one line, cut.
func shorten(s string, n int) string {
	return shortenIndented(strings.Join(strings.Fields(Clean(head(s, 8*n))), " "), n)
}

func shortenIndented(s string, n int) string {
	r := []rune(Clean(head(s, 8*n)))
	if len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return string(r)
}

// head is the beginning of a text, so that no more of it is looked at.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// styles colour a terminal; commands print them, and nobody wants to read them.
var styles = regexp.MustCompile("\x1b\\[[0-9;:]*[mK]")

// Clean takes out what steers a terminal, its colours first, and what turns the
// order of letters around; lines and tabs stay.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, styles.ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), ""))
}
