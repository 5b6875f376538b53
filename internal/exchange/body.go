package exchange

import (
	"strings"

	"ralph"
	"ralph/internal/lazy"
)

var (
	accept     = lazy.Regexp("`accept:\\s*([^`]+)`")
	inlineCode = lazy.Regexp("^`([^`]+)`$")
	// labelWords is a line that labels the text below or after it: "**Acceptance Criteria:**", "- Depends on: T1";
	// boldWords is one without a colon.
	labelWords = lazy.Regexp(`^\s*(?:>\s*)?(?:[-*+•]\s+)?([*_]{0,3})([^*_:：` + "`" + `]{1,60}?)` +
		`\s*[*_]{0,3}\s*[:：]\s*[*_]{0,3}(?:\s+(.*?))?[*_]*\s*$`)
	boldWords  = lazy.Regexp(`^\s*(?:[-*+•]\s+)?(\*\*|__)([^*_]{1,60})(?:\*\*|__)\s*$`)
	waitsTitle = lazy.Regexp(`^(depends( on)?|dependenc(y|ies)|blocked by|` +
		`зависит от|зависимости|hängt ab von|abhängig von|abhängigkeiten|blockiert (von|durch)|dépend de|dépendances|` +
		`bloqué par|depende de|dependencias|dependências|bloquead[oa] por|依赖|依赖于|依存)$`)
	// criterionLabel numbers a criterion: "AC 1:".
	criterionLabel = lazy.Regexp(`^ac[ -]?\d+(\.\d+)*$`)
	given          = lazy.Regexp(`(?i)^[*_]*(given|scenario|gegeben|étant donné|dado|дано)\b`)
	follows        = lazy.Regexp(`(?i)^[*_]*(when|then|and|but|wenn|dann|und|quand|alors|et|` +
		`cuando|entonces|y|когда|тогда|и)\b`)
)

// acceptCommands extracts `accept: command` from a text.
func acceptCommands(s string) (rest string, cmds []string) {
	for _, m := range accept().FindAllStringSubmatch(s, -1) {
		cmds = append(cmds, strings.TrimSpace(m[1]))
	}
	return strings.TrimSpace(strings.Join(strings.Fields(accept().ReplaceAllString(s, " ")), " ")), cmds
}

// A label is a line that introduces the lines below it.
type label struct {
	name string // in lower case
	rest string // after it, in the same line
	bold bool
}

// labelOf returns the label in a line; the zero value if there is none.
func labelOf(l *line) label {
	if l.kind != words {
		return label{}
	}
	m := labelWords().FindStringSubmatch(l.raw)
	if m == nil {
		if m = boldWords().FindStringSubmatch(l.raw); m == nil {
			return label{}
		}
		m = append(m, "")
	}
	return label{strings.ToLower(strings.TrimSpace(m[2])), strings.TrimSpace(m[3]), m[1] != ""}
}

// A list collects the criteria below a label or a heading.
type list struct {
	on    bool
	least int  // indentation of its items
	first int  // of the item before
	empty bool // no item yet
	gap   bool // a blank line is before
	box   int  // one more than the indentation of the box before; 0 for none
}

// begin starts a list of criteria below a line, or below a heading if that is nil.
func (c *list) begin(l *line) {
	*c = list{on: true, empty: true, first: -1, box: c.box}
	if l != nil {
		c.least = l.indent
		if _, bulleted := l.item(); bulleted {
			c.least++
		}
	}
}

// add reports whether a line belongs to the list, and adds it to the items.
func (c *list) add(l *line, items *[]string, item string, bulleted bool) bool {
	gap := c.gap
	c.gap = false
	n := len(*items)
	join := " "
	if bulleted && !follows().MatchString(item) {
		join = "; "
	}
	if c.box > 0 && l.indent >= c.box && n > 0 {
		(*items)[n-1] += join + item
		return true
	}
	c.box = 0
	switch {
	case !c.on:
		return false
	case l.indent < c.least:
	case !c.empty && n > 0 && (l.indent > c.first && c.first >= 0 ||
		follows().MatchString(item) && given().MatchString((*items)[n-1])):
		(*items)[n-1] += join + item
		return true
	case bulleted:
		*items, c.empty, c.first = append(*items, item), false, l.indent
		return true
	case c.empty || n == 0 || given().MatchString(item):
		*items, c.empty = append(*items, item), false
		return true
	case !gap:
		(*items)[n-1] += " " + item
		return true
	}
	c.on = false
	return false
}

// take adds a line to the text of a task.
func (t *markdownTask) take(l *line) {
	l.fate = folded
	switch {
	case l.kind == comment:
		l.fate = left
		return
	case l.kind == blank:
		t.list.gap = true
		if !underline().MatchString(l.raw) {
			t.text = append(t.text, t.verbatim(l.raw))
		}
		return
	case l.listed() && (t.waits == below || t.waits == behind && !(l.kind == boxed && t.list.gap)):
		text, _ := l.item()
		t.list.gap = false
		t.refs = append(t.refs, waitsFor{text, true})
		t.says(l.raw)
		return
	case l.kind == boxed:
		t.criterion(l)
		return
	case l.kind == code:
		t.says(l.raw)
		return
	case t.label(l.raw):
		return
	case t.own && t.list.box == 0:
		t.says(t.verbatim(l.raw))
		return
	}
	if t.begins(l) {
		return
	}
	text, bulleted := l.item()
	text, cmds := acceptCommands(text)
	t.Verify = append(t.Verify, cmds...)
	if t.list.add(l, &t.Acceptance, text, bulleted) || text == "" {
		return
	}
	if len(cmds) == 0 {
		text = l.raw
	}
	t.says(text)
}

// verbatim returns a line of a description as it was before ralph wrote it.
func (t *markdownTask) verbatim(line string) string {
	if t.own {
		return unescaped(line)
	}
	return line
}

// begins notes the list that a label begins or ends. It reports whether the line is used up: a label of criteria.
func (t *markdownTask) begins(l *line) bool {
	if t.waits == behind {
		t.waits = ""
	}
	if head := labelOf(l); !t.own && head.name != "" {
		switch {
		case roleOf(head.name) == conditions || criterionLabel().MatchString(head.name):
			t.list.begin(l)
			if head.rest != "" {
				t.accepts(head.rest)
				t.list.empty = false
			}
			return true
		case waitsTitle().MatchString(head.name):
			if t.refs = append(t.refs, waitsFor{head.rest, true}); head.rest == "" {
				t.waits = behind
			}
		}
		if head.bold && !given().MatchString(head.name) && !follows().MatchString(head.name) && l.indent <= t.list.least {
			t.list.on = false
		}
	}
	return false
}

// says adds a line to the description of a task, below the box that it follows.
func (t *markdownTask) says(text string) {
	if t.step != "" {
		t.text = append(t.text, "- "+t.step)
		t.step = ""
	}
	t.text = append(t.text, text)
}

// criterion adds a box to the criteria of a task.
func (t *markdownTask) criterion(l *line) {
	l.fate = folded
	if l.text == "" {
		l.fate = left
		return
	}
	t.boxes++
	if l.done() {
		t.ticked = append(t.ticked, len(t.Acceptance))
	}
	text := l.text
	if l.optional {
		text += " (optional)"
	}
	if t.list.empty, t.list.first, t.list.box = false, l.indent, l.indent+1; !t.list.on {
		t.step = text
	}
	t.accepts(text)
}

// accepts adds a criterion, and the commands in it.
func (t *markdownTask) accepts(text string) {
	text, cmds := acceptCommands(text)
	t.Verify = append(t.Verify, cmds...)
	if text != "" {
		t.Acceptance = append(t.Acceptance, text)
	}
}

// readBody reads the text of an issue into its task: boxes, and the list below "Acceptance Criteria", are its criteria.
// It returns the rest, and the dependencies as written.
func readBody(in *ralph.Import, t *ralph.ImportedTask, body string) (rest string, refs []waitsFor) {
	r := &markdownReader{lines: scan([]byte(body)), why: map[string]int{}}
	r.root = tree(r.lines, &r.all)
	for _, s := range r.all[1:] {
		if s.role = roleOf(s.title); s.role == noWork {
			s.role = plain // it names things out of scope
		}
	}
	m := &markdownTask{ImportedTask: *t}
	r.fill(m, r.root)
	m.tick()
	*t = m.ImportedTask
	in.Offers = append(in.Offers, r.in.Offers...)
	return unindent(m.text), m.refs
}
