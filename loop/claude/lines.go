package claude

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

// What is kept of a line in memory. Files and images come as strings of many
// megabytes; none of what ralph looks at is that long.
const (
	maxString = 64 << 10 // bytes of each JSON string
	maxLine   = 4 << 20  // bytes of a line whose strings have been cut
)

// A lineReader cuts a stream into lines in bounded memory, whatever their
// length, and hands every byte to spool as it comes. Strings in a line are cut
// to maxString, which leaves JSON valid; of a line that is still too long the
// beginning is returned, which is not.
type lineReader struct {
	src   *bufio.Reader
	spool io.Writer
	line  squeezer
}

func newLineReader(r io.Reader, spool io.Writer) *lineReader {
	return &lineReader{src: bufio.NewReaderSize(r, 64<<10), spool: spool, line: squeezer{max: maxString}}
}

// next returns the next line without its newline; it is valid until the next
// call. The last line may be torn. The error is io.EOF at the end, and else the
// source's or the spool's. A line may come with an error.
func (r *lineReader) next() ([]byte, error) {
	r.line.reset()
	for {
		part, err := r.src.ReadSlice('\n')
		if _, e := r.spool.Write(part); e != nil {
			return nil, e
		}
		r.line.add(bytes.TrimSuffix(part, []byte("\n")))
		if err == nil {
			return r.line.out, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return r.line.out, err
		}
	}
}

// A squeezer collects a line of JSON and cuts its strings.
type squeezer struct {
	max      int // bytes of a string that stay
	out      []byte
	inString bool
	escaped  bool // the byte before was a backslash
	hex      int  // digits of a \u escape still to come
	length   int  // bytes of the string so far
	cutting  bool // the rest of the string is dropped
}

func (s *squeezer) reset() {
	if cap(s.out) > 1<<20 {
		s.out = nil // a rare giant is not kept for ever
	}
	*s = squeezer{max: s.max, out: s.out[:0]}
}

func (s *squeezer) add(p []byte) {
	for _, b := range p {
		if s.keeps(b) && len(s.out) < maxLine {
			s.out = append(s.out, b)
		}
	}
}

// keeps follows the syntax over one byte and tells whether it stays. A string
// is cut between two characters or escapes.
func (s *squeezer) keeps(b byte) bool {
	switch {
	case !s.inString:
		s.inString, s.length = b == '"', 0
		return true
	case s.hex > 0:
		s.hex--
	case s.escaped:
		s.escaped = false
		if b == 'u' {
			s.hex = 4
		}
	case b == '"':
		s.inString, s.cutting = false, false
		return true
	default:
		if s.length >= s.max && utf8.RuneStart(b) {
			s.cutting = true
		}
		s.escaped = b == '\\'
	}
	s.length++
	return !s.cutting
}
