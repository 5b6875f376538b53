package ralph

// A Checkpoint is where a session stood, for the one that goes on (human,
// "checkpoints"; the prompt's last section).
type Checkpoint struct {
	ID        int64  `json:"id"`
	SessionID string `json:"session_id"`
	// "limit": the context was nearly full; "end": the session ended in the middle; "reported"
	Source      string   `json:"source"`
	Iteration   int      `json:"iteration"` // as it was reported; 0 if it was not
	State       Phase    `json:"state"`
	Completed   []string `json:"work_completed"`
	Remaining   []string `json:"remaining_work"`
	Note        string   `json:"note"`         // what the agent said last
	TokensUsed  int64    `json:"tokens_used"`  // of the model's context; 0 if it is not known
	TokensLimit int64    `json:"tokens_limit"` // the size of that context; 0 if it is not known
	Created     Time     `json:"created"`
}

// Sources of a checkpoint.
const (
	CheckpointLimit    = "limit"
	CheckpointEnd      = "end"
	CheckpointReported = "reported"
)

// DefaultContextWindow is how many tokens a model's context is taken to have as
// long as no session of it has said how many.
const DefaultContextWindow = 200_000
