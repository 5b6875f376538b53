package exchange

import (
	"strings"
	"unicode"

	"ralph/internal/lazy"
)

// A role is the purpose of a section of a document.
type role int

const (
	plain      role = iota // text, and boxes that are tasks
	noWork                 // "Optional", "Future", "Nice to have"
	conditions             // "Acceptance criteria"
	gates                  // "Quality gates": commands that check all tasks
	about                  // "Overview", "Context": its boxes are not tasks
	oneTask                // "### Task 3: …": its boxes are the task's criteria
)

var (
	numbering   = lazy.Regexp(`^(?:\d+\.)*\d*[.)]?\s+`)
	noWorkTitle = lazy.Regexp(`^(optional|future|nice[ -]to[ -]haves?|post[ -]completion)(\s*[:(].*|` +
		`\s+(tasks?|work|enhancements?|improvements?|ideas?|features?|items?|considerations?))?$`)
	aboutTitle    = lazy.Regexp(`^(\w+ )?(overview|context)(\s*\(.*\))?$`)
	criteriaTitle = lazy.Regexp(`^((\w+ )?(acceptance|success|completion|exit|done) ` +
		`(criteri(a|on)|scenarios?|tests?|checklist)` +
		`|acceptance|criteria|acs?|done when|akzeptanzkriterien|erfolgskriterien|crit[eè]res? d.*|crit[eé]rios? (de|d).*` +
		`|критерии .*|tiêu chí .*|验收(标准|条件)|驗收(標準|條件)|受け入れ(基準|条件)|완료 조건|인수 조건)(\s*\(.*\))?$`)
	gatesTitle = lazy.Regexp(`^(\w+ )?((quality|evidence) gates?|` +
		`(validation|verification|test) commands?|definition of done|dod)(\s*\(.*\))?$`)
)

// roleOf returns the role of a section by its title, or of the lines below a label.
func roleOf(title string) role {
	t := strings.TrimSpace(strings.Trim(title, "*_ "))
	t = strings.TrimLeftFunc(t, decoration)
	t = strings.TrimRight(numbering().ReplaceAllString(strings.ToLower(t), ""), ":： ")
	switch {
	case gatesTitle().MatchString(t):
		return gates
	case criteriaTitle().MatchString(t):
		return conditions
	case noWorkTitle().MatchString(t):
		return noWork
	case aboutTitle().MatchString(t):
		return about
	}
	return plain
}

var (
	idHeading = lazy.Regexp(`^\[?([A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*?-?\d+(?:\.\d+)*[a-z]?)` +
		`(\]?[*_]*\s*(?:[:：.)–—]|\s-\s|\s))[*_]*\s*(\S.*)$`)
	// numbered is "Task 1: …", "User Story 1.2 - …", "任务1：…".
	numbered = lazy.Regexp(`^([\p{L}\p{M}]+(?: [\p{L}\p{M}]+){0,2}?\s+#?|` +
		`[\p{Han}\p{Katakana}\p{Hiragana}ー\p{Hangul}\p{Thai}]+\s*)` +
		`(\p{Nd}{1,5}(?:\.\p{Nd}+)*[a-z]?)[*_]*\s*(?:[:：)–—]|\.(?:\s|$)|\s-\s|-\s)[*_]*\s*(.*)$`)
	tasked     = lazy.Regexp(`^(\p{L}+(?: \p{L}+)?)\s+#?(\d{1,5}(?:\.\d+)*[a-z]?)(?:\s+(.*))?$`)
	year       = lazy.Regexp(`^(19|20)\d\d$`)
	headingBox = lazy.Regexp(`^ {0,3}#{1,6}\s+(?:[\d.]+[.)]?\s+)?\[([ xX])\]\s+\S`)
	boxTitle   = lazy.Regexp(`^((?:[\d.]+[.)]?\s+)?)\[([ xX])\]\s+(\S.*)$`)

	// taskIDs and taskWords begin a heading that is a task, with any text below it; groupWords and groupIDs one that
	// has tasks below it.
	taskIDs    = lazy.Regexp(`^(US|ST|T|TASK|STORY|ISSUE|BUG|FEAT|TICKET)(-|\d)`)
	groupIDs   = lazy.Regexp(`^([PQHVM]\d|AC-?\d|FR-?\d|NFR-?\d)`)
	taskWords  = lazy.Regexp(`^((user |dev )?(task|story|issue|ticket)|iteration)$`)
	groupWords = lazy.Regexp(`^((.* )?(phase|milestone|epic|sprint|week|day|month|quarter|year|part|stage|` +
		`section|chapter|module|` +
		`release|version|batch|wave|group|level|tier|priority|track|area|round|layer|appendix|option|example|figure|table|` +
		`objective|goal|theme|property|requirement|decision|risk|question|q|note|` +
		`фаза|этап|спринт|эпик|веха|часть|раздел|неделя|день|` +
		`fase|etapa|étape|semana|semaine|woche|tag|teil|meilenstein|abschnitt)|阶段|第)$`)
)

// decoration reports whether a character is not part of the title after it: an emoji and the like.
func decoration(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsNumber(c) && !strings.ContainsRune("[`\"(", c)
}

// A taskTitle is a heading that may be a task.
type taskTitle struct {
	id    string // US-001, Story 1.1; "" if it is known by its title
	word  string // before its number, in lower case
	alias string // its number
	title string
	mark  string // mark of a box in it
	sure  bool   // it is a task, whatever is below it
	group bool   // it is none, with any content
	boxed bool
}

// taskTitleOf reads a heading. ok is false if it has neither an id nor a number.
func taskTitleOf(text string) (t taskTitle, ok bool) {
	text = strings.TrimSpace(strings.Trim(text, "*_ "))
	for _, mark := range []string{"✅", "✔️", "☑️", "☑"} {
		if bare := strings.TrimSpace(strings.Trim(text, mark)); bare != text && bare != "" {
			text, t.mark = bare, "x"
		}
	}
	text = strings.TrimLeftFunc(text, decoration)
	if at := numbering().FindString(text); at != "" { // "3.1 Task 2: …"
		if inner, ok := taskTitleOf(text[len(at):]); ok && inner.title != "" && !inner.boxed {
			return inner, true
		}
	}
	if m := boxTitle().FindStringSubmatch(text); m != nil {
		t.mark, t.title, t.boxed, t.sure = strings.TrimSpace(m[2]), strings.TrimSpace(m[1]+m[3]), true, true
		if inner, ok := taskTitleOf(m[3]); ok {
			inner.mark, inner.boxed, inner.sure = t.mark, true, true
			return inner, true
		}
		return t, true
	}
	if m := idHeading().FindStringSubmatch(text); m != nil {
		sure := taskIDs().MatchString(m[1])
		if bare := strings.TrimSpace(m[2]) == ""; bare && !sure {
			return t, false // "ES6 modules"
		}
		t.id, t.alias, t.title = m[1], m[1], strings.TrimSpace(m[3])
		t.word = strings.ToLower(strings.TrimRight(m[1], "0123456789.abcdefghijklmnopqrstuvwxyz-"))
		t.sure, t.group = sure, groupIDs().MatchString(m[1])
		return t, true
	}
	m := numbered().FindStringSubmatch(text)
	if m == nil { // "Task 3", "Task 3 Report them"
		if m = tasked().FindStringSubmatch(text); m != nil && !taskWords().MatchString(strings.ToLower(m[1])) {
			m = nil
		}
	}
	if m != nil {
		m[1] = strings.TrimRight(m[1], " #")
		if year().MatchString(m[2]) && !taskWords().MatchString(strings.ToLower(m[1])) {
			return t, false // "March 2026: …"
		}
		t.word, t.alias, t.title = strings.ToLower(m[1]), m[2], strings.TrimSpace(m[3])
		t.sure, t.group = taskWords().MatchString(t.word), groupWords().MatchString(t.word)
		if strings.Contains(m[2], ".") && t.sure {
			t.id = m[1] + " " + m[2]
		}
		if t.title == "" {
			t.title = m[1] + " " + m[2]
		}
		return t, true
	}
	return t, false
}
