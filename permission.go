package ralph

// A Permission is an agent's question whether it may use a tool, and what it was
// told (unattended, "The agent's processes").
type Permission struct {
	ID        int64  `json:"id"`
	TaskID    int64  `json:"task_id"`
	SessionID string `json:"session_id"`
	Tool      string `json:"tool"`
	// the tool's input as JSON text: whole where a person was asked, else its beginning
	Input     string `json:"input"`
	Decision  string `json:"decision"`   // "allow", "deny", or "ask" while a person is waited for
	Rule      string `json:"rule"`       // the rule that decided; "" for the default or a person
	Reason    string `json:"reason"`     // what the agent was told
	DecidedBy string `json:"decided_by"` // a person's name; "" for the rules
	Created   Time   `json:"created"`
	DecidedAt Time   `json:"decided_at"` // null while a person is waited for
	// when what a person was asked answers itself with deny; null for what the rules decided
	Expires Time `json:"expires"`
}

// MaxPermissionInput is how much is kept, in bytes, of the input of a tool whose use
// the rules decided. What a person decides on is kept whole.
const MaxPermissionInput = 2 << 10
