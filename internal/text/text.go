// Package text makes what agents, programs and people wrote fit to be shown: on a
// terminal, in a prompt, on a page, in a message.
//
// [Clean] takes out what cannot be seen, [Visible] names it: the first is for the output
// of programs and for prompts, the second for what people decide on.
package text

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Head is the longest beginning of s of at most n bytes that does not cut a character.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := n; i > max(n-utf8.UTFMax, -1); i-- {
		if utf8.RuneStart(s[i]) {
			return s[:i]
		}
	}
	return s[:n] // no UTF-8 at all
}

// Invalid is where the first byte is that is no UTF-8, or -1.
func Invalid(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// Tail is the longest end of s of at most n bytes that does not cut a character.
func Tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := len(s) - n; i < len(s); i++ {
		if utf8.RuneStart(s[i]) {
			return s[i:]
		}
	}
	return ""
}

// Clip is s in at most n characters; if it is cut, the last of them is "…".
func Clip(s string, n int) string { return ClipBy(s, n, func(rune) int { return 1 }) }

// ClipEnd is the end of s in at most n characters; if it is cut, the first of them is "…".
func ClipEnd(s string, n int) string {
	begin, room := len(s), len(s) // room is where the mark would still fit
	for count := 0; begin > 0; {
		if count < n {
			room = begin
		}
		if count++; count > n {
			return "…" + s[room:]
		}
		_, size := utf8.DecodeLastRuneInString(s[:begin])
		begin -= size
	}
	return s
}

// ClipBy is [Clip] for a limit of another measure, in which each character has a size.
func ClipBy(s string, limit int, size func(rune) int) string {
	used, room := 0, 0 // room is where the mark would still fit
	for i, r := range s {
		if used+size('…') <= limit {
			room = i
		}
		if used += size(r); used > limit {
			return s[:room] + "…"
		}
	}
	return s
}

// Flat is clean text on one line.
func Flat(s string) string { return fields(Clean(s)) }

func fields(s string) string { return strings.Join(strings.Fields(s), " ") }

// Short is clean text on one line of at most n characters.
func Short(s string, n int) string { return short(s, n, Flat) }

// Line is s on one line of at most n characters, with what hides in it made visible.
func Line(s string, n int) string { return short(s, n, VisibleLine) }

func short(s string, n int, flat func(string) string) string {
	head := Head(s, 8*n) // no more of it is looked at
	line := Clip(flat(head), n)
	if len(head) < len(s) && !strings.HasSuffix(line, "…") {
		line += "…"
	}
	return line
}

// FirstLine is the first line that has text.
func FirstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// LastLine is the last line that has text.
func LastLine(s string) string {
	s = strings.TrimSpace(s)
	return strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:])
}

// Count is a number of things: "1 session", "2 sessions".
func Count(n int, noun string) string { return fmt.Sprintf("%d %s", n, Plural(n, noun)) }

// Plural is a noun as it stands behind a number.
func Plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// Money is an amount.
func Money(usd float64) string { return fmt.Sprintf("$%.2f", usd) }

// Span is a time in seconds.
func Span(seconds float64) string {
	if seconds < 10 {
		return fmt.Sprintf("%.1f s", seconds)
	}
	d := time.Duration(min(seconds, 1e9)) * time.Second
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// ansi matches the escape sequences with which programs colour what they write
// and name their windows, in their seven-bit form.
var ansi = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|[@-Z\\\\^_])")

// newlines makes every kind of line end a newline.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n",
	"\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// Clean is valid UTF-8 with newlines as its only line ends, without terminal escapes,
// without control and invisible characters, and without blank lines around it. Nothing
// that can be seen is changed.
func Clean(s string) string {
	if !plain(s) {
		s = ansi.ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), "")
		s = strings.Map(seen, newlines.Replace(s))
	}
	return strings.TrimRight(strings.TrimLeft(s, "\n"), " \t\n")
}

// plain reports whether there is nothing to clean within s, as in most: a
// prompt may be chosen from thousands of them.
func plain(s string) bool {
	for i := range len(s) {
		if b := s[i]; b >= 0x7f || b < ' ' && b != '\n' && b != '\t' {
			return false
		}
	}
	return true
}

// seen drops the characters that are there without being seen.
func seen(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case unicode.IsControl(r),
		r == 0x061c, r == 0x180e, r == 0xfeff, // marks of direction and of byte order
		r == 0x200b, r == 0x200e, r == 0x200f, // zero width; the joiners beside them are needed in words and emoji
		0x202a <= r && r <= 0x202e, 0x2060 <= r && r <= 0x206f, // overrides and isolates of direction
		0xfff9 <= r && r <= 0xfffb,                                 // annotations
		0xe0000 <= r && r <= 0xe0fff, 0x1d173 <= r && r <= 0x1d17a: // tags, in which a second text can hide
		return -1
	}
	return r
}
