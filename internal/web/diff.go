package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"

	"ralph"
	"ralph/store"
)

// A diffLine is a line of a difference with its numbers before and after; "" where it is not.
type diffLine struct{ Class, Old, New, Text string }

// numbered numbers the lines of a unified diff.
func numbered(unified string) (lines []diffLine) {
	var old, now int
	for line := range strings.Lines(unified) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "@@"):
			if _, err := fmt.Sscanf(line, "@@ -%d,%d +%d", &old, new(int), &now); err != nil {
				old, now = 0, 0
			}
			lines = append(lines, diffLine{Class: "hunk", Text: line})
		case strings.HasPrefix(line, "+"):
			lines = append(lines, diffLine{"add", "", fmt.Sprint(now), line})
			now++
		case strings.HasPrefix(line, "-"):
			lines = append(lines, diffLine{"del", fmt.Sprint(old), "", line})
			old++
		case strings.HasPrefix(line, " "):
			lines = append(lines, diffLine{"", fmt.Sprint(old), fmt.Sprint(now), line})
			old, now = old+1, now+1
		default: // that the last line does not end
			lines = append(lines, diffLine{Text: line})
		}
	}
	return lines
}

// patches keeps how commits differ, which does not change.
type patches struct {
	mu    sync.Mutex
	known map[string][]changed // by the commits
}

// keptPatches is the number of differences that are kept, and maxPatch the length (bytes) of one that is shown.
const (
	keptPatches = 32
	maxPatch    = 2 << 20
)

// commitsOf returns the commits whose difference is what a change does: all that its task has changed if it was merged,
// whatever its sessions did on the way.
func commitsOf(c ralph.Change) (from, to string) {
	if c.State == ralph.Merged && c.Commit != "" {
		return c.Commit + "^1", c.Commit
	}
	return c.Base, c.Head
}

// differFirst has git compare the commits of a task's change, before its page begins its database transaction.
func (a *app) differFirst(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := pathID(r)
		if err != nil || a.Patch == nil {
			next(w, r)
			return
		}
		c, err := store.Read(r.Context(), a.Store, func(tx *store.Tx) (ralph.Change, error) {
			c, _, err := tx.ChangeOf(id)
			return c, err
		})
		if from, to := commitsOf(c); err == nil && to != "" {
			err = a.compare(r.Context(), c.SessionID, from, to)
		}
		if err != nil && r.Context().Err() == nil {
			a.Log.Warn("what a task changed cannot be compared", "task", id, "error", err) // its page says it, too
		}
		next(w, r)
	}
}

// compare has git compare two commits of a session's change, once.
func (a *app) compare(ctx context.Context, session, from, to string) error {
	a.patches.mu.Lock()
	_, known := a.patches.known[from+to]
	a.patches.mu.Unlock()
	if known {
		return nil
	}
	patch, err := a.Patch(ctx, session, from, to)
	if err != nil {
		return err
	}
	a.patches.mu.Lock()
	defer a.patches.mu.Unlock()
	if len(a.patches.known) >= keptPatches || a.patches.known == nil {
		a.patches.known = map[string][]changed{}
	}
	a.patches.known[from+to] = filesOf(patch)
	return nil
}

// filesOf splits what git prints into files. The lines of a file that is too long for a page are counted all the same.
func filesOf(patch string) (files []changed) {
	hunks := false
	var diff strings.Builder // of the last file
	end := func() {
		if len(files) > 0 {
			files[len(files)-1].Lines = numbered(diff.String())
		}
		diff.Reset()
	}
	for line := range strings.Lines(patch) {
		if strings.HasPrefix(line, "diff --git ") {
			end()
			_, name, _ := strings.Cut(strings.TrimSpace(line), " b/")
			files, hunks = append(files, changed{FileChange: ralph.FileChange{Path: name, Status: "modified"}}), false
			continue
		}
		if len(files) == 0 {
			continue
		}
		f := &files[len(files)-1]
		if hunks = hunks || strings.HasPrefix(line, "@@"); !hunks {
			f.header(strings.TrimSpace(line))
			continue
		}
		f.count(line)
		if diff.Len()+len(line) > maxPatch {
			f.Left = "it is longer than a page shows: `ralph diff` has it"
		} else {
			diff.WriteString(line)
		}
	}
	end()
	return files
}

// header takes what a line before the first hunk says of the file.
func (c *changed) header(line string) {
	switch {
	case strings.HasPrefix(line, "new file"):
		c.Status = "added"
	case strings.HasPrefix(line, "deleted file"):
		c.Status = "deleted"
	case strings.HasPrefix(line, "rename to "):
		c.Status = "renamed"
	case strings.HasPrefix(line, "Binary files"):
		c.Left = "it is no text"
	case strings.HasPrefix(line, "+++ b/"):
		c.Path = line[len("+++ b/"):]
	}
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

// changedOf returns what a task has changed, as one difference over all of its sessions; unread says why its lines are
// not known.
func (a *app) changedOf(c ralph.Change) (files []changed, unread string) {
	from, to := commitsOf(c)
	a.patches.mu.Lock()
	files, known := a.patches.known[from+to]
	a.patches.mu.Unlock()
	if known {
		return files, ""
	}
	kept, err := a.differences(c.SessionID)
	if err != nil {
		return nil, err.Error()
	}
	for _, d := range kept.Files {
		files = append(files, changedBy(d))
	}
	if len(files) == 0 {
		return nil, "git cannot compare its commits; `ralph diff` may say why"
	}
	return files, ""
}

// changedBy is a file by its kept difference, which has the lines alone.
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

// maxDiffs bounds the file of a session's differences, which are limited to some megabytes.
const maxDiffs = 32 << 20

// differences returns what a session changed line by line; nothing if it was not kept.
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
