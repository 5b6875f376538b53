package show

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"ralph"
	"ralph/internal/testresult"
	"ralph/internal/text"
)

// maxReadable bounds what is made readable of a command's output, in bytes.
const maxReadable = 8 << 20

// Output prints all that a command printed, and how it did.
func Output(w io.Writer, c ralph.Check, output io.ReadSeeker) error {
	readable, ok, err := testresult.Readable(output, maxReadable)
	if err != nil {
		return err
	}
	if ok {
		_, err = io.WriteString(w, text.Visible(readable))
	} else if _, err = output.Seek(0, io.SeekStart); err == nil {
		lines := bufio.NewReader(output)
		for err == nil {
			var line string
			line, err = lines.ReadString('\n')
			if _, werr := io.WriteString(w, text.Visible(line)); werr != nil {
				return werr
			}
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = fmt.Fprintln(w, Check(c, 0))
	return err
}

// Check says how a command did, and of one that failed the last lines of its output.
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
	lines := strings.Split(strings.TrimRight(text.Visible(c.Tail), "\n"), "\n")
	if n := len(lines) - tail; n > 0 {
		fmt.Fprintf(&b, "\n  | … %s before (all of it: ralph verify -v)", text.Count(n, "line"))
		lines = lines[n:]
	}
	for _, l := range lines {
		if l != "" || len(lines) > 1 {
			b.WriteString("\n  | " + l)
		}
	}
	return b.String()
}

// Tail is how many lines of a failing command's output are shown.
const Tail = 15
