package report

import (
	"fmt"
	"strings"

	"ralph"
	"ralph/internal/text"
)

// A Group is the only group of a report's figures that counts a task.
type Group string

// The groups, and further subjects of a part of the headline.
const (
	Merged     Group = "merged"       // completed
	Failed     Group = "failed"       // given up
	NeedsYou   Group = "needs_you"    // goes on once a person has decided something
	Undone     Group = "undone"       // undone, cancelled or rejected by a person
	Unfinished Group = "not_finished" // queued, worked on, or waiting for something that needs nobody

	Runs  Group = "runs"
	Tasks Group = "tasks"
	Costs Group = "cost"
)

// GroupOf returns the group that counts a task.
func GroupOf(t ralph.Task) Group {
	switch {
	case t.Status == ralph.Completed:
		return Merged
	case t.Status == ralph.Failed:
		return Failed
	case t.Status == ralph.Cancelled || t.Status == ralph.Rejected:
		return Undone
	case t.Status == ralph.Proposed || t.NeedsPerson():
		return NeedsYou
	}
	return Unfinished
}

// Figures count the tasks of a report, each in one group: the groups add up to Tasks.
type Figures struct {
	Tasks      int `json:"tasks"`
	Merged     int `json:"merged"`
	Failed     int `json:"failed"`
	NeedsYou   int `json:"needs_you"`
	Undone     int `json:"undone_or_cancelled"`
	Unfinished int `json:"not_finished"`
	Sessions   int `json:"sessions"` // sessions that worked on them

	// The proofs of merged tasks add up to Merged.
	Proved       int `json:"proved"`           // by tests that failed before and pass now
	ByCommands   int `json:"by_commands"`      // the change has no tests; the project's commands pass
	Unproved     int `json:"unproved"`         // its tests pass on the old code as well
	Unknown      int `json:"proof_unknown"`    // nobody has looked
	Expectations int `json:"new_expectations"` // merged tasks whose tests expect another behaviour than before
}

// figuresOf counts receipts.
func figuresOf(list []Receipt) (f Figures) {
	f.Tasks = len(list)
	for _, t := range list {
		f.Sessions += t.Sessions
		switch GroupOf(ralph.Task{Status: t.Status, Waits: t.Waits}) {
		case Merged:
			f.Merged++
			f.prove(t.Changed)
		case Failed:
			f.Failed++
		case NeedsYou:
			f.NeedsYou++
		case Undone:
			f.Undone++
		default:
			f.Unfinished++
		}
	}
	return f
}

// prove counts the proofs of a merged task.
func (f *Figures) prove(c Changed) {
	if c.Expects {
		f.Expectations++
	}
	switch p := c.Proof; {
	case p == nil || p.Unknown != "":
		f.Unknown++
	case len(p.Proved) > 0:
		f.Proved++
	case p.Tests || p.Unchecked:
		f.Unproved++
	default:
		f.ByCommands++
	}
}

// A Part is a part of the headline. It may have lists behind it.
type Part struct {
	Text  string
	Group Group // "" for words between the figures
}

// Headline returns the figures of the report in words.
func (r Report) Headline() (parts []Part) {
	say := func(g Group, format string, args ...any) {
		parts = append(parts, Part{fmt.Sprintf(format, args...), g})
	}
	if r.named != "" {
		say("", "%s, ", r.named)
		say(Runs, "%s", text.Count(r.runs, "run"))
		say("", ": ")
	}
	f := r.Figures
	say(Tasks, "%s", text.Count(f.Tasks, "task"))
	if r.named == "" && !r.Since.IsZero() && !r.Until.IsZero() {
		say("", ", %s", text.Span(r.Until.Sub(r.Since.Time).Seconds()))
	}
	say("", ", ")
	say(Costs, "%s", text.Cost(r.CostUSD, r.CostKnown, r.tokens()))
	if r.spending > 0 {
		say("", " and about %s in progress", text.Money(r.spending))
	}
	separator := ": "
	for _, of := range []struct {
		group Group
		n     int
		what  string
	}{
		{Merged, f.Merged, "merged"},
		{Failed, f.Failed, "failed"},
		{NeedsYou, f.NeedsYou, needs(f.NeedsYou)},
		{Undone, f.Undone, "undone or cancelled"},
		{Unfinished, f.Unfinished, "not finished"},
	} {
		if of.n == 0 && (of.group != Merged || f.Tasks == 0) {
			continue
		}
		say("", "%s", separator)
		say(of.group, "%d %s", of.n, of.what)
		if of.group == Merged {
			say("", "%s", f.proofs())
		}
		separator = ", "
	}
	return parts
}

// Outcomes returns the figures in a few words, such as "4 merged, 3 failed, 2 need you"; "" if there are none.
func (r Report) Outcomes() string {
	var parts []string
	for _, p := range r.Headline() {
		if p.Group == Failed || p.Group == NeedsYou || p.Group == Merged && r.Figures.Merged > 0 {
			parts = append(parts, p.Text)
		}
	}
	return strings.Join(parts, ", ")
}

func needs(n int) string {
	if n == 1 {
		return "needs you"
	}
	return "need you"
}

// proofs counts the merged tasks by proof, in parentheses; "" if none has its own tests, or none was proved yet.
func (f Figures) proofs() string {
	if f.Proved+f.Unproved+f.Expectations == 0 {
		return ""
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{f.Proved, "proved"},
		{f.ByCommands, "by your commands alone"},
		{f.Unproved, "unproved"},
		{f.Unknown, "not looked at"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if f.Expectations > 0 {
		parts = append(parts, fmt.Sprintf("%d with changed expectations", f.Expectations))
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// joined returns a headline as text.
func joined(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}
