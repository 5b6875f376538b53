package web

import (
	"strings"

	"ralph"
)

// A look is how a thing is shown: by its sign, its word and its colour, so that
// nothing is told by the colour alone.
type look struct{ Icon, Label, Class string }

// verbs are the looks of signals (sessions, "Signal cards").
var verbs = map[ralph.Verb]look{
	ralph.VerbDone:    {"✓", "Done", "green"},
	ralph.VerbPartial: {"⊙", "Partial", "cyan"},
	ralph.VerbStuck:   {"⚠", "Stuck", "purple"},
	ralph.VerbAsk:     {"❓", "Ask", "yellow"},
	ralph.VerbFlag:    {"🚩", "Flag", "red"},
	ralph.VerbLearned: {"💡", "Learned", "blue"},
	ralph.VerbSuggest: {"💭", "Suggest", "teal"},
	ralph.VerbBlocked: {"🚫", "Blocked", "orange"},
}

// phases are the looks of a session's states (sessions, the table of states).
var phases = map[ralph.Phase]look{
	ralph.PhaseIdle:         {"○", "Idle", "gray"},
	ralph.PhaseAnalyzing:    {"◐", "Analyzing", "blue"},
	ralph.PhaseImplementing: {"◑", "Implementing", "yellow"},
	ralph.PhaseTesting:      {"◒", "Testing", "cyan"},
	ralph.PhaseCommitting:   {"◓", "Committing", "green"},
	ralph.PhaseReviewing:    {"◔", "Reviewing", "purple"},
	ralph.PhaseDone:         {"●", "Done", "green"},
	ralph.PhaseFailed:       {"✕", "Failed", "red"},
}

// statuses are the looks of tasks.
var statuses = map[ralph.Status]look{
	ralph.Proposed:   {"?", "Proposed", "teal"},
	ralph.Pending:    {"○", "Pending", "gray"},
	ralph.InProgress: {"▶", "In progress", "blue"},
	ralph.NeedsInput: {"❓", "Needs input", "yellow"},
	ralph.Blocked:    {"⊘", "Blocked", "orange"},
	ralph.Completed:  {"✓", "Completed", "green"},
	ralph.Failed:     {"✕", "Failed", "red"},
	ralph.Rejected:   {"–", "Rejected", "gray"},
	ralph.Cancelled:  {"–", "Cancelled", "gray"},
}

// sign is the colour of a line of a difference.
func sign(l string) string {
	switch {
	case strings.HasPrefix(l, "+"):
		return "add"
	case strings.HasPrefix(l, "-"):
		return "del"
	}
	return ""
}

// waits are the looks of the things that wait for a person.
var waits = map[string]look{
	"question":   {"❓", "Question", "yellow"},
	"permission": {"🔑", "Permission", "purple"},
	"blocker":    {"🚫", "Blocker", "orange"},
	"review":     {"🔍", "Review", "purple"},
	"dependency": {"⛓", "Dependency", "orange"},
	"failed":     {"✕", "Failed", "red"},
	"proposal":   {"💭", "Suggested task", "teal"},
	"suggestion": {"💭", "Suggestion", "teal"},
	"conflict":   {"⚡", "Contradiction", "red"},
	"amendment":  {"✎", "Amendment", "blue"},
	"nack":       {"✋", "Proposal to cancel", "red"},
	"claim":      {"👤", "Claimed for long", "blue"},
	"flag":       {"🚩", "Flag", "red"},
}
