package testresult

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"ralph/internal/text"
)

// maxTestOutput bounds the shown output of a failing test, in bytes; its end is shown.
const maxTestOutput = 1500

// A readable converts `go test -json` for people.
type readable struct {
	text   strings.Builder // failures, and lines that are not events
	passed strings.Builder // the lines of packages that passed
	room   int             // remaining bytes for text
	left   int             // failures omitted for lack of room
	failed bool
	seen   bool // an event of a test package occurred
	open   map[string]*bytes.Buffer
}

// Readable converts the output of `go test -json` to that of `go test`: the output of failed tests,
// in at most about limit bytes, or the packages that passed. ok is false for other output. The
// error is the reader's.
func Readable(r io.Reader, limit int) (text string, ok bool, err error) {
	p := readable{room: limit, open: map[string]*bytes.Buffer{}}
	if err := eachLine(r, p.line); err != nil || !p.seen {
		return "", false, err
	}
	if !p.failed && p.text.Len() == 0 {
		p.add(p.passed.String())
	}
	if p.left > 0 {
		fmt.Fprintf(&p.text, "… and %d more that failed\n", p.left)
	}
	return p.text.String(), true, nil
}

// line handles a line of the output.
func (p *readable) line(line []byte) {
	if len(line) == 0 {
		return
	}
	e, ok := goEventOf(line)
	if !ok {
		p.add(string(line) + "\n")
		return
	}
	p.seen = p.seen || e.Package != ""
	key := e.Package + "\x00" + e.Test
	switch e.Action {
	case "output":
		p.output(key, e.Output)
	case "build-output":
		p.add(e.Output)
	case "fail":
		p.failed = true
		p.flush(key)
	case "pass", "skip":
		if b := p.open[key]; b != nil && e.Test == "" && p.passed.Len() < p.room {
			p.passed.Write(b.Bytes())
		}
		delete(p.open, key)
	}
}

// output collects the output of a test or package until its result is known.
func (p *readable) output(key, text string) {
	if strings.HasPrefix(text, "=== ") || text == "PASS\n" {
		return
	}
	b := p.open[key]
	if b == nil {
		b = &bytes.Buffer{}
		p.open[key] = b
	}
	b.WriteString(text)
	if over := b.Len() - 2*maxTestOutput; over > 0 {
		b.Next(over)
	}
}

// flush adds the output of a failed test.
func (p *readable) flush(key string) {
	b := p.open[key]
	delete(p.open, key)
	if b == nil {
		return
	}
	text := b.Bytes()
	if over := len(text) - maxTestOutput; over > 0 {
		text = text[over:]
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text = text[i+1:]
		}
		text = append([]byte("… (its beginning is left out)\n"), text...)
	}
	if len(text) > p.room {
		p.left++
		return
	}
	p.add(string(text))
}

// add adds text until there is no more room.
func (p *readable) add(said string) {
	said = text.Head(said, p.room)
	p.room -= len(said)
	p.text.WriteString(said)
}
