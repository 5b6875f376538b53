package show

import (
	"fmt"
	"io"
	"time"

	"ralph"
	"ralph/internal/term"
	"ralph/internal/text"
)

// Amendment writes an amendment's changes to its task.
func Amendment(w io.Writer, m ralph.Amendment, t ralph.Task, s term.Screen) {
	fmt.Fprintf(w, "amendment %d of TASK-%d %s\n", m.ID, t.ID, text.Line(t.Title, ralph.MaxTitle))
	fmt.Fprintf(w, "%s, proposed by %s on %s\n", m.Status, text.Line(m.Author, 40), text.When(m.Created.Time, time.Now()))
	fmt.Fprintf(w, "because: %s\n", text.VisibleLine(m.Rationale))
	if m.DecidedBy != "" {
		fmt.Fprintf(w, "decided by %s: %s\n", text.Line(m.DecidedBy, 40), text.VisibleLine(m.Note))
	}
	if !m.RolledBack.IsZero() {
		fmt.Fprintf(w, "rolled back on %s\n", text.When(m.RolledBack.Time, time.Now()))
	}
	before := m.Patch.Of(t)
	if m.Before != nil {
		before = *m.Before
	}
	fmt.Fprintln(w)
	for _, line := range m.Patch.Diff(before) {
		colour := map[byte]term.Style{'+': term.Green, '-': term.Red}[line[0]]
		fmt.Fprintln(w, s.Paint(colour, text.Visible(line)))
	}
}
