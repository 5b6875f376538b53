package prompt

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"ralph"
	"ralph/internal/text"
)

// Limits of single quotations in bytes. They do not apply to parts that are never shortened: the task, answers and the
// remaining work.
const (
	maxQuote = 8 << 10 // a comment, a learning, a summary, the output of a command
	maxWord  = 300     // a file name, an author's name
)

// Fences are made of tildes, as agents and people often write backticks.
const (
	fenceChar = '~'
	minFence  = 3
)

// fence quotes said as data, between two lines of tildes. These are longer than any run of tildes in the text, so that
// no line of it can end the fence. The label names the author and the time, on the first line, and must consist of
// ralph's own words and of words made by [word], on a single line.
func fence(label, said string) string {
	said = text.Clean(said)
	mark := fenceMark(longestRun(said))
	return mark + " " + label + "\n" + said + "\n" + mark + "\n\n"
}

// Quoted is [fence] for texts outside of a prompt.
func Quoted(label, said string) string { return fence(label, said) }

// fenceMark returns a mark longer than the longest run of tildes in the content.
func fenceMark(longest int) string {
	return strings.Repeat(string(fenceChar), max(minFence, longest+1))
}

// longestRun returns the length of the longest run of fenceChar in s.
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

// indent indents a fence below the one that it replies to.
func indent(fenced string) string {
	lines := strings.Split(strings.TrimRight(fenced, "\n"), "\n")
	return "  " + strings.Join(lines, "\n  ") + "\n\n"
}

// word returns a name for use in one of ralph's own lines. It keeps names of letters,
// digits and the allowed marks. It puts all others in double quotes, with unusual
// characters escaped as in Go.
func word(name, marks string) string {
	usual := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(marks, r) }
	shown := text.Head(name, maxWord)
	quoted := shown
	if shown == "" || strings.ContainsFunc(shown, func(r rune) bool { return r == utf8.RuneError || !usual(r) }) {
		quoted = strconv.Quote(shown)
	}
	if len(shown) < len(name) {
		quoted += fmt.Sprintf("… (%d bytes more)", len(name)-len(shown))
	}
	return quoted
}

// Marks that need no quotes in names and paths.
const (
	nameMarks = "-_."
	pathMarks = "-_./+@=#"
)

// Named returns the name of a test or a file for a prompt. It quotes unusual names, so that they do not read as
// ralph's own words, and cuts long ones.
func Named(name string) string { return word(name, pathMarks+":[]$") }

// NamedList returns names, each as [Named] does.
func NamedList(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = Named(name)
	}
	return strings.Join(list, ", ")
}

// by returns the label of a fence: the author of the content, the time, and its kind. The parts are ralph's own words.
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

// tag returns a name for a label; "" for "".
func tag(name string) string {
	if name == "" {
		return ""
	}
	return word(name, nameMarks)
}

// quote fences the first [maxQuote] bytes of a text.
func quote(label, said string) quotation {
	said = text.Clean(said)
	shown := text.Head(said, maxQuote)
	return quoteCut(label, shown, len(said)-len(shown), "the rest of this text")
}

// quoteEnd is like quote, but keeps the end, which matters most in the output of a command.
func quoteEnd(label, said string) quotation {
	said = text.Clean(said)
	shown := text.Tail(said, maxQuote)
	return quoteCut(label, shown, len(said)-len(shown), "the beginning of this text")
}

// A quotation is fenced text that may have been cut.
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
