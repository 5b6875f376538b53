package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"ralph"
	"ralph/internal/patch"
	"ralph/internal/text"
	"ralph/store"
)

// A diffLine is a line of a difference with its numbers before and after; "" on a side without it.
type diffLine struct{ Class, Old, New, Text string }

// numbered numbers the lines of a unified diff.
func numbered(unified string) (lines []diffLine) {
	no := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	for _, l := range patch.Lines(unified) {
		class := string(l.Kind)
		if l.Kind == patch.Context {
			class = ""
		}
		lines = append(lines, diffLine{class, no(l.Old), no(l.New), l.Text})
	}
	return lines
}

// maxCompared is how many changes of a page git compares at most, and maxPatch the maximum length (bytes) of a file's
// shown difference.
const (
	maxCompared = 32
	maxPatch    = 2 << 20
)

// A shownChange is the newest change of a task, with its difference and the approval it needs.
type shownChange struct {
	ralph.Change
	Files    []changed
	Unread   string // why its lines are unknown
	Approval ralph.Approval
	Comment  int64 // the comment with the approval; 0 if it needs none
}

// changeOf returns the newest change of a task, without its files; nil if it has none.
func changeOf(tx *store.Tx, task int64) (*shownChange, error) {
	c, ok, err := tx.ChangeOf(task)
	if err != nil || !ok {
		return nil, err
	}
	v := &shownChange{Change: c}
	comment, approval, open, err := tx.ApprovalOf(task)
	if v.Approval = approval; open && approval.Kind() != "" {
		v.Comment = comment
	}
	return v, err
}

func rank(c changed) int {
	if c.Guarded {
		return 0
	}
	return 1
}

// Guards reports whether a person decides on some of the files.
func (v shownChange) Guards() bool {
	return slices.ContainsFunc(v.Files, func(f changed) bool { return f.Guarded })
}

// Asks describes in plain words the approval that a change needs.
func (v shownChange) Asks() string { return asksFor(v.Approval) }

// whole reports whether a person decides on a file.
func (v shownChange) whole(path string) bool { return slices.Contains(v.Approval.Paths(), path) }

// compare adds the files of changes; files that a person decides on come first. A change may be
// nil.
func (a *app) compare(ctx context.Context, list []*shownChange) {
	for n, v := range list {
		if v == nil {
			continue
		}
		v.Files, v.Unread = a.changedOf(ctx, *v, n < maxCompared)
		slices.SortStableFunc(v.Files, func(a, b changed) int { return cmp.Compare(rank(a), rank(b)) })
	}
}

// filesOf splits git's output into files. A file that is too long for a page gets a count of its missing lines; a file
// that a person decides on is never too long.
func filesOf(unified string, whole func(path string) bool) (files []changed) {
	for _, f := range patch.Split(unified) {
		c := changed{FileChange: ralph.FileChange{Path: f.Path, Status: f.Status}, Guarded: whole(f.Path)}
		for note := range strings.Lines(f.Notes) {
			c.Notes = append(c.Notes, strings.TrimSpace(strings.TrimPrefix(note, "# ")))
		}
		c.Notes = append(c.Notes, f.Modes()...)
		for line := range strings.Lines(f.Body) {
			c.count(line)
		}
		shown := f.Body
		if len(shown) > maxPatch && !c.Guarded {
			shown = shown[:strings.LastIndexByte(shown[:maxPatch], '\n')+1]
			c.Notes = append(c.Notes, fmt.Sprintf("%s more are not shown here: `ralph diff` has them.",
				text.Count(strings.Count(f.Body[len(shown):], "\n"), "line")))
		}
		if c.Lines = numbered(shown); f.Opaque {
			c.Left = "it is not text"
		}
		files = append(files, c)
	}
	return files
}

// count counts a line of a hunk.
func (c *changed) count(line string) {
	switch sign(line) {
	case "add":
		c.Added++
	case "del":
		c.Removed++
	}
}

// changedOf returns a task's change as one difference over all of its sessions; unread is the reason why its lines are
// unknown.
func (a *app) changedOf(ctx context.Context, v shownChange, byGit bool) (files []changed, unread string) {
	if from, to := v.Compared(); byGit && a.Patch != nil && to != "" {
		unified, err := a.Patch(ctx, v.SessionID, from, to)
		if err == nil {
			return filesOf(unified, v.whole), ""
		}
		if ctx.Err() == nil { // the other page reports it
			a.Log.Warn("what a task changed cannot be compared", "task", v.TaskID, "error", err)
		}
	}
	kept, err := a.differences(v.SessionID)
	if err != nil {
		return nil, err.Error()
	}
	for _, d := range kept.Files {
		c := changedBy(d)
		c.Guarded = v.whole(c.Path)
		files = append(files, c)
	}
	if len(files) == 0 {
		return nil, "git cannot compare its commits; `ralph diff` may say why"
	}
	return files, ""
}

// changedBy makes a file from its stored difference, which has only the lines.
func changedBy(d ralph.FileDiff) changed {
	c := changed{FileChange: ralph.FileChange{Path: d.Path, Status: "modified"}, Lines: numbered(d.Diff), Left: d.Left}
	head, _, _ := strings.Cut(d.Diff, "\n")
	switch {
	case strings.HasPrefix(head, "@@ -0,0 "):
		c.Status = "added"
	case strings.Contains(head, " +0,0 @@"):
		c.Status = "deleted"
	}
	for line := range strings.Lines(d.Diff) {
		c.count(line)
	}
	return c
}

// maxDiffs is the maximum size of the file of a session's differences, which usually has some megabytes.
const maxDiffs = 32 << 20

// differences returns a session's changes line by line; nothing if they were not kept.
func (a *app) differences(session string) (d ralph.Differences, err error) {
	file, err := a.Open(session, Diffs)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxDiffs))
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err != nil {
		err = fmt.Errorf("what session %.8s changed: %w", session, err)
	}
	return d, err
}
