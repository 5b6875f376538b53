package ralph

import (
	"fmt"
	"strings"

	"ralph/internal/text"
)

// A Role is the purpose of a session.
type Role string

// The roles of sessions.
const (
	RoleWork   Role = "work"   // on a task
	RoleReview Role = "review" // it reviews another session's change (docs/review.md)
	RolePlan   Role = "plan"   // it turns an idea into tasks (docs/howto/plan.md)
	RoleUndo   Role = "undo"   // a person's undo, merged like a session's change
)

// Works reports whether sessions of the role work on their task, so that they count as attempts.
func (r Role) Works() bool { return r != RoleReview && r != RoleUndo }

// NoReview replaces an agent's name in a task that no agent should review.
const NoReview = "none"

// Tools of a session that reviews, as ralph names them.
const (
	ObjectTool  = "review.object"
	ApproveTool = "review.approve"
	TestsTool   = "review.tests" // whether the task asks for the changed tests
)

// Severities of objections.
const (
	ObjectionBlocking = "blocking" // the change must not be merged like this
	ObjectionRemark   = "remark"   // people may want to know it
)

// An Objection is a reviewer's complaint about a line of a change.
type Objection struct {
	File     string `json:"file"`           // relative to the project
	Line     int    `json:"line,omitempty"` // as the change leaves the file, from 1; 0 is the file as a whole
	What     string `json:"what"`
	Why      string `json:"why"`
	Severity string `json:"severity"` // [ObjectionBlocking] or [ObjectionRemark]
}

// At returns the place of the objection: "a.go:12".
func (o Objection) At() string {
	if o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// The answers to the question whether a task asks for changed tests.
const (
	AsksYes    = "yes"
	AsksNo     = "no"
	AsksUnsure = "unsure"
)

// A Review is the result of an agent's review of a change, in a separate conversation.
type Review struct {
	Session string `json:"session"`
	Agent   string `json:"agent"`
	Model   string `json:"model,omitempty"`
	For     string `json:"for"`               // the configured reviewer: an agent, with its model after a slash
	Same    bool   `json:"same,omitempty"`    // it has the model of the author
	Tree    string `json:"tree"`              // tree of the candidate
	None    string `json:"none,omitempty"`    // why the review does not count; "" if it does
	Before  string `json:"before,omitempty"`  // why an earlier conversation of the same reviewer did not count
	Checked string `json:"checked,omitempty"` // the checks that an approving reviewer reports

	Objections []Objection `json:"objections,omitempty"`
	Asks       string      `json:"asks,omitempty"` // whether the task asks for the changed tests; "" if nobody asked
	AsksWhy    string      `json:"asks_why,omitempty"`
	Wrote      bool        `json:"wrote,omitempty"` // it changed files of its workspace, which was thrown away

	// refused attempts of other programs than the reviewer to use its tools
	Strangers int `json:"strangers,omitempty"`
}

// By names the reviewer, with its model.
func (r Review) By() string {
	var more []string
	if r.Model != "" {
		more = append(more, r.Model)
	}
	if r.Same {
		more = append(more, "the author's model too")
	}
	if wanted, _, _ := strings.Cut(r.For, "/"); wanted != r.Agent && wanted != "" {
		more = append(more, "in place of "+wanted)
	}
	if len(more) == 0 {
		return r.Agent
	}
	return r.Agent + " (" + strings.Join(more, ", ") + ")"
}

// Blocking returns the objections that prevent the merge.
func (r Review) Blocking() (list []Objection) { return r.with(ObjectionBlocking) }

// Remarks returns the other objections.
func (r Review) Remarks() (list []Objection) { return r.with(ObjectionRemark) }

func (r Review) with(severity string) (list []Objection) {
	for _, o := range r.Objections {
		if o.Severity == severity {
			list = append(list, o)
		}
	}
	return list
}

// Answer tells whether the task requires the changed tests, on one line; "" if nobody asked.
func (r Review) Answer() string {
	why := text.VisibleLine(r.AsksWhy)
	switch r.Asks {
	case AsksYes:
		return r.By() + " says that the task asks for the changed tests: " + why
	case AsksNo:
		return r.By() + " says that the task does not ask for the changed tests: " + why
	case AsksUnsure:
		return r.By() + " is unsure whether the task asks for the changed tests: " + why
	}
	return ""
}

// String describes the result in a sentence on one line, so that no reviewer can imitate ralph's own lines.
func (r Review) String() string { return text.VisibleLine(r.said()) }

func (r Review) said() string {
	said := "approved by " + r.By() + ": " + r.Checked
	blocking := r.Blocking()
	switch {
	case r.None == "" && r.Asks != "" && r.Checked == "" && len(blocking) == 0:
		said = r.Answer()
	case r.None != "":
		said = "no review by " + r.By() + ": " + r.None
	case len(blocking) > 0:
		at := make([]string, len(blocking))
		for i, o := range blocking {
			at[i] = o.At() + ": " + o.What
		}
		said = r.By() + " objects: " + strings.Join(at, "; ")
	}
	switch {
	case r.Before == "":
	case r.Before == r.None:
		said += " (twice)"
	default:
		said += " (in its second conversation; the first was not a review: " + r.Before + ")"
	}
	if r.Wrote {
		said += " (it changed files, which were thrown away)"
	}
	if r.Strangers > 0 {
		said += " (" + StrangersRefused(r.Strangers) + ")"
	}
	return said
}

// StrangersRefused tells how often ralph's tools were refused to programs that are not the agent; n
// is at least 1.
func StrangersRefused(n int) string {
	return text.Count(n, "attempt") + " of other programs to speak as the agent refused"
}

// BothSides returns, in Markdown, the reviews in full and then the author's summary. None of their lines reads as
// ralph's own.
func BothSides(reviews []Review, summary string) string {
	var b strings.Builder
	for _, r := range reviews {
		blocking := r.Blocking()
		if r.None != "" || len(blocking) == 0 {
			b.WriteString("\n" + r.String() + "\n")
			continue
		}
		b.WriteString("\n" + r.By() + " objects:\n")
		for _, o := range blocking {
			fmt.Fprintf(&b, "- `%s`: %s (%s)\n", text.VisibleLine(o.At()), Quoted(o.What, "  "), Quoted(o.Why, "  "))
		}
	}
	if summary != "" {
		b.WriteString("\nThe author says: " + Quoted(summary, "") + "\n")
	}
	return strings.Trim(b.String(), "\n")
}

// Quoted returns an agent's complete words for a sentence of Markdown. Further lines are indented as a
// quotation, so that none reads as ralph's own.
func Quoted(said, indent string) string {
	return strings.ReplaceAll(text.Visible(strings.TrimSpace(said)), "\n", "\n"+indent+"> ")
}
