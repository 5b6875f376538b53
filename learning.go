package ralph

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Scopes of a learning: whose prompts it goes into.
const (
	ScopeProject = "project" // every task's
	ScopeFeature = "feature" // those of the same feature's tasks
	ScopeTask    = "task"    // only the same task's, when it is tried again
)

// A Learning is something that is known about the project. Several signals that
// said the same are one learning that was seen several times.
type Learning struct {
	ID        int64   `json:"id"`
	Text      string  `json:"text"`
	Kind      string  `json:"kind"`  // discovery, decision or convention
	Scope     string  `json:"scope"` // project, feature or task
	Feature   string  `json:"feature"`
	TaskID    int64   `json:"task_id"` // where it was learned first; 0 if a person wrote it
	Rationale string  `json:"rationale"`
	Origin    Origin  `json:"origin"`
	TimesSeen int     `json:"times_seen"`
	LastSeen  Time    `json:"last_seen"`
	Created   Time    `json:"created"`
	Author    string  `json:"author"`
	Pinned    bool    `json:"pinned"`   // before all others of its scope
	Status    string  `json:"status"`   // "active", or "forgotten": in no prompt any more
	Comments  []int64 `json:"comments"` // the signals that it came from

	ContradictedBy []int64 `json:"contradicted_by"` // later ones that say the contrary, while nobody has settled it
	Contradicts    []int64 `json:"contradicts"`     // earlier ones
	Terms          string  `json:"-"`               // the stems of its words, for ranking
}

// longUnused is after how long, counted back from the newest of all, a learning
// that was seen once sinks.
const longUnused = 180 * 24 * time.Hour

// Stale says why a learning sinks below the others of its scope; "" if it does
// not. Newest is when any of them was seen last, so that the same data give the
// same order; gone is a file that it names and that is not there any more.
func (l Learning) Stale(newest Time, gone string) string {
	switch {
	case l.Pinned:
		return ""
	case len(l.ContradictedBy) > 0:
		return fmt.Sprintf("contradicted by learning %d", l.ContradictedBy[0])
	case gone != "":
		return "names a file that is gone: " + gone
	case l.TimesSeen <= 1 && l.Origin == ByAgent && !l.LastSeen.IsZero() && newest.Sub(l.LastSeen.Time) > longUnused:
		return "seen once, long ago"
	}
	return ""
}

// filePath is what looks like a file of the project: with a folder and an ending.
var filePath = regexp.MustCompile(`(?:^|[\s"'` + "`" + `(\[])((?:[\w.-]+/)+[\w-][\w.-]*\.[A-Za-z]\w{0,7})\b`)

// Files are the files of the project that a learning names, relative to its root.
func (l Learning) Files() []string { return NamedFiles(l.Text) }

// NamedFiles are the paths with a folder and an ending that stand in a text.
func NamedFiles(text string) (files []string) {
	if !strings.Contains(text, "/") {
		return nil
	}
	for _, m := range filePath.FindAllStringSubmatch(text, -1) {
		files = append(files, m[1])
	}
	return files
}
