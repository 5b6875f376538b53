package signals

import (
	"fmt"
	"strings"

	"ralph"
	"ralph/internal/text"
)

// A Step explains how one rule of docs/outcomes.md applied to a session.
type Step struct {
	Rule string `json:"rule"` // "1" to "9", or "told", "stagnation", "attempts", "lost", "result"
	Text string `json:"text"`
}

// Explain explains, in the order of the rules, how the facts led to the decision. It
// decides nothing itself.
func Explain(f Facts, d Decision) []Step {
	e := explanation{f: f, d: d}
	for _, n := range f.Told {
		e.step("told", "%s%s", n.Reply, answers(n.Comment))
	}
	e.closing()
	e.claim()
	e.counters()
	e.waiting()
	e.flags()
	e.learnings()
	e.proposals()
	if d.Stagnant {
		e.step("stagnation", "the session left nothing behind; so many in a row end a run")
	}
	e.step("attempts", "%d before, %d after", f.Task.Attempts, d.Attempts)
	if d.LostCount > f.Task.LostCount {
		e.step("lost", "%d in a row, %d are the limit", d.LostCount, LostLimit)
	}
	for _, u := range f.Unseen {
		e.step("result", "could not be looked at: %s", u)
	}
	if f.CancelledBy != "" {
		e.step("result", "a person cancelled the task meanwhile, which has the last word")
	}
	e.step("result", "%s: %s", d.Status, d.StatusReason)
	return e.steps
}

type explanation struct {
	f     Facts
	d     Decision
	steps []Step
}

func (e *explanation) step(rule, format string, args ...any) {
	e.steps = append(e.steps, Step{Rule: rule, Text: fmt.Sprintf(format, args...)})
}

// answers names the comment that a notice answers.
func answers(comment int64) string {
	if comment == 0 {
		return ""
	}
	return fmt.Sprintf(", about comment %d", comment)
}

// closing explains rule 1.
func (e *explanation) closing() {
	e.step("1", "the session ended as %s%s", e.f.Ending, because(e.f.EndingWhy))
	var verbs []string
	for _, s := range e.f.Said {
		if s.Payload.Verb().Closes() {
			verbs = append(verbs, fmt.Sprintf("%s (comment %d)", s.Payload.Verb(), s.ID))
		}
	}
	switch {
	case (e.f.Void || e.f.Unchecked != "") && len(verbs) > 0:
		e.step("1", "its closing signal does not count: %s", strings.Join(verbs, ", "))
	case e.d.Inferred:
		e.step("1", "no closing verb: stuck is inferred")
	case len(verbs) == 0:
		e.step("1", "no closing verb, and the session is not judged: the task goes back")
	case len(verbs) == 1:
		e.step("1", "closed by %s", verbs[0])
	default:
		e.step("1", "closed by %s, the last one; superseded: %s",
			verbs[len(verbs)-1], strings.Join(verbs[:len(verbs)-1], ", "))
	}
}

// because appends a reason, if there is one.
func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + text.FirstLine(why)
}

// claim explains rule 2.
func (e *explanation) claim() {
	if e.d.Closing != ralph.VerbDone {
		return
	}
	for _, c := range e.f.Verify {
		result := "passes"
		if !c.Passed {
			result = how(c)
		}
		if n := len(c.Excused); n > 0 {
			result += fmt.Sprintf(" (failing as before: %s)", FileList(c.Excused))
		}
		for _, said := range ralph.FlakyOf([]ralph.Check{c}) {
			result += " (" + said + ")"
		}
		e.step("2", "`%s` %s", text.FirstLine(c.Command), result)
	}
	if len(e.f.Verify) == 0 {
		e.step("2", "nothing is configured to check the claim")
	}
	if len(e.f.Protected) > 0 {
		e.step("2", "protected files were changed: %s", FileList(e.f.Protected))
	}
	for _, problem := range Problems(e.f.Evidence) {
		e.step("2", "%s", problem)
	}
	if e.f.nothing() {
		confirmed := "not confirmed"
		if e.f.confirmed() {
			confirmed = "confirmed when asked"
		}
		e.step("2", "the work tree is as it was before the session; %s", confirmed)
	}
	switch {
	case e.d.Approval != nil:
		e.step("2", "the claim waits for approval of %s", asked(*e.d.Approval))
	case e.d.Accepted:
		e.step("2", "the claim is accepted")
	case e.d.SentBack != "":
		e.step("2", "the claim cannot be merged, which is neither an attempt nor a failure: %s; "+
			"its changes were sent back %s",
			e.d.SentBack, text.Count(e.d.TimesSentBack, "time"))
	default:
		e.step("2", "the claim is not accepted; refused %d times so far, %d are the limit",
			e.d.VerifyFailures, e.f.Rules.VerifyFailures)
	}
}

// counters explains rules 3 and 4.
func (e *explanation) counters() {
	was, is, limit := e.f.Task.StuckCount, e.d.StuckCount, e.f.Rules.StuckLimit
	rule := "4"
	if e.d.Closing == ralph.VerbPartial {
		rule = "3"
	}
	switch {
	case is > was && e.d.Closing == ralph.VerbPartial:
		e.step(rule, "nothing changed and nothing new was learned: it counts as stuck, %d of %d", is, limit)
	case is > was:
		e.step(rule, "stuck, %d of %d", is, limit)
	case is < was:
		e.step(rule, "the stuck count returns from %d to %d", was, is)
	case e.d.Closing == ralph.VerbPartial:
		e.step(rule, "progress: the rest of the work goes into the next prompt")
	}
}

// waiting explains rules 5 and 6.
func (e *explanation) waiting() {
	held := map[int64]string{}
	for _, h := range e.d.Holds {
		held[h.Comment] = "holds the task back"
		if h.Why != "" {
			held[h.Comment] += ": " + h.Why
		}
	}
	for _, s := range e.f.Said {
		what := ""
		switch p := s.Payload.(type) {
		case Ask:
			what = "question: " + text.FirstLine(p.Question)
		case Blocked:
			what = "blocked on " + text.FirstLine(p.On)
		default:
			continue
		}
		switch u := e.f.Upstream[s.ID]; {
		case e.d.Accepted:
			e.step("6", "comment %d (%s) is informational beside an accepted done", s.ID, what)
		case held[s.ID] != "":
			e.step("5", "comment %d (%s) %s", s.ID, what, held[s.ID])
		case s.Payload.Verb() == ralph.VerbAsk:
			e.step("6", "comment %d (%s) holds nothing back", s.ID, what)
		case u.Completed:
			e.step("5", "comment %d (%s): that task has completed already", s.ID, what)
		default:
			e.step("5", "comment %d (%s): the task depends on %s from now on", s.ID, what, ralph.TaskNames(u.Matches, ", "))
		}
	}
	if e.d.Accepted {
		return
	}
	if w := e.f.Waits; w.Status() != ralph.Pending {
		e.step("5", "open from before: %d questions, %d blockers, %d dependencies", w.Questions, w.Blockers, len(w.Tasks))
	}
}

// flags explains rule 7.
func (e *explanation) flags() {
	where := map[string]string{
		"info":     "goes into the task's next prompt",
		"warning":  "is shown to people and goes into the feature's prompts",
		"blocking": "is announced and comes first in the next prompt",
	}
	for _, s := range e.f.Said {
		if p, ok := s.Payload.(Flag); ok {
			e.step("7", "comment %d (%s: %s) %s", s.ID, p.Severity, text.FirstLine(p.What), where[p.Severity])
		}
	}
}

// learnings explains rule 8.
func (e *explanation) learnings() {
	for _, l := range e.d.Learn {
		if l.Into == 0 {
			whom := "the " + l.Scope
			if l.Scope == ralph.ScopeFeature && e.f.Task.Feature == "" {
				whom = "the tasks without a feature"
			}
			e.step("8", "new learning for %s: %s", whom, text.FirstLine(l.Text))
			continue
		}
		e.step("8", "repeats learning %d, which counts for more now", l.Into)
	}
}

// proposals explains rule 9.
func (e *explanation) proposals() {
	proposed := map[int64]Proposal{}
	for _, p := range e.d.Propose {
		proposed[p.Comment] = p
	}
	for _, s := range e.f.Said {
		p, ok := s.Payload.(Suggest)
		if !ok {
			continue
		}
		task, ok := proposed[s.ID]
		switch {
		case ok && task.Status == ralph.Pending:
			e.step("9", "comment %d: the task %q enters the queue at once", s.ID, task.Title)
		case ok:
			e.step("9", "comment %d: the task %q waits for approval", s.ID, task.Title)
		case p.Kind == "new_task":
			e.step("9", "comment %d: an open task has the title %q already", s.ID, ProposedTitle(p))
		default:
			e.step("9", "comment %d (%s) is kept for people to decide", s.ID, p.Kind)
		}
	}
}
