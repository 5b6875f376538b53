package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

// Changed holds the changes that a task, or all tasks of a report, made to the project.
type Changed struct {
	Proof *ralph.Proof `json:"proof,omitempty"` // the proof by its own tests; only for a single task
	// its tests expect another behaviour than before, and a reviewer says that the task requires
	// it; only for a single task
	Expects   bool     `json:"changed_expectations,omitempty"`
	Branch    string   `json:"branch"`     // branch with the last of the commits; "" if none or unknown
	Branches  []string `json:"branches"`   // all that have commits, oldest first
	Commits   []string `json:"commits"`    // ids, oldest first
	Lacking   int      `json:"lacking"`    // number of them that have passed, and are not on their branch yet
	Files     int      `json:"files"`      // changed files
	Added     int      `json:"added"`      // lines, summed over merged changes
	Removed   int      `json:"removed"`    // lines, summed over merged changes
	KeptFiles int      `json:"kept_files"` // changed files that are not merged
	Kept      []string `json:"kept"`       // refs of work in workspaces that is not merged

	files, kept map[string]bool // by path
}

// fewCommits is the maximum number of commits, and branches, that are named.
const fewCommits = 3

// String describes the changes in one line: commits, diffstat, the rest; "" for nothing.
func (c Changed) String() string {
	var parts []string
	if n := len(c.Commits); n > 0 {
		on := ""
		switch b := c.Branches; {
		case len(b) > fewCommits:
			on = fmt.Sprintf(" on %d branches", len(b))
		case len(b) > 0:
			on = " on " + line(strings.Join(b, ", "))
		}
		switch {
		case c.Lacking >= n:
			on = " passed, not" + on + " yet"
		case c.Lacking > 0:
			on += fmt.Sprintf(", %d of them not yet", c.Lacking)
		}
		if n <= fewCommits {
			var ids []string
			for _, c := range c.Commits {
				ids = append(ids, ralph.ShortID(c))
			}
			on += " (" + strings.Join(ids, ", ") + ")"
		}
		parts = append(parts, text.Count(n, "commit")+on)
	}
	if c.Files > 0 {
		parts = append(parts, fmt.Sprintf("%s (+%d −%d)", text.Count(c.Files, "file"), c.Added, c.Removed))
	}
	if c.KeptFiles > 0 {
		parts = append(parts, "not merged: "+text.Count(c.KeptFiles, "file"))
	} else if n := len(c.Kept); n > 0 {
		parts = append(parts, "not merged: "+text.Count(n, "session"))
	}
	return strings.Join(parts, ", ")
}

// on adds a branch that has commits; "" is none.
func (c *Changed) on(branch string) {
	if branch == "" {
		return
	}
	c.Branch = branch
	if !slices.Contains(c.Branches, branch) {
		c.Branches = append(c.Branches, branch)
	}
}

// add adds a session's changes; change is the change that contains its work if it worked in a workspace, and branch its
// target; lacking is set while the branch lacks it. Merged changes are counted as the merges changed the branch,
// without detours of sessions.
func (c *Changed) add(s ralph.Session, change *ralph.Change, branch string, lacking bool) {
	files := s.Files
	switch {
	case change == nil:
		c.Commits = append(c.Commits, s.Commits...)
	case change.State == ralph.Merged:
		c.Proof, c.Expects = change.Proof, expects(s)
		if change.Commit == "" || slices.Contains(c.Commits, change.Commit) {
			return // the branch had it already, or another session of the task contains it
		}
		c.on(branch)
		c.Commits, files = append(c.Commits, change.Commit), change.Files
		if lacking {
			c.Lacking++
		}
	case change.State == ralph.Dropped:
		return
	default:
		if !slices.Contains(c.Kept, change.Ref()) {
			c.Kept = append(c.Kept, change.Ref())
		}
		c.kept = withPaths(c.kept, s.Files)
		c.KeptFiles = len(c.kept)
		return
	}
	c.files = withPaths(c.files, files)
	c.Files = len(c.files)
	for _, f := range files {
		c.Added, c.Removed = c.Added+f.Added, c.Removed+f.Removed
	}
}

// expects reports whether tests of a session's change expect another behaviour than before, as its task requires. Few
// decisions contain that; the others are not decoded, because a page reads hundreds.
func expects(s ralph.Session) bool {
	if !strings.Contains(s.Decision, `"asks":"`+ralph.AsksYes) {
		return false
	}
	d, err := store.Decided(s)
	return err == nil && d.Accepted && d.Evidence.Gate.Asks == ralph.AsksYes
}

func withPaths(paths map[string]bool, files []ralph.FileChange) map[string]bool {
	if paths == nil {
		paths = map[string]bool{}
	}
	for _, f := range files {
		paths[f.Path] = true
	}
	return paths
}

// merge adds another task's changes.
func (c *Changed) merge(o Changed) {
	if c.files == nil {
		c.files, c.kept = map[string]bool{}, map[string]bool{}
	}
	maps.Copy(c.files, o.files)
	maps.Copy(c.kept, o.kept)
	c.Files, c.KeptFiles, c.Lacking = len(c.files), len(c.kept), c.Lacking+o.Lacking
	c.Commits, c.Kept = append(c.Commits, o.Commits...), append(c.Kept, o.Kept...)
	for _, branch := range o.Branches {
		c.on(branch)
	}
	c.Added, c.Removed = c.Added+o.Added, c.Removed+o.Removed
}

// changedBy returns the changes of a filter's sessions, given oldest first, by task, given the changes of these, newest
// first.
func changedBy(
	tx *store.Tx, f store.SessionFilter, sessions []ralph.Session, changes []ralph.Change,
) (map[int64]*Changed, error) {
	queue, err := tx.MergeQueue()
	if err != nil {
		return nil, err
	}
	on, err := tx.MergedInto(f)
	if err != nil {
		return nil, err
	}
	became := becameOf(changes)
	all := map[int64]*Changed{}
	for _, s := range sessions {
		if all[s.TaskID] == nil {
			none := nothing()
			all[s.TaskID] = &none
		}
		branch, lacking := queue.Target, false
		if change := became[s.ID]; change != nil {
			merged := on[change.ID]
			branch, lacking = cmp.Or(merged.Into, branch), merged.Behind != ""
		}
		all[s.TaskID].add(s, became[s.ID], branch, lacking)
	}
	return all, nil
}

// becameOf returns, for changes, newest first, the change that finally contains each one's work.
func becameOf(list []ralph.Change) map[string]*ralph.Change {
	became := map[string]*ralph.Change{} // by session
	later := map[int64]*ralph.Change{}   // by task
	for i, c := range list {
		became[c.SessionID] = &list[i]
		if l := later[c.TaskID]; l != nil && c.Continued() {
			became[c.SessionID] = l
		}
		later[c.TaskID] = became[c.SessionID]
	}
	return became
}

// ending tells why the run ended.
func (r Report) ending() string {
	return fmt.Sprintf("ended: %s (exit status %d)", line(r.Reason), *r.ExitStatus)
}

// Morning returns the summary for a person: the figures, why the run ended, and the changes. It is the same on every
// screen, one line each.
func (r Report) Morning() []string {
	return append([]string{joined(r.Headline())}, r.Rest()...)
}

// explained reports whether the figures already tell why the run ended.
func (r Report) explained() bool {
	switch *r.ExitStatus {
	case ralph.ExitOK:
		return r.Figures.Tasks > 0
	case ralph.ExitFailed:
		return r.Figures.Failed > 0
	case ralph.ExitWaiting:
		return r.Figures.NeedsYou > 0
	}
	return false
}

// Rest returns the lines of the morning below the headline. They include the reason why the run ended if the figures do
// not tell it.
func (r Report) Rest() (lines []string) {
	if r.ExitStatus != nil && !r.explained() {
		lines = append(lines, r.ending())
	}
	if changed := r.Changed.String(); changed != "" {
		lines = append(lines, "changed: "+changed)
	}
	if r.Later != "" {
		lines = append(lines, r.Later)
	}
	return lines
}
