package ralph

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
}
