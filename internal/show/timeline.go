package show

import (
	"fmt"
	"io"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
)

// verbColours are the colours of the cards, as terminals number them.
var verbColours = map[ralph.Verb]string{
	ralph.VerbDone: "32", ralph.VerbPartial: "36", ralph.VerbStuck: "35", ralph.VerbAsk: "33",
	ralph.VerbFlag: "31", ralph.VerbLearned: "34", ralph.VerbSuggest: "96", ralph.VerbBlocked: "91",
}

// Timeline writes a card for each signal and a bubble for each comment, as
// their verb says, never their text.
func Timeline(w io.Writer, comments []ralph.Comment, s Screen) {
	closed := map[string]int64{} // by session: the signal that counts
	for _, c := range comments {
		if c.Verb.Closes() {
			closed[c.SessionID] = c.ID
		}
	}
	for _, c := range ralph.Threads(comments) {
		indent, head, colour := "", string(c.Kind), ""
		if c.ParentID != nil {
			indent = "    "
		}
		if c.Verb != "" {
			head, colour = fmt.Sprintf("[%s] session %.8s", c.Verb, c.SessionID), verbColours[c.Verb]
		}
		head = fmt.Sprintf("%d  %s  %s  %s", c.ID, c.Created.Local().Format(time.DateTime), text.Line(c.Author, 40), head)
		fmt.Fprintf(w, "%s%s\n", indent, s.Paint(colour, head))
		for line := range strings.Lines(text.Visible(c.Body)) {
			for _, row := range s.wrap(strings.TrimRight(line, "\n"), len(indent)+4) {
				fmt.Fprintf(w, "%s  %s %s\n", indent, s.Paint(colour, "|"), row)
			}
		}
		note := func(format string, args ...any) {
			for _, line := range s.wrap(fmt.Sprintf(format, args...), len(indent)+2) {
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
			note("the running session was told at %s", c.Delivered.Local().Format("15:04:05"))
		}
		if !c.ResolvedAt.IsZero() {
			note("resolved by %s: %s", c.ResolvedBy, text.VisibleLine(c.Decision))
		}
		fmt.Fprintln(w)
	}
}
