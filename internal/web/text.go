package web

import (
	"fmt"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
)

// span formats a duration in seconds.
func span(seconds float64) string { return text.Span(seconds) }

// moment formats a time, without the date if it is today.
func moment(t, now ralph.Time) string {
	at, here := t.Local(), now.Local()
	switch {
	case t.IsZero():
		return ""
	case at.Format(time.DateOnly) == here.Format(time.DateOnly):
		return at.Format("15:04")
	case at.Year() == here.Year():
		return at.Format("Jan 2, 15:04")
	}
	return at.Format("Jan 2 2006, 15:04")
}

// number formats a count with grouped thousands.
func number(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// plural formats a number of things.
func plural(n int, one string) string {
	return number(int64(n)) + " " + text.Plural(n, one)
}

// ago formats how long ago a time is, in its largest unit.
func ago(t, now ralph.Time) string {
	d := max(0, now.Sub(t.Time))
	switch {
	case t.IsZero():
		return ""
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// brief leaves out of a line of the summary where work is kept that is not merged.
func brief(line string) string {
	said, _, _ := strings.Cut(line, ", and kept as ")
	return said
}
