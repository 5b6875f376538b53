package exchange

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"ralph"
	"ralph/signals"
)

// The lines of a checklist with a meaning. They are matched as lines, not as a CommonMark tree:
// people and models indent boxes as they like, even where CommonMark would see code.
var (
	box         = regexp.MustCompile(`^(\s*)(?:[-*+]|\d+[.)])\s+\[([ xX/])\]\s+(\S.*)$`)
	anyBox      = regexp.MustCompile(`(?m)` + box.String())
	heading     = regexp.MustCompile(`^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$`)
	taskHeading = regexp.MustCompile(`(?i)^(?:task|iteration)\s+([\w.-]+)\s*[:.–—-]\s*(.*)$`)
	bullet      = regexp.MustCompile(`^\s*(?:[-*+]|\d+[.)])\s+(\S.*)$`)
	anyBullet   = regexp.MustCompile(`(?m)` + bullet.String())
	titleID     = regexp.MustCompile(`^(?:\*\*)?(?:\[([A-Za-z][\w.]*-[\w.-]+)\]|([A-Z][A-Z0-9]*-\d+):)(?:\*\*)?\s+(\S.*)$`)
	accept      = regexp.MustCompile("`accept:\\s*([^`]+)`")
	inlineCode  = regexp.MustCompile("^`([^`]+)`$")
	headLines   = regexp.MustCompile(`\A(?:[\w-]+:.*\n|[ #-].*\n|\n)*\z`) // of YAML
	specTask    = regexp.MustCompile(`^(?:\*\*)?(T\d{3,}[a-z]?)(?:\*\*)?:?\s+((?:\[[^\]]*\]\s*)*)(\S.*)$`)
	specNeeds   = regexp.MustCompile(`(?i)\((?:depends on|after|requires) ([^)]*)\)`)
	specID      = regexp.MustCompile(`\bT\d{3,}[a-z]?\b`)
	fenceLine   = regexp.MustCompile("^\\s*(```+|~~~+)\\s*(.*?)\\s*$")
)

// A section is the text below a heading.
type section struct {
	level int
	title string
	kind  sectionKind
	text  []string // before and between its boxes
	used  bool     // a task is below it
}

type sectionKind int

const (
	plain      sectionKind = iota
	noWork                 // "Optional", "Future", "Nice to have"
	conditions             // "Success criteria", "Overview", "Context": applies to all tasks
	commands               // "Validation commands"
	oneTask                // "### Task 3: …": its boxes are the task's criteria
)

var (
	numbering   = regexp.MustCompile(`^[\d.]+[.)]?\s+`)
	noWorkTitle = regexp.MustCompile(`^(optional|future|nice[ -]to[ -]haves?|post[ -]completion)(\s*[:(].*|` +
		`\s+(tasks?|work|enhancements?|improvements?|ideas?|features?|items?|considerations?))?$`)
	conditionTitle = regexp.MustCompile(`^(\w+ )?(success criteria|overview|context)$`)
	commandsTitle  = regexp.MustCompile(`^validation commands?$`)
)

func kindOf(title string) sectionKind {
	title = strings.TrimSpace(strings.Trim(title, "*_ "))
	t := strings.TrimRight(numbering.ReplaceAllString(strings.ToLower(title), ""), ": ")
	switch {
	case commandsTitle.MatchString(t):
		return commands
	case noWorkTitle.MatchString(t):
		return noWork
	case conditionTitle.MatchString(t):
		return conditions
	case taskHeading.MatchString(title):
		return oneTask
	}
	return plain
}

// fenced returns the code fence that is open after a line, "" for none.
func fenced(open, line string) string {
	m := fenceLine.FindStringSubmatch(line)
	switch {
	case m == nil:
		return open
	case open == "" && strings.HasPrefix(m[1], "`") && strings.Contains(m[2], "`"):
		return "" // code within a line
	case open == "":
		return m[1]
	case m[2] == "" && strings.HasPrefix(m[1], open):
		return ""
	}
	return open
}

// acceptCommands extracts `accept: command` from a text.
func acceptCommands(s string) (rest string, cmds []string) {
	for _, m := range accept.FindAllStringSubmatch(s, -1) {
		cmds = append(cmds, strings.TrimSpace(m[1]))
	}
	return strings.TrimSpace(strings.Join(strings.Fields(accept.ReplaceAllString(s, " ")), " ")), cmds
}

// A markdownTask is a task that is being read.
type markdownTask struct {
	ralph.ImportedTask
	indent   int
	state    string // of its box: " ", "x" or "/"
	boxes    int    // criteria below a heading
	ticked   int
	named    bool // the file has its id
	spec     bool // it is one of Spec Kit: "T012 [P] [US1] …"
	beside   bool // … that may be done beside those around it
	marks    string
	within   []*section
	text     []string
	on       []string // ids of the tasks of this file that it waits for
	section  *section
	parent   *markdownTask
	children []*markdownTask
}

type markdownReader struct {
	in       ralph.Import
	title    string // of the document
	sections []*section
	all      []*section // that there were
	tasks    []*markdownTask
	stack    []*markdownTask // the boxes that a line may belong to
	current  *markdownTask   // of the current heading
	general  []string        // criteria of the whole document
	about    []string        // the document's description
	verify   []string
	left     int
	fence    string
	ids      map[string]bool
}

// readMarkdown reads checklists.
func readMarkdown(data []byte) (ralph.Import, error) {
	r := &markdownReader{ids: map[string]bool{}}
	n := 0
	if m := frontMatter.FindSubmatch(data); m != nil && headLines.Match(m[1]) {
		n, data = strings.Count(string(m[0]), "\n"), data[len(m[0]):]
		r.in.Notes = append(r.in.Notes, "left out: the head of the file, between its lines of \"---\"")
	}
	for line := range strings.Lines(string(data)) {
		n++
		r.line(n, strings.TrimRight(line, "\r\n"))
	}
	in := r.finish()
	if len(in.Tasks) == 0 && anyBullet.Match(data) {
		return in, noTask("holds no task: a task is a line with a box, \"- [ ] Reject empty URLs\", and this list has none")
	}
	return in, nil
}

func (r *markdownReader) kind() sectionKind {
	for i := len(r.sections) - 1; i >= 0; i-- {
		if r.sections[i].kind != plain {
			return r.sections[i].kind
		}
	}
	return plain
}

func (r *markdownReader) line(n int, line string) {
	before := r.fence
	r.fence = fenced(r.fence, line)
	if before != "" || r.fence != "" {
		r.code(before, line)
		return
	}
	if strings.HasPrefix(strings.TrimSpace(line), NoteMark) {
		return
	}
	if m := heading.FindStringSubmatch(line); m != nil {
		r.head(n, len(m[1]), m[2])
		return
	}
	kind := r.kind()
	if m := box.FindStringSubmatch(line); m != nil && kind != commands {
		r.box(n, kind, indentOf(m[1]), strings.ToLower(m[2]), m[3])
		return
	}
	r.text(kind, line)
}

// code handles a line of fenced code, or its fence.
func (r *markdownReader) code(before, line string) {
	if r.kind() == commands {
		if t := strings.TrimSpace(line); before != "" && r.fence != "" && t != "" && !strings.HasPrefix(t, "#") {
			r.verify = append(r.verify, strings.TrimPrefix(t, "$ "))
		}
		return
	}
	if t := r.owner(line); t != nil {
		t.text = append(t.text, line)
	}
}

func (r *markdownReader) head(n, level int, title string) {
	for len(r.sections) > 0 && r.sections[len(r.sections)-1].level >= level {
		r.sections = r.sections[:len(r.sections)-1]
	}
	r.stack = nil
	s := &section{level: level, title: title, kind: kindOf(title)}
	r.sections, r.all = append(r.sections, s), append(r.all, s)
	if r.current != nil && !r.within(oneTask) {
		r.current = nil
	}
	switch {
	case r.within(noWork):
	case s.kind == oneTask:
		m := taskHeading.FindStringSubmatch(strings.Trim(title, "* "))
		t := &markdownTask{ImportedTask: ralph.ImportedTask{Line: n}}
		t.Title = strings.TrimSpace(m[2])
		r.identify(t, t.Title)
		r.tasks = append(r.tasks, t)
		r.current = t
	case level == 1 && r.title == "" && s.kind == plain:
		r.title = strings.Trim(title, "* ")
	}
}

// within reports whether a section of this kind is open.
func (r *markdownReader) within(kind sectionKind) bool {
	return slices.ContainsFunc(r.sections, func(s *section) bool { return s.kind == kind })
}

func (r *markdownReader) box(n int, kind sectionKind, indent int, state, title string) {
	switch {
	case r.within(noWork):
		r.left++
		return
	case r.current != nil:
		words, cmds := acceptCommands(title)
		r.current.Verify = append(r.current.Verify, cmds...)
		if words != "" {
			r.current.Acceptance = append(r.current.Acceptance, words)
		}
		r.current.boxes++
		if state == "x" {
			r.current.ticked++
		}
		return
	case kind == conditions:
		r.general = append(r.general, title)
		return
	}
	for len(r.stack) > 0 && r.stack[len(r.stack)-1].indent >= indent {
		r.stack = r.stack[:len(r.stack)-1]
	}
	words, cmds := acceptCommands(title)
	t := &markdownTask{ImportedTask: ralph.ImportedTask{Line: n}, indent: indent, state: state}
	t.Verify = cmds
	if len(r.stack) > 0 {
		t.parent = r.stack[len(r.stack)-1]
		t.parent.children = append(t.parent.children, t)
	}
	r.identify(t, words)
	r.stack = append(r.stack, t)
	r.tasks = append(r.tasks, t)
}

// identify sets the id of a task from its title. Without one, the key is its position: the
// document, the headings, the boxes above and its title.
func (r *markdownReader) identify(t *markdownTask, title string) {
	for _, s := range r.sections {
		s.used = true
		if s.title != r.title {
			t.within = append(t.within, s)
		}
	}
	if m := specTask.FindStringSubmatch(title); m != nil {
		t.Key, t.Title = ralph.ExternalKey(sourceOf("markdown", r.title), m[1]), strings.TrimSpace(m[3])
		t.named, t.spec, t.beside = true, true, strings.Contains(m[2], "[P]")
		t.marks = strings.TrimSpace(strings.ReplaceAll(m[2], "[P]", ""))
		return
	}
	// A word in brackets without a digit, as in "[front-end] …", is not an id.
	if m := titleID.FindStringSubmatch(title); m != nil && strings.ContainsAny(m[1]+m[2], "0123456789") {
		t.Key = ralph.ExternalKey(sourceOf("markdown", r.title), m[1]+m[2])
		t.Title = strings.TrimSpace(strings.Trim(m[3], "*"))
		t.named = true
		return
	}
	t.Title = strings.TrimSpace(title)
	if n := len(r.sections); n > 0 && r.sections[n-1].kind == plain && r.sections[n-1].title != r.title {
		t.section = r.sections[n-1]
	}
	var path []string
	for _, s := range r.sections {
		if s.title != r.title && s.kind != oneTask {
			path = append(path, signals.NormalTitle(s.title))
		}
	}
	for p := t.parent; p != nil; p = p.parent {
		path = append(path, titleKey(p.Title))
	}
	path = append(path, titleKey(t.Title))
	t.Key = ralph.ExternalKey(sourceOf("markdown", r.title), strings.Join(path, "/"))
}

// owner returns the task that an indented line belongs to; nil for none.
func (r *markdownReader) owner(line string) *markdownTask {
	if r.current != nil {
		return r.current
	}
	indent := indentOf(line)
	for i := len(r.stack) - 1; i >= 0; i-- {
		if r.stack[i].indent < indent {
			return r.stack[i]
		}
	}
	return nil
}

func (r *markdownReader) text(kind sectionKind, line string) {
	t := strings.TrimSpace(line)
	if kind == commands {
		if m := bullet.FindStringSubmatch(line); m != nil {
			t = m[1]
		}
		if m := inlineCode.FindStringSubmatch(t); m != nil {
			r.verify = append(r.verify, strings.TrimSpace(m[1]))
		}
		return
	}
	if r.within(noWork) {
		return
	}
	if owner := r.owner(line); owner != nil {
		if owner.label(line) {
			return
		}
		words, cmds := acceptCommands(line)
		owner.Verify = append(owner.Verify, cmds...)
		if len(cmds) == 0 {
			owner.text = append(owner.text, line)
		} else if bullet.MatchString(words) || words != "" && words != "-" && words != "*" {
			owner.text = append(owner.text, words)
		}
		return
	}
	if t == "" {
		if len(r.about) > 0 {
			r.about = append(r.about, "")
		}
		return
	}
	r.stack = nil
	switch n := len(r.sections); {
	case len(t) > 2 && strings.Trim(t, "-") == "": // a rule between sections
	case kind == conditions || n == 0 || r.sections[n-1].title == r.title:
		r.about = append(r.about, line)
	default:
		r.sections[n-1].text = append(r.sections[n-1].text, line)
	}
}

func (r *markdownReader) finish() ralph.Import {
	about := strings.TrimSpace(strings.Join(r.about, "\n"))
	feature := ""
	if len(r.tasks) == 1 {
		r.tasks[0].Acceptance = append(r.tasks[0].Acceptance, r.general...)
		r.general = nil
	}
	if r.title != "" && len(r.tasks) > 0 {
		criteria := ""
		if len(r.general) > 0 {
			criteria = "- " + strings.Join(r.general, "\n- ")
		}
		feature = featureOf(&r.in, r.title, paragraphs([2]string{"", about}, [2]string{"Success criteria", criteria}))
	}
	r.phases()
	for _, t := range r.tasks {
		if t.parent == nil {
			r.add(t, feature)
		}
	}
	var unused []string
	for _, s := range r.all {
		if !s.used && s.kind == plain && s.title != r.title && strings.TrimSpace(strings.Join(s.text, "")) != "" {
			unused = append(unused, s.title)
		}
	}
	if len(unused) > 0 && len(r.tasks) > 0 {
		r.in.Notes = append(r.in.Notes, "left out: the text of sections without a task: "+strings.Join(unused, ", "))
	}
	note(&r.in, map[string]int{
		"boxes in sections that are no work (Optional, Future, Nice to have, Post-Completion)": r.left,
	})
	return r.in
}

// phases has tasks of Spec Kit wait for those before them: one marked [P] may be done beside those before and after it
// of the same phase that are marked too; all others come one after the other, and a phase after the one before.
func (r *markdownReader) phases() {
	var before, now []*markdownTask
	for _, t := range r.tasks {
		if !t.spec {
			continue
		}
		if n := len(now); n == 0 || !t.beside || !now[n-1].beside || phaseOf(now[n-1]) != phaseOf(t) {
			before, now = now, nil
		}
		now = append(now, t)
		for _, b := range before {
			t.Needs = append(t.Needs, ralph.Need{Key: b.Key, Optional: true})
		}
		if m := specNeeds.FindStringSubmatch(t.Title); m != nil {
			for _, id := range specID.FindAllString(m[1], -1) {
				need := ralph.Need{Key: ralph.ExternalKey(sourceOf("markdown", r.title), id), Optional: true}
				if !slices.Contains(t.Needs, need) {
					t.Needs = append(t.Needs, need)
				}
			}
		}
	}
}

// phaseOf returns the topmost section of a task; nil for none.
func phaseOf(t *markdownTask) *section {
	if len(t.within) == 0 {
		return nil
	}
	return t.within[0]
}

// add adds a task after its subtasks, which it waits for.
func (r *markdownReader) add(t *markdownTask, feature string) {
	for _, c := range t.children {
		r.add(c, feature)
		t.Needs = append(t.Needs, ralph.Need{Key: c.Key})
	}
	for _, id := range t.on {
		t.Needs = append(t.Needs, ralph.Need{Key: ralph.ExternalKey(sourceOf("markdown", r.title), id)})
	}
	t.Feature, t.Priority, t.Status = feature, ralph.DefaultPriority, ralph.Pending
	if t.state == "x" || t.boxes > 0 && t.boxes == t.ticked {
		t.Status = ralph.Completed
	}
	if feature == "" {
		t.Acceptance = append(t.Acceptance, r.general...)
	}
	part := ""
	if t.parent != nil {
		part = t.parent.Title
	}
	from := [2]string{}
	if t.section != nil {
		from = [2]string{"From the section " + t.section.title, unindent(t.section.text)}
	}
	about := [][2]string{{"", unindent(t.text)}, {"Part of", part}, from}
	if t.spec {
		about = append(about, [2]string{"Marked in the file", t.marks})
		for _, s := range t.within {
			about = append(about, [2]string{"From the section " + s.title, cmp.Or(unindent(s.text), "(nothing else)")})
		}
	}
	t.Description = paragraphs(about...)
	t.Verify = append(t.Verify, r.verify...)
	if !t.named {
		// Two boxes with the same words in the same place are two tasks.
		t.Key = once(r.ids, t.Key)
	}
	r.ids[t.Key] = true
	r.in.Tasks = append(r.in.Tasks, t.ImportedTask)
}

// indentOf returns the width of the leading blanks; a tab counts as four.
func indentOf(line string) (n int) {
	for _, c := range line {
		switch c {
		case ' ':
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
	out := make([]string, len(lines))
	for i, l := range lines {
		if len(l) >= least && least > 0 {
			l = l[least:]
		}
		out[i] = strings.TrimRight(l, " \t")
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}
