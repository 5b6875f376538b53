package show

import (
	"strconv"
	"strings"
	"time"

	"ralph/internal/transcript"
)

// Line cuts text to one line of at most n characters, what hides in it made visible.
func Line(s string, n int) string {
	runes := []rune(strings.NewReplacer("\n", " ", "\t", " ").Replace(transcript.Visible(s)))
	if len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return string(runes)
}

// Dollars is an amount for people.
func Dollars(usd float64) string { return "$" + strconv.FormatFloat(usd, 'f', 2, 64) }

// Minute is a moment for people, to the minute.
func Minute(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }
