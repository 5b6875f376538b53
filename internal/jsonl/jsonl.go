// Package jsonl takes lines of JSON apart in bounded memory, whatever their length:
// files and images come as strings of many megabytes in an agent's stream.
//
// It knows the syntax of strings and nothing else of JSON. Strings are cut, which
// leaves a line valid; of a line that is too long all the same the beginning is
// kept, which is not.
package jsonl

import "unicode/utf8"

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

// Add goes on with the line. p may end anywhere, even within a character.
func (s *Squeezer) Add(p []byte) {
	for _, b := range p {
		if s.keeps(b) && len(s.out) < s.MaxLine {
			s.out = append(s.out, b)
		}
	}
}

// keeps follows the syntax over one byte and tells whether it stays. A string
// is cut between two characters or escapes.
func (s *Squeezer) keeps(b byte) bool {
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
		if s.length >= s.MaxString && utf8.RuneStart(b) {
			s.cutting = true
		}
		s.escaped = b == '\\'
	}
	s.length++
	return !s.cutting
}
