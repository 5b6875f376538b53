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
func sayEvidence(w io.Writer, e ralph.Evidence) {
	line := func(name, value string) { fmt.Fprintf(w, "%-9s %s\n", name, text.Line(value, 300)) }
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

// Session writes everything that is known of a session; dir is the folder of its files.
func Session(w io.Writer, v SessionView, dir string) {
	s := v.Session
	cost := text.Cost(s.CostUSD, s.CostKnown, s.Tokens.Sum())
	if !s.CostKnown && s.Tokens.Sum() == 0 && s.CostUSD > 0 {
		cost += " (it reported none: this is an estimate by its time)"
	}
	whose := ""
	if s.Worker != "" {
		whose = ", by the worker "
		if s.Origin == ralph.FromHuman {
			whose = ", by "
		}
		whose += text.Line(s.Worker, 100)
	}
	fmt.Fprintf(w, "session %s on TASK-%d, attempt %d%s\n", s.ID, s.TaskID, s.Attempt, whose)
	if s.CompletedAt.IsZero() {
		fmt.Fprintf(w, "%s, running since %s\n", s.State, s.StartedAt)
	} else {
		why := text.Line(s.Reason, 500)
		if !strings.HasPrefix(why, string(s.Ending)+": ") {
			why = string(s.Ending) + ": " + why
		}
		fmt.Fprintf(w, "%s, %s\n", s.State, why)
		fmt.Fprintf(w, "from %s to %s\n", s.StartedAt, s.CompletedAt)
		if s.Worker == "" { // a worker's use is unknown
			t := s.Tokens
			fmt.Fprintf(w, "%s, %d turns, %s tokens (%s in, %s out, cache: %s read, %s written), %s, model %s\n", cost, s.Turns,
				Thousands(t.Sum()), Thousands(t.Input), Thousands(t.Output), Thousands(t.CacheRead), Thousands(t.CacheCreation),
				cmp.Or(strings.TrimSpace(s.Agent+" "+s.AgentVersion), "an unknown agent"), cmp.Or(s.Model, "unknown"))
		}
	}
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
		fmt.Fprintf(w, "%-13s %8s  %s%s\n", stay.Phase, Seconds(stay.Seconds), stay.Source, mark)
	}
	if s.Outcome != "" && s.Outcome != ralph.OutcomeSuccess {
		fmt.Fprintf(w, "it stood at %s\n", s.Stood())
	}
	for _, c := range s.Verify {
		fmt.Fprintf(w, "checked  %s: exit %d in %.1f s %s\n", text.Line(c.Command, 100), c.Exit, c.Seconds, c.Error)
		if !c.Passed {
			fmt.Fprintln(w, text.Clean(c.Tail))
		}
	}
	sayEvidence(w, v.Evidence)
	for _, f := range s.Files {
		fmt.Fprintf(w, "%-8s %s +%d -%d\n", f.Status, text.Line(f.Path, 200), f.Added, f.Removed)
	}
	for _, list := range []struct {
		name  string
		items []string
	}{
		{"commit", s.Commits},
		{"refused", s.Denials},
		{"killed", s.Leftovers},
		{"unchanged", s.Unchanged},
		{"!", s.Notes},
	} {
		for _, i := range list.items {
			fmt.Fprintf(w, "%-9s %s\n", list.name, text.Line(i, 200))
		}
	}
	if changed := v.Task.String(); changed != "" {
		fmt.Fprintf(w, "TASK-%d changed: %s\n", s.TaskID, changed)
	}
	if s.LastWords != "" {
		fmt.Fprintf(w, "last words: %s\n", text.Line(s.LastWords, 500))
	}
	if s.StderrTail != "" {
		fmt.Fprintf(w, "stderr: %s\n", text.Clean(s.StderrTail))
	}
	fmt.Fprintf(w, "transcript: %s\n", dir)
}

// Seconds formats a duration.
func Seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
