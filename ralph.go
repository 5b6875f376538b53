// Package ralph has the nouns of ralph: tasks, sessions, comments, learnings,
// features, runs and events, with the rules that belong to one of them alone.
//
// It is pure. It never reads a clock, a file, a database or a configuration:
// those live in store, loop and the packages below internal. Every other
// package speaks in terms of what is defined here; this one imports none of them.
package ralph

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors that a caller tells apart with errors.Is. The text before them says
// which task, comment or file is meant.
var (
	// ErrNotFound says that what was named does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict says that the thing exists and that its present state forbids
	// what was asked, such as answering an answered question.
	ErrConflict = errors.New("not possible now")
)

// A FieldError says which input is wrong, what is wrong with it and what would
// be right. It is written for people and for models alike.
type FieldError struct {
	Field    string   // the name that the caller used: "severity", "--priority"
	Problem  string   // "is required", "is not one of the accepted values"
	Accepted []string // what would be right; empty where the problem says it
}

// Error is "FIELD PROBLEM (accepted: A, B)".
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

// At is the moment t, cut to the millisecond.
func At(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.UTC().Truncate(time.Millisecond)}
}

// String is the text form, which is also what the database holds.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeLayout)
}

// ParseTime reads the text form, or any RFC 3339 time. Empty text is the zero Time.
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

// MarshalJSON writes the text form, or null for the zero Time.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(t.String())
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Time) UnmarshalJSON(b []byte) error {
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

// Scan reads the text form from a database column.
func (t *Time) Scan(column any) error {
	text, ok := column.(string)
	if !ok {
		return fmt.Errorf("time column holds %T, not text", column)
	}
	parsed, err := ParseTime(text)
	*t = parsed
	return err
}
