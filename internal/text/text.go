// Package text prepares texts of agents, programs and people for display: on a terminal, in a prompt, on a page, in a
// message.
//
// [Clean] removes invisible characters, [Visible] shows them by number: the former is for the output of programs and
// for prompts, the latter for texts that people decide on.
package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ralph/internal/lazy"
)

// Head returns the longest prefix of s of at most n bytes that does not cut a character.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := n; i > max(n-utf8.UTFMax, -1); i-- {
		if utf8.RuneStart(s[i]) {
			return s[:i]
		}
	}
	return s[:n] // not UTF-8
}

// Invalid returns the position of the first byte that is not UTF-8, or -1.
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

// Tail returns the longest suffix of s of at most n bytes that does not cut a character.
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

// Clip returns s in at most n characters; if it is cut, the last one is "…".
func Clip(s string, n int) string { return ClipBy(s, n, func(rune) int { return 1 }) }

// ClipEnd returns the end of s in at most n characters; if it is cut, the first one is "…".
func ClipEnd(s string, n int) string {
	begin, room := len(s), len(s) // room is the last position where the mark fits
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

// ClipBy is [Clip] with another measure for the size of a character.
func ClipBy(s string, limit int, size func(rune) int) string {
	used, room := 0, 0 // room is the last position where the mark fits
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

// Flat returns clean text on one line.
func Flat(s string) string { return fields(Clean(s)) }

func fields(s string) string { return strings.Join(strings.Fields(s), " ") }

// Short returns clean text on one line of at most n characters.
func Short(s string, n int) string { return short(s, n, Flat) }

// Line returns s on one line of at most n characters, with invisible characters made visible.
func Line(s string, n int) string { return short(s, n, VisibleLine) }

func short(s string, n int, flat func(string) string) string {
	head := Head(s, 8*n) // the rest cannot matter
	line := Clip(flat(head), n)
	if len(head) < len(s) && !strings.HasSuffix(line, "…") {
		line += "…"
	}
	return line
}

// FirstLine returns the first line that is not blank.
func FirstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// LastLine returns the last line that is neither blank nor a line of JavaScript's call stack, which follows an
// error; "" if there is none.
func LastLine(s string) string {
	for _, line := range slices.Backward(strings.Split(s, "\n")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "at ") {
			return line
		}
	}
	return ""
}

// Names lists file names in a line, the first most of them if there are more (0: all), and counts the rest. A name with
// control characters or without UTF-8 is quoted as a Go string.
func Names(files []string, most int) string {
	rest := ""
	if n := len(files) - most; most > 0 && n > 0 {
		files, rest = files[:most], fmt.Sprintf(" and %d more", n)
	}
	shown := make([]string, len(files))
	for i, f := range files {
		if shown[i] = f; !utf8.ValidString(f) || strings.ContainsFunc(f, unicode.IsControl) {
			shown[i] = strconv.Quote(f)
		}
	}
	return strings.Join(shown, ", ") + rest
}

// Count formats a number of things: "1 session", "2 sessions".
func Count(n int, noun string) string { return fmt.Sprintf("%d %s", n, Plural(n, noun)) }

// Plural returns a noun as it follows a number.
func Plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// Money formats an amount.
func Money(usd float64) string { return fmt.Sprintf("$%.2f", usd) }

// Cost formats an amount for a use. Bills are exact, estimates begin with "about", and use without a known price is
// "unknown".
func Cost(usd float64, known bool, tokens int64) string {
	switch {
	case known || usd == 0 && tokens == 0:
		return Money(usd)
	case usd == 0:
		return fmt.Sprintf("cost unknown: %d tokens", tokens)
	}
	return "about " + Money(usd)
}

// Span formats a duration in seconds: "2.3 s", "45 s", "2 min 6 s", "1 h 5 min".
func Span(seconds float64) string {
	seconds = max(0, seconds) // the clock may have been set back
	if seconds < 10 {
		return strings.Replace(fmt.Sprintf("%.1f s", seconds), ".0 s", " s", 1)
	}
	d := time.Duration(min(seconds, 1e9)) * time.Second
	two := func(n int, unit string, rest int, small string) string {
		if rest == 0 {
			return fmt.Sprintf("%d %s", n, unit)
		}
		return fmt.Sprintf("%d %s %d %s", n, unit, rest, small)
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return two(int(d.Minutes()), "min", int(d.Seconds())%60, "s")
	}
	return two(int(d.Hours()), "h", int(d.Minutes())%60, "min")
}

// When formats a moment for people, relative to another one: "23:43" within 12 hours of it, else "Nov 27
// 23:43", and with the year if it differs.
func When(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	switch apart := now.Sub(at).Abs(); {
	case apart < 12*time.Hour:
		return at.Format("15:04")
	case at.Year() == now.Year():
		return at.Format("Jan 2 15:04")
	}
	return at.Format("Jan 2 2006 15:04")
}

// ansi matches the seven-bit escape sequences that programs use to colour output and set
// window titles.
var ansi = lazy.Regexp("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|[@-Z\\\\^_])")

// newlines converts every kind of line end to a newline.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n",
	"\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// Clean returns valid UTF-8 with newlines as the only line ends, without terminal escapes, control
// and invisible characters, and without surrounding blank lines. Visible characters are not
// changed.
func Clean(s string) string {
	if !plain(s) {
		s = ansi().ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), "")
		s = strings.Map(seen, newlines.Replace(s))
	}
	return strings.TrimRight(strings.TrimLeft(s, "\n"), " \t\n")
}

// plain reports whether s needs no cleaning, the usual case: a prompt may be chosen from thousands
// of texts.
func plain(s string) bool {
	for i := range len(s) {
		if b := s[i]; b >= 0x7f || b < ' ' && b != '\n' && b != '\t' {
			return false
		}
	}
	return true
}

// seen drops invisible characters.
func seen(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case unicode.IsControl(r),
		r == 0x061c, r == 0x180e, r == 0xfeff, // direction and byte order marks
		r == 0x200b, r == 0x200e, r == 0x200f, // zero width; the joiners beside them are needed in words and emoji
		0x202a <= r && r <= 0x202e, 0x2060 <= r && r <= 0x206f, // direction overrides and isolates
		0xfff9 <= r && r <= 0xfffb,                                 // annotations
		0xe0000 <= r && r <= 0xe0fff, 0x1d173 <= r && r <= 0x1d17a: // tags, which can hide a second text
		return -1
	}
	return r
}

// Nested returns an upper bound for the depth of brackets and statements in the source of a shell script, quoted ones
// included. Parsers need memory for each.
func Nested(source string) (deepest int) {
	open := 0
	for i := range len(source) {
		switch source[i] {
		case '(', '{', '`', '[':
			open++
			deepest = max(deepest, open)
		case ')', '}', ']':
			open = max(open-1, 0)
		}
	}
	return deepest + strings.Count(source, "if ") + strings.Count(source, "while ") + strings.Count(source, "for ")
}
