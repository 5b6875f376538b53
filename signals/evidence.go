package signals

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"ralph"
	"ralph/internal/text"
)

// Refused returns the reasons to refuse a done, from the evidence and a project's rules.
func Refused(checks []ralph.Check, protected []string, e ralph.Evidence, rules Rules) (r Refusal) {
	r.Failed = slices.DeleteFunc(slices.Clone(checks), func(c ralph.Check) bool { return c.Passed })
	if !rules.ReviewProtect {
		r.Protected = protected
	}
	r.Tests, r.Problems, r.Objected = Weakened(e.Gate, rules), Problems(e), objected(e)
	return r
}

// String explains in one line why the done is refused; "" if it is not.
func (r Refusal) String() string {
	var list []string
	for _, c := range r.Failed {
		list = append(list, "`"+text.FirstLine(c.Command)+"` "+how(c))
	}
	if len(r.Protected) > 0 {
		list = append(list, "protected files were changed ("+FileList(r.Protected)+")")
	}
	if r.Tests != "" {
		list = append(list, r.Tests)
	}
	list = append(list, r.Problems...)
	for _, o := range r.Objected {
		list = append(list, o.String())
	}
	return strings.Join(list, ", ")
}

// Problems returns the evidence that refuses a done, one sentence each, with the fix. It leaves out evidence for people
// to judge.
func Problems(e ralph.Evidence) []string {
	var list []string
	for _, t := range e.Rewritten[:min(len(e.Rewritten), filesNamed)] {
		list = append(list, fmt.Sprintf("%s is protected and was changed while `%s` ran", t.File, text.FirstLine(t.Command)))
	}
	for _, u := range e.Untaken[:min(len(e.Untaken), filesNamed)] {
		list = append(list, NotTaken(u))
	}
	if n := len(e.Untaken) - filesNamed; n > 0 {
		list = append(list, fmt.Sprintf("%s more cannot be taken either", text.Count(n, "file")))
	}
	for _, title := range e.Hidden {
		list = append(list, "a check that you do not see failed: "+text.FirstLine(title))
	}
	for _, title := range e.Blind {
		list = append(list, "a check that you do not see passes with any expectation: "+text.FirstLine(title))
	}
	if n := len(e.Within); n > 0 {
		list = append(list, fmt.Sprintf("%s, so that nobody else could fetch the merged work: push %s there, "+
			"or have the files "+
			"be the project's own", strings.Join(e.Within, ", "), one(n, "that commit", "those commits")))
	}
	if n := len(e.Secrets); n > 0 {
		list = append(list, fmt.Sprintf("%s %s and %s committed: undo that, so that no commit of yours has %s",
			strings.Join(e.Secrets, ", "), one(n, "looks like a secret of a person's", "look like secrets of a person's"),
			one(n, "was", "were"), one(n, "it", "them")))
	}
	return list
}

// Maximum lengths of a reason for a path that is not taken, and of the path. Longer ones are cut at the end.
const whyWidth, pathWidth, pathBegin = 400, 200, 60

// NotTaken returns a sentence about the paths that are not taken, and why. It shortens a path that would fill the
// line to its beginning and its depth.
func NotTaken(u ralph.Untaken) string {
	path := text.Flat(u.Path)
	if utf8.RuneCountInString(path) > pathWidth {
		path = fmt.Sprintf("%s (%d levels deep)", text.Short(path, pathBegin), strings.Count(u.Path, "/")+1)
	}
	return path + " " + text.Short(u.Why, whyWidth)
}

// one returns single if n is 1, else many.
func one(n int, single, many string) string {
	if n == 1 {
		return single
	}
	return many
}

// notes returns the remarks in brackets after an accepted done: the commit that was checked, and warnings for people.
func notes(f Facts) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	e := f.Evidence
	if f.nothing() {
		add("no changes")
	}
	if n := excused(f.Verify); n > 0 {
		add("%s %s as before", text.Count(n, "test"), one(n, "fails", "fail"))
	}
	list = append(list, ralph.FlakyOf(f.Verify)...)
	list = append(list, ralph.CopiedOf(f.Verify)...)
	for _, a := range e.Aside[:min(len(e.Aside), filesNamed)] {
		add("%s on %s %s not part of the work, so %s %s not verified", text.Count(a.Commits, "commit"), a.Branch,
			one(a.Commits, "is", "are"), one(a.Commits, "it", "they"), one(a.Commits, "was", "were"))
	}
	if len(e.Stashes) > 0 {
		add("stashed and not verified: %s", FileList(e.Stashes))
	}
	for _, t := range drives(e.Drives) {
		add("%s", t)
	}
	list = append(list, gateNotes(e.Gate)...)
	for _, r := range e.Reviews {
		if r.None == "" && len(r.Blocking()) == 0 {
			list = append(list, "reviewed and "+r.String())
		}
	}
	if len(e.Modules) > 0 {
		add("once merged, `git submodule update` brings %s to your checkout", FileList(e.Modules))
	}
	if len(e.Debris) > 0 {
		add("left out: %s", FileList(e.Debris))
	}
	for _, c := range e.Commits[:min(len(e.Commits), filesNamed)] {
		add("%s", commitNote(c))
	}
	if n := len(e.Commits) - filesNamed; n > 0 {
		add("%s more with an author, date or words of others", text.Count(n, "commit"))
	}
	if len(e.Killed) > 0 {
		add("killed: %s", commandList(e.Killed))
	}
	if e.Strangers > 0 {
		add("%s", ralph.StrangersRefused(e.Strangers))
	}
	if e.Uncontained {
		add("agent not contained")
	}
	return list
}

// commitNote names the author, the date and the words of a commit that are not the agent's own.
func commitNote(c ralph.CommitNote) string {
	var list []string
	if c.Author != "" {
		list = append(list, "is by "+text.VisibleLine(c.Author))
	}
	if !c.Date.IsZero() {
		list = append(list, "is dated "+c.Date.Format(time.DateOnly))
	}
	if len(c.Words) > 0 {
		list = append(list, "says "+text.VisibleLine(FileList(c.Words)))
	}
	return "commit " + ralph.ShortID(c.ID) + " " + strings.Join(list, ", ")
}

// commandWidth is the length of the part of a command that a reason quotes.
const commandWidth = 60

func commandList(commands []string) string {
	short := make([]string, len(commands))
	for i, c := range commands {
		short[i] = text.Clip(text.FirstLine(c), commandWidth)
	}
	return FileList(short)
}

// drives names the changed files that the check itself runs or reads, per command.
func drives(touches []ralph.Touch) []string {
	var list, commands []string
	for _, t := range touches {
		if !slices.Contains(commands, t.Command) {
			commands = append(commands, t.Command)
		}
	}
	for _, c := range commands[:min(len(commands), filesNamed)] {
		var files []string
		for _, t := range touches {
			if t.Command == c {
				files = append(files, t.File)
			}
		}
		list = append(list, fmt.Sprintf("changed %s, which `%s` runs", FileList(files), text.FirstLine(c)))
	}
	return list
}
