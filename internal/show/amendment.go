package show

import (
	"fmt"
	"io"

	"ralph"
	"ralph/internal/transcript"
)

// Amendment writes what an amendment changes of its task.
func Amendment(w io.Writer, m ralph.Amendment, t ralph.Task, s Screen) {
	fmt.Fprintf(w, "amendment %d of TASK-%d %s\n", m.ID, t.ID, Line(t.Title, ralph.MaxTitle))
	fmt.Fprintf(w, "%s, proposed by %s on %s\n", m.Status, Line(m.Author, 40), Minute(m.Created.Time))
	fmt.Fprintf(w, "because: %s\n", transcript.VisibleLine(m.Rationale))
	if m.DecidedBy != "" {
		fmt.Fprintf(w, "decided by %s: %s\n", Line(m.DecidedBy, 40), transcript.VisibleLine(m.Note))
	}
	if !m.RolledBack.IsZero() {
		fmt.Fprintf(w, "rolled back on %s\n", Minute(m.RolledBack.Time))
	}
	before := m.Patch.Of(t)
	if m.Before != nil {
		before = *m.Before
	}
	fmt.Fprintln(w)
	for _, line := range m.Patch.Diff(before) {
		colour := map[byte]string{'+': "32", '-': "31"}[line[0]]
		fmt.Fprintln(w, s.Paint(colour, transcript.Visible(line)))
	}
}
