package config

import (
	"fmt"
	"strings"
	"unicode"
)

// An Error says what is wrong with one setting or one file, and where. Several
// may be joined in one error.
type Error struct {
	Source  string // "ralph.yaml", "RALPH_AGENT_MODEL", "flag --model"
	Line    int    // counted from 1; 0 where the source has no lines
	Column  int    // in characters, counted from 1; 0 where the source has no lines
	Key     string // "limits.max_sessions"; empty if the source as a whole is wrong
	Problem string // what is wrong and what would be right
	Text    string // the line itself; empty if it may hold a secret
	Err     error  // what the operating system said; nil if it is not its fault
}

// Bounds of what an error repeats, in characters.
const (
	maxShown  = 160 // of a line or a message
	maxQuoted = 60  // of a value or a name
)

// Error is "SOURCE:LINE:COLUMN: KEY: PROBLEM" and, below it, the line with a mark.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Source)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(e.Problem)
	if e.Text != "" && e.Column <= maxShown {
		number := fmt.Sprintf("%5d", e.Line)
		fmt.Fprintf(&b, "\n%s | %s\n%*s | %*s", number, printable(e.Text, maxShown), len(number), "", e.Column, "^")
	}
	return b.String()
}

// Unwrap is what the operating system said, for errors.Is.
func (e *Error) Unwrap() error { return e.Err }

// printable is the beginning of a text in one line, without what a terminal
// would obey.
func printable(s string, limit int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > limit {
			b.WriteString("…")
			break
		}
		switch {
		case r == '\t':
			r = ' '
		case !unicode.IsPrint(r):
			r = unicode.ReplacementChar
		}
		b.WriteRune(r)
	}
	return strings.TrimRight(b.String(), " ")
}
