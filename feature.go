package ralph

// A Feature groups tasks.
type Feature struct {
	ID          int64    `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Learnings   string   `json:"learnings"` // written by people; precedes the agents' learnings in prompts
	Verify      []string `json:"verify"`    // shell commands that must pass for every task of the feature
	Created     Time     `json:"created"`
	Updated     Time     `json:"updated"`
}

// A Discipline is a way of working on tasks: instructions, an agent and a model.
type Discipline struct {
	ID           int64  `json:"id"`
	Name         string `json:"name"`
	Instructions string `json:"instructions"`
	Model        string `json:"model"`
	Parallel     int    `json:"parallel"` // maximum number of sessions on its tasks at once; 0 is unlimited
	Agent        string `json:"agent"`    // a name from ralph.yaml, "" for none
	Review       string `json:"review"`   // the agent that reviews its tasks, "none", or "" as configured
	Created      Time   `json:"created"`
	Updated      Time   `json:"updated"`
}
