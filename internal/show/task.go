// Package show formats tasks and sessions as text for terminals and chats. Characters that would
// control a terminal, hide, or reorder text are made visible. The writers are buffers, so writing
// never fails.
package show

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/report"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/store"
)

// A TaskView is the output of `task show --json`.
type TaskView struct {
	ralph.Task
	Description string          `json:"description"`
	Acceptance  []string        `json:"acceptance"`
	Verify      []string        `json:"verify"`
	Files       []string        `json:"files"`
	Model       string          `json:"model"`
	Agent       string          `json:"agent"`
	Review      string          `json:"review"`
	ExternalID  string          `json:"external_id"`     // in the tool that it was imported from
	Source      string          `json:"external_source"` // the format, and the name of its file
	Comments    []ralph.Comment `json:"comments"`
	Sessions    []ralph.Session `json:"sessions"`
	Receipt     report.Receipt  `json:"receipt"`
	Said        string          `json:"said"`     // of its newest change, by reviewers and the author, in Markdown
	Flaky       []ralph.Flaky   `json:"flaky"`    // tests of its last check that were flaky, with counts of all tasks
	Reverted    string          `json:"reverted"` // people have taken its change back there; "" if they have not
}

// Suggested marks a task that an agent suggested, after other text; "" for others.
func Suggested(t ralph.Task) string {
	if t.Origin == ralph.ByAgent {
		return ", suggested by an agent"
	}
	return ""
}

// ReadTask reads everything that is shown of a task except its comments, which the text form does
// not have.
func ReadTask(tx *store.Tx, id int64) (v TaskView, err error) {
	if v.Task, err = tx.Task(id); err != nil {
		return v, err
	}
	v.Sessions, err = tx.Sessions(store.SessionFilter{Task: id})
	v.Description, v.Acceptance, v.Verify, v.Model = v.Task.Description, v.Task.Acceptance, v.Task.Verify, v.Task.Model
	v.Files = append([]string{}, v.Task.Files...)
	v.Agent, v.Review = v.Task.Agent, v.Task.Review
	v.ExternalID, v.Source = v.Task.ExternalID, v.Task.ExternalSource
	if err != nil {
		return v, err
	}
	if v.Receipt, err = report.OfTask(tx, v.Task); err != nil {
		return v, err
	}
	if v.Flaky, err = flaky(tx, v.Receipt.Verify); err != nil {
		return v, err
	}
	c, ok, err := tx.ChangeOf(id)
	if err == nil && ok {
		v.Said, err = tx.SaidOf(c.SessionID)
	}
	return v, err
}

// flaky returns the number of times that the flaky tests of some checks were flaky, over all tasks.
func flaky(tx *store.Tx, checks []ralph.Check) ([]ralph.Flaky, error) {
	if len(ralph.FlakyOf(checks)) == 0 {
		return []ralph.Flaky{}, nil
	}
	list, err := tx.Flaky(ralph.FlakySince(tx.Now()))
	return slices.DeleteFunc(list, func(f ralph.Flaky) bool {
		return !slices.ContainsFunc(checks, func(c ralph.Check) bool {
			return c.Command == f.Command && slices.Contains(c.Flaky, f.Test)
		})
	}), err
}

// Task writes everything that is shown of a task.
func Task(w io.Writer, s term.Screen, v TaskView) {
	line := func(name, value string) {
		value = strings.TrimSpace(text.Visible(value))
		for l := range strings.Lines(value) {
			fmt.Fprintln(w, s.Hang(s.Paint(term.Dim, term.Pad(name, 13)), strings.TrimRight(l, "\n")))
			name = ""
		}
	}
	fmt.Fprintln(w, s.Hang(fmt.Sprintf("TASK-%d  ", v.ID), s.Paint(term.Bold, text.Line(v.Title, ralph.MaxTitle))))
	said := v.Word() + ": " + v.StatusReason
	switch {
	case v.StatusReason == "":
		said = v.Word()
	case strings.HasPrefix(v.StatusReason, v.Word()+" "): // "merged into main"
		said = v.StatusReason
	}
	line("status", said)
	line("reverted", v.Reverted)
	if v.ExternalID != "" {
		line("imported", text.Line(v.ExternalID+" of "+v.Source, 200))
	}
	line("made by", strings.TrimPrefix(Suggested(v.Task), ", "))
	line("priority", fmt.Sprint(v.Priority))
	line("feature", v.Feature)
	line("discipline", v.Discipline)
	line("agent", v.Agent)
	line("model", v.Model)
	line("review", v.Review)
	for _, d := range v.DependsOn {
		line("depends on", fmt.Sprintf("TASK-%d", d))
	}
	for _, c := range v.Acceptance {
		line("accept", c)
	}
	for _, c := range v.Verify {
		line("verify", c)
	}
	for _, f := range v.Files {
		line("files", f)
	}
	for _, h := range v.Hidden {
		line("unseen", "a check that no session sees: "+text.Line(h.Title, 200))
	}
	r := v.Receipt
	line("receipt", fmt.Sprintf("%s, %s, %s, %s", text.Count(r.Attempts, "attempt"),
		text.Count(r.Sessions, "session"), text.Span(r.Seconds), text.Cost(r.CostUSD, r.CostKnown, r.Tokens.Sum())))
	if r.Strangers > 0 {
		line("strangers", ralph.StrangersRefused(r.Strangers))
	}
	line("agents", ralph.NamesOf(r.Agents))
	line("changed", r.Changed.String())
	if p := r.Changed.Proof; p != nil && len(p.Proved)+p.Idle > 0 {
		line("proof", p.String())
	}
	checked(w, r.Verify, line)
	for _, c := range ralph.CopiedOf(r.Verify) {
		line("set-up", text.Line(c, 300))
	}
	for _, f := range v.Flaky {
		line("flaky", text.Line(f.String(), 200))
	}
	if v.Description != "" {
		fmt.Fprintln(w)
		for l := range strings.Lines(text.Visible(v.Description)) {
			fmt.Fprintln(w, s.Hang("", strings.TrimRight(l, "\n")))
		}
	}
	if v.Said != "" {
		fmt.Fprint(w, "\nof its newest change:\n")
		for l := range strings.Lines(v.Said) {
			fmt.Fprintf(w, "  %s\n", strings.TrimRight(l, "\n"))
		}
	}
	if len(v.Sessions) > 0 {
		fmt.Fprintln(w)
	}
	for _, one := range slices.Backward(v.Sessions) {
		first := fmt.Sprintf("session %.8s  %s  ", one.ID, text.When(one.StartedAt.Time, time.Now()))
		fmt.Fprintln(w, s.Hang(first, cmp.Or(one.Ended, string(one.State))+": "+text.Line(one.Reason, 300)))
	}
}

// checked writes how a task's commands ended.
func checked(w io.Writer, list []ralph.Check, line func(name, value string)) {
	for _, c := range list {
		line("checked", fmt.Sprintf("%s: %s (%s)", text.Line(c.Command, 80), howChecked(c), text.Span(c.Seconds)))
		if len(c.Failures) > 0 {
			line("", "fails: "+text.Line(strings.Join(c.Failures, ", "), 200))
		}
		if !c.Passed {
			for l := range strings.Lines(text.Clean(c.Tail)) {
				fmt.Fprintf(w, "             | %s\n", strings.TrimRight(l, "\n"))
			}
		}
	}
}

// howChecked describes how a check ended.
func howChecked(c ralph.Check) string {
	said := "passed"
	switch {
	case !c.Passed && c.Error != "":
		said = c.Error
	case !c.Passed:
		said = fmt.Sprintf("exit %d", c.Exit)
	case len(c.Excused) > 0:
		said = fmt.Sprintf("exit %d, excused: %s failed before", c.Exit, text.Line(strings.Join(c.Excused, ", "), 200))
	}
	for _, flaky := range ralph.FlakyOf([]ralph.Check{c}) {
		said += ", " + text.Line(flaky, 200)
	}
	return said
}
