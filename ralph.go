// Package ralph defines ralph's nouns: tasks, sessions, comments, learnings,
// features, runs and events, with the rules that concern only one of them.
//
// It is pure: it never reads a clock, a file, a database or a configuration; store, loop and the
// packages below internal do. Every other package uses these types; this one imports none of them.
package ralph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors to tell apart with errors.Is. The text wrapped around them names
// the task, comment or file.
var (
	// ErrNotFound means that the named object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that the present state of an existing thing forbids the request,
	// such as answering a question twice.
	ErrConflict = errors.New("not possible now")
)

// Conflict returns an error that wraps [ErrConflict] and reads as the sentence alone.
func Conflict(format string, args ...any) error { return conflict(fmt.Sprintf(format, args...)) }

type conflict string

func (c conflict) Error() string { return string(c) }
func (conflict) Unwrap() error   { return ErrConflict }

// NotFound returns an error that wraps [ErrNotFound], with its own words.
func NotFound(format string, args ...any) error { return notFound(fmt.Sprintf(format, args...)) }

type notFound string

func (n notFound) Error() string { return string(n) }
func (notFound) Unwrap() error   { return ErrNotFound }

// A FieldError names a wrong input, the reason, and the accepted values. Both people and models read it.
type FieldError struct {
	Field    string   // the name as the caller knows it: "severity", "--priority"
	Problem  string   // "is required", "is not one of the accepted values"
	Accepted []string // the accepted values; empty if Problem is complete
}

// Error returns "FIELD PROBLEM (accepted: A, B)".
func (e *FieldError) Error() string {
	if len(e.Accepted) == 0 {
		return e.Field + " " + e.Problem
	}
	return fmt.Sprintf("%s %s (accepted: %s)", e.Field, e.Problem, strings.Join(e.Accepted, ", "))
}

// timeLayout has a fixed width, so that comparing texts compares times.
const timeLayout = "2006-01-02T15:04:05.000Z"

// A Time is a moment in UTC to the millisecond. Its text form is RFC 3339 with
// exactly three decimals; the zero Time is the empty text and, in JSON, null.
type Time struct{ time.Time }

// At returns t in UTC, truncated to the millisecond.
func At(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.UTC().Truncate(time.Millisecond)}
}

// String returns the text form, which the database also holds.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeLayout)
}

// ParseTime parses the text form or any RFC 3339 time. Empty text is the zero Time.
func ParseTime(s string) (Time, error) {
	if s == "" {
		return Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return Time{}, fmt.Errorf("time %q: %w", s, err)
	}
	return At(t), nil
}

// MarshalJSON returns the text form, or null for the zero Time.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(t.String())
}

// UnmarshalJSON parses the output of MarshalJSON.
func (t *Time) UnmarshalJSON(b []byte) error {
	// There are many of them, and nearly all are plain.
	if n := len(b); n > 1 && b[0] == '"' && b[n-1] == '"' && bytes.IndexByte(b, '\\') < 0 {
		parsed, err := ParseTime(string(b[1 : n-1]))
		*t = parsed
		return err
	}
	var s *string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if s == nil {
		*t = Time{}
		return nil
	}
	parsed, err := ParseTime(*s)
	*t = parsed
	return err
}

// Scan parses the text form from a database column.
func (t *Time) Scan(column any) error {
	text, ok := column.(string)
	if !ok {
		return fmt.Errorf("time column holds %T, not text", column)
	}
	parsed, err := ParseTime(text)
	*t = parsed
	return err
}
