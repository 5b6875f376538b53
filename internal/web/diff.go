package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ralph"
	"ralph/internal/patch"
	"ralph/internal/text"
	"ralph/store"
)

// A diffLine is a line of a difference with its numbers before and after; "" where it is not.
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

// patches keeps how commits differ, which does not change.
type patches struct {
	mu    sync.Mutex
	known map[string][]changed // by [shownChange.key]
}

// keptPatches is the number of differences that are kept, and maxPatch the length (bytes) of one that is shown.
const (
	keptPatches = 32
	maxPatch    = 2 << 20
)

// A shownChange is the newest change of a task, with what it does and what a person has to approve of it.
type shownChange struct {
	ralph.Change
	Files    []changed
	Unread   string // why its lines are not known
	Approval ralph.Approval
	Comment  int64 // that asks for the approval; 0 if nothing waits for one
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

// shown is changeOf with the files, those first on which a person decides.
func (a *app) shown(tx *store.Tx, task int64) (*shownChange, error) {
	v, err := changeOf(tx, task)
	if err != nil || v == nil {
		return nil, err
	}
	v.Files, v.Unread = a.changedOf(*v)
	slices.SortStableFunc(v.Files, func(a, b changed) int { return cmp.Compare(order(a), order(b)) })
	return v, nil
}

func order(c changed) int {
	if c.Guarded {
		return 0
	}
	return 1
}

// Held are the files on which a person decides.
func (v shownChange) Held() (files []changed) { return v.decided(true) }

// Others are the files on which nobody has to decide.
func (v shownChange) Others() (files []changed) { return v.decided(false) }

func (v shownChange) decided(held bool) (files []changed) {
	for _, f := range v.Files {
		if f.Guarded == held {
			files = append(files, f)
		}
	}
	return files
}

// Asks says in plain words what a person is asked.
func (v shownChange) Asks() string { return asksFor(v.Approval) }

// whole reports whether a person decides on a file.
func (v shownChange) whole(path string) bool { return slices.Contains(v.Approval.Paths(), path) }

// key names the difference among those that are kept.
func (v shownChange) key() string {
	from, to := v.Compared()
	return strings.Join(append(v.Approval.Paths(), from, to), "\x00")
}

// differFirst has git compare the commits of the changes of tasks, before their page begins its database transaction.
func (a *app) differFirst(
	tasks func(tx *store.Tx, r *http.Request) ([]int64, error), next http.HandlerFunc,
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if a.Patch == nil || r.ParseForm() != nil {
			next(w, r)
			return
		}
		list, err := store.Read(r.Context(), a.Store, func(tx *store.Tx) (list []*shownChange, err error) {
			of, err := tasks(tx, r)
			for _, task := range of {
				v, cerr := changeOf(tx, task)
				if err = errors.Join(err, cerr); v != nil {
					list = append(list, v)
				}
			}
			return list, err
		})
		for _, v := range list {
			if _, to := v.Compared(); to != "" && err == nil {
				if err = a.compare(r.Context(), *v); err != nil && r.Context().Err() == nil {
					// its page says it, too
					a.Log.Warn("what a task changed cannot be compared", "task", v.TaskID, "error", err)
					err = nil
				}
			}
		}
		next(w, r)
	}
}

// itself is the task of a task's page.
func itself(_ *store.Tx, r *http.Request) ([]int64, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, nil //nolint:nilerr // its page says it
	}
	return []int64{id}, nil
}

// compare has git compare two commits of a session's change, once.
func (a *app) compare(ctx context.Context, v shownChange) error {
	key := v.key()
	a.patches.mu.Lock()
	_, known := a.patches.known[key]
	a.patches.mu.Unlock()
	if known {
		return nil
	}
	from, to := v.Compared()
	patch, err := a.Patch(ctx, v.SessionID, from, to)
	if err != nil {
		return err
	}
	a.patches.mu.Lock()
	defer a.patches.mu.Unlock()
	if len(a.patches.known) >= keptPatches || a.patches.known == nil {
		a.patches.known = map[string][]changed{}
	}
	a.patches.known[key] = filesOf(patch, v.whole)
	return nil
}

// filesOf splits what git prints into files. The lines of a file that is too long for a page are counted all the same,
// and it says how much is missing; a file that a person decides on is never too long.
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
			c.Left = "it is no text"
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

// changedOf returns what a task has changed, as one difference over all of its sessions; unread says why its lines are
// not known.
func (a *app) changedOf(v shownChange) (files []changed, unread string) {
	a.patches.mu.Lock()
	files, known := a.patches.known[v.key()]
	a.patches.mu.Unlock()
	if known {
		return slices.Clone(files), ""
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
