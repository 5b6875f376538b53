package merging

import (
	"fmt"
	"slices"
	"time"

	"ralph"
)

// An Action is the next thing to do with the queue.
type Action string

// The actions.
const (
	Rest     Action = "rest"      // nothing can be done now
	Await    Action = "await"     // wait for changes that are about to be queued
	Early    Action = "early"     // verify those that are expected with what is queued, before they have passed
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

	Elsewhere bool // what is being moved was built on another machine, and never pushed

	Built *Built // what this process has built of the first changes; nil if nothing yet
	Crowd *Crowd // what is expected to be queued; nil if that is not waited for
}

// A Crowd is what is known of changes that are checked and not queued yet, when those that are could be built.
type Crowd struct {
	Since   time.Duration // that they could be
	Most    time.Duration // what a verification takes, or what the queue may wait, if that is less; 0 for not at all
	Known   bool          // the only one that is queued has passed its own check on this target
	Enters  bool          // checks are about to begin
	Others  int           // changes that are being checked, or have passed, and are not late
	Tried   bool          // they were verified together with what is queued
	Missing bool          // which has passed, and of which not all is queued
	Left    time.Duration // how long that is waited for
}

// The shares of the time that a verification takes for which the queue waits: for changes whose
// checks are about to begin, and for those that it has verified, and whose own checks last longer.
const (
	enterShare = 4
	earlyShare = 2
)

// next says whether others are waited for, and how long, or verified early; "" if what is queued is merged now.
func (c *Crowd) next() (do Action, wait time.Duration) {
	switch {
	case c.Known || c.Most == 0:
	case !c.Tried && c.Enters && c.Since < c.Most/enterShare:
		return Await, c.Most/enterShare - c.Since
	case !c.Tried && c.Others > 0:
		return Early, 0
	case c.Missing && c.Left > 0:
		return Await, c.Left
	}
	return "", 0
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
	Own       []Own   // of each of them
	Target    Target
	Commit    string // the commit that would be merged; "" if the first change conflicts with the target
	Tree      string
	Conflicts []string      // the conflicting files
	Left      int64         // the first change that conflicts; 0 for none
	Verified  bool          // it was verified, and Refused is the result
	Refused   string        // why it was refused; "" if it passed
	Rewritten []ralph.Touch // protected files that the commands changed, for which it is refused
}

// An Own is the commit that merges one change alone.
type Own struct {
	Commit string // "" if the target has the change already
	Onto   string // its first parent
}

// A Step is the next thing to do.
type Step struct {
	Do      Action
	Changes []ralph.Change // the changes concerned; just one for a conflict, a refusal or a block
	Reason  string
	Wait    time.Duration // the longest, of [Await]
	Working bool          // of [Rest]: a session works on the task that is merged next
}

// NextStep returns the next step. Merges happen one at a time: a single
// change, or all queued changes as a batch, whose commit passes or fails
// as a whole. A refused batch is halved until a single change is at fault.
// What is about to be queued is verified with the batch, if that is in time.
func NextStep(q Queue) Step {
	step := q.step()
	if q.Crowd == nil || step.Do != Build && (step.Do != Rest || len(q.Changes) > 0) {
		return step
	}
	if do, wait := q.Crowd.next(); do != "" {
		return Step{Do: do, Changes: q.Changes, Wait: wait}
	}
	return step
}

// step is [NextStep] for what is queued alone.
func (q Queue) step() Step {
	switch {
	case q.Waits && len(q.Changes) == 0:
		return Step{Do: Rest}
	case q.Waits:
		return Step{Do: Rest, Reason: "waiting for the remote"} // only the remote knows what became of a merge
	}
	if moving := q.those(func(c ralph.Change) bool { return c.State == ralph.Moving }); len(moving) > 0 {
		first := moving[0]
		moving = slices.DeleteFunc(moving, func(c ralph.Change) bool { return c.To != first.To })
		switch {
		case q.Reached[first.ID]:
			return Step{Do: Complete, Changes: moving}
		case q.Elsewhere:
			return Step{Do: Requeue, Changes: moving, Reason: "the machine that built it did not push it"}
		case q.Target.Point == first.From && q.Paused == "":
			return Step{Do: Move, Changes: moving}
		case q.Target.Point == first.From:
			return Step{Do: Requeue, Changes: moving, Reason: "it could not be merged"}
		}
		return Step{Do: Requeue, Changes: moving, Reason: "the target has moved meanwhile"}
	}
	half := q.those(func(c ralph.Change) bool { return c.State != ralph.Queued && !q.Built.has(c.ID) })
	switch {
	case len(half) > 0:
		return Step{Do: Requeue, Changes: half, Reason: "an earlier run was killed"}
	case len(q.Changes) == 0:
		return Step{Do: Rest}
	case q.Paused != "":
		return Step{Do: Rest, Reason: "merging is paused: " + q.Paused}
	}
	next := q.next()
	if len(next) == 0 {
		return Step{
			Do: Rest, Working: true,
			Reason: fmt.Sprintf("TASK-%d is to be merged alone, and a session is working on it", q.Alone),
		}
	}
	if q.Target.Gone != "" {
		return Step{Do: Block, Changes: next[:1], Reason: q.Target.Gone}
	}
	b, in := q.Built, q.those(func(c ralph.Change) bool { return q.Built.has(c.ID) })
	switch {
	case b == nil || b.Target != q.Target || len(in) != len(b.Changes),
		q.Alone != 0 && (len(in) != 1 || in[0].TaskID != q.Alone):
		return Step{Do: Build, Changes: next}
	case b.Commit == "":
		return Step{Do: SendBack, Changes: in, Reason: "it conflicts with what has been merged"}
	case !b.Verified:
		return Step{Do: Verify, Changes: in}
	case b.Refused != "" && len(in) > 1:
		return Step{Do: Split, Changes: in, Reason: b.Refused}
	case b.Refused != "":
		return Step{Do: SendBack, Changes: in, Reason: "merged, it is refused: " + b.Refused}
	}
	return Step{Do: Move, Changes: in}
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
		s.Tip = r.Point
	case r.Local == "":
		s.Gone = "the branch " + branch + " is gone"
	case r.Point == "" || is(r.Point, r.Local):
		s.Tip = r.Local
	case r.Seen != "" && !is(r.Seen, r.Local) && (is(r.Point, r.Seen) || is(r.Local, r.Point)):
		// Merged commits that people could not have removed stay, for example during a rebase.
		s.Tip, s.Point, s.Rewritten = r.Local, r.Local, true
	case is(r.Local, r.Point):
		s.Tip = r.Point
	default:
		s.Tip, s.Also = r.Point, r.Local
	}
	return s, err
}
