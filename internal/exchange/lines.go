package exchange

import (
	"slices"
	"strings"
	"unicode"

	"ralph"
	"ralph/internal/lazy"
)

const (
	// Text from web pages and word processors has blanks that do not break (a0), and bullets of its own.
	boxForm = `^((?:[\s\x{a0}]*>)*[\s\x{a0}]*)` +
		`(?:(?:[-*+•]|\d+[.)]|[A-Za-z][.)])[\s\x{a0}]+` +
		`\[([\s\x{a0}]*(?:[^\s\x{a0}\d\[\]A-WYZ]\x{fe0f}?)?[\s\x{a0}]*)\]|` +
		`[-*+•]?\[([ \x{a0}xX])\]|(?:[-*+•]\s+)?([☐☑☒⬜🔲◻□▢])\x{fe0f}?)(\\?\*)?(?:[\s\x{a0}]+(.*?))?[\s\x{a0}]*$`
	bulletForm = `^(\s*)(?:[-*+•]|\d+[.)])\s+(\S.*)$`
)

// The lines of Markdown with a meaning. They are matched as lines, not as a CommonMark tree: people and models indent
// boxes as they like, even where CommonMark would see code.
var (
	box = lazy.Regexp(boxForm)
	// gluedBox is a box without a blank behind it; "[x](…)" is a link.
	gluedBox = lazy.Regexp(`^((?:\s*>)*\s*(?:[-*+•]|\d+[.)])\s+\[[ xX]\])([^\s\x{a0}(\[:*\\].*)$`)
	// oddBox is "[D] …", "[WIP] …", "– [ ] …", "**[ ]** …", "<li>[x] …".
	oddBox = lazy.Regexp(`^\s*(?:[-*+]|\d+[.)])\s+\[(?:[A-Z\d]|[A-Z]{2,5})\]\s+\S|` +
		"^(?:[^\\pL\\pN`]|\\d+[.)]|<li>)*[\\[［][ \\x{a0}\\x{3000}xX]?\\\\?[\\]］][*_]*[\\s\\x{3000}]+\\S")
	anyBox    = lazy.Regexp(`(?m)` + boxForm)
	heading   = lazy.Regexp(`^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$`)
	underline = lazy.Regexp(`^ {0,3}(=+|-{3,})\s*$`)
	bullet    = lazy.Regexp(bulletForm)
	anyBullet = lazy.Regexp(`(?m)` + bulletForm)
	// fenceLine may be in a quote or begin an item of a list.
	fenceLine = lazy.Regexp("^((?:\\s*>|\\s*(?:[-*+•]|\\d+[.)])\\s)*)\\s*(```+|~~~+)\\s*(.*?)\\s*$")
	codeSpan  = lazy.Regexp("`[^`]*`")
	cellBox   = lazy.Regexp(`^(?:\[[ xX/~-]?\]|[☐☑☒])$`)
	rowBox    = lazy.Regexp(`\|\s*(\[[ xX/~-]?\]|[☐☑☒])\s*(?:\||$)`)
	cellID    = lazy.Regexp("^[*`]*(?:[A-Za-z][\\w.]*-?)*\\d+(?:\\.\\d+)*[a-z]?[*`]*$")
	headLines = lazy.Regexp(`\A(?:[\w-]+:.*\n|[ #-].*\n|\n)*\z`) // of YAML
)

// A lineKind is the kind of a line of Markdown.
type lineKind int

const (
	words   lineKind = iota // all others
	blank                   // without a letter or a digit
	code                    // fenced, or a fence
	titled                  // a heading
	boxed                   // a box
	comment                 // no part of the text: a comment, the head of the file, or ralph's own
)

// A fate is the use of a line in an import.
type fate int

const (
	unread fate = iota
	made        // a task
	folded      // a part of a task, or of the feature
	left        // left out
)

// A line is a line of Markdown.
type line struct {
	n        int // from 1
	kind     lineKind
	fate     fate
	raw      string
	indent   int    // indent of a fence for the code in it
	level    int    // level of a heading
	mark     string // mark of a box, as in the file
	at       [2]int // where the mark stands in raw
	optional bool   // a box of Kiro's: "- [ ]* …"
	endless  bool   // a fence that nothing ends
	text     string // text of a heading or a box
	id       string // id of a row in a table
	needs    string // … and the tasks that it waits for
}

// Marks of boxes: open, done, and in progress.
var (
	openMarks    = []string{"", "☐", "⬜", "🔲", "◻", "□", "▢"}
	doneMarks    = []string{"x", "X", "✓", "✔", "✅", "☑", "☒"}
	workingMarks = []string{"/", "-", "~"}
)

func (l *line) done() bool { return slices.Contains(doneMarks, l.mark) }

// fenced returns the code fence that is open after a line, "" for none; one in a quote begins with ">".
func fenced(open, text string) string {
	m := fenceLine().FindStringSubmatch(text)
	if m == nil {
		return open
	}
	in := strings.TrimSpace(m[1]) // marks of quotes and lists
	switch {
	case open == "" && strings.HasPrefix(m[2], "`") && strings.Contains(m[3], "`"):
		return "" // code within a line
	case open == "" && strings.HasPrefix(in, ">"):
		return ">" + m[2]
	case open == "":
		return m[2]
	case m[3] == "" && strings.Trim(in, "> ") == "" && strings.HasPrefix(m[2], strings.TrimPrefix(open, ">")):
		return ""
	}
	return open
}

// quoted returns the fence that is open before a line: one in a quote ends with the quote.
func quoted(open, text string) string {
	if strings.HasPrefix(open, ">") && !strings.HasPrefix(strings.TrimSpace(text), ">") {
		return ""
	}
	return open
}

// comments reports whether a line of text begins a comment that ends in the rest of the document.
func comments(text, rest string) bool {
	if strings.HasPrefix(text, `\`) {
		return false
	}
	text = codeSpan().ReplaceAllString(text, "")
	at := strings.LastIndex(text, "<!--")
	return at >= 0 && !strings.Contains(text[at:], "-->") && strings.Contains(rest, "-->")
}

// scan returns the lines of a text by their kinds.
func scan(data []byte) (lines []*line) {
	head := 0
	if m := frontMatter().FindSubmatch(data); m != nil && headLines().Match(m[1]) {
		head = strings.Count(string(m[0]), "\n")
	}
	fence, indent, hidden := "", 0, false
	var begun *line // with the fence
	rest := string(data)
	for text := range strings.Lines(rest) {
		rest = rest[len(text):]
		l := &line{n: len(lines) + 1, raw: strings.TrimRight(text, "\r\n")}
		lines = append(lines, l)
		l.indent = indentOf(l.raw)
		before := quoted(fence, l.raw)
		if fence = before; l.n > head && !hidden {
			fence = fenced(before, l.raw)
		}
		switch start := strings.TrimSpace(l.raw); {
		case l.n <= head, strings.HasPrefix(start, NoteMark):
			l.kind = comment
		case before != "" || fence != "":
			if before == "" {
				indent, begun = l.indent, l
			}
			l.kind, l.indent = code, indent
		case hidden || strings.HasPrefix(start, "<!--"):
			_, after, ended := strings.Cut(start, "-->")
			l.kind, hidden = comment, !ended
			if ended && strings.TrimSpace(after) != "" {
				l.kind = words
			}
		default:
			l.look(lines)
			hidden = l.kind == words && !l.listed() && comments(start, rest)
		}
	}
	if fence != "" {
		begun.endless = true
	}
	return lines
}

// look sets the kind of the last line, which is not in code.
func (l *line) look(lines []*line) {
	if m := heading().FindStringSubmatch(l.raw); m != nil {
		l.kind, l.level, l.text = titled, len(m[1]), m[2]
		return
	}
	raw := gluedBox().ReplaceAllString(l.raw, "$1 $2")
	if m := box().FindStringSubmatchIndex(raw); m != nil {
		l.kind, l.optional, l.indent = boxed, m[10] >= 0, indentOf(strings.ReplaceAll(raw[:m[3]], ">", " "))
		for _, mark := range []int{4, 6, 8} {
			if m[mark] >= 0 {
				l.at = [2]int{m[mark], m[mark+1]}
			}
		}
		l.mark = strings.Trim(l.raw[l.at[0]:l.at[1]], " \t\u00a0\ufe0f")
		if m[12] >= 0 {
			l.text = raw[m[12]:m[13]]
		}
		return
	}
	if strings.HasPrefix(strings.TrimSpace(l.raw), "|") && l.row(lines) {
		return
	}
	if !strings.ContainsFunc(l.raw, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }) {
		l.kind = blank
		n := len(lines) - 2
		m := underline().FindStringSubmatch(l.raw)
		if m == nil || n < 0 || lines[n].kind != words || labelOf(lines[n]).name != "" ||
			bullet().MatchString(lines[n].raw) || n > 0 && lines[n-1].kind == words ||
			strings.HasPrefix(strings.TrimSpace(lines[n].raw), "|") {
			return
		}
		lines[n].kind, lines[n].text, lines[n].level = titled, strings.TrimSpace(lines[n].raw), 1
		if m[1][0] == '-' {
			lines[n].level = 2
		}
	}
}

// cells returns the cells of a row of a table, without the bars at its ends.
func cells(row string) (list []string) {
	row = strings.TrimPrefix(strings.TrimSpace(strings.ReplaceAll(row, `\|`, "\x00")), "|")
	for c := range strings.SplitSeq(strings.TrimSuffix(row, "|"), "|") {
		list = append(list, strings.TrimSpace(strings.ReplaceAll(c, "\x00", "|")))
	}
	return list
}

// row turns a table row with a single box into a box: its id and title, then its other cells. It
// reports whether it did.
func (l *line) row(lines []*line) bool {
	first := len(lines) - 1
	for first > 0 && strings.HasPrefix(strings.TrimSpace(lines[first-1].raw), "|") {
		first--
	}
	head, boxes := cells(lines[first].raw), 0
	var title, needs string
	var more []string
	for i, c := range cells(l.raw) {
		waits := i < len(head) && waitsTitle().MatchString(strings.ToLower(strings.Trim(head[i], "* ")))
		switch {
		case c == "":
		case cellBox().MatchString(c):
			boxes++
		case waits:
			needs, more = c, append(more, head[i]+": "+c)
		case l.id == "" && title == "" && cellID().MatchString(c):
			l.id = strings.Trim(c, "*`")
		case title == "":
			title = c
		default:
			more = append(more, c)
		}
	}
	if boxes != 1 || title == "" || first == len(lines)-1 {
		return false
	}
	at := rowBox().FindStringSubmatchIndex(l.raw)
	l.kind, l.at, l.needs = boxed, [2]int{at[2], at[3]}, needs
	if l.raw[at[2]] == '[' {
		l.at = [2]int{at[2] + 1, at[3] - 1}
	}
	l.mark = strings.TrimSpace(l.raw[l.at[0]:l.at[1]])
	if l.text = strings.Join(append([]string{title}, more...), " · "); l.id != "" {
		l.text = l.id + ": " + l.text
	}
	return true
}

// item returns the text of a bullet, or of a line without one.
func (l *line) item() (text string, bulleted bool) {
	if m := bullet().FindStringSubmatch(l.raw); m != nil {
		return strings.TrimSpace(m[2]), true
	}
	return strings.TrimSpace(l.raw), false
}

// listed reports whether the line is an item of a list.
func (l *line) listed() bool {
	_, bulleted := l.item()
	return l.kind == boxed || l.kind == words && bulleted
}

// counted adds the line to the count of its kind.
func (l *line) counted(to *ralph.Reading) {
	tally := &to.Lines
	switch l.kind {
	case titled:
		tally = &to.Headings
	case boxed:
		tally = &to.Boxes
	case blank:
		return
	case words, code, comment:
		if !strings.ContainsFunc(l.raw, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }) {
			return
		}
	}
	tally.Read++
	switch l.fate {
	case made:
		tally.Made++
	case folded:
		tally.Folded++
	case left:
		tally.Left++
	case unread:
	}
}

// indentOf returns the width of the leading blanks; a tab counts as four.
func indentOf(text string) (n int) {
	for _, c := range text {
		switch c {
		case ' ', '\u00a0':
			n++
		case '\t':
			n += 4
		default:
			return n
		}
	}
	return n
}

// unindent joins lines without their common indentation.
func unindent(lines []string) string {
	least := -1
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if n := len(l) - len(strings.TrimLeft(l, " \t")); least < 0 || n < least {
			least = n
		}
	}
	var out []string
	for _, l := range lines {
		if len(l) >= least && least > 0 {
			l = l[least:]
		}
		l = strings.TrimRight(l, " \t")
		if l != "" || len(out) > 0 && out[len(out)-1] != "" {
			out = append(out, l)
		}
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}
