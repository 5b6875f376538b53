// Package jsonl splits lines of JSON of any length in bounded memory: files and images occur as strings of many
// megabytes in an agent's stream.
//
// It parses only JSON strings. It shortens long strings, so that a line stays valid. It truncates lines that are
// still too long, which makes them invalid.
package jsonl

import (
	"bytes"
	"unicode/utf8"
)

// A Squeezer collects one line of JSON and cuts its strings.
type Squeezer struct {
	MaxString int // bytes kept of each string
	MaxLine   int // bytes kept of a line after cutting its strings

	out      []byte
	inString bool
	escaped  bool // the previous byte was a backslash
	hex      int  // remaining digits of a \u escape
	length   int  // bytes of the string so far
	cutting  bool // the rest of the string is dropped
}

// Line returns the line so far; it is valid until the next call of Reset or Add.
func (s *Squeezer) Line() []byte { return s.out }

// Reset starts the next line.
func (s *Squeezer) Reset() {
	if cap(s.out) > 1<<20 {
		s.out = nil // do not keep a rare giant for ever
	}
	*s = Squeezer{MaxString: s.MaxString, MaxLine: s.MaxLine, out: s.out[:0]}
}

// Add continues the line. p may end anywhere, even within a character. Runs without quotes and
// backslashes are handled as a whole, for speed.
func (s *Squeezer) Add(p []byte) {
	quote := -1 // position of the next quote, once searched
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

// next returns the position of the next byte b from i on; the end of p without one.
func next(p []byte, i int, b byte) int {
	if n := bytes.IndexByte(p[i:], b); n >= 0 {
		return i + n
	}
	return len(p)
}

// add appends bytes until the line is full.
func (s *Squeezer) add(p []byte) {
	s.out = append(s.out, p[:min(len(p), max(s.MaxLine-len(s.out), 0))]...)
}

// addText continues a string by a run without quotes and backslashes.
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

// keeps handles a quote or one byte of an escape within a string, and reports whether to keep it. A
// string is only cut between characters or escapes.
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
