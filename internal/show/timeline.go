package show

import (
	"fmt"
	"io"
	"strings"
	"time"

	"ralph"
	"ralph/internal/term"
	"ralph/internal/text"
)

// Timeline writes a card for each signal and each comment; its look depends on verb and kind, never
// on its text.
func Timeline(w io.Writer, comments []ralph.Comment, s term.Screen) {
	if len(comments) == 0 {
		fmt.Fprintln(w, "nothing was said")
	}
	closed := map[string]int64{} // by session: the signal that counts
	for _, c := range comments {
		if c.Verb.Closes() {
			closed[c.SessionID] = c.ID
		}
	}
	for _, c := range ralph.Threads(comments) {
		indent, head, colour := "", string(c.Kind), term.Style("")
		if c.ParentID != nil {
			indent = "    "
		}
		if c.Verb != "" {
			head, colour = fmt.Sprintf("[%s] session %.8s", c.Verb, c.SessionID), term.Looks[c.Verb.Look().Colour]
		}
		head = fmt.Sprintf("%d  %s  %s  %s", c.ID, text.When(c.Created.Time, time.Now()), text.Line(c.Author, 40), head)
		fmt.Fprintf(w, "%s%s\n", indent, s.Paint(colour, head))
		for line := range strings.Lines(text.Visible(c.Body)) {
			for _, row := range s.Wrap(strings.TrimRight(line, "\n"), len(indent)+4) {
				fmt.Fprintf(w, "%s  %s %s\n", indent, s.Paint(colour, "|"), row)
			}
		}
		note := func(format string, args ...any) {
			for _, line := range s.Wrap(fmt.Sprintf(format, args...), len(indent)+2) {
				fmt.Fprintf(w, "%s  %s\n", indent, line)
			}
		}
		if last := closed[c.SessionID]; c.Verb.Closes() && last != c.ID {
			note("superseded by %d", last)
		}
		if c.Rationale != "" {
			note("because: %s", text.VisibleLine(c.Rationale))
		}
		if c.Holding {
			note("holds the task back %s", text.VisibleLine(c.HoldReason))
		}
		if !c.Delivered.IsZero() {
			note("the running session was told at %s", text.When(c.Delivered.Time, time.Now()))
		}
		if !c.ResolvedAt.IsZero() {
			note("resolved by %s: %s", c.ResolvedBy, text.VisibleLine(c.Decision))
		}
		fmt.Fprintln(w)
	}
}
