package testresult

import (
	"io"
	"regexp"
	"slices"
)

// MarkSize is how many bytes the mark of a control has, which is written in hexadecimal.
const MarkSize = 8

// Control returns what a control says when it fails: a test that was made to fail, so that its failure shows that tests
// can.
func Control(mark string) string { return "control:" + mark }

var control = regexp.MustCompile(`control:[0-9a-f]{16}`)

// Controls returns what the controls said that failed according to a command's output, each once.
func Controls(r io.Reader) (said []string, err error) {
	err = eachLine(r, func(line []byte) {
		for _, m := range control.FindAll(line, -1) {
			said = append(said, string(m))
		}
	})
	slices.Sort(said)
	return slices.Compact(said), err
}
