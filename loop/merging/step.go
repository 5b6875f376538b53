package merging

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ralph"
)

// An Action is the next thing to do with the queue, or with a change that is being checked.
type Action string

// The actions.
const (
	Rest     Action = "rest"      // nothing can be done now
	Requeue  Action = "requeue"   // a kill interrupted changes: they start again
	Build    Action = "build"     // merge the changes with the target's tip
	Verify   Action = "verify"    // verify the commit that would be merged
	Move     Action = "move"      // move the commit point
	Complete Action = "complete"  // the changes are in the target: complete their tasks
	SendBack Action = "send back" // send the change back to its task, or to its agent
	Block    Action = "block"     // wait for a person
	Await    Action = "await"     // wait for changes ahead
	Pass     Action = "pass"      // the change has passed
	Refuse   Action = "refuse"    // it is refused
)

// A Queue is everything that the choice of the next step depends on.
type Queue struct {
	Line   []ralph.Change // checked or queued changes, in the order of merging
	Single bool           // each change is verified and merged by itself
	Branch bool           // each gets its own branch, and none is merged onto another
	Most   int            // maximum number of changes to merge together; 0 for all
	Paused string         // why merging is paused; "" if it is not
	Waits  bool           // the remote is not tried for a while
	Alone  int64          // the task that must be merged before any other; 0 for none

	Target  Target
	Reached bool // it contains the commit that the target is being moved to

	Elsewhere bool // the moving commit was built on another machine, and never pushed

	Stack *Stack // merges that this process has built of the first changes; nil if none yet

	Now  time.Time
	Wait time.Duration // how long changes that passed wait for one ahead that is being checked
}

// A Target is the state of the commit point, and the base of the next merge.
type Target struct {
	Point string // the commit point; "" before the first merge
	Tip   string // the commit that candidates are built on
	Also  string // people's new commits next to it, which the next candidate includes; "" for none
	Gone  string // why nothing can be merged; "" if something can
}

// A Step is the next thing to do.
type Step struct {
	Do      Action
	Changes []ralph.Change // the changes concerned; just one for a conflict, a refusal or a block
	Reason  string
	Wait    time.Duration // the longest wait, for [Await]
	Working bool          // with [Rest]: a session works on the task that is merged next
}

// NextStep returns the next step. Changes that are verified in their present form are merged at once. Others wait for
// changes ahead that are being checked, and are then verified and merged together. If they are refused, the first half
// is verified, until a single change is at fault.
func NextStep(q Queue) Step {
	switch {
	case q.Waits && len(q.queued())+len(q.moving()) == 0:
		return Step{Do: Rest}
	case q.Waits:
		return Step{Do: Rest, Reason: "waiting for the remote"} // only the remote knows whether a merge was stored
	}
	if moving := q.moving(); len(moving) > 0 {
		from := moving[0].From
		switch {
		case q.Reached:
			return Step{Do: Complete, Changes: moving}
		case q.Elsewhere:
			return Step{Do: Requeue, Changes: moving, Reason: "the machine that built it did not push it"}
		case q.Target.Point == from && q.Paused == "":
			return Step{Do: Move, Changes: moving}
		case q.Target.Point == from:
			return Step{Do: Requeue, Changes: moving, Reason: "it could not be merged"}
		}
		return Step{Do: Requeue, Changes: moving, Reason: "the target has moved meanwhile"}
	}
	half := q.those(func(c ralph.Change) bool { return c.State == ralph.Verifying && !q.Stack.includes(c) })
	next := q.next()
	switch {
	case len(half) > 0:
		return Step{Do: Requeue, Changes: half, Reason: "an earlier run was killed"}
	case len(q.queued()) == 0:
		return Step{Do: Rest}
	case q.Paused != "":
		return Step{Do: Rest, Reason: "merging is paused: " + q.Paused}
	case len(next) == 0:
		return Step{
			Do: Rest, Working: true,
			Reason: fmt.Sprintf("TASK-%d is to be merged alone, and a session is working on it", q.Alone),
		}
	case q.Target.Gone != "":
		return Step{Do: Block, Changes: next[:1], Reason: q.Target.Gone}
	}
	return q.step(next)
}

// step is [NextStep] for the changes that can be merged next.
func (q Queue) step(next []ralph.Change) Step {
	s := q.Stack
	there := func(l Link) bool {
		return slices.ContainsFunc(next, func(c ralph.Change) bool { return c.ID == l.Change.ID })
	}
	switch {
	case s == nil || s.Target != q.Target || slices.ContainsFunc(s.Links, func(l Link) bool { return !there(l) }),
		s.Verified == 0 && !slices.Equal(s.Of, ids(next)):
		return Step{Do: Build, Changes: next}
	case len(s.Links) == 0:
		return Step{Do: SendBack, Changes: next[:1], Reason: "it conflicts with merged work"}
	case s.Verified > 0 && s.Refused == "":
		return Step{Do: Move, Changes: q.first(s.Verified)}
	case s.Verified > 1:
		return Step{Do: Build, Changes: q.first((s.Verified + 1) / 2), Reason: s.Refused}
	case s.Verified == 1:
		return Step{Do: SendBack, Changes: q.first(1), Reason: "merged, it is refused: " + s.Refused}
	}
	if s.Known > 0 {
		return Step{Do: Move, Changes: q.first(s.Known)}
	}
	n, wait := q.free()
	switch {
	case wait > 0:
		return Step{Do: Await, Wait: wait}
	case q.Single:
		n = 1
	}
	return Step{Do: Verify, Changes: q.first(n)}
}

// first returns the changes of the first links, as they are now.
func (q Queue) first(n int) (list []ralph.Change) {
	for _, l := range q.Stack.Links[:n] {
		at := slices.IndexFunc(q.Line, func(c ralph.Change) bool { return c.ID == l.Change.ID })
		list = append(list, q.Line[at])
	}
	return list
}

// free returns how many links may be merged now; for 0, how long they wait for a link ahead that is being checked.
func (q Queue) free() (n int, wait time.Duration) {
	checking := slices.IndexFunc(q.Line, func(c ralph.Change) bool { return c.State == ralph.Checking })
	if checking < 0 || q.Branch {
		return len(q.Stack.Links), 0
	}
	var since time.Time // when the first link after it passed
	for _, l := range q.Stack.Links {
		at := slices.IndexFunc(q.Line, func(c ralph.Change) bool { return c.ID == l.Change.ID })
		if at < checking {
			n++
		} else if passed := l.Change.Updated.Time; since.IsZero() || passed.Before(since) {
			since = passed
		}
	}
	if n > 0 {
		return n, 0
	}
	return len(q.Stack.Links), max(0, since.Add(q.Wait).Sub(q.Now))
}

// after returns [Queue.Most] for the next step.
func (q Queue) after(s Step) int {
	switch {
	case s.Do == Build && q.Stack != nil && q.Stack.Refused != "": // one of the changes is at fault
		return len(s.Changes)
	case s.Do == Move && q.Stack != nil && q.Stack.Left != nil && len(s.Changes) == len(q.Stack.Links):
		return 1 // the changes left out are next; otherwise they would wait while others come
	case s.Do == Move:
		return q.Most / 2 // one of the other changes is at fault
	case s.Do == SendBack: // the other changes may be fine together
		return 0
	}
	return q.Most
}

// those returns the queued changes for which are is true.
func (q Queue) those(are func(ralph.Change) bool) (list []ralph.Change) {
	for _, c := range q.Line {
		if are(c) {
			list = append(list, c)
		}
	}
	return list
}

// moving returns the changes of the first move of the target that has begun.
func (q Queue) moving() (list []ralph.Change) {
	for _, c := range q.those(func(c ralph.Change) bool { return c.State == ralph.Moving }) {
		if n := len(list); n == 0 || !q.Branch && (c.To == list[n-1].To || c.From == list[n-1].To) {
			list = append(list, c)
		}
	}
	return list
}

// queued returns the changes that have passed.
func (q Queue) queued() []ralph.Change {
	return q.those(func(c ralph.Change) bool { return c.State == ralph.Queued || c.State == ralph.Verifying })
}

// next returns the changes to be merged next; none while the task that is merged alone is being worked on.
func (q Queue) next() []ralph.Change {
	queued := q.queued()
	switch {
	case q.Alone != 0:
		return slices.DeleteFunc(queued, func(c ralph.Change) bool { return c.TaskID != q.Alone })
	case q.Branch:
		return queued[:min(1, len(queued))]
	case q.Most > 0:
		return queued[:min(q.Most, len(queued))]
	}
	return queued
}

// includes reports whether the stack was built from a change.
func (s *Stack) includes(c ralph.Change) bool { return s != nil && slices.Contains(s.Of, c.ID) }

// A Verdict is the result of a verification; "" before it.
type Verdict string

// The verdicts.
const (
	Passed  Verdict = "passed"
	Refused Verdict = "refused"
)

// A Trial has everything that the next step of a check depends on.
type Trial struct {
	Conflicts bool // the change conflicts with the target
	Clashes   bool // it conflicts with changes ahead of it
	Behind    bool // its candidate has changes ahead of it
	Lands     bool // those can be merged before it
	Late      bool // no more waiting or verifying

	Verdict Verdict // of its candidate
	Alone   Verdict // of the change alone on the tip
	Known   bool    // the commit below its candidate was verified
	Passed  bool    // it has passed in some form
	Moved   bool    // the target has moved since
}

// Next returns the next step of a check: [Await] for changes ahead, [Verify] (only the change if it clashes or its
// candidate is refused), [Pass], [Refuse], or [SendBack] if the agent should be told of a conflict.
func (t Trial) Next() Action {
	waits := t.Lands && !t.Late
	switch {
	case t.Conflicts, t.Verdict == Refused && !t.Behind && t.Passed && t.Moved:
		return SendBack
	case t.Clashes && waits:
		return Await
	case t.Clashes || t.Verdict == Refused:
		switch {
		case t.Alone == "" && !(t.Passed && t.Late):
			return Verify
		case t.Alone == Refused:
			return Refuse
		case waits && t.Behind:
			return Await
		}
		return Pass
	case t.Verdict == "" && t.Passed && t.Late:
		return Pass
	case t.Verdict == "":
		return Verify
	case t.Behind && !t.Known && waits:
		return Await
	}
	return Pass
}

// Refs are the refs that a target is read from, each a commit id or "".
type Refs struct {
	Point string // the commit point
	Local string // people's branch
	Seen  string // people's branch at the last look
}

// A Stand is the state of a target, including whether people have removed merged commits.
type Stand struct {
	Target
	Rewritten bool // people's branch counts: people removed commits of the commit point from it
}

// gone explains that people's branch does not exist, and how to fix that; last is its last known
// commit, or "".
func gone(branch, last string) string {
	again := ""
	if last != "" {
		again = fmt.Sprintf(": create it again (`git branch %s %s`), or", branch, ralph.ShortID(last))
	}
	return fmt.Sprintf("the branch %s is gone%s set merge.into to the branch with its work", branch, cmp.Or(again, ":"))
}

// Standing derives the state of a target from its refs. Below reports whether a
// commit equals another one or is its ancestor. With a remote, the commit point is
// the remote's branch, and people's local branch does not count until they push it.
func Standing(r Refs, branch string, remote bool, below func(commit, of string) (bool, error)) (s Stand, err error) {
	is := func(commit, of string) bool {
		yes := false
		if err == nil {
			yes, err = below(commit, of)
		}
		return yes
	}
	s.Point = r.Point
	switch {
	case remote && r.Point == "":
		s.Gone = "the remote has no branch " + branch
	case remote:
		s.Tip = r.Point
	case r.Local == "":
		s.Gone = gone(branch, cmp.Or(r.Point, r.Seen))
	case r.Point == "" || is(r.Point, r.Local):
		s.Tip = r.Local
	case r.Seen != "" && !is(r.Seen, r.Local) && (is(r.Point, r.Seen) || is(r.Local, r.Point)):
		// People have seen the merged commits and removed them. Otherwise the commits stay, as during a rebase.
		s.Tip, s.Point, s.Rewritten = r.Local, r.Local, true
	case is(r.Local, r.Point):
		s.Tip = r.Point
	default:
		s.Tip, s.Also = r.Point, r.Local
	}
	return s, err
}
