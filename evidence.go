package ralph

import "fmt"

// Evidence is what was seen of a session when its done was checked, beside what the
// commands said.
type Evidence struct {
	Standing
	// the session with whose beginning it was compared, while what refuses it is not mended
	Since string `json:"since,omitempty"`

	Rewritten []Touch `json:"rewritten,omitempty"` // protected files that a command of the check changed
	// files that the session changed, and the command that runs or reads them
	Drives []Touch `json:"drives,omitempty"`
	// other files that changed while it was checked: a command's doing, or a person's
	Drift       []string `json:"drift,omitempty"`
	Killed      []string `json:"killed,omitempty"`      // commands of what the session had left running
	Uncontained bool     `json:"uncontained,omitempty"` // its agent was free to go on during the check
}

// A Touch is a file and a command of the verification that has to do with it.
type Touch struct {
	File    string `json:"file"`
	Command string `json:"command"`
}

// A Standing is where a session left the repository, compared with where it began.
type Standing struct {
	Git         bool     `json:"git"`                   // there is a repository, and the rest is known
	Branch      string   `json:"branch,omitempty"`      // "" if HEAD is detached
	Commit      string   `json:"commit,omitempty"`      // of HEAD, "" before the first one
	Uncommitted int      `json:"uncommitted,omitempty"` // files that differ from it
	Began       string   `json:"began,omitempty"`       // the branch at the beginning
	Switched    bool     `json:"switched,omitempty"`    // HEAD is on another branch than at the beginning
	Lost        []Commit `json:"lost,omitempty"`        // commits of people that the branch, or every branch, has no more
	Aside       []Aside  `json:"aside,omitempty"`       // commits of the session that are not in HEAD
	Stashes     []string `json:"stashes,omitempty"`     // that the session made, by their messages
	// there is no git program, and files are known as go-git sees them
	Approximate bool `json:"approximate,omitempty"`
	// repositories within, such as submodules, that have no files any more
	Emptied []string `json:"emptied,omitempty"`
	// files of a person's, not committed at the beginning, that it committed
	Taken   []string `json:"taken,omitempty"`
	Secrets []string `json:"secrets,omitempty"` // those of them that git did not know and that look like secrets
}

// A Commit is named as people know it.
type Commit struct {
	ID      string `json:"id"`
	Subject string `json:"subject"` // "" if it is gone for good
	Author  string `json:"author"`
	From    string `json:"from,omitempty"` // the branch that has it no more; "" for all of them
}

// An Aside are commits on a branch that is not the one which was verified.
type Aside struct {
	Branch  string `json:"branch"`
	Commits int    `json:"commits"`
}

// ShortID is the beginning of a commit's id by which people name it.
func ShortID(id string) string { return id[:min(len(id), 7)] }

// String is the commit's short id, subject and author.
func (c Commit) String() string {
	if c.Subject == "" && c.Author == "" {
		return ShortID(c.ID) + " (its object is gone)"
	}
	return fmt.Sprintf("%s %q by %s", ShortID(c.ID), c.Subject, c.Author)
}

// Place is the branch and the commit in a few words; "" where there is none.
func (s Standing) Place() string {
	switch {
	case !s.Git:
		return ""
	case s.Commit == "":
		return s.Branch + " before its first commit"
	case s.Branch == "":
		return "detached HEAD at " + ShortID(s.Commit)
	}
	return s.Branch + " at " + ShortID(s.Commit)
}
