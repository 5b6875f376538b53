package show

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"ralph"
	"ralph/internal/testresult"
	"ralph/internal/text"
	"ralph/internal/words"
)

// maxReadable bounds the part of a command's output that is converted for reading, in bytes.
const maxReadable = 8 << 20

// Output prints all output of a command, and its result.
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
	_, err = fmt.Fprintln(w, words.Check(c, 0))
	return err
}
