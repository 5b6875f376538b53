package ralph

import "fmt"

// Evidence holds ralph's observations of a session's work, beside the results of the commands.
type Evidence struct {
	Aside   []Aside  `json:"aside,omitempty"`   // the session's commits that are not in its candidate
	Stashes []string `json:"stashes,omitempty"` // messages of the stashes that the session made
	Secrets []string `json:"secrets,omitempty"` // a person's ignored files that it committed and that look like secrets

	Rewritten []Touch `json:"rewritten,omitempty"` // protected files that a verification command changed
	// files that the session changed and that a verification command runs or reads
	Drives []Touch  `json:"drives,omitempty"`
	Killed []string `json:"killed,omitempty"` // the commands of processes that the session had left running
	// submodules and other nested repositories whose commits the remotes lack, with the reason
	Within  []string `json:"within,omitempty"`
	Modules []string `json:"modules,omitempty"` // submodules that the change moves to other commits
	// paths left out of the candidate because git does not take them or ralph does not allow them
	Untaken []Untaken `json:"untaken,omitempty"`
	// files that tools left behind, not part of the candidate; folders end with a slash
	Debris      []string `json:"debris,omitempty"`
	Uncontained bool     `json:"uncontained,omitempty"` // ralph did not start the agent, which ran outside of any sandbox

	// the session's commits with a foreign author, date or words
	Commits []CommitNote `json:"commits,omitempty"`

	Hidden []string `json:"hidden,omitempty"` // titles of the failed hidden checks
	Blind  []string `json:"blind,omitempty"`  // titles of checks that pass with any expectation

	Gate Gate `json:"gate,omitzero"` // the change's effect on tests and other files that decide on it

	// refused attempts of other programs than the agent to use the session's tools
	Strangers int `json:"strangers,omitempty"`

	Reviews []Review `json:"reviews,omitempty"` // by agents, in the order in which they were made
	// candidates of the task that reviewers objected to, including this one
	Rounds int `json:"rounds,omitempty"`
}

// An Untaken is an entry of a session's workspace that ralph leaves out, and the reason.
type Untaken struct {
	Path string `json:"path"` // a file, or a folder with its contents, from the top of the work tree
	Why  string `json:"why"`  // a clause whose subject is the path
}

// A Touch pairs a file with the verification command that changes or uses it.
type Touch struct {
	File    string `json:"file"`
	Command string `json:"command"`
}

// A Commit names a commit the way people do.
type Commit struct {
	ID      string `json:"id"`
	Subject string `json:"subject"` // "" if the object is gone
	Author  string `json:"author"`
	From    string `json:"from,omitempty"` // the branch that lost it; "" if none did
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

// A CommitNote describes a session's commit whose author, date or words are not the agent's own.
type CommitNote struct {
	ID     string   `json:"id"`
	Author string   `json:"author,omitempty"` // name and address, if neither the configured user nor ralph
	Date   Time     `json:"date,omitzero"`    // if outside of the session
	Words  []string `json:"words,omitempty"`  // trailers, and words that make hosts skip checks or close issues
}
