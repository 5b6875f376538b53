package show

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/internal/report"
	"ralph/internal/text"
	"ralph/store"
)

// A SessionView is a session with values derived from its history.
type SessionView struct {
	ralph.Session
	Stood ralph.Phase  `json:"stood_at"` // the last phase before its end
	Stays []ralph.Stay `json:"time_in_state"`

	Evidence ralph.Evidence `json:"evidence"` // observations at its decision, apart from the commands' results

	// changes of all sessions of its task, as merged; null in lists
	Task *report.Changed `json:"task_changed,omitempty"`
}

// ViewSession adds the values derived from a session's history.
func ViewSession(s ralph.Session, now ralph.Time) SessionView {
	v := SessionView{Session: s, Stood: s.Stood(), Stays: s.Stays(now)}
	if d, err := store.Decided(s); err == nil { // otherwise it is not decided
		v.Evidence = d.Evidence
	}
	return v
}

// sayEvidence prints the observations of a session at its decision.
func sayEvidence(say func(name, value string), e ralph.Evidence) {
	line := func(name, value string) { say(name, text.Line(value, 300)) }
	for _, a := range e.Aside {
		line("aside", fmt.Sprintf("commits on %s, which were not verified: %d", a.Branch, a.Commits))
	}
	for _, t := range e.Rewritten {
		line("rewritten", fmt.Sprintf("%s, while `%s` ran", t.File, t.Command))
	}
	for _, t := range e.Drives {
		line("changed", fmt.Sprintf("%s, which `%s` runs", t.File, t.Command))
	}
	for _, list := range []struct {
		name  string
		items []string
	}{{"stashed", e.Stashes}, {"secret", e.Secrets}} {
		for _, i := range list.items {
			line(list.name, i)
		}
	}
}

// Total returns the duration of a session in seconds.
func Total(stays []ralph.Stay) (s float64) {
	for _, stay := range stays {
		s += stay.Seconds
	}
	return s
}

// Thousands formats a number of tokens.
func Thousands(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return strconv.FormatInt(n, 10)
}

// Session writes the session for a person. With all it also writes the full id, the time in each state, unchanged
// files and dir, the folder of its files.
func Session(w io.Writer, v SessionView, dir string, all bool) {
	s, now := v.Session, time.Now()
	whose := ""
	if s.Worker != "" {
		whose = ", by the worker "
		if s.Origin == ralph.FromHuman {
			whose = ", by "
		}
		whose += text.Line(s.Worker, 100)
	}
	line := func(name, value string) { fmt.Fprintf(w, "%-11s%s\n", name, value) }
	id := s.ID[:min(len(s.ID), 8)]
	if all {
		id = s.ID
	}
	line("session", fmt.Sprintf("%s on TASK-%d, attempt %d%s", id, s.TaskID, s.Attempt, whose))
	if s.CompletedAt.IsZero() {
		line(string(s.State), "since "+text.When(s.StartedAt.Time, now))
	} else {
		sayEnded(line, s, now)
	}
	if all {
		sayStays(w, s)
	}
	if s.Outcome != "" && s.Outcome != ralph.OutcomeSuccess {
		line("stood at", string(s.Stood()))
	}
	for _, c := range s.Verify {
		ran := fmt.Sprintf("%s: exit %d in %.1f s %s", text.Line(c.Command, 100), c.Exit, c.Seconds, c.Error)
		line("checked", strings.TrimSpace(ran))
		if !c.Passed {
			fmt.Fprintln(w, text.Clean(c.Tail))
		}
	}
	sayEvidence(line, v.Evidence)
	for _, f := range s.Files {
		line(f.Status, fmt.Sprintf("%s +%d −%d", text.Line(f.Path, 200), f.Added, f.Removed))
	}
	unchanged := s.Unchanged
	if !all {
		unchanged = nil
	}
	for _, list := range []struct {
		name  string
		items []string
	}{{"commit", s.Commits}, {"refused", s.Denials}, {"killed", s.Leftovers}, {"unchanged", unchanged}, {"!", s.Notes}} {
		for _, i := range list.items {
			line(list.name, text.Line(i, 200))
		}
	}
	if changed := v.Task.String(); changed != "" {
		line("task", changed)
	}
	if s.LastWords != "" {
		line("last words", text.Line(s.LastWords, 500))
	}
	if s.StderrTail != "" {
		line("stderr", text.Clean(s.StderrTail))
	}
	if all {
		line("files", dir)
	}
}

// sayEnded writes the result of a session and its cost.
func sayEnded(line func(name, value string), s ralph.Session, now time.Time) {
	why := text.Line(s.Reason, 500)
	if !strings.HasPrefix(why, string(s.Ending)+": ") {
		why = string(s.Ending) + ": " + why
	}
	line(string(s.State), why)
	line("time", fmt.Sprintf("%s to %s (%s)", text.When(s.StartedAt.Time, now), text.When(s.CompletedAt.Time, now),
		text.Span(s.CompletedAt.Sub(s.StartedAt.Time).Seconds())))
	if s.Worker != "" {
		return // its use is unknown
	}
	cost := text.Cost(s.CostUSD, s.CostKnown, s.Tokens.Sum())
	if !s.CostKnown && s.Tokens.Sum() == 0 && s.CostUSD > 0 {
		cost += " (it reported none: this is an estimate by its time)"
	}
	t := s.Tokens
	line("cost", fmt.Sprintf("%s, %s, %s tokens (%s in, %s out, cache: %s read, %s written)",
		cost, text.Count(s.Turns, "turn"), Thousands(t.Sum()), Thousands(t.Input), Thousands(t.Output),
		Thousands(t.CacheRead), Thousands(t.CacheCreation)))
	line("agent", fmt.Sprintf("%s, model %s",
		cmp.Or(strings.TrimSpace(s.Agent+" "+s.AgentVersion), "unknown"), cmp.Or(s.Model, "unknown")))
}

// sayStays writes the time in each state.
func sayStays(w io.Writer, s ralph.Session) {
	for _, stay := range s.Stays(ralph.At(time.Now())) {
		mark := ""
		if stay.Unexpected {
			mark += "  unusual order"
		}
		if stay.Long {
			mark += "  unusually long"
		}
		if stay.Said != "" {
			mark += "  " + text.VisibleLine(stay.Said)
		}
		fmt.Fprintf(w, "%-13s %8s  %s%s\n", stay.Phase, text.Span(stay.Seconds), stay.Source, mark)
	}
}
