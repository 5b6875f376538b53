package web

import (
	"strings"

	"ralph"
	"ralph/internal/inbox"
)

// A look is the icon, the word and the colour of a thing, so that nothing depends on the colour
// alone.
type look struct{ Icon, Label, Class string }

// verbLook returns the look of a signal.
func verbLook(v ralph.Verb) look {
	l := v.Look()
	return look{l.Icon, l.Label, l.Colour}
}

// phases has the looks of a session's states (sessions, the table of states).
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

// taskLook returns the look of a task.
func taskLook(t ralph.Task) look {
	l := t.Look()
	return look{l.Icon, l.Label, l.Colour}
}

// wordLook returns the look of all tasks with a word of [ralph.Words].
func wordLook(word string) look {
	l := ralph.WordLook(word)
	return look{l.Icon, l.Label, l.Colour}
}

// sign returns the colour of a line of a diff.
func sign(l string) string {
	switch {
	case strings.HasPrefix(l, "+"):
		return "add"
	case strings.HasPrefix(l, "-"):
		return "del"
	}
	return ""
}

// waitLook returns the look of inbox items of a kind.
func waitLook(kind string) look {
	l := inbox.KindOf(kind).Look
	return look{l.Icon, l.Label, l.Colour}
}
