package ralph

import "fmt"

// Evidence is what ralph saw when it checked a session's done, apart from
// the results of the commands.
type Evidence struct {
	Standing
	// the session whose start it is compared with; "" unless that shows a problem
	Since string `json:"since,omitempty"`

	Rewritten []Touch `json:"rewritten,omitempty"` // protected files that a verification command changed
	// files that the session changed and that a verification command runs or reads
	Drives []Touch `json:"drives,omitempty"`
	// other files that changed during the check, by a command or by a person
	Drift  []string `json:"drift,omitempty"`
	Killed []string `json:"killed,omitempty"` // the commands of processes that the session had left running
	// nested repositories, such as submodules, at commits that their remotes lack, and why
	Within []string `json:"within,omitempty"`
	// what is in no candidate, as git does not take it or ralph does not let it
	Untaken     []Untaken `json:"untaken,omitempty"`
	Uncontained bool      `json:"uncontained,omitempty"` // the agent was able to go on working during the check
}

// An Untaken is something in a session's slot that ralph does not take from it, and why.
type Untaken struct {
	Path string `json:"path"` // a file, or a folder with all that is in it, from the top of the work tree
	Why  string `json:"why"`  // a clause whose subject is the path
}

// A Touch pairs a file with the verification command that changes or uses it.
type Touch struct {
	File    string `json:"file"`
	Command string `json:"command"`
}

// A Standing is the state in which a session left the repository, compared
// with the state at its start.
type Standing struct {
	Git         bool     `json:"git"`                   // there is a repository, and the other fields are known
	Branch      string   `json:"branch,omitempty"`      // "" if HEAD is detached
	Commit      string   `json:"commit,omitempty"`      // HEAD's commit, "" before the first one
	Uncommitted int      `json:"uncommitted,omitempty"` // files that differ from Commit
	Began       string   `json:"began,omitempty"`       // the branch at the start
	Switched    bool     `json:"switched,omitempty"`    // HEAD is on another branch than at the start
	Lost        []Commit `json:"lost,omitempty"`        // commits of people that a branch, or every branch, no longer has
	Aside       []Aside  `json:"aside,omitempty"`       // the session's commits that are not in HEAD
	Stashes     []string `json:"stashes,omitempty"`     // messages of the stashes that the session made
	// there is no git program: go-git listed the files
	Approximate bool `json:"approximate,omitempty"`
	// nested repositories, such as submodules, that have lost all their files
	Emptied []string `json:"emptied,omitempty"`
	// what git ignores since the session, by rules that were not there at its start: files, and folders with a slash
	Hidden []string `json:"hidden,omitempty"`
	// a person's files, uncommitted at the start, that the session committed
	Taken   []string `json:"taken,omitempty"`
	Secrets []string `json:"secrets,omitempty"` // those of Taken that git did not track and that look like secrets
}

// A Commit names a commit the way people do.
type Commit struct {
	ID      string `json:"id"`
	Subject string `json:"subject"` // "" if the object is gone
	Author  string `json:"author"`
	From    string `json:"from,omitempty"` // the branch that no longer has it; "" if none has
}

// An Aside counts commits on a branch other than the verified one.
type Aside struct {
	Branch  string `json:"branch"`
	Commits int    `json:"commits"`
}

// ShortID returns the abbreviated form of a commit's id.
func ShortID(id string) string { return id[:min(len(id), 7)] }

// String returns the commit's short id, subject and author.
func (c Commit) String() string {
	if c.Subject == "" && c.Author == "" {
		return ShortID(c.ID) + " (its object is gone)"
	}
	return fmt.Sprintf("%s %q by %s", ShortID(c.ID), c.Subject, c.Author)
}

// Place names the branch and the commit in a few words; "" without a repository.
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
