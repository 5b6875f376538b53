package ralph

import (
	"strings"
	"time"

	"ralph/internal/lazy"
)

// Scopes of a learning: the tasks whose prompts contain it.
const (
	ScopeProject = "project" // every task
	ScopeFeature = "feature" // the tasks of the same feature
	ScopeTask    = "task"    // only the same task, when it is tried again
)

// Forgotten is the status of a learning that no prompt contains any more.
const Forgotten = "forgotten"

// A Learning is a known fact about the project. Signals with the same meaning are merged
// into one learning, which counts them.
type Learning struct {
	ID        int64   `json:"id"`
	Text      string  `json:"text"`
	Kind      string  `json:"kind"`  // discovery, decision or convention
	Scope     string  `json:"scope"` // project, feature or task
	Feature   string  `json:"feature"`
	TaskID    int64   `json:"task_id"` // the task it was first learned in; 0 if a person wrote it
	Rationale string  `json:"rationale"`
	Origin    Origin  `json:"origin"`
	TimesSeen int     `json:"times_seen"`
	LastSeen  Time    `json:"last_seen"`
	Created   Time    `json:"created"`
	Author    string  `json:"author"`
	Pinned    bool    `json:"pinned"`   // listed before all others of its scope
	Status    string  `json:"status"`   // "active", or "forgotten": no longer in any prompt
	Claim     bool    `json:"claim"`    // it is about checks, permissions or signals, and no person has confirmed it
	Comments  []int64 `json:"comments"` // the signals that reported it
	Terms     string  `json:"-"`        // the stems of its words, for ranking
}

// longUnused is the age, relative to the newest learning, at which a learning that was
// seen only once sinks.
const longUnused = 180 * 24 * time.Hour

// Stale explains why a learning ranks below the others of its scope; "" if it does not.
// Newest is the last time that any learning was seen, so that the result depends on data
// alone. Gone is a file that the learning names and that no longer exists.
func (l Learning) Stale(newest Time, gone string) string {
	switch {
	case l.Pinned:
		return ""
	case gone != "":
		return "names a file that is gone: " + gone
	case l.TimesSeen <= 1 && l.Origin == ByAgent && !l.LastSeen.IsZero() && newest.Sub(l.LastSeen.Time) > longUnused:
		return "seen once, long ago"
	}
	return ""
}

// filePath matches what looks like a project file: a path with a folder and an extension.
var filePath = lazy.Regexp(`(?:^|[\s"'` + "`" + `(\[])((?:[\w.-]+/)+[\w-][\w.-]*\.[A-Za-z]\w{0,7})\b`)

// Files returns the project files that the learning names, relative to the root.
func (l Learning) Files() []string { return NamedFiles(l.Text) }

// NamedFiles returns the paths in a text that have a folder and an extension.
func NamedFiles(text string) (files []string) {
	if !strings.Contains(text, "/") {
		return nil
	}
	for _, m := range filePath().FindAllStringSubmatch(text, -1) {
		files = append(files, m[1])
	}
	return files
}
