package words

import (
	"fmt"
	"strings"

	"ralph"
	"ralph/internal/text"
)

// TailLines is the number of lines of a failing command's output that are shown.
const TailLines = 15

// Check describes the result of a command, with the last lines of output if it failed.
func Check(c ralph.Check, tail int) string {
	var b strings.Builder
	said := "passed"
	switch {
	case c.Passed && len(c.Excused) > 0:
		said = text.Count(len(c.Excused), "test") + " failed as before the task: " + strings.Join(c.Excused, ", ")
	case c.Passed:
	case c.Error != "":
		said = "FAILED: " + c.Error
	default:
		said = fmt.Sprintf("FAILED with exit status %d", c.Exit)
	}
	if !c.Passed && len(c.Failures) > 0 {
		said += ": " + strings.Join(c.Failures, ", ")
	}
	fmt.Fprintf(&b, "%s: %s (%.1f s)", text.Line(c.Command, 200), text.Line(said, 1000), c.Seconds)
	if c.Passed || tail == 0 {
		return b.String()
	}
	lines := strings.Split(text.Visible(text.Clean(c.Tail)), "\n") // without colours
	if n := len(lines) - tail; n > 0 {
		fmt.Fprintf(&b, "\n  | … %s before (all of it: ralph verify -v)", text.Count(n, "line"))
		lines = lines[n:]
	}
	for _, l := range lines {
		if l != "" || len(lines) > 1 {
			b.WriteString("\n  | " + l)
		}
	}
	if c.Cause != "" {
		b.WriteString("\n  → " + c.Cause.Advice())
	}
	return b.String()
}
