package ralph

// A Checkpoint records where a session stood, for the session that
// continues its task (human, "checkpoints"; the prompt's last section).
type Checkpoint struct {
	ID        int64  `json:"id"`
	SessionID string `json:"session_id"`
	// one of the sources below: the context was nearly full, the session ended
	// midway, or the agent reported it
	Source      string   `json:"source"`
	Iteration   int      `json:"iteration"` // as reported; 0 if not
	State       Phase    `json:"state"`
	Completed   []string `json:"work_completed"`
	Remaining   []string `json:"remaining_work"`
	Note        string   `json:"note"`         // the agent's last words
	TokensUsed  int64    `json:"tokens_used"`  // share of the model's context; 0 if unknown
	TokensLimit int64    `json:"tokens_limit"` // the size of that context; 0 if unknown
	Created     Time     `json:"created"`
}

// Sources of a checkpoint.
const (
	CheckpointLimit    = "limit"
	CheckpointEnd      = "end"
	CheckpointReported = "reported"
)

// DefaultContextWindow is the assumed size of a model's context, in
// tokens, until a session reports the real one.
const DefaultContextWindow = 200_000
