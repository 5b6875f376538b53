// Package exchange reads and writes the task files of other tools.
//
// It only converts text to an [ralph.Import] and a [Queue] to text; store.Import carries an import
// out. For any text the result is an import or an [Error] with a line; a file that cannot be read
// in full is refused.
package exchange

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"ralph"
	"ralph/internal/text"
	"ralph/signals"
)

// MaxFile and MaxOwn are the maximum sizes of files in bytes. MaxFile is for other tools'
// files; MaxOwn is for ralph's own exports, which have a line for each of perhaps 100,000
// tasks.
const (
	MaxFile = 16 << 20
	MaxOwn  = 512 << 20
)

// ownFormat is the format of ralph's own exports.
const ownFormat = "jsonl"

// Formats that a folder may hold: Markdown with checkboxes, and task files of Backlog.md, one a task.
const (
	Checklist = "markdown"
	backlog   = "backlog.md"
)

// Linked reports whether the files of a format name each other's tasks.
func Linked(format string) bool { return format == backlog }

// Whole reports whether a file of a format has all tasks of its source; others are selections, or parts.
func Whole(format string) bool {
	return slices.Contains([]string{Checklist, "prd.json", "stories", "taskmaster"}, format)
}

// An Error names the wrong line of a file, and the expected form.
type Error struct {
	Line    int // from 1; 0 for the file as a whole
	Problem string

	noTask bool
}

// ErrNoTask is wrapped by an [Error] about a text without tasks.
var ErrNoTask = errors.New("holds no task")

// Unwrap returns [ErrNoTask] or nil.
func (e *Error) Unwrap() error {
	if e.noTask {
		return ErrNoTask
	}
	return nil
}

// Error formats the error as "line N: PROBLEM".
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Problem
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Problem)
}

// noTask is an error that wraps [ErrNoTask].
func noTask(format string, args ...any) error {
	return &Error{Problem: fmt.Sprintf(format, args...), noTask: true}
}

func wrong(line int, format string, args ...any) error {
	return &Error{Line: line, Problem: fmt.Sprintf(format, args...)}
}

// A reader reads one format.
type reader struct {
	name string
	read func(name string, data []byte) (ralph.Import, error)
	// fits reports whether a text looks like this format.
	fits func(l looks) bool
}

// nameless returns the reader of a format whose files need no other name.
func nameless(read func([]byte) (ralph.Import, error)) func(string, []byte) (ralph.Import, error) {
	return func(_ string, data []byte) (ralph.Import, error) { return read(data) }
}

// readers are tried in this order. The last one accepts any text.
var readers = []reader{
	{ownFormat, nameless(readJSONL), func(l looks) bool { return l.lines && l.has("ralph") }},
	{"github", nameless(readGitHub), func(l looks) bool { return l.has("number", "title") }},
	{"prd.json", nameless(readPRD), func(l looks) bool { return l.passes || l.object && l.has("userStories") }},
	{"stories", nameless(readStories), func(l looks) bool { return l.object && l.has("stories") }},
	{backlog, nameless(readBacklog), func(l looks) bool { return l.backlog }},
	{"agentic-agent", nameless(readAgentic), func(l looks) bool { return l.yaml }},
	{"taskmaster", nameless(readTaskMaster), func(l looks) bool { return l.object }},
	{"beads", nameless(readBeads), func(l looks) bool { return l.lines }},
	{Checklist, readMarkdown, func(looks) bool { return true }},
}

// Formats lists the formats that [Parse] can read.
func Formats() []string {
	names := make([]string, len(readers))
	for i, r := range readers {
		names[i] = r.name
	}
	slices.Sort(names)
	return names
}

// Parse reads a file in one of [Formats]; "" detects the format. The error is an [*Error], or a
// [*ralph.FieldError] for an unknown format.
func Parse(data []byte, format string) (ralph.Import, error) { return ParseNamed("", data, format) }

// byteOrder is the mark that some editors begin a file with.
const byteOrder = "\ufeff"

// ParseNamed is [Parse] for a file with a name for its subject, which a checklist without a title
// gets.
func ParseNamed(name string, data []byte, format string) (ralph.Import, error) {
	data = bytes.TrimPrefix(data, []byte(byteOrder))
	most := MaxFile
	if format == ownFormat || format == "" && bytes.HasPrefix(data, []byte(`{"ralph":`)) {
		most = MaxOwn
	}
	if len(data) > most {
		return ralph.Import{}, wrong(0, "is larger than %d MiB", most>>20)
	}
	if i := text.Invalid(data); i >= 0 {
		return ralph.Import{}, wrong(lineAt(data, i), "is not UTF-8 text; save the file as UTF-8")
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	if len(bytes.TrimSpace(data)) == 0 {
		return ralph.Import{}, wrong(0, "is empty")
	}
	r, err := choose(data, format)
	if err != nil {
		return ralph.Import{}, err
	}
	in, err := r.read(name, data)
	if err != nil {
		return ralph.Import{}, err
	}
	in.Format = r.name
	if len(in.Lost) > 0 {
		var lost []string
		for _, key := range slices.Sorted(maps.Keys(in.Lost)) {
			lost = append(lost, fmt.Sprintf("%s (%d)", text.Line(key, 40), in.Lost[key]))
		}
		in.Notes = append(in.Notes, "not taken over, with how many tasks have it: "+strings.Join(lost, ", "))
	}
	return in, check(&in)
}

func choose(data []byte, format string) (reader, error) {
	if format != "" {
		i := slices.IndexFunc(readers, func(r reader) bool { return r.name == format })
		if i < 0 {
			return reader{}, &ralph.FieldError{
				Field: fmt.Sprintf("format %q", format), Problem: "is not known", Accepted: Formats(),
			}
		}
		return readers[i], nil
	}
	l := look(data)
	i := slices.IndexFunc(readers, func(r reader) bool { return r.fits(l) })
	return readers[i], nil
}

// check makes sure that an import can be stored, and that no id occurs twice.
func check(in *ralph.Import) error {
	first := map[string]int{}
	for i := range in.Tasks {
		t := &in.Tasks[i]
		t.ExternalSource, t.ExternalID = ralph.ExternalID(t.Key)
		if line, twice := first[t.Key]; twice {
			return wrong(t.Line, "the id %s is in line %d already", t.ExternalID, line)
		}
		first[t.Key] = t.Line
		if strings.TrimSpace(t.Title) == "" {
			return wrong(t.Line, "a task has no title")
		}
		fitTitle(t)
		name := fmt.Sprintf("the description of %s (%s)", t.ExternalID, text.Line(t.Title, 60))
		cut(in, t.Line, name, &t.Description)
		for i := range t.Acceptance {
			cut(in, t.Line, fmt.Sprintf("a criterion of %s (%s)", t.ExternalID, text.Line(t.Title, 60)), &t.Acceptance[i])
		}
		for _, text := range append([]string{t.Description}, append(t.Acceptance, t.Verify...)...) {
			if err := ralph.CheckText("a text of "+t.ExternalID, text, false); err != nil {
				return wrong(t.Line, "%v", err)
			}
		}
	}
	for i := range in.Features {
		f := &in.Features[i]
		cut(in, f.Line, "the description of the feature "+text.Line(f.Name, 60), &f.Description)
	}
	if len(in.Tasks)+len(in.Learnings) == 0 {
		return noTask("holds no task (as %s; --format reads it as another format)", in.Format)
	}
	return nil
}

// cut cuts a text that is too long, at the end of a line if possible, and notes it.
func cut(in *ralph.Import, line int, name string, s *string) {
	const mark = "\n\n(cut here: the rest is in the file)"
	if len(*s) <= ralph.MaxText {
		return
	}
	end := ralph.MaxText - len(mark)
	if at := strings.LastIndexByte((*s)[:end], '\n'); at > end/2 {
		end = at
	}
	for end > 0 && !utf8.RuneStart((*s)[end]) {
		end--
	}
	in.Notes = append(in.Notes, fmt.Sprintf("line %d: %s is longer than %d KiB; its last %d bytes were cut",
		line, name, ralph.MaxText>>10, len(*s)-end))
	*s = strings.TrimRight((*s)[:end], " \n") + mark
}

// fitTitle makes a title fit on one line; if it is too long, the full title goes into the
// description.
func fitTitle(t *ralph.ImportedTask) {
	t.Title = text.Flat(t.Title)
	if utf8.RuneCountInString(t.Title) <= ralph.MaxTitle {
		return
	}
	t.Description = strings.TrimSpace(t.Title + "\n\n" + t.Description)
	t.Title = text.Clip(t.Title, ralph.MaxTitle)
}

// sourceOf returns the source of ids: the format, and the file's own name if it has one.
func sourceOf(format, name string) string {
	name = strings.ReplaceAll(strings.Join(strings.Fields(name), " "), "#", "")
	if name == "" {
		return format
	}
	return format + "/" + name
}

// titleKey returns the key of a task without id: its normalized title.
func titleKey(title string) string {
	return cmp.Or(signals.NormalTitle(title), strings.TrimSpace(title))
}

// once returns the key, with a number appended if it is taken, and marks it as taken.
func once(taken map[string]int, key string) string {
	free := key
	for n := max(taken[key], 1); taken[free] > 0; n++ {
		free, taken[key] = fmt.Sprintf("%s (%d)", key, n+1), n+1
	}
	taken[free] = 1
	return free
}

// lineAt returns the line number of a byte offset.
func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(offset, len(data))], []byte("\n"))
}

// paragraphs joins the texts that are not blank, each under its heading.
func paragraphs(parts ...[2]string) string {
	var out []string
	for _, p := range parts {
		switch text := strings.TrimSpace(p[1]); {
		case text == "":
		case p[0] == "":
			out = append(out, text)
		default:
			out = append(out, p[0]+":\n"+text)
		}
	}
	return strings.Join(out, "\n\n")
}

// listed returns the non-blank lines of a list without their bullets.
func listed(text string) (items []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for _, mark := range []string{"- [ ]", "- [x]", "- [X]", "* [ ]", "* [x]", "-", "*", "•"} {
			if rest, ok := strings.CutPrefix(line, mark); ok {
				line = strings.TrimSpace(rest)
				break
			}
		}
		if line != "" {
			items = append(items, line)
		}
	}
	return items
}
