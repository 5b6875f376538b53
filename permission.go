package ralph

// A Permission is an agent's request to use a tool, and the decision on it
// (unattended, "The agent's processes").
type Permission struct {
	ID        int64  `json:"id"`
	TaskID    int64  `json:"task_id"`
	SessionID string `json:"session_id"`
	Tool      string `json:"tool"`
	// the tool's input as JSON text: whole if a person was asked, else only its beginning
	Input     string `json:"input"`
	Decision  string `json:"decision"`   // "allow", "deny", or "ask" while it waits for a person
	Rule      string `json:"rule"`       // the rule that decided; "" for the default or a person
	Reason    string `json:"reason"`     // the reason given to the agent
	DecidedBy string `json:"decided_by"` // a person's name; "" for the rules
	Created   Time   `json:"created"`
	DecidedAt Time   `json:"decided_at"` // null while it waits for a person
	// when an unanswered request is denied; null if the rules decided
	Expires Time `json:"expires"`
}

// MaxPermissionInput is the maximum size in bytes of a stored tool input if a rule
// decided. Input that a person decides on is stored completely.
const MaxPermissionInput = 2 << 10
