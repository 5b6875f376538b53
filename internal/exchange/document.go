package exchange

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ralph"
	"ralph/internal/text"
	"ralph/signals"
)

// finish makes an import of the tasks read.
func (r *markdownReader) finish() {
	if len(r.tasks) == 0 {
		return
	}
	for _, s := range r.all { // criteria of all that there is to do
		if s.role == conditions && !s.within(oneTask) && !s.within(noWork) && (len(r.tasks) == 1 || r.name == "") {
			for _, t := range r.tasks {
				r.tells(t, s)
			}
			r.aside, s.text = slices.DeleteFunc(r.aside, func(l *line) bool { return slices.Contains(s.lines, l) }), nil
		}
	}
	context := r.context()
	feature := ""
	if r.name != "" {
		feature = featureOf(&r.in, r.name, context)
		context = ""
	}
	for _, s := range r.all { // the shared text is cut, as each task repeats it
		if s.took {
			s.text = []string{r.share(s.title, unindent(s.text))}
		}
	}
	context = r.share("the file", context)
	r.phases()
	for _, t := range r.tasks {
		if t.parent == nil {
			r.add(t, feature, context)
		}
	}
	r.notes()
	r.in.Read = &ralph.Reading{}
	for _, l := range r.lines {
		l.counted(r.in.Read)
	}
}

// share shortens a text for the description of each task.
func (r *markdownReader) share(of, s string) string {
	most := MaxFile / len(r.tasks)
	if len(s) <= most {
		return s
	}
	r.in.Notes = append(r.in.Notes, fmt.Sprintf(
		"the text of %s is too long for each of %d tasks; %d bytes of it are there", text.Line(of, 60), len(r.tasks), most))
	return strings.ToValidUTF8(s[:most], "")
}

// context returns the text around the tasks, section by section.
func (r *markdownReader) context() string {
	var out []string
	for _, s := range r.all {
		said := r.says(s)
		switch {
		case s.within(oneTask) || s.within(noWork):
			continue
		case s.head == nil || s == r.title:
		case slices.ContainsFunc(s.below, r.speaks) || said:
			out = append(out, strings.Repeat("#", s.level)+" "+s.title)
		case !s.has && !s.took:
			s.head.fate = left
			r.why["headings with nothing below them"]++
		}
		if said {
			out = append(out, unindent(s.text))
		}
	}
	return strings.Join(out, "\n\n")
}

// says reports whether a section has a text that is not part of its tasks.
func (r *markdownReader) says(s *section) bool {
	with := s.took && s.head != nil && s != r.title && !s.ours
	return !with && strings.TrimSpace(strings.Join(s.text, "")) != ""
}

// speaks reports whether a section or one below it has such a text.
func (r *markdownReader) speaks(s *section) bool {
	return s.role != oneTask && s.role != noWork && (r.says(s) || slices.ContainsFunc(s.below, r.speaks))
}

// add adds a task after its subtasks, which it waits for unless they are optional.
func (r *markdownReader) add(t *markdownTask, feature, context string) {
	if !t.named {
		// Two boxes with the same words in the same place are two tasks.
		t.Key = once(r.ids, t.Key)
	}
	if t.parent != nil {
		t.Parent = t.parent.Key
	}
	for _, c := range t.children {
		r.add(c, feature, context)
		if !c.optional || t.optional {
			t.Needs = append(t.Needs, ralph.Need{Key: c.Key})
		}
	}
	for _, id := range t.on {
		t.Needs = append(t.Needs, ralph.Need{Key: r.key(id), Optional: true}) // a person may take it out
	}
	done := slices.Contains(doneMarks, t.mark) || t.boxes > 0 && t.boxes == len(t.ticked)
	t.Feature, t.Priority, t.Status = feature, ralph.DefaultPriority, ralph.Pending
	switch {
	case done || t.named && r.done[strings.TrimPrefix(t.Key, r.key(""))]:
		t.Status = ralph.Completed
	case t.struck:
		t.Status = ralph.Cancelled
	case t.optional:
		t.Status = ralph.Proposed
	}
	if t.Status != ralph.Completed {
		t.tick()
	}
	parts := [][2]string{{"", unindent(t.text)}}
	if t.parent != nil {
		parts = append(parts, [2]string{"Part of", t.parent.Title})
	}
	if t.spec {
		parts = append(parts, [2]string{"Marked in the file", t.marks})
	}
	if !t.own {
		parts = append(parts, r.from(t), [2]string{"From the file", context})
	}
	t.Description = paragraphs(parts...)
	r.in.Tasks = append(r.in.Tasks, t.ImportedTask)
}

// tick marks the criteria that are ticked in the file.
func (t *markdownTask) tick() {
	for _, i := range t.ticked {
		if i < len(t.Acceptance) {
			t.Acceptance[i] += " (ticked there)"
		}
	}
}

// from sets the section of a task. It adds the section's text if all of the section's boxes are
// tasks.
func (r *markdownReader) from(t *markdownTask) [2]string {
	var path []string
	for s := t.section; s != nil; s = s.up {
		if s.head != nil && s != r.title {
			path = append([]string{s.title}, path...)
		}
	}
	if len(path) == 0 {
		return [2]string{}
	}
	where := "From the section " + strings.Join(path, " › ")
	if said := unindent(t.section.text); t.section.took && said != "" {
		return [2]string{where, said}
	}
	return [2]string{"", where}
}

// notes lists the differences from the file.
func (r *markdownReader) notes() {
	marks := map[string][]string{}
	count := map[string]int{}
	for _, t := range r.tasks {
		switch {
		case slices.Contains(workingMarks, t.mark):
			count["boxes in progress there, and queued here"]++
		case t.mark != "" && t.mark != " " && !slices.Contains(openMarks, t.mark) && !slices.Contains(doneMarks, t.mark):
			marks[t.mark] = append(marks[t.mark], fmt.Sprintf("%q (line %d)", text.Line(t.Title, 60), t.Line))
		}
		if t.Status == ralph.Cancelled {
			count["boxes struck through there, and cancelled here"]++
		}
		if t.Status == ralph.Proposed {
			count["boxes optional there, and proposed here: `ralph approve TASK-ID` queues one"]++
		}
	}
	if len(r.twice) > 0 {
		r.in.Notes = append(r.in.Notes, "ids that are in the file already, and have a number here: "+
			signals.FileList(r.twice))
	}
	if len(r.unmet) > 0 {
		r.in.Notes = append(r.in.Notes, "dependencies that name no other task of the file, or several: "+
			signals.FileList(r.unmet))
	}
	for _, what := range slices.Sorted(maps.Keys(count)) {
		r.in.Notes = append(r.in.Notes, fmt.Sprintf("%s: %d", what, count[what]))
	}
	for _, mark := range slices.Sorted(maps.Keys(marks)) {
		r.in.Notes = append(r.in.Notes, fmt.Sprintf("marked [%s] there, and pending here: %s",
			mark, strings.Join(marks[mark], ", ")))
	}
	if len(r.aside) > 0 {
		where := "the feature's description"
		if r.name == "" {
			where = "the description of each task"
		}
		r.in.Notes = append(r.in.Notes, fmt.Sprintf("boxes that are not tasks, now in %s: %s", where, atLines(r.aside)))
	}
	r.unboxed()
	for _, l := range r.lines {
		switch {
		case l.fate != left:
		case l.kind == boxed && l.text == "":
			r.why["boxes without a text"]++
		case l.kind == comment:
			r.why["lines of comments, and of the head of the file"]++
		}
	}
	note(&r.in, r.why)
}

// unboxed names the lines that only look like boxes.
func (r *markdownReader) unboxed() {
	var odd, in []*line
	endless := 0
	for _, l := range r.lines {
		switch {
		case l.endless:
			endless = l.n
		case endless > 0 && box().MatchString(l.raw):
			in = append(in, l)
		case l.kind == words && oddBox().MatchString(l.raw):
			odd = append(odd, l)
		}
	}
	if len(odd) > 0 {
		r.in.Notes = append(r.in.Notes, "marks that make no box: "+atLines(odd))
	}
	if len(in) > 0 {
		r.in.Notes = append(r.in.Notes, fmt.Sprintf("boxes in the code that begins in line %d and does not end: %s",
			endless, atLines(in)))
	}
}

// atLines counts lines, and names them.
func atLines(lines []*line) string {
	var at []string
	for _, l := range lines {
		at = append(at, strconv.Itoa(l.n))
	}
	return fmt.Sprintf("%d (line %s)", len(lines), strings.Join(at, ", "))
}

// phases makes tasks of Spec Kit wait for earlier ones. Neighbours marked [P] in a phase do not wait for each other.
// All other tasks come one after the other, and each phase after the one before.
func (r *markdownReader) phases() {
	var before, now []*markdownTask
	for _, t := range r.tasks {
		if !t.spec {
			continue
		}
		if n := len(now); n == 0 || !t.beside || !now[n-1].beside || r.phaseOf(now[n-1]) != r.phaseOf(t) {
			before, now = now, nil
		}
		now = append(now, t)
		for _, b := range before {
			t.needs(b.Key)
		}
	}
}

// phaseOf returns the topmost section of a task, below the title.
func (r *markdownReader) phaseOf(t *markdownTask) *section {
	s := t.section
	for s.up != nil && s.up.head != nil && s.up != r.title {
		s = s.up
	}
	return s
}

// needs adds a dependency, once.
func (t *markdownTask) needs(key string) {
	need := ralph.Need{Key: key, Optional: true}
	if key != t.Key && !slices.Contains(t.Needs, need) {
		t.Needs = append(t.Needs, need)
	}
}

// referred resolves the dependencies that tasks name, by ids, numbers and titles.
func (r *markdownReader) referred() {
	alias := map[string][]*markdownTask{}
	for _, t := range r.tasks {
		for _, a := range append(t.alias, t.Title) {
			alias[strings.ToLower(a)] = append(alias[strings.ToLower(a)], t)
		}
	}
	for _, t := range r.tasks {
		for _, ref := range t.refs {
			for part := range strings.FieldsFuncSeq(ref.text, func(c rune) bool { return strings.ContainsRune(",;、，", c) }) {
				ids := []string{strings.Trim(part, " .*`")}
				if alias[strings.ToLower(ids[0])] == nil {
					ids = references(part)
				}
				for _, id := range ids {
					r.refer(t, id, ref.sure, alias[strings.ToLower(id)])
				}
			}
		}
	}
}

// refer makes a task wait for the tasks with an id. sure is false if the id may be another number.
func (r *markdownReader) refer(t *markdownTask, id string, sure bool, list []*markdownTask) {
	near := slices.DeleteFunc(slices.Clone(list), func(o *markdownTask) bool {
		return o.section != t.section || o.parent != t.parent
	})
	if len(list) > 1 { // numbers may begin anew in each section
		list = near
	}
	list = slices.DeleteFunc(slices.Clone(list), func(o *markdownTask) bool { return o == t })
	for _, o := range list {
		t.needs(o.Key)
	}
	switch {
	case len(list) > 0:
	case len(near) == 0 && strings.Contains(id, "-"):
		t.needs(r.key(id)) // an import before may have brought it
	case sure:
		r.unmet = append(r.unmet, fmt.Sprintf("%s (line %d)", id, t.Line))
	}
}

// references lists the ids in a text: "US-001, T4-T6 and 2.1".
func references(s string) (ids []string) {
	end := 0
	for _, at := range reference().FindAllStringIndex(s, -1) {
		id, between := s[at[0]:at[1]], strings.TrimSpace(s[end:at[0]])
		if n := len(ids); n > 0 && (between == "-" || between == "–" || between == "to") {
			first, last := number(ids[n-1]), number(id)
			digits := id[strings.LastIndexFunc(id, notDigit)+1:]
			for i := first + 1; i < last && last-first < 100; i++ {
				ids = append(ids, strings.TrimSuffix(id, digits)+fmt.Sprintf("%0*d", len(digits), i))
			}
		}
		ids, end = append(ids, id), at[1]
	}
	return ids
}

func notDigit(c rune) bool { return c < '0' || c > '9' }

// number returns the digits at the end of an id as a number; 0 for none.
func number(id string) int {
	n, err := strconv.Atoi(id[strings.LastIndexFunc(id, notDigit)+1:])
	if err != nil {
		return 0
	}
	return n
}
