package testresult

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"ralph/internal/text"
)

// maxTestOutput is how much of a failing test's output is shown, in bytes: its end.
const maxTestOutput = 1500

// A reader of `go test -json` for people.
type readable struct {
	text   strings.Builder // what failed, and lines that are no events
	passed strings.Builder // the lines of packages that passed
	room   int             // bytes that text may still take
	left   int             // failures for which there was no room
	failed bool
	seen   bool // an event of a test's package
	open   map[string]*bytes.Buffer
}

// Readable is the output of `go test -json` as people read that of `go test`: what the
// tests that failed printed, in at most about limit bytes, or the packages that passed.
// ok is false if it is no such output. The error is the reader's.
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

// line takes in a line of the output.
func (p *readable) line(line []byte) {
	if len(line) == 0 {
		return
	}
	var e struct {
		goEvent
		ImportPath string
		Output     string
	}
	if !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &e) != nil ||
		e.Action == "" || e.Package == "" && e.ImportPath == "" {
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

// output keeps what a test or a package printed until it is known how that ended.
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

// flush shows what a test that failed printed.
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

// add writes text as far as there is room.
func (p *readable) add(said string) {
	said = text.Head(said, p.room)
	p.room -= len(said)
	p.text.WriteString(said)
}
