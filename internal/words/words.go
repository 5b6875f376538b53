// Package words describes events for people: in one line each, and as messages for notifications.
package words

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
)

// Short describes an event in one line, as a run prints it: events of a session are indented. It is
// "" for events that do not matter there.
func Short(e ralph.Event, now time.Time) string {
	told, err := e.Read()
	if err != nil {
		return ""
	}
	return cmp.Or(ofWork(e, told), ofChange(e, told), ofRun(e, told, now))
}

// ofWork describes an event of a session.
func ofWork(e ralph.Event, told any) string {
	switch d := told.(type) {
	case ralph.SessionStarted:
		var by []string
		if d.Attempt > 1 {
			by = append(by, fmt.Sprintf("attempt %d", d.Attempt))
		}
		if d.Agent != "" && d.Agent != ralph.DefaultAgent {
			by = append(by, "by "+text.Line(d.Agent, 60))
		}
		if d.Number > 0 {
			by = append(by, fmt.Sprintf("%d of %d", d.Number, d.Of))
		}
		line := fmt.Sprintf("▶ TASK-%d %s", e.TaskID, text.Line(d.Title, 100))
		if len(by) > 0 {
			line += " (" + strings.Join(by, ", ") + ")"
		}
		return line
	case ralph.SignalGiven:
		if s, err := Read(d); err == nil {
			said := cmp.Or(s.Summary, s.Reason, s.Question, s.What, s.Text, s.On) // it has one of them
			return fmt.Sprintf("    %s: %s", d.Verb, text.Line(said, 100))
		}
	case ralph.BaselineRed:
		if e.TaskID == 0 {
			return red(d)
		}
		return fmt.Sprintf("! your tests fail before TASK-%d is begun, and its \"done\" is refused until they pass: %s",
			e.TaskID, text.Line(d.Reason, 200))
	case ralph.ProvesNothing:
		return fmt.Sprintf("! passes before any work on TASK-%d, and proves nothing: %s", e.TaskID,
			text.Line(strings.Join(d.Commands, ", "), 200))
	case ralph.SlowCheck:
		indent := ""
		if e.TaskID != 0 {
			indent = "    "
		}
		return indent + "verifying: " + text.Line(d.Command, 200)
	case ralph.ReviewStarted:
		return "    being reviewed by " + text.Line(d.Agent, 60)
	case ralph.ReviewEnded:
		return "    " + text.Line(d.Said, 400)
	case ralph.DoneRefused:
		return "    refused: " + text.Line(d.Reason, 200)
	case ralph.CommandRefused:
		return fmt.Sprintf("    refused: `%s`, which only people may do", text.Line(d.Command, 200))
	case ralph.StrangerRefused:
		return fmt.Sprintf("    refused: `%s` of a program that is not the agent", text.Line(d.Asked, 100))
	case ralph.SessionEnded:
		return ended(e, d)
	}
	return ""
}

// ofChange describes an event of the merge queue.
func ofChange(e ralph.Event, told any) string {
	switch d := told.(type) {
	case ralph.ChangeProved:
		return fmt.Sprintf("⇢ TASK-%d is %s", e.TaskID, text.Line(ralph.Proof{Proved: d.Proved, Idle: d.Idle}.String(), 400))
	case ralph.ChangeMerged:
		if d.Behind != "" {
			return fmt.Sprintf("⇢ TASK-%d passed as %s, not on %s yet: %s",
				e.TaskID, ralph.ShortID(d.Commit), text.Line(d.Into, 100),
				text.Line(d.Behind, 400))
		}
		if d.Undo != "" {
			return "⇢ " + Undone(e.TaskID, d)
		}
		return fmt.Sprintf("⇢ TASK-%d merged into %s as %s", e.TaskID, text.Line(d.Into, 100), ralph.ShortID(d.Commit))
	case ralph.ChangeSentBack:
		if d.ChangeID == 0 {
			return "    conflicts, and its agent is told: " + text.Line(d.Reason, 400)
		}
		return fmt.Sprintf("↩ TASK-%d was sent back from the merge queue: %s", e.TaskID, text.Line(d.Reason, 400))
	case ralph.QueuePaused:
		return "! nothing is merged until `ralph resume --merging`: " + text.Line(d.Reason, 400)
	case ralph.TargetRewritten:
		return fmt.Sprintf("! %s was moved back behind merged work, which is no longer on it: %s keeps it; "+
			"`ralph doctor` names its tasks", text.Line(d.Branch, 100), text.Line(d.Kept, 200))
	case ralph.TroubleFound:
		return fmt.Sprintf("! %s: `%s`", text.Line(d.What, 400), text.Line(d.Command, 200))
	case ralph.TargetBehind:
		if d.Reason == "" {
			return fmt.Sprintf("⇢ %s has all that passed", text.Line(d.Branch, 100))
		}
		return fmt.Sprintf("! passed, not on %s yet: %s: `%s`", text.Line(d.Branch, 100), text.Line(d.Reason, 400),
			text.Line(d.Command, 200))
	}
	return ""
}

// ofRun describes an event of a run.
func ofRun(e ralph.Event, told any, now time.Time) string {
	switch d := told.(type) {
	case ralph.PermissionAsked:
		line := fmt.Sprintf("⏸ TASK-%d waits to use %s: `ralph approve P%d`, or `ralph reject P%d`",
			e.TaskID, text.RequestLine(d.Tool+" "+d.Input), d.PermissionID, d.PermissionID)
		if !d.Expires.IsZero() {
			line += fmt.Sprintf(" (denied at %s unless you say)", text.When(d.Expires.Time, now))
		}
		return line
	case ralph.RunWaiting:
		why := text.Line(d.Reason, 200)
		switch {
		case d.State == "paused":
			return "… " + why + "; `ralph resume` goes on"
		case d.State == "ending":
			return "… ending: " + why
		case d.Until.IsZero():
			return "… waiting " + why
		}
		return fmt.Sprintf("… waiting until %s (%s from now): %s",
			text.When(d.Until.Time, now), text.Span(d.Until.Sub(now).Seconds()), why)
	}
	return ""
}

// Undone names the commit that took back a task's work or brought it back.
func Undone(task int64, d ralph.ChangeMerged) string {
	did, reverses := "undone", "takes back"
	if d.Undo == ralph.Completed {
		did, reverses = "brought back", "reverses"
	}
	var commits []string
	for _, c := range d.Reverses {
		commits = append(commits, ralph.ShortID(c))
	}
	return fmt.Sprintf("%s: TASK-%d, commit %s on %s %s %s (%s)", did, task, ralph.ShortID(d.Commit),
		text.Line(d.Into, 100), reverses, strings.Join(commits, ", "), text.Count(d.Files, "file"))
}

func ended(e ralph.Event, d ralph.SessionEnded) string {
	task := ralph.Task{Status: d.Status, Waits: d.Waits}
	became := fmt.Sprintf("%s: %s", task.Word(), text.Line(d.StatusReason, 200))
	if task.Look() != d.Status.Look() {
		became = "waiting for " + ralph.TaskNames(d.Waits.Tasks, ", ")
	}
	cost := text.Cost(d.CostUSD, d.CostKnown, d.Tokens)
	line := fmt.Sprintf("■ TASK-%d %s (%s, %s)", e.TaskID, became, text.Span(d.Seconds), cost)
	for _, n := range d.Notes {
		line += "\n          ! " + text.Line(n, 400)
	}
	return line
}

// red describes commands that fail before any work, with the end of their output, and the consequence.
func red(d ralph.BaselineRed) string {
	lines := []string{"! your tests fail already:"}
	for _, c := range d.Checks {
		lines = append(lines, Check(c, TailLines))
	}
	if d.Consequence != "" {
		lines = append(lines, "→ "+text.Line(d.Consequence, 400))
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), "\n", "\n            ")
}

// Batch describes the end of a batch in one line.
func Batch(d ralph.RunEnded) string {
	return fmt.Sprintf("● batch ended: %s (%s on %s, %s, status %d)", text.Line(d.Reason, 200),
		text.Count(d.Sessions, "session"), text.Count(d.Tasks, "task"),
		text.Cost(d.CostUSD, d.CostKnown, d.Tokens), d.ExitStatus)
}

// Listed describes any event in one independent line, as for a list of all events.
func Listed(e ralph.Event, now time.Time) string {
	line := Short(e, now)
	if below, ok := strings.CutPrefix(line, "    "); ok {
		return fmt.Sprintf("TASK-%d %s", e.TaskID, below)
	}
	if line != "" {
		return line
	}
	line = e.Type
	if e.TaskID != 0 {
		line += fmt.Sprintf(" TASK-%d", e.TaskID)
	}
	return line + " " + text.Line(details(e), 200)
}

// details describes an event's payload.
func details(e ralph.Event) string {
	because := func(why string) string {
		if why == "" {
			return ""
		}
		return ": " + why
	}
	told, err := e.Read()
	if err != nil {
		return string(e.Payload)
	}
	switch p := told.(type) {
	case ralph.TaskCreated:
		return fmt.Sprintf("%s (%s)", p.Title, p.Status)
	case ralph.TaskStatusChanged:
		return fmt.Sprintf("%s → %s%s", p.From, p.To, because(p.Reason))
	case ralph.CommentAdded:
		return fmt.Sprintf("%s %d by %s", p.Kind, p.CommentID, p.Author)
	case ralph.CommentResolved:
		return fmt.Sprintf("comment %d%s", p.CommentID, because(p.Decision))
	case ralph.AmendmentMade:
		return fmt.Sprintf("amendment %d of %s", p.AmendmentID, strings.Join(p.PatchKeys, ", "))
	case ralph.AmendmentApplied:
		if p.ClaimDropped {
			return fmt.Sprintf("amendment %d; the claim is dropped", p.AmendmentID)
		}
		return fmt.Sprintf("amendment %d", p.AmendmentID)
	case ralph.AmendmentRefused:
		return fmt.Sprintf("amendment %d", p.AmendmentID)
	case ralph.SessionMoved:
		if p.Unexpected {
			p.Source += ", unusual order"
		}
		return fmt.Sprintf("%s → %s (%s)", p.Previous, p.State, p.Source)
	case ralph.ChangeDropped:
		return strings.TrimPrefix(because(p.Reason), ": ")
	case ralph.QueueResumed:
		return "by " + p.By
	case ralph.ChangeQueued:
		return fmt.Sprintf("change %d, %.12s", p.ChangeID, p.Head)
	case ralph.RunStarted:
		return fmt.Sprintf("run %d", e.RunID)
	case ralph.RunEnded:
		return fmt.Sprintf("run %d with status %d%s", e.RunID, p.ExitStatus, because(p.Reason))
	}
	return string(e.Payload)
}

// Chat describes an event of a person's session in one line, for followers of the chat; "" for events that do not
// matter.
func Chat(e ralph.Event, now time.Time) string {
	told, err := e.Read()
	if err != nil {
		return ""
	}
	switch p := told.(type) {
	case ralph.SessionProgressed:
		return Progress(p.Progress)
	case ralph.CheckpointAdded:
		return "checkpoint kept"
	case ralph.CommentAdded:
		return fmt.Sprintf("comment: see `ralph timeline %d`", e.TaskID)
	}
	return strings.TrimSpace(Short(e, now))
}

// Progress describes a chat's report in one line.
func Progress(p ralph.Progress) string {
	line := fmt.Sprintf("iteration %d, tests: %s", p.Iteration, text.Line(p.TestsStatus, 100))
	if n := len(p.FilesModified); n > 0 {
		line += fmt.Sprintf(", %d files", n)
	}
	if p.Notes != "" {
		line += ": " + text.Line(p.Notes, 200)
	}
	return line
}

// A Signal has the fields of all signals that are reported to people.
type Signal struct {
	Summary, Reason, Question, What, Text, On string
	Preferred, Severity, Category             string
	Options                                   []string
	Blocking                                  bool
}

// Read parses a signal's payload.
func Read(s ralph.SignalGiven) (said Signal, err error) {
	err = json.Unmarshal(s.Payload, &said)
	return said, err
}
