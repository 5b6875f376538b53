package merging

import (
	"fmt"
	"slices"

	"ralph"
)

// An Action is the next thing to do with the queue.
type Action string

// The actions.
const (
	Rest     Action = "rest"      // nothing can be done now
	Requeue  Action = "requeue"   // a kill left changes half done: they start again
	Build    Action = "build"     // merge the changes with the target's tip
	Verify   Action = "verify"    // verify the commit that would be merged
	Split    Action = "split"     // several changes were refused together: try the first half of them
	Move     Action = "move"      // move the commit point
	Complete Action = "complete"  // the changes are in the target: complete their tasks
	SendBack Action = "send back" // send the change back to its task
	Block    Action = "block"     // wait for a person
)

// A Queue is everything that the choice of the next step depends on.
type Queue struct {
	Changes  []ralph.Change // in the order of [store.Tx.QueuedChanges]
	Batch    bool           // build, verify and merge all queued changes together
	Suspects []int64        // changes to try before the others, half of them: they were refused together, or left out
	Paused   string         // why nothing is merged; "" if merging is not paused
	Waits    bool           // a remote is not tried for a while
	Alone    int64          // the task that must be merged before any other; 0 for none

	Target  Target
	Reached map[int64]bool // of changes that are being merged: whether their commit is in the target

	Built *Built // what this process has built of the first changes; nil if nothing yet
}

// A Target is the state of the commit point, and what the next merge builds on.
type Target struct {
	Point string // the commit point; "" before the first merge
	Tip   string // the commit that candidates are built on
	Also  string // people's new commits next to it, which the next candidate includes; "" for none
	Gone  string // why nothing can be merged; "" if something can
}

// A Built is the merge of changes with a target.
type Built struct {
	Changes   []int64 // the merged changes; those that conflict with them wait
	Target    Target
	Commit    string // the commit that would be merged; "" if the first change conflicts with the target
	Tree      string
	Conflicts []string      // the conflicting files
	Left      int64         // the first change that conflicts; 0 for none
	Verified  bool          // it was verified, and Refused is the result
	Refused   string        // why it was refused; "" if it passed
	Rewritten []ralph.Touch // protected files that the commands changed, for which it is refused
}

// A Step is the next thing to do.
type Step struct {
	Do      Action
	Changes []ralph.Change // the changes concerned; just one for a conflict, a refusal or a block
	Reason  string
}

// NextStep returns the next step. Merges happen one at a time: a single
// change, or all queued changes as a batch, whose commit passes or fails
// as a whole. A refused batch is halved until a single change is at fault.
func NextStep(q Queue) Step {
	if q.Waits {
		return Step{Do: Rest, Reason: "waiting for the remote"} // only the remote knows what became of a merge
	}
	if moving := q.those(func(c ralph.Change) bool { return c.State == ralph.Moving }); len(moving) > 0 {
		first := moving[0]
		moving = slices.DeleteFunc(moving, func(c ralph.Change) bool { return c.To != first.To })
		switch {
		case q.Reached[first.ID]:
			return Step{Complete, moving, ""}
		case q.Target.Point == first.From && q.Paused == "":
			return Step{Move, moving, ""}
		case q.Target.Point == first.From:
			return Step{Requeue, moving, "it could not be merged"}
		}
		return Step{Requeue, moving, "the target has moved meanwhile"}
	}
	half := q.those(func(c ralph.Change) bool { return c.State != ralph.Queued && !q.Built.has(c.ID) })
	switch {
	case len(half) > 0:
		return Step{Requeue, half, "an earlier run was killed"}
	case len(q.Changes) == 0:
		return Step{Do: Rest}
	case q.Paused != "":
		return Step{Do: Rest, Reason: "merging is paused: " + q.Paused}
	}
	next := q.next()
	if len(next) == 0 {
		return Step{Do: Rest, Reason: fmt.Sprintf("TASK-%d is to be merged alone, and a session is working on it", q.Alone)}
	}
	if q.Target.Gone != "" {
		return Step{Block, next[:1], q.Target.Gone}
	}
	b, in := q.Built, q.those(func(c ralph.Change) bool { return q.Built.has(c.ID) })
	switch {
	case b == nil || b.Target != q.Target || len(in) != len(b.Changes),
		q.Alone != 0 && (len(in) != 1 || in[0].TaskID != q.Alone):
		return Step{Build, next, ""}
	case b.Commit == "":
		return Step{SendBack, in, "it conflicts with what has been merged"}
	case !b.Verified:
		return Step{Verify, in, ""}
	case b.Refused != "" && len(in) > 1:
		return Step{Split, in, b.Refused}
	case b.Refused != "":
		return Step{SendBack, in, "merged, it is refused: " + b.Refused}
	}
	return Step{Move, in, ""}
}

// those returns the changes for which are is true.
func (q Queue) those(are func(ralph.Change) bool) (list []ralph.Change) {
	for _, c := range q.Changes {
		if are(c) {
			list = append(list, c)
		}
	}
	return list
}

// next returns the changes to be merged next; none while the task that is merged alone is being worked on.
func (q Queue) next() []ralph.Change {
	suspects := q.those(func(c ralph.Change) bool { return slices.Contains(q.Suspects, c.ID) })
	switch {
	case q.Alone != 0:
		return q.those(func(c ralph.Change) bool { return c.TaskID == q.Alone })
	case !q.Batch:
		return q.Changes[:1]
	case len(suspects) > 0:
		return suspects[:(len(suspects)+1)/2]
	}
	return q.Changes
}

func (b *Built) has(change int64) bool { return b != nil && slices.Contains(b.Changes, change) }

// Refs are the refs that a target is read from, each a commit id or "".
type Refs struct {
	Point string // the commit point
	Local string // people's branch
	Seen  string // people's branch at the last look
}

// A Stand is the state of a target, and whether people have taken back merged commits.
type Stand struct {
	Target
	Behind    bool // people's branch can fast-forward to the commit point
	Rewritten bool // people's branch counts; they removed what it lacks of the commit point
}

// Standing derives the state of a target from its refs. Below reports whether a
// commit equals another one or is its ancestor. With a remote, the commit point is
// the remote's branch, and people's local branch does not count until they push it.
func Standing(r Refs, branch string, remote bool, below func(commit, of string) (bool, error)) (s Stand, err error) {
	is := func(commit, of string) bool {
		if err != nil || commit == "" || of == "" {
			return false
		}
		var yes bool
		yes, err = below(commit, of)
		return yes
	}
	s.Point = r.Point
	switch {
	case remote && r.Point == "":
		s.Gone = "the remote has no branch " + branch
	case remote:
		s.Tip, s.Behind = r.Point, r.Local != r.Point && is(r.Local, r.Point)
	case r.Local == "":
		s.Gone = "the branch " + branch + " is gone"
	case r.Point == "" || is(r.Point, r.Local):
		s.Tip = r.Local
	case r.Seen != "" && !is(r.Seen, r.Local) && (is(r.Point, r.Seen) || is(r.Local, r.Point)):
		// Merged commits that people could not have removed stay, for example during a rebase.
		s.Tip, s.Point, s.Rewritten = r.Local, r.Local, true
	case is(r.Local, r.Point):
		s.Tip, s.Behind = r.Point, true
	default:
		s.Tip, s.Also = r.Point, r.Local
	}
	return s, err
}
