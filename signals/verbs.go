// Package signals is what agents say and what follows from it: the payloads of
// the eight verbs, and Decide, the one function that judges a session.
//
// It is pure: it never reads a clock, a file or a database. What it is given it
// checks; what it returns is data that others apply. No input makes it panic.
package signals

import (
	"fmt"
	"slices"
	"strings"

	"ralph"
)

// A Payload is what one signal carries: one of [Done], [Partial], [Stuck],
// [Ask], [Flag], [Learned], [Suggest] and [Blocked]. The descriptions in their
// tags are what an agent reads of them.
type Payload interface {
	// Verb is the signal's verb.
	Verb() ralph.Verb
	// Body is the signal as Markdown for people (signals, "body text").
	Body() string
	// Check reports the first field that is missing, blank, too long, or not one of
	// the accepted values, as a [ralph.FieldError].
	Check() error
}

// Accepted values of the fields that have a fixed set.
var (
	Severities   = []string{"info", "warning", "blocking"}
	Categories   = []string{"bug", "stale", "contradiction", "ambiguity", "overlap", "performance", "security", "incomplete_prior"}
	LearnedKinds = []string{"discovery", "decision", "convention"}
	Scopes       = []string{ralph.ScopeProject, ralph.ScopeFeature, ralph.ScopeTask}
	SuggestKinds = []string{"new_task", "split", "refactor", "alternative", "deprecate"}
	BlockedKinds = []string{"upstream_task", "external"}
)

// maxOptions bounds the options of an ask; more is no question any more.
const maxOptions = 20

// Done says that the task is complete. It is a claim, and ralph checks it.
type Done struct {
	Summary string `json:"summary" jsonschema:"What was accomplished. Include key decisions and outcomes."`
}

// Partial says that there was progress and that more is to be done.
type Partial struct {
	Summary   string `json:"summary" jsonschema:"What was accomplished so far."`
	Remaining string `json:"remaining" jsonschema:"What still needs to be done and why you stopped. Be specific."`
}

// Stuck says that no meaningful progress is possible.
type Stuck struct {
	Reason string `json:"reason" jsonschema:"Why you're stuck. Be specific about what's blocking your ability to work."`
}

// Ask is a question to a person.
type Ask struct {
	Question  string   `json:"question" jsonschema:"The specific question you need answered."`
	Options   []string `json:"options,omitempty" jsonschema:"If you've identified possible answers, list them."`
	Preferred string   `json:"preferred,omitempty" jsonschema:"If you have a recommendation, state it."`
	Blocking  *bool    `json:"blocking" jsonschema:"True if you cannot proceed without the answer. False if nice-to-know but you can continue with your best judgment."`
}

// IsBlocking reports whether the task cannot go on without the answer.
func (a Ask) IsBlocking() bool { return a.Blocking != nil && *a.Blocking }

// Flag is a problem that was found.
type Flag struct {
	What     string `json:"what" jsonschema:"Clear description of the problem."`
	Severity string `json:"severity" jsonschema:"info (FYI, no action needed now), warning (should be addressed, doesn't block this task), blocking (this task can't be fully completed because of this)."`
	Category string `json:"category" jsonschema:"What sort of problem it is."`
}

// Learned is knowledge for later tasks.
type Learned struct {
	Text      string `json:"text" jsonschema:"The knowledge to record. Should be specific enough that a different developer on a different task would benefit from it."`
	Kind      string `json:"kind" jsonschema:"discovery (factual finding about the codebase), decision (judgment call with rationale), convention (project pattern to follow)."`
	Rationale string `json:"rationale,omitempty" jsonschema:"For decisions: why you chose this approach and what alternatives you rejected."`
	Scope     string `json:"scope,omitempty" jsonschema:"project (always relevant), feature (relevant to same feature's tasks), task (only relevant if this task is re-attempted). Default: feature. Tasks without a feature count as one."`
}

// EffectiveScope is the scope, with its default.
func (l Learned) EffectiveScope() string {
	if l.Scope == "" {
		return ralph.ScopeFeature
	}
	return l.Scope
}

// Suggest is something that should be done outside the task.
type Suggest struct {
	What    string `json:"what" jsonschema:"What should be done. The first line becomes the title of a new task."`
	Kind    string `json:"kind" jsonschema:"new_task (ralph proposes it to a person as a task), split, refactor, alternative or deprecate."`
	Why     string `json:"why" jsonschema:"Why this is needed."`
	Feature string `json:"feature,omitempty" jsonschema:"Which feature this relates to (for new_task suggestions)."`
}

// Blocked is something outside the agent's control that is missing or broken.
type Blocked struct {
	On     string `json:"on" jsonschema:"What is blocking you. For an upstream task: its number (#12) or its exact title."`
	Kind   string `json:"kind" jsonschema:"upstream_task (dependency on another task that's incomplete) or external (credentials, services, human decisions, infrastructure)."`
	Detail string `json:"detail,omitempty" jsonschema:"Additional context about the blocker."`
}

// Verb implements [Payload].
func (Done) Verb() ralph.Verb { return ralph.VerbDone }

// Verb implements [Payload].
func (Partial) Verb() ralph.Verb { return ralph.VerbPartial }

// Verb implements [Payload].
func (Stuck) Verb() ralph.Verb { return ralph.VerbStuck }

// Verb implements [Payload].
func (Ask) Verb() ralph.Verb { return ralph.VerbAsk }

// Verb implements [Payload].
func (Flag) Verb() ralph.Verb { return ralph.VerbFlag }

// Verb implements [Payload].
func (Learned) Verb() ralph.Verb { return ralph.VerbLearned }

// Verb implements [Payload].
func (Suggest) Verb() ralph.Verb { return ralph.VerbSuggest }

// Verb implements [Payload].
func (Blocked) Verb() ralph.Verb { return ralph.VerbBlocked }

// Body implements [Payload].
func (d Done) Body() string { return "✓ **Done:** " + d.Summary }

// Body implements [Payload].
func (p Partial) Body() string {
	return "⊙ **Partial:** " + p.Summary + "\n\n**Remaining:** " + p.Remaining
}

// Body implements [Payload].
func (s Stuck) Body() string { return "⚠ **Stuck:** " + s.Reason }

// Body implements [Payload].
func (a Ask) Body() string {
	kind := "non-blocking"
	if a.IsBlocking() {
		kind = "blocking"
	}
	body := fmt.Sprintf("❓ **Ask (%s):** %s", kind, a.Question) + part("Preferred", a.Preferred)
	if len(a.Options) > 0 {
		body += "\n\n**Options:**\n- " + strings.Join(a.Options, "\n- ")
	}
	return body
}

// Body implements [Payload].
func (f Flag) Body() string {
	return fmt.Sprintf("🚩 **Flag (%s):** %s\n\n**Category:** %s", f.Severity, f.What, f.Category)
}

// Body implements [Payload].
func (l Learned) Body() string {
	return fmt.Sprintf("💡 **Learned (%s):** %s", l.Kind, l.Text) + part("Rationale", l.Rationale) + part("Scope", l.Scope)
}

// Body implements [Payload].
func (s Suggest) Body() string {
	return fmt.Sprintf("💭 **Suggest (%s):** %s\n\n**Why:** %s", s.Kind, s.What, s.Why) + part("Feature", s.Feature)
}

// Body implements [Payload].
func (b Blocked) Body() string {
	return fmt.Sprintf("🚫 **Blocked (%s):** %s", b.Kind, b.On) + part("Detail", b.Detail)
}

// part is a paragraph of a body that is only there if the field was given.
func part(name, text string) string {
	if text == "" {
		return ""
	}
	return "\n\n**" + name + ":** " + text
}

// Check implements [Payload].
func (d Done) Check() error { return ralph.CheckText("summary", d.Summary, true) }

// Check implements [Payload].
func (p Partial) Check() error {
	return first(ralph.CheckText("summary", p.Summary, true), ralph.CheckText("remaining", p.Remaining, true))
}

// Check implements [Payload].
func (s Stuck) Check() error { return ralph.CheckText("reason", s.Reason, true) }

// Check implements [Payload].
func (a Ask) Check() error {
	if err := ralph.CheckText("question", a.Question, true); err != nil {
		return err
	}
	if a.Blocking == nil {
		return &ralph.FieldError{Field: "blocking", Problem: "is required", Accepted: []string{"true", "false"}}
	}
	if len(a.Options) > maxOptions {
		return &ralph.FieldError{Field: "options", Problem: fmt.Sprintf("has more than %d entries", maxOptions)}
	}
	total := 0
	for i, o := range a.Options {
		if err := ralph.CheckText(fmt.Sprintf("options[%d]", i), o, true); err != nil {
			return err
		}
		total += len(o)
	}
	if total > ralph.MaxText {
		return &ralph.FieldError{Field: "options", Problem: fmt.Sprintf("are longer than %d KiB together", ralph.MaxText>>10)}
	}
	return ralph.CheckText("preferred", a.Preferred, false)
}

// Check implements [Payload].
func (f Flag) Check() error {
	return first(ralph.CheckText("what", f.What, true), oneOf("severity", f.Severity, Severities), oneOf("category", f.Category, Categories))
}

// Check implements [Payload].
func (l Learned) Check() error {
	if err := first(ralph.CheckText("text", l.Text, true), oneOf("kind", l.Kind, LearnedKinds), ralph.CheckText("rationale", l.Rationale, false)); err != nil || l.Scope == "" {
		return err
	}
	return oneOf("scope", l.Scope, Scopes)
}

// Check implements [Payload].
func (s Suggest) Check() error {
	return first(ralph.CheckText("what", s.What, true), oneOf("kind", s.Kind, SuggestKinds),
		ralph.CheckText("why", s.Why, true), ralph.CheckText("feature", s.Feature, false))
}

// Check implements [Payload].
func (b Blocked) Check() error {
	return first(ralph.CheckText("on", b.On, true), oneOf("kind", b.Kind, BlockedKinds), ralph.CheckText("detail", b.Detail, false))
}

// oneOf reports a value that is not accepted.
func oneOf(field, value string, accepted []string) error {
	switch {
	case slices.Contains(accepted, value):
		return nil
	case value == "":
		return &ralph.FieldError{Field: field, Problem: "is required", Accepted: accepted}
	}
	return &ralph.FieldError{Field: field, Problem: "is not one of the accepted values", Accepted: accepted}
}

// first is the first error of several.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
