package prompt

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"ralph"
)

// Limits of single quotations in bytes. They do not touch what is never
// shortened: the task, answers and what remains.
const (
	maxQuote = 8 << 10 // a comment, a learning, a summary, the output of a command
	maxWord  = 300     // a file name, a name of an author
)

// The marks of fences. Tildes, since what agents and people write is full of
// backticks, and a longer mark is needed less often.
const (
	fenceChar = '~'
	minFence  = 3
)

// fence quotes text as data: between two lines of tildes of which there are
// more than anywhere in the text, so that no line of it can end the fence. The
// label, which says who wrote it and when, stands on the first of the two lines
// and must be a single line of ralph's own words and of words made by [word].
func fence(label, text string) string {
	text = clean(text)
	mark := fenceMark(longestRun(text))
	return mark + " " + label + "\n" + text + "\n" + mark + "\n\n"
}

// fenceMark is a mark that is longer than the longest run of it in what it encloses.
func fenceMark(longest int) string {
	return strings.Repeat(string(fenceChar), max(minFence, longest+1))
}

// longestRun is the length of the longest run of the fence's mark in s.
func longestRun(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != fenceChar {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// indent moves a fence under the one that it replies to.
func indent(fenced string) string {
	lines := strings.Split(strings.TrimRight(fenced, "\n"), "\n")
	return "  " + strings.Join(lines, "\n  ") + "\n\n"
}

// ansi matches the escape sequences with which programs colour what they write
// and name their windows, in their seven-bit form.
var ansi = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|[@-Z\\\\^_])")

// newlines makes every kind of line end a newline.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// clean is text as it is shown: valid UTF-8 with newlines as its only line
// ends, without terminal escapes, without control and invisible characters,
// and without blank lines around it. Nothing that can be seen is changed.
func clean(text string) string {
	if !plain(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
		text = ansi.ReplaceAllString(text, "")
		text = strings.Map(visible, newlines.Replace(text))
	}
	return strings.TrimRight(strings.TrimLeft(text, "\n"), " \t\n")
}

// plain reports whether there is nothing to clean within text, as in most: a
// prompt may be chosen from thousands of them.
func plain(text string) bool {
	for i := range len(text) {
		if b := text[i]; b >= 0x7f || b < ' ' && b != '\n' && b != '\t' {
			return false
		}
	}
	return true
}

// visible drops the characters that are there without being seen.
func visible(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case unicode.IsControl(r):
		return -1
	case r == 0x061c, r == 0x180e, r == 0xfeff, // marks of direction and of byte order
		r == 0x200b, r == 0x200e, r == 0x200f, // zero width; the joiners beside them are needed in words and emoji
		0x202a <= r && r <= 0x202e, 0x2060 <= r && r <= 0x206f, // overrides and isolates of direction
		0xfff9 <= r && r <= 0xfffb,                                 // annotations
		0xe0000 <= r && r <= 0xe0fff, 0x1d173 <= r && r <= 0x1d17a: // tags, in which a second text can hide
		return -1
	}
	return r
}

// oneLine is clean text on a single line.
func oneLine(text string) string {
	return strings.Join(strings.Fields(clean(text)), " ")
}

// word is a name as it stands within one of ralph's own lines: as it is if it
// has nothing but letters, digits and the marks that are allowed, else in
// double quotes with everything unusual escaped as in Go.
func word(name, marks string) string {
	usual := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(marks, r) }
	shown := head(name, maxWord)
	quoted := shown
	if shown == "" || strings.ContainsFunc(shown, func(r rune) bool { return r == utf8.RuneError || !usual(r) }) {
		quoted = strconv.Quote(shown)
	}
	if len(shown) < len(name) {
		quoted += fmt.Sprintf("… (%d bytes more)", len(name)-len(shown))
	}
	return quoted
}

// Marks that names may have without being quoted.
const (
	nameMarks = "-_."
	pathMarks = "-_./+@=#"
)

// by is the label of a fence: who wrote what is in it, when, and what it is.
// The parts are ralph's own words.
func by(author string, kind ralph.Origin, at ralph.Time, parts ...string) string {
	who := "agent"
	if kind == ralph.ByHuman {
		who = "person"
	}
	if author != "" && author != who {
		who = word(author, nameMarks) + " (" + who + ")"
	}
	label := []string{who}
	if !at.IsZero() {
		label = append(label, date(at))
	}
	for _, p := range parts {
		if p != "" {
			label = append(label, p)
		}
	}
	return strings.Join(label, ", ")
}

func date(at ralph.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") }

// tag is a name in a label, which there need not be.
func tag(name string) string {
	if name == "" {
		return ""
	}
	return word(name, nameMarks)
}

// quote fences text and keeps to [maxQuote] bytes of it: its beginning.
func quote(label, text string) quotation {
	text = clean(text)
	shown := head(text, maxQuote)
	return quoteCut(label, shown, len(text)-len(shown), "the rest of this text")
}

// quoteEnd is quote for what matters most at its end, such as the output of a command.
func quoteEnd(label, text string) quotation {
	text = clean(text)
	shown := tail(text, maxQuote)
	return quoteCut(label, shown, len(text)-len(shown), "the beginning of this text")
}

// A quotation is fenced text of which a part may be cut.
type quotation struct {
	text string
	cut  int // bytes
}

func quoteCut(label, shown string, cut int, what string) quotation {
	switch {
	case shown == "":
		return quotation{}
	case cut == 0:
		return quotation{text: fence(label, shown)}
	}
	note := fmt.Sprintf("(Cut: %s, %d bytes.)\n\n", what, cut)
	return quotation{text: strings.TrimSuffix(fence(label, shown), "\n") + note, cut: cut}
}

// head is the longest beginning of s of at most n bytes that does not cut a character.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := n; i > n-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			return s[:i]
		}
	}
	return s[:n] // no UTF-8 at all
}

// tail is the longest end of s of at most n bytes that does not cut a character.
func tail(s string, n int) string {
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
