// Package words says what happened, for people: a line for each event, and a message
// where somebody is told of one.
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

// Short is an event in one line, as a run shows it: what belongs to a session is
// indented, below the line of its beginning. It is "" for what is of no interest there.
func Short(e ralph.Event, now time.Time) string {
	told, err := e.Read()
	if err != nil {
		return ""
	}
	switch d := told.(type) {
	case ralph.SessionStarted:
		return fmt.Sprintf("▶ TASK-%d %s (attempt %d, session %.8s)",
			e.TaskID, text.Line(d.Title, 100), d.Attempt, e.SessionID)
	case ralph.SignalGiven:
		if s, err := Read(d); err == nil {
			said := cmp.Or(s.Summary, s.Reason, s.Question, s.What, s.Text, s.On) // it has one of them
			return fmt.Sprintf("    %s: %s", d.Verb, text.Line(said, 100))
		}
	case ralph.BaselineRed:
		if e.TaskID == 0 {
			return red(d)
		}
		return fmt.Sprintf("! the verification fails before TASK-%d is begun, and refuses its done until it passes: %s",
			e.TaskID, text.Line(d.Reason, 200))
	case ralph.DoneRefused:
		return "    refused: " + text.Line(d.Reason, 200)
	case ralph.CommandRefused:
		return fmt.Sprintf("    refused: `%s`, which only people may do", text.Line(d.Command, 200))
	case ralph.SessionEnded:
		return ended(e, d)
	case ralph.SessionRestored:
		return "    ! " + text.Line(d.Note, 400)
	case ralph.TaskCommitted:
		return fmt.Sprintf("    committed %.12s", d.Commit)
	case ralph.PermissionAsked:
		line := fmt.Sprintf("⏸ TASK-%d stands still: may it use %s? `ralph permission allow %d`, or "+
			"`ralph permission deny %d`", e.TaskID, text.VisibleLine(d.Tool+" "+d.Input), d.PermissionID, d.PermissionID)
		if !d.Expires.IsZero() {
			line += fmt.Sprintf(" (answers itself with deny at %s)", d.Expires.Local().Format("15:04:05"))
		}
		return line
	case ralph.RunWaiting:
		why := text.Line(d.Reason, 200)
		switch {
		case d.State == "paused":
			return "… " + why + "; `ralph resume` goes on"
		case d.Until.IsZero():
			return "… waiting " + why
		}
		return fmt.Sprintf("… waiting until %s (%s from now): %s",
			d.Until.Local().Format("Jan 2 15:04:05"), d.Until.Sub(now).Round(time.Second), why)
	}
	return ""
}

func ended(e ralph.Event, d ralph.SessionEnded) string {
	line := fmt.Sprintf("■ TASK-%d → %s: %s (%.0f s, %s)",
		e.TaskID, d.Status, text.Line(d.StatusReason, 200), d.Seconds, text.Money(d.CostUSD))
	if n := len(d.Gone); n > 0 {
		line += fmt.Sprintf("\n          ! %d files that you had not committed are gone (%s): `ralph snapshot restore %d`",
			n, text.Line(strings.Join(d.Gone, ", "), 100), d.SnapshotID)
	}
	for _, n := range d.Notes {
		line += "\n          ! " + text.Line(n, 400)
	}
	return line
}

// red tells of commands that fail before any work, with the end of what they printed,
// and what follows.
func red(d ralph.BaselineRed) string {
	lines := []string{"! the verification fails before any work:"}
	for _, c := range d.Checks {
		lines = append(lines, Check(c, TailLines))
	}
	if d.Follows != "" {
		lines = append(lines, "→ "+text.Line(d.Follows, 400))
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), "\n", "\n            ")
}

// Batch is the end of a batch in one line.
func Batch(d ralph.RunEnded) string {
	return fmt.Sprintf("● batch ended: %s (%s on %s, %s, status %d)", text.Line(d.Reason, 200),
		text.Count(d.Sessions, "session"), text.Count(d.Tasks, "task"), text.Money(d.CostUSD), d.ExitStatus)
}

// Listed is any event in one line that stands by itself, as in a list of all.
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

// details are in words what an event's payload says.
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
	case ralph.RunStarted:
		return fmt.Sprintf("run %d", e.RunID)
	case ralph.RunEnded:
		return fmt.Sprintf("run %d with status %d%s", e.RunID, p.ExitStatus, because(p.Reason))
	}
	return string(e.Payload)
}

// Chat is an event of a person's session in one line, for who follows their chat; ""
// for what is of no interest.
func Chat(e ralph.Event, now time.Time) string {
	told, err := e.Read()
	if err != nil {
		return ""
	}
	switch p := told.(type) {
	case ralph.SessionProgressed:
		return Progress(p.Progress)
	case ralph.CheckpointKept:
		return "checkpoint kept"
	case ralph.CommentAdded:
		return fmt.Sprintf("comment: see `ralph timeline %d`", e.TaskID)
	}
	return strings.TrimSpace(Short(e, now))
}

// Progress is a chat's report in a line.
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

// A Signal has the fields of all signals that people are told of.
type Signal struct {
	Summary, Reason, Question, What, Text, On string
	Preferred, Severity, Category             string
	Options                                   []string
	Blocking                                  bool
}

// Read reads what an agent signalled.
func Read(s ralph.SignalGiven) (said Signal, err error) {
	err = json.Unmarshal(s.Payload, &said)
	return said, err
}
