// Package jsonl takes lines of JSON apart in bounded memory, whatever their length:
// files and images come as strings of many megabytes in an agent's stream.
//
// It knows the syntax of strings and nothing else of JSON. Strings are cut, which
// leaves a line valid; of a line that is too long all the same the beginning is
// kept, which is not.
package jsonl

import (
	"bytes"
	"unicode/utf8"
)

// A Squeezer collects one line of JSON and cuts its strings.
type Squeezer struct {
	MaxString int // bytes of each string that stay
	MaxLine   int // bytes of a line whose strings have been cut

	out      []byte
	inString bool
	escaped  bool // the byte before was a backslash
	hex      int  // digits of a \u escape still to come
	length   int  // bytes of the string so far
	cutting  bool // the rest of the string is dropped
}

// Line is what there is of the line; it is valid until the next call of Reset or Add.
func (s *Squeezer) Line() []byte { return s.out }

// Reset begins the next line.
func (s *Squeezer) Reset() {
	if cap(s.out) > 1<<20 {
		s.out = nil // a rare giant is not kept for ever
	}
	*s = Squeezer{MaxString: s.MaxString, MaxLine: s.MaxLine, out: s.out[:0]}
}

// Add goes on with the line. p may end anywhere, even within a character. What has
// no quote and no backslash is taken as a whole, which makes it fast.
func (s *Squeezer) Add(p []byte) {
	quote := -1 // the next one that has been looked for
	for i := 0; i < len(p); {
		begin := i
		switch {
		case !s.inString:
			if i = next(p, i, '"'); i < len(p) {
				i++
				s.inString, s.length = true, 0
			}
			s.add(p[begin:i])
		case s.escaped || s.hex > 0 || p[i] == '"' || p[i] == '\\':
			i++
			if s.keeps(p[begin]) {
				s.add(p[begin:i])
			}
		default:
			if quote < i {
				quote = next(p, i, '"')
			}
			i = next(p[:quote], i, '\\')
			s.addText(p[begin:i])
		}
	}
}

// next is where a byte is next, from i on; the end of p if it is not.
func next(p []byte, i int, b byte) int {
	if n := bytes.IndexByte(p[i:], b); n >= 0 {
		return i + n
	}
	return len(p)
}

// add takes what stays, as far as there is room in the line.
func (s *Squeezer) add(p []byte) {
	s.out = append(s.out, p[:min(len(p), max(s.MaxLine-len(s.out), 0))]...)
}

// addText goes on with a string by what has no quote and no backslash.
func (s *Squeezer) addText(p []byte) {
	keep := 0
	if !s.cutting {
		keep = min(len(p), max(s.MaxString-s.length, 0))
		for keep < len(p) && !utf8.RuneStart(p[keep]) {
			keep++
		}
		s.cutting = keep < len(p)
	}
	s.length += len(p)
	s.add(p[:keep])
}

// keeps follows the syntax of a string over its end or one byte of an escape, and
// tells whether it stays. A string is cut between two characters or escapes.
func (s *Squeezer) keeps(b byte) bool {
	switch {
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
	default: // a backslash
		s.cutting = s.cutting || s.length >= s.MaxString
		s.escaped = true
	}
	s.length++
	return !s.cutting
}
