package exchange

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"ralph"
	"ralph/internal/lazy"
	"ralph/signals"
)

var (
	boxID = lazy.Regexp(`^(?:\*\*)?(?:\[([A-Za-z][\w.]*-[\w.-]+)\]|` +
		`([A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*-\d+(?:\.\d+)*[a-z]?)(?:\*\*)?:|(T\d+[a-z]?)(?:\*\*)?:|` +
		`(T\d{3,}[a-z]?)(?:\*\*)?)(?:\*\*)?\s+(\S.*)$`)
	specID     = lazy.Regexp(`^T\d{3,}[a-z]?$`)
	ownTitle   = lazy.Regexp(`^\[(TASK-\d+)\]\s+(\S.*)$`)    // as ralph writes it: nothing in it has a meaning
	marks      = lazy.Regexp(`^((?:\[[^\]]*\]\s*)*)(\S.*)$`) // of Spec Kit: "[P] [US1] …"
	needsWords = lazy.Regexp(`(?i)\((?:depends on|blocked by|after|requires|needs) ([^)]*)\)|` +
		`\b(?:depends on|blocked by):? ((?-i:[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*-?\d+[a-z]?(?:\s*(?:,|&|and|[-–])\s*)?)+)`)
	depends   = lazy.Regexp(`(?i)^\(?(?:depends on|blocked by)`)
	struck    = lazy.Regexp(`^~~(.+?)~~(.*)$`)
	reference = lazy.Regexp(`[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*-\d+(?:\.\d+)*[a-z]?|` +
		`[A-Z]+\d+[a-z]?|\d+(?:\.\d+)*`)
	boxNumber = lazy.Regexp(`^(\d+(?:\.\d+)*)[.)]?\s`)
	ownName   = lazy.Regexp(`^(implementation (plan|tasks)|tasks?( list)?|to-?dos?|plan|task breakdown)$`)
)

// A section is the text below a heading; the first one is that before any.
type section struct {
	head  *line // nil for the first one
	level int
	title string
	role  role
	task  taskTitle
	up    *section
	below []*section
	lines []*line
	took  bool     // a task was made from boxes in it, and has their text
	ours  bool     // … by ralph, which have not
	has   bool     // a task is below it
	text  []string // between its boxes
}

// A markdownTask is a task that is being read.
type markdownTask struct {
	ralph.ImportedTask
	at       *line
	mark     string // mark of its box
	optional bool
	struck   bool  // the file has struck it through
	boxes    int   // criteria with a box
	ticked   []int // indexes of the ticked ones
	list     list
	step     string // the box that the next line follows
	named    bool   // the file has its id
	own      bool   // ralph wrote it: "[TASK-3] …"
	alias    []string
	spec     bool   // it is one of Spec Kit: "T012 [P] [US1] …"
	beside   bool   // … that can be done in parallel with its neighbours
	marks    string // other ones
	text     []string
	on       []string // ids of the tasks of this file that it waits for, as ralph writes them
	refs     []waitsFor
	waits    string // the items of a list are dependencies: behind a label or below a heading
	section  *section
	parent   *markdownTask
	children []*markdownTask
}

// Places of lists of dependencies.
const (
	behind = "behind"
	below  = "below"
)

// A waitsFor is the text of a dependency, as written.
type waitsFor struct {
	text string
	sure bool // it names nothing but tasks
}

type markdownReader struct {
	in     ralph.Import
	lines  []*line
	root   *section
	all    []*section
	title  *section // its heading names the document; nil for none
	name   string
	tasks  []*markdownTask
	aside  []*line  // boxes that are neither tasks nor below one
	unmet  []string // dependencies that name no other task
	loose  bool     // boxes are tasks outside of headings that are
	why    map[string]int
	ids    map[string]int  // used ids, with their number
	twice  []string        // … more than once
	titled map[string]int  // titles of headings that are tasks, with their number
	headed map[string]bool // ids of tasks that are headings
	done   map[string]bool // … and that a box ticks
}

// readMarkdown reads checklists. name is for a document without a title.
func readMarkdown(name string, data []byte) (ralph.Import, error) {
	in := readDocument(name, data).in
	if len(in.Tasks) > 0 {
		return in, nil
	}
	switch {
	case anyBox().Match(data):
		return in, noTask("holds no task: its boxes stand below headings such as \"Acceptance Criteria\", \"Overview\" " +
			"or \"Optional\"; `ralph plan --file FILE` makes tasks of a text")
	case anyBullet().Match(data):
		return in, noTask("holds no task: a task is a line with a box, \"- [ ] Reject empty URLs\", " +
			"and this list has none; `ralph plan --file FILE` makes tasks of a text")
	}
	return in, nil
}

// readDocument reads a checklist, and notes the use of each line.
func readDocument(name string, data []byte) *markdownReader {
	r := &markdownReader{
		lines: scan(data), why: map[string]int{}, ids: map[string]int{},
		titled: map[string]int{}, headed: map[string]bool{}, done: map[string]bool{},
	}
	r.root = tree(r.lines, &r.all)
	r.roles()
	if r.name == "" || name != "" && ownName().MatchString(strings.ToLower(r.name)) {
		r.name = name
	}
	r.section(r.root)
	r.referred()
	r.finish()
	return r
}

// tree puts lines into the sections of their headings.
func tree(lines []*line, all *[]*section) *section {
	root := &section{}
	at := root
	*all = append(*all, root)
	for _, l := range lines {
		if l.kind != titled {
			at.lines = append(at.lines, l)
			continue
		}
		for at.up != nil && at.level >= l.level {
			at = at.up
		}
		s := &section{head: l, level: l.level, title: strings.TrimSpace(strings.Trim(l.text, "* ")), up: at}
		at.below = append(at.below, s)
		*all = append(*all, s)
		at = s
	}
	return root
}

// within reports whether a section has a role, or one that it is in.
func (s *section) within(is role) bool {
	for ; s != nil; s = s.up {
		if s.role == is {
			return true
		}
	}
	return false
}

// each calls f for a section and those below it.
func (s *section) each(f func(*section)) {
	f(s)
	for _, b := range s.below {
		b.each(f)
	}
}

// roles finds the role of each section, and the name of the document.
func (r *markdownReader) roles() {
	for _, s := range r.all[1:] {
		s.role = roleOf(s.title)
		if t, ok := taskTitleOf(s.title); ok && s.role == plain {
			s.task = t
		}
	}
	for _, s := range r.all[1:] {
		if s.level == 1 && s.role == plain && !s.task.sure {
			r.title, r.name = s, s.title
			break
		}
	}
	r.headings(r.root)
	r.alike()
	r.stories()
	r.count()
}

// alike makes tasks of headings without a box if headings of the same kind have one: "Task 3".
func (r *markdownReader) alike() {
	type kind struct {
		level int
		word  string
	}
	like := map[kind]bool{}
	for _, s := range r.all {
		if s.role == oneTask && s.task.word != "" {
			like[kind{s.level, s.task.word}] = true
		}
	}
	for _, s := range r.all {
		if s.role == plain && s.task.word != "" && like[kind{s.level, s.task.word}] && !s.has &&
			!s.within(oneTask) && !s.within(noWork) {
			s.role = oneTask
		}
	}
}

// stories makes tasks of headings without an id that have criteria, if there are no other tasks.
func (r *markdownReader) stories() {
	tasks := slices.ContainsFunc(r.all, func(s *section) bool {
		return s.role == oneTask || s.role == plain && s.loose()
	})
	for _, s := range slices.Backward(r.all[1:]) { // the lowest first
		within := false
		s.each(func(d *section) { within = within || d.role == oneTask })
		if !tasks && !within && s.role == plain && s.level > 1 && !s.within(noWork) && s.conditions() {
			s.role = oneTask
		}
	}
}

// count finds out which tasks have a heading with an id, and whether boxes elsewhere are tasks, too.
func (r *markdownReader) count() {
	in, out := 0, 0 // boxes below headings that are tasks, and elsewhere
	for _, s := range r.all {
		if s.role == oneTask {
			r.titled[cmp.Or(s.task.title, s.title)]++
			if s.task.id != "" {
				r.headed[s.task.id] = true
			}
		}
		for up := s.up; up != nil && s.role == oneTask; up = up.up {
			up.has = true
		}
		for _, l := range s.lines {
			switch {
			case l.kind == boxed && s.within(oneTask):
				in++
			case l.kind == boxed && s.role == plain:
				out++
			}
		}
	}
	r.loose = out > in || !r.root.has && r.root.role != oneTask
}

// headings marks the sections whose headings are tasks, the lowest first.
func (r *markdownReader) headings(s *section) {
	if s.role == noWork {
		return
	}
	sure := false
	for _, b := range s.below {
		r.headings(b)
		b.each(func(d *section) {
			s.has = s.has || d.role == oneTask
			sure = sure || d.role == oneTask && d.task.sure
		})
	}
	t := s.task
	switch {
	case t.title == "" || t.group || s == r.title && !t.sure:
	case t.sure && !sure, !s.has && s.checked():
		s.role = oneTask
		for _, b := range s.below {
			b.each(func(d *section) {
				if d.role == oneTask {
					d.role = plain
				}
			})
		}
	}
}

// loose reports whether the section itself has boxes that are not below a label such as "Acceptance
// Criteria".
func (s *section) loose() bool {
	_, loose := s.boxes()
	return loose
}

// boxes reports whether lines of the section are criteria, and whether it has other boxes.
func (s *section) boxes() (has, loose bool) {
	var c list
	for _, l := range s.lines {
		switch name := labelOf(l); {
		case roleOf(name.name) == conditions:
			c.begin(l)
			has = true
		case name.bold && !given().MatchString(name.name):
			c.on = false
		case l.kind == boxed && l.text != "" && !(c.on && l.indent >= c.least):
			loose = true
		}
	}
	return has, loose
}

// conditions reports whether a section has its own criteria, and no other boxes.
func (s *section) conditions() bool {
	has, loose := s.boxes()
	for _, b := range s.below {
		has = has || b.role == conditions && len(b.lines) > 0
	}
	return has && !loose
}

// checked reports whether a heading has boxes or criteria below it, but no box with a task's id.
func (s *section) checked() bool {
	has := false
	task := false
	s.each(func(d *section) {
		has = has || d.conditions()
		for _, l := range d.lines {
			if l.kind == boxed {
				has = true
				task = task || boxID().MatchString(l.text) && !groupIDs().MatchString(strings.Trim(l.text, "*["))
			}
		}
	})
	return has && !task
}

// section reads a section and those below it.
func (r *markdownReader) section(s *section) {
	switch {
	case s.within(noWork):
		r.leave(s)
		return
	case s.role == oneTask:
		r.heading(s)
		return
	case s.role == gates:
		r.in.Offers = append(r.in.Offers, offers(s, "")...)
	}
	if s.head != nil {
		s.head.fate = folded
	}
	r.boxes(s)
	for _, b := range s.below {
		r.section(b)
	}
}

// leave leaves a section that is not work out, with all that is below it.
func (r *markdownReader) leave(s *section) {
	top := s
	for top.up.within(noWork) {
		top = top.up
	}
	what := fmt.Sprintf("lines of the section %q, which is not work", top.title)
	s.head.fate = left
	r.why[what]++
	for _, l := range s.lines {
		l.fate = left
		if l.kind != blank {
			r.why[what]++
		}
	}
	for _, b := range s.below {
		r.leave(b)
	}
}

// commandWords matches code that may be a command, and no file or name.
var commandWords = lazy.Regexp("^(?:[-*+•] |\\d+[.)] )?`(?:\\$ )?" +
	"((?:[A-Z_]+=\\S+ )*(?:\\./)?[a-z][\\w./-]*(?: [^`]+)?)`")

// offers returns the commands from a section such as "Quality Gates".
func offers(s *section, task string) (list []ralph.Offer) {
	add := func(l *line, command string) {
		list = append(list, ralph.Offer{Command: command, Section: s.title, Line: l.n, Task: task})
	}
	for _, l := range s.lines {
		text, _ := l.item()
		if l.kind == boxed {
			text = l.text
		}
		if l.kind == code {
			if !fenceLine().MatchString(l.raw) && text != "" && !strings.HasPrefix(text, "#") {
				add(l, strings.TrimPrefix(text, "$ "))
			}
			continue
		}
		m := commandWords().FindStringSubmatch(strings.Trim(text, "*"))
		if m != nil && (strings.Contains(m[1], " ") || !strings.ContainsAny(strings.TrimPrefix(m[1], "./"), "./")) {
			add(l, m[1])
		}
	}
	return list
}

// heading reads a section whose heading is a task.
func (r *markdownReader) heading(s *section) {
	t := &markdownTask{ImportedTask: ralph.ImportedTask{Line: s.head.n}, at: s.head, mark: s.task.mark, section: s.up}
	t.Title = cmp.Or(s.task.title, s.title)
	if r.titled[t.Title] > 1 { // "Task 3 checklist" and "Task 4 checklist"
		t.Title = s.title
	}
	if s.task.boxed && t.mark == "" {
		t.mark = " "
	}
	if s.task.alias != "" {
		t.alias = append(t.alias, s.task.alias)
	}
	if s.task.id != "" {
		r.call(t, s.task.id)
	} else {
		t.Key = r.key(r.path(t))
	}
	t.refers(s.title)
	s.head.fate = made
	r.tasks = append(r.tasks, t)
	r.fill(t, s)
}

// tells reads the lines of a section about a task.
func (r *markdownReader) tells(t *markdownTask, s *section) {
	if s.role == gates {
		r.in.Offers = append(r.in.Offers, offers(s, t.Key)...)
	}
	if s.within(conditions) || s.role == gates {
		t.list.begin(nil)
	}
	if waitsTitle().MatchString(strings.ToLower(s.title)) {
		t.waits = below
	}
	for _, l := range s.lines {
		t.take(l)
	}
	t.list, t.step, t.waits = list{}, "", ""
}

// fill reads the lines below the heading of a task, or the text of an issue.
func (r *markdownReader) fill(t *markdownTask, s *section) {
	r.tells(t, s)
	for _, b := range s.below {
		switch b.role {
		case oneTask: // a separate task
			continue
		case noWork:
			r.leave(b)
			continue
		case plain, conditions, gates, about:
		}
		b.head.fate = folded
		before := len(t.text)
		t.text = append(t.text, "", b.head.raw)
		if b.head.raw[0] != '#' && !heading().MatchString(b.head.raw) {
			t.text[len(t.text)-1] = strings.Repeat("#", b.level) + " " + b.title
		}
		said, boxes := len(t.text), t.boxes
		r.fill(t, b)
		if empty := strings.TrimSpace(strings.Join(t.text[said:], "")) == ""; empty && (b.role != plain || boxes == t.boxes) {
			if t.text = t.text[:before]; b.role == plain || b.role == about {
				b.head.fate = left
				r.why["headings with nothing below them"]++
			}
		}
	}
}

// key returns the key of a task of this document.
func (r *markdownReader) key(id string) string {
	return ralph.ExternalKey(sourceOf("markdown", r.name), id)
}

// call gives a task its id from the file. It numbers further tasks with the same id.
func (r *markdownReader) call(t *markdownTask, id string) {
	t.Key, t.named = once(r.ids, r.key(id)), true
	if t.Key != r.key(id) {
		r.twice = append(r.twice, fmt.Sprintf("%s (line %d)", id, t.Line))
	}
}

// path returns the id of a task without one: its place and its title.
func (r *markdownReader) path(t *markdownTask) string {
	var path []string
	for s := t.section; s != nil; s = s.up {
		if s.head != nil && s != r.title {
			path = append([]string{signals.NormalTitle(s.title)}, path...)
		}
	}
	for p := t.parent; p != nil; p = p.parent {
		path = append(path, titleKey(p.Title))
	}
	return strings.Join(append(path, titleKey(t.Title)), "/")
}

// boxes reads the lines of a section that is not a task: its boxes with their lines, and its own
// text.
func (r *markdownReader) boxes(s *section) {
	var stack []*markdownTask
	var c list
	owner := func(l *line) *markdownTask {
		for i := len(stack) - 1; i >= 0; i-- {
			if stack[i].at.indent < l.indent {
				return stack[i]
			}
		}
		return nil
	}
	for _, l := range s.lines {
		o := owner(l)
		switch {
		case l.kind == comment, l.kind == boxed && l.text == "":
			l.fate = left
			continue
		case l.kind == blank && len(stack) > 0:
			stack[len(stack)-1].take(l)
			s.text = append(s.text, "")
			continue
		case l.kind == boxed && o != nil && o.list.on && l.indent >= o.list.least:
			o.criterion(l)
			continue
		case l.kind == boxed && !r.listed(l) && (o != nil || r.works(s, l) && !(c.on && l.indent >= c.least)):
			for len(stack) > 0 && stack[len(stack)-1].at.indent >= l.indent {
				stack = stack[:len(stack)-1]
			}
			stack = append(stack, r.box(s, l, stack))
			continue
		case o != nil:
			o.take(l)
			continue
		}
		if l.kind != blank {
			stack = nil
		}
		r.around(s, l, &c)
	}
}

// around adds a line to the text of a section; c is the list of criteria that it may be in.
func (r *markdownReader) around(s *section, l *line, c *list) {
	l.fate = folded
	if head := labelOf(l); roleOf(head.name) == conditions {
		c.begin(l)
	} else if head.bold {
		c.on = false
	}
	if l.kind == boxed {
		r.aside = append(r.aside, l)
	}
	if l.kind != blank || !underline().MatchString(l.raw) {
		s.text = append(s.text, l.raw)
	}
}

// refers notes the dependencies that a title names.
func (t *markdownTask) refers(title string) {
	for _, m := range needsWords().FindAllStringSubmatch(title, -1) {
		t.refs = append(t.refs, waitsFor{m[1] + m[2], depends().MatchString(m[0])})
	}
}

// works reports whether a box of a section is a task.
func (r *markdownReader) works(s *section, l *line) bool {
	return !s.within(conditions) && !s.within(about) && !s.within(gates) && (r.loose || boxID().MatchString(l.text))
}

// idOf returns the id that a box begins with; "" if it has none.
func idOf(title string) string {
	m := boxID().FindStringSubmatch(title)
	if m == nil {
		return ""
	}
	id := m[1] + m[2] + m[3] + m[4]
	if !strings.ContainsAny(id, "0123456789") {
		return "" // a word in brackets, as in "[front-end] …", is not an id
	}
	return id
}

// listed reports whether a box only repeats the task of a heading, which it may tick.
func (r *markdownReader) listed(l *line) bool {
	id := idOf(l.text)
	if !r.headed[id] {
		return false
	}
	r.done[id] = r.done[id] || l.done()
	return true
}

// box turns a box into a task.
func (r *markdownReader) box(s *section, l *line, above []*markdownTask) *markdownTask {
	title, cmds := acceptCommands(l.text)
	ours := ownTitle().FindStringSubmatch(l.text)
	if l.id != "" {
		title = strings.TrimPrefix(title, l.id+": ")
	}
	t := &markdownTask{ImportedTask: ralph.ImportedTask{Line: l.n}, at: l, mark: l.mark, optional: l.optional, section: s}
	t.Verify = cmds
	if slices.Contains(openMarks, t.mark) {
		t.mark = " "
	}
	if len(above) > 0 {
		t.parent = above[len(above)-1]
	}
	if ours != nil {
		r.call(t, ours[1])
		t.own, t.Verify, title, t.alias = true, nil, ours[2], append(t.alias, ours[1])
	} else if id := idOf(title); id != "" {
		m := boxID().FindStringSubmatch(title)
		rest := m[5]
		if t.spec = specID().MatchString(id); t.spec {
			of := marks().FindStringSubmatch(rest)
			t.beside, rest = strings.Contains(of[1], "[P]"), of[2]
			t.marks = strings.TrimSpace(strings.ReplaceAll(of[1], "[P]", ""))
		}
		r.call(t, id)
		t.alias = append(t.alias, id)
		if strings.Count(rest, "**")%2 == 1 { // "**BG-6: Title** (note)"
			rest = strings.Replace(rest, "**", "", 1)
		}
		title = strings.TrimSpace(strings.Trim(rest, "*"))
	} else if m := boxNumber().FindStringSubmatch(strings.Trim(title, "*")); m != nil {
		t.alias = append(t.alias, m[1])
	} else if m := boxNumber().FindStringSubmatch(strings.TrimSpace(l.raw)); m != nil {
		t.alias = append(t.alias, m[1])
	}
	if l.id != "" {
		if t.alias = append(t.alias, l.id); strings.ContainsFunc(l.id, unicode.IsLetter) {
			r.call(t, l.id)
		}
	}
	if l.needs != "" {
		t.refs = append(t.refs, waitsFor{l.needs, true})
	}
	if m := struck().FindStringSubmatch(title); m != nil && !t.own {
		t.struck, title = true, m[1]+m[2]
	}
	t.Title = cmp.Or(strings.TrimSpace(title), l.text)
	if !t.named {
		t.Key = r.key(r.path(t))
	}
	if !t.own {
		t.refers(l.text)
	}
	if t.parent != nil {
		t.parent.children = append(t.parent.children, t)
	}
	l.fate, s.took, s.ours = made, true, s.ours || t.own
	for up := s.up; up != nil; up = up.up {
		up.has = true
	}
	r.tasks = append(r.tasks, t)
	return t
}
