package signals

import (
	"fmt"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/text"
)

// The values of [Rules.Lost] and [Rules.TestsChanged].
const (
	PolicyAsk    = "ask"    // a person decides
	PolicyRefuse = "refuse" // it refuses the done, whatever the reason
	PolicyNote   = "note"   // it is noted
	PolicyReview = "review" // an agent is asked whether the task requires it, and a person unless it agrees
)

// policy returns the effect of a weakening.
func (r Rules) policy(w ralph.Weakening, g ralph.Gate) string {
	switch {
	case w.Kind != ralph.TestChanged:
		return r.Lost
	case w.Unseen, r.TestsChanged == PolicyReview && g.Asks == ralph.AsksYes:
		return PolicyNote
	}
	return r.TestsChanged
}

// Asks reports whether a reviewer must tell if the task requires the changed tests.
func (r Rules) Asks(g ralph.Gate) bool {
	return slices.ContainsFunc(g.Weakened, func(w ralph.Weakening) bool { return r.policy(w, g) == PolicyReview })
}

// Weakened explains why weakened tests refuse a done; "" if there are none, or if a reason for them is accepted.
func Weakened(g ralph.Gate, r Rules) string {
	if g.Refused != "" {
		return g.Refused
	}
	if list := g.Trial.Neutralised; len(list) > 0 {
		return fmt.Sprintf("what %s (%s) can be changed without %s",
			one(len(list), "a test expects", "tests expect"), FileList(list), one(len(list), "it failing", "them failing"))
	}
	var refused, unsaid []string
	for _, w := range g.Weakened {
		switch r.policy(w, g) {
		case PolicyRefuse:
			refused = append(refused, w.Name())
		case PolicyNote:
		default:
			if g.Reason == "" {
				unsaid = append(unsaid, w.Name())
			}
		}
	}
	switch {
	case len(refused) > 0:
		return "tests that pass on the target are lost or loosened (" + FileList(refused) + ")"
	case len(unsaid) > 0:
		return "tests that pass on the target refuse it as they were, and no reason is given (" + FileList(unsaid) + ")"
	case g.Unproved && g.Reason == "":
		return "no test of its own fails on the code as it was before, and no reason is given (verify.proof)"
	}
	return ""
}

// approval lists the parts of an accepted done that a person has to approve before the merge.
func approval(f Facts, done Done) (r ralph.Approval) {
	g := f.Evidence.Gate
	r.Change, r.Reason, r.Guarded, r.Protected, r.Unchanged = f.Head, g.Reason, g.Guarded, f.Protected, g.Unchanged
	if g.Unchanged {
		r.Reason = done.Summary
	}
	r.Depends = g.Depends
	if f.Rules.Scope != PolicyNote {
		r.Scope, r.Outside = g.Scope, g.Outside
	}
	for _, w := range g.Weakened {
		if f.Rules.policy(w, g) != PolicyNote {
			r.Weakened = append(r.Weakened, w)
		}
	}
	if len(r.Weakened) > 0 {
		r.Files, r.Says = g.Files, g.Says
	}
	r = r.Without(f.Approvals)
	for _, seen := range f.Evidence.Reviews {
		switch {
		case seen.None != "":
			r.Unreviewed = append(r.Unreviewed, seen)
		case len(seen.Blocking()) > 0:
			r.Objected, r.Summary = append(r.Objected, seen), done.Summary
		}
	}
	return r
}

// asked lists the parts that a person has to approve, for a status.
func asked(r ralph.Approval) string {
	var list []string
	add := func(what string, names []string) {
		if len(names) > 0 {
			list = append(list, what+" ("+FileList(names)+")")
		}
	}
	add("changed tests", weakenings(r.Weakened))
	add("changed protected files", r.Protected)
	var guarded []string
	for _, b := range r.Guarded {
		guarded = append(guarded, b.Path)
	}
	add("guarded files", guarded)
	var outside []string
	for _, b := range r.Outside {
		outside = append(outside, b.Path)
	}
	add("files outside of the task's", outside)
	if r.Unchanged {
		list = append(list, "an empty change, whose checks passed before")
	}
	for _, seen := range r.Objected {
		list = append(list, fmt.Sprintf("a reviewer's open objections (%s)", seen))
	}
	for _, seen := range r.Unreviewed {
		list = append(list, fmt.Sprintf("a change that was not reviewed (%s)", seen))
	}
	return strings.Join(list, ", ")
}

// weakenings names weakenings with their kinds.
func weakenings(list []ralph.Weakening) (names []string) {
	for _, kind := range []ralph.WeakeningKind{ralph.TestLost, ralph.TestLoosened, ralph.TestChanged} {
		for _, w := range list {
			if w.Kind != kind {
				continue
			}
			name := w.Name() + " " + string(kind)
			if w.Unseen && kind == ralph.TestChanged {
				name += ", written for the same feature"
			}
			names = append(names, name)
		}
	}
	return names
}

// gateNotes returns the remarks on a gate in the reason of an accepted done.
func gateNotes(g ralph.Gate) (list []string) {
	if len(g.Weakened) > 0 {
		said := "tests: " + FileList(weakenings(g.Weakened))
		if g.Asks == ralph.AsksYes {
			said += "; " + g.Says
		}
		list = append(list, said)
	}
	if len(g.Allowed) > 0 {
		list = append(list, "tests, as the task allows: "+FileList(weakenings(g.Allowed)))
	}
	if g.Tried && len(g.Weakened)+len(g.Allowed) == 0 {
		list = append(list, "also passes the old tests")
	}
	if n := g.Trial.Silent; n > 0 {
		list = append(list, fmt.Sprintf("%d of %s %s no literal expectation", n, text.Count(g.Trial.Tests, "test"),
			one(n, "states", "state")))
	}
	if len(g.Trial.Fewer) > 0 {
		list = append(list, "fewer expectations: "+FileList(g.Trial.Fewer))
	}
	if g.Trial.Unknown != "" {
		list = append(list, "not tried with other expectations: "+g.Trial.Unknown)
	}
	for _, d := range g.Depends[:min(len(g.Depends), filesNamed)] {
		list = append(list, text.Line(d.String(), whyWidth))
	}
	if n := len(g.Depends) - filesNamed; n > 0 {
		list = append(list, fmt.Sprintf("%d more changed %s", n, one(n, "dependency", "dependencies")))
	}
	if len(g.Outside) > 0 {
		list = append(list, ralph.Beyond(g.Outside, g.Scope))
	}
	for _, command := range g.Idle {
		list = append(list, "`"+text.FirstLine(command)+"` passed before any work: it proves nothing")
	}
	if g.Unproved {
		list = append(list, "no test proves it")
	}
	if g.Unknown != "" {
		list = append(list, "not compared with the old tests: "+g.Unknown)
	}
	return list
}

// OpenFlags returns the unanswered blocking flags at a done: those of the task's earlier sessions, and those of the
// session unless the done answers them.
func OpenFlags(said []Said, earlier []int64, done Done) []int64 {
	open := slices.Clone(earlier)
	if done.FlagsAnswered != "" {
		return open
	}
	for _, s := range said {
		if flag, ok := s.Payload.(Flag); ok && flag.Severity == "blocking" && !s.Resolved {
			open = append(open, s.ID)
		}
	}
	return open
}

// flagged explains why a done with open flags is not accepted.
func flagged(open []int64) string {
	names := make([]string, len(open))
	for i, id := range open {
		names[i] = fmt.Sprintf("C%d", id)
	}
	return "done beside " + one(len(open), "a blocking flag", text.Count(len(open), "blocking flag")) +
		" that nobody has answered: " + FileList(names)
}
