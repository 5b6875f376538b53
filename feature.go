package ralph

// A Feature is what tasks belong to.
type Feature struct {
	ID          int64    `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Learnings   string   `json:"learnings"` // written by people; goes before the agents' in prompts
	Verify      []string `json:"verify"`    // shell commands that must pass for its tasks
	Created     Time     `json:"created"`
	Updated     Time     `json:"updated"`
}

// A Discipline is how tasks are worked on: instructions and a model.
type Discipline struct {
	ID           int64  `json:"id"`
	Name         string `json:"name"`
	Instructions string `json:"instructions"`
	Model        string `json:"model"`
	Created      Time   `json:"created"`
	Updated      Time   `json:"updated"`
}
