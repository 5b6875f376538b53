package ralph

import (
	"fmt"
	"slices"
)

// A ChangeState is the state of a change on its way into the target branch.
type ChangeState string

// The states of a change. Only a change in Moving can no longer be stopped.
const (
	Held      ChangeState = "held"      // kept, but not queued: the next session starts from it, or a person decides
	Checking  ChangeState = "checking"  // has its place in the line while its session is being checked
	Queued    ChangeState = "queued"    // passed, and waits in the merge queue
	Verifying ChangeState = "verifying" // is verified once more, because the line ahead or the target has changed
	Moving    ChangeState = "moving"    // the target ref is being moved
	Reviewing ChangeState = "reviewing" // is on its own branch, and a pull request waits for people
	Merged    ChangeState = "merged"    // merged
	SentBack  ChangeState = "sent_back" // it conflicted, or was refused once merged
	Dropped   ChangeState = "dropped"   // no longer wanted
)

// Superseded is the reason of a dropped change whose content is part of a later change of
// the same task.
const Superseded = "a later session of the task has left another one"

// Continued reports whether a later change of the task, if there is one, started from this
// one.
func (c Change) Continued() bool {
	return c.State == SentBack || c.State == Dropped && c.Reason == Superseded
}

// QueueStates are the states of a change in the merge queue.
var QueueStates = []ChangeState{Queued, Verifying, Moving}

// Waits reports whether a change in this state is in the merge queue.
func (s ChangeState) Waits() bool { return slices.Contains(QueueStates, s) }

// A Change is the result of a session in a workspace: one commit, kept in the
// person's repository under [Change.Ref].
type Change struct {
	ID        int64       `json:"id"`
	TaskID    int64       `json:"task_id"`
	SessionID string      `json:"session_id"`
	Base      string      `json:"base"` // the commit that the session started from
	Head      string      `json:"head"` // the commit that it produced
	Tree      string      `json:"tree"` // tree of the head
	State     ChangeState `json:"state"`
	From      string      `json:"from"` // the commit point when the merge began
	To        string      `json:"to"`   // the commit point after the merge
	// the merge of this change alone: To, or a commit below it if others were merged with it; "" if the target had the
	// change already
	Commit string `json:"commit"`
	// the commit below the change on the branch; "" for the first parent of Commit. A forge may rebase several commits.
	Onto      string       `json:"onto,omitempty"`
	Files     []FileChange `json:"files"` // differences between Onto and Commit; empty before the merge
	Reason    string       `json:"reason"`
	Conflicts []string     `json:"conflicts"` // files
	// for an undo, the task's status after the merge: cancelled (work is undone) or completed (work is restored)
	Undo    Status `json:"undo"`
	Proof   *Proof `json:"proof"`            // proof by its tests; null before they were run
	Branch  string `json:"branch,omitempty"` // its own one, as of a pull request, once it has been put there
	Created Time   `json:"created"`
	Updated Time   `json:"updated"`
}

// ChangeRefs is the ref namespace that keeps the heads of changes.
const ChangeRefs = "refs/ralph/changes/"

// Ref returns the ref that keeps this change.
func (c Change) Ref() string { return ChangeRefs + c.SessionID }

// Compared returns two commits whose difference is the change: all of the task's change if it was merged, else that of
// its session. From may be written as ID^1.
func (c Change) Compared() (from, to string) {
	if c.State == Merged && c.Commit != "" {
		return c.Before(), c.Commit
	}
	return c.Base, c.Head
}

// Before returns the commit below a merged change, written as ID^1 or ID^0.
func (c Change) Before() string {
	if c.Onto != "" {
		return c.Onto + "^0"
	}
	return c.Commit + "^1"
}

// Trailers returns the lines at the end of ralph's commit messages that name a task and its session for programs.
func Trailers(task int64, session string) string {
	return fmt.Sprintf("Task: TASK-%d\nSession: %s\n", task, session)
}

// A Reverted is a completed task whose change people have removed from the target, by `git revert` or by removing its
// commit.
type Reverted struct {
	TaskID int64  `json:"task_id"`
	By     Commit `json:"by"`               // the revert; zero if the commit was removed
	Commit string `json:"commit,omitempty"` // the removed one
	Branch string `json:"branch"`
}

// String describes the revert in a sentence, with the next step.
func (r Reverted) String() string {
	if r.Commit != "" {
		return fmt.Sprintf("TASK-%[1]d is merged, and its commit %[2]s is no longer on %[3]s: "+
			"`ralph retry %[1]d --again` has it done once more", r.TaskID, ShortID(r.Commit), r.Branch)
	}
	return fmt.Sprintf("TASK-%[1]d is merged, and %[2]s took it back on %[3]s (%[4]s: %[5]s): `ralph undo %[1]d` "+
		"calls the task off, `ralph retry %[1]d --again` has it done once more", r.TaskID, ShortID(r.By.ID), r.Branch,
		r.By.Author, r.By.Subject)
}
