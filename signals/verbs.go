// Package signals defines the agents' signals and their effects: the payloads of the verbs, and Decide, the one
// function that judges a session.
//
// It is pure: it never reads a clock, a file or a database. It checks its input, and returns data for others to apply.
// No input makes it panic.
package signals

import (
	"fmt"
	"slices"
	"strings"

	"ralph"
)

// A Payload is the content of one signal: [Done], [Partial], [Stuck], [Ask], [Flag],
// [Learned], [Suggest] or [Blocked]. [Verbs] describes their fields to agents.
type Payload interface {
	// Verb returns the signal's verb.
	Verb() ralph.Verb
	// Body returns the signal as Markdown for people (signals, "body text").
	Body() string
	// Check returns a [ralph.FieldError] for the first field that is missing,
	// blank, too long, or not one of the accepted values.
	Check() error
}

// Accepted values of the fields that have a fixed set.
var (
	Severities = []string{"info", "warning", "blocking"}
	Categories = []string{
		"bug", "stale", "contradiction", "ambiguity",
		"overlap", "performance", "security", "incomplete_prior",
	}
	LearnedKinds = []string{"discovery", "decision", "convention"}
	Scopes       = []string{ralph.ScopeProject, ralph.ScopeFeature, ralph.ScopeTask}
	SuggestKinds = []string{"new_task", "split", "refactor", "alternative", "deprecate"}
	BlockedKinds = []string{"upstream_task", "external"}
)

// A Known is the description of a verb for agents.
type Known struct {
	Payload  Payload             // the type of its calls
	Tool     string              // the description of its tool
	When     string              // when to use it, as prompts say (docs, "Signals")
	Fields   map[string]string   // meaning of each field of its payload
	Accepted map[string][]string // the values of fields that have a fixed set
}

// Verbs is the frozen interface, closing verbs first. Parsing, checks,
// tools and prompts are all based on it.
var Verbs = []Known{
	{
		Payload: Done{},
		Tool: "Signal that the task is fully complete and tested. " +
			"It closes the session; ralph then checks the claim by running the verification. " +
			"Call exactly one of done, partial and stuck, as the last thing you do.",
		When: "the task is finished: every acceptance criterion is met and you have seen it work. " +
			"`summary`: what was accomplished, with key decisions and outcomes.",
		Fields: map[string]string{
			"summary": "What was accomplished. Include key decisions and outcomes.",
			"tests_changed": "Why the task asks for tests that were there to be removed, or to expect something else: " +
				"the task's own words. ralph runs the tests as they were, and a person reads this.",
			"flags_answered": "If you raised blocking flags: how each was mended, or why it does not hold.",
		},
	},
	{
		Payload: Partial{},
		Tool: "Signal that progress was made but the task couldn't be fully completed. " +
			"The remaining work will be picked up in a future session. It closes the session.",
		When: "there is real progress and something is left, " +
			"or you need an answer or another's work before you can go on. " +
			"`remaining`: what is left and why you stopped, precise enough for a session that knows nothing but your words.",
		Fields: map[string]string{
			"summary":   "What was accomplished so far.",
			"remaining": "What still needs to be done and why you stopped. Be specific.",
		},
	},
	{
		Payload: Stuck{},
		Tool:    "Signal that you cannot make meaningful progress on this task. It closes the session.",
		When: "you cannot make meaningful progress. `reason`: what you tried, and what exactly is in the way. " +
			"A task that should not be done at all, since it is obsolete or impossible, is stuck too.",
		Fields: map[string]string{
			"reason": "Why you're stuck. Be specific about what's blocking your ability to work.",
		},
	},
	{
		Payload: Ask{},
		Tool: "Ask a question that you need answered to do this task well. " +
			"If `blocking: true`, you should also call `partial` to pause the task until the question is answered. " +
			"Nobody answers during this session.",
		When: "you need to know something from a person to do the task well. " +
			"`blocking: true` if you cannot go on without the answer: then also close with `partial`. " +
			"Else choose what is most sensible, say what you chose in `preferred`, and go on.",
		Fields: map[string]string{
			"question":  "The specific question you need answered.",
			"options":   "If you've identified possible answers, list them.",
			"preferred": "If you have a recommendation, state it.",
			"blocking": "True if you cannot proceed without the answer. " +
				"False if nice-to-know but you can continue with your best judgment.",
		},
	},
	{
		Payload: Flag{},
		Tool:    "Report a problem you discovered during this task.",
		When: "you found a problem: a bug, a contradiction, a security hole, something stale or left undone. " +
			"`info` is good to know, `warning` should be seen to, `blocking` keeps this task from being completed.",
		Fields: map[string]string{
			"what": "Clear description of the problem.",
			"severity": "info (FYI, no action needed now), warning (should be addressed, " +
				"doesn't block this task), blocking (this task can't be fully completed because of this).",
			"category": "What sort of problem it is.",
		},
		Accepted: map[string][]string{"severity": Severities, "category": Categories},
	},
	{
		Payload: Learned{},
		Tool:    "Record knowledge that will be useful for future tasks on this project.",
		When: "you found out, decided or noticed a convention that would help someone else on another task. " +
			"For a decision say why in `rationale`. " +
			"`scope: project` if it holds for every task of the project; " +
			"else it reaches the tasks of this feature (without a feature: the others that have none). " +
			"Not what you did: that is the summary's.",
		Fields: map[string]string{
			"text": "The knowledge to record. Should be specific enough " +
				"that a different developer on a different task would benefit from it.",
			"kind": "discovery (factual finding about the codebase), " +
				"decision (judgment call with rationale), convention (project pattern to follow).",
			"rationale": "For decisions: why you chose this approach and what alternatives you rejected.",
			"scope": "project (always relevant), feature (relevant to same feature's tasks), " +
				"task (only relevant if this task is re-attempted). " +
				"Default: feature. Tasks without a feature count as one.",
		},
		Accepted: map[string][]string{"kind": LearnedKinds, "scope": Scopes},
	},
	{
		Payload: Suggest{},
		Tool:    "Recommend an action that should be taken but is outside the scope of your current task.",
		When: "something should be done that is not part of your task: " +
			"a new task, a split, a refactoring, an alternative. " +
			"Signal it instead of doing it.",
		Fields: map[string]string{
			"what":    "What should be done. The first line becomes the title of a new task.",
			"kind":    "new_task (ralph proposes it to a person as a task), split, refactor, alternative or deprecate.",
			"why":     "Why this is needed.",
			"feature": "Which feature this relates to (for new_task suggestions).",
		},
		Accepted: map[string][]string{"kind": SuggestKinds},
	},
	{
		Payload: Blocked{},
		Tool: "Report that you cannot complete part of your task " +
			"because something outside your control is missing or broken. Then call partial or stuck.",
		When: "something out of your hands is missing: " +
			"another task's work (`upstream_task`; name it as TASK-12 or by its title) " +
			"or credentials, a service, infrastructure (`external`). " +
			"Do what is possible without it, then close with `partial` or `stuck`.",
		Fields: map[string]string{
			"on": "What is blocking you. For an upstream task: its number (#12) or its exact title.",
			"kind": "upstream_task (dependency on another task that's incomplete) " +
				"or external (credentials, services, human decisions, infrastructure).",
			"detail": "Additional context about the blocker.",
		},
		Accepted: map[string][]string{"kind": BlockedKinds},
	},
}

// maxOptions is the maximum number of options of an ask.
const maxOptions = 20

// Done claims that the task is complete. ralph checks it.
type Done struct {
	Summary       string `json:"summary"`
	TestsChanged  string `json:"tests_changed,omitempty"`
	FlagsAnswered string `json:"flags_answered,omitempty"`
}

// Partial means that there was progress and that work remains.
type Partial struct {
	Summary   string `json:"summary"`
	Remaining string `json:"remaining"`
}

// Stuck means that no meaningful progress is possible.
type Stuck struct {
	Reason string `json:"reason"`
}

// Ask is a question to a person.
type Ask struct {
	Question  string   `json:"question"`
	Options   []string `json:"options,omitempty"`
	Preferred string   `json:"preferred,omitempty"`
	Blocking  *bool    `json:"blocking"`
}

// IsBlocking reports whether the task cannot continue without the answer.
func (a Ask) IsBlocking() bool { return a.Blocking != nil && *a.Blocking }

// Flag reports a problem.
type Flag struct {
	What     string `json:"what"`
	Severity string `json:"severity"`
	Category string `json:"category"`
}

// Learned is knowledge for later tasks.
type Learned struct {
	Text      string `json:"text"`
	Kind      string `json:"kind"`
	Rationale string `json:"rationale,omitempty"`
	Scope     string `json:"scope,omitempty"`
}

// EffectiveScope returns the scope, or the default if none was given.
func (l Learned) EffectiveScope() string {
	if l.Scope == "" {
		return ralph.ScopeFeature
	}
	return l.Scope
}

// Suggest is something outside the task that should be done.
type Suggest struct {
	What    string `json:"what"`
	Kind    string `json:"kind"`
	Why     string `json:"why"`
	Feature string `json:"feature,omitempty"`
}

// Blocked reports something outside the agent's control that is missing or broken.
type Blocked struct {
	On     string `json:"on"`
	Kind   string `json:"kind"`
	Detail string `json:"detail,omitempty"`
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
func (d Done) Body() string {
	return "✓ **Done:** " + d.Summary + part("Tests changed", d.TestsChanged) + part("Flags answered", d.FlagsAnswered)
}

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
	return fmt.Sprintf("💡 **Learned (%s):** %s", l.Kind, l.Text) +
		part("Rationale", l.Rationale) + part("Scope", l.Scope)
}

// Body implements [Payload].
func (s Suggest) Body() string {
	return fmt.Sprintf("💭 **Suggest (%s):** %s\n\n**Why:** %s", s.Kind, s.What, s.Why) + part("Feature", s.Feature)
}

// Body implements [Payload].
func (b Blocked) Body() string {
	return fmt.Sprintf("🚫 **Blocked (%s):** %s", b.Kind, b.On) + part("Detail", b.Detail)
}

// part returns a paragraph of a body, or "" if the field was not given.
func part(name, text string) string {
	if text == "" {
		return ""
	}
	return "\n\n**" + name + ":** " + text
}

// Check implements [Payload].
func (d Done) Check() error {
	return first(ralph.CheckText("summary", d.Summary, true), ralph.CheckText("tests_changed", d.TestsChanged, false),
		ralph.CheckText("flags_answered", d.FlagsAnswered, false))
}

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
	return first(ralph.CheckText("what", f.What, true),
		oneOf("severity", f.Severity, Severities), oneOf("category", f.Category, Categories))
}

// Check implements [Payload].
func (l Learned) Check() error {
	err := first(ralph.CheckText("text", l.Text, true), oneOf("kind", l.Kind, LearnedKinds),
		ralph.CheckText("rationale", l.Rationale, false))
	if err != nil || l.Scope == "" {
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
	return first(ralph.CheckText("on", b.On, true), oneOf("kind", b.Kind, BlockedKinds),
		ralph.CheckText("detail", b.Detail, false))
}

// oneOf returns an error if the value is not accepted.
func oneOf(field, value string, accepted []string) error {
	switch {
	case slices.Contains(accepted, value):
		return nil
	case value == "":
		return &ralph.FieldError{Field: field, Problem: "is required", Accepted: accepted}
	}
	return &ralph.FieldError{Field: field, Problem: "is not one of the accepted values", Accepted: accepted}
}

// first returns the first error that is not nil.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
