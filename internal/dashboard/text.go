package dashboard

import (
	"fmt"
	"strings"
	"time"

	"ralph"
	"ralph/internal/transcript"
)

// plain is the output of a program without its colours and what else steers a
// terminal. What a person decides on is shown by [shown]. html/template does the rest.
func plain(s string) string { return transcript.Clean(s) }

// shown is a text with nothing taken out, and what hides in it made visible.
func shown(s string) string { return transcript.Visible(s) }

// line is a text on one line of at most n characters.
func line(n int, s string) string {
	s = transcript.VisibleLine(head(s, 8*n))
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// head is the beginning of a text, so that no more of it is looked at.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// money is an amount for people.
func money(usd float64) string { return fmt.Sprintf("$%.2f", usd) }

// span is a time in seconds for people.
func span(seconds float64) string { return transcript.Span(max(0, seconds)) }

// moment is a time as it is shown: of today without the date.
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

// number is a count with its thousands apart.
func number(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// plural is a number of things.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%s %ss", number(int64(n)), one)
}
