package config

import (
	"fmt"
	"strings"
	"unicode"
)

// An Error names the fault in a setting or a file, and its place. Several may be joined.
type Error struct {
	Source  string // "ralph.yaml", "RALPH_AGENT_MODEL", "flag --model"
	Line    int    // from 1; 0 if the source has no lines
	Column  int    // in characters, from 1; 0 if the source has no lines
	Key     string // "limits.max_sessions"; empty for the source as a whole
	Problem string // the fault, and accepted values
	Text    string // the line; empty if it may hold a secret
	Err     error  // the operating system's error, if any
}

// Bounds of quoted text, in characters.
const (
	maxShown  = 160 // of a line or a message, in characters
	maxQuoted = 60  // of a value or a name
)

// Error formats the error as "SOURCE:LINE:COLUMN: KEY: PROBLEM", followed by the line with a mark.
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

// Unwrap returns the operating system's error.
func (e *Error) Unwrap() error { return e.Err }

// printable returns the beginning of a text in one line, without control characters.
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
