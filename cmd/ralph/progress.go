package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/report"
	"ralph/internal/show"
	"ralph/internal/systemd"
	"ralph/internal/text"
	"ralph/loop"
	"ralph/store"
)

// progress shows a run as its events appear in the database: a line each, for
// people or as JSON.
type progress struct {
	store *store.DB
	out   io.Writer
	json  bool
	after int64

	batches bool // one run follows the other: each end is worth a line
	journal bool // the output is systemd's journal, which has times of its own

	terminal bool      // the output is one: its last line says what goes on
	until    time.Time // when the wait ends; zero if there is none
	task     int64     // that is worked on; 0 if there is none
	phase    ralph.Phase
	since    time.Time // when the phase began
	last     string    // what the last line says; "" if it is none of these
}

// countdown is how often the last line of a terminal is written anew.
const countdown = 150 * time.Millisecond

// follow shows events until over is closed, and then those that are left.
func (p *progress) follow(over <-chan struct{}) error {
	var tick <-chan time.Time
	if p.terminal {
		ticker := time.NewTicker(countdown)
		defer ticker.Stop()
		tick = ticker.C
	}
	changed := p.store.Changed()
	if err := p.show(); err != nil {
		return err
	}
	for {
		select {
		case <-over:
			p.until, p.task = time.Time{}, 0
			return errors.Join(p.clear(), p.show())
		case <-changed:
			changed = p.store.Changed()
			if err := p.show(); err != nil {
				return err
			}
		case <-tick:
		}
		if err := p.status(time.Now()); err != nil {
			return err
		}
	}
}

// status says on the last line of a terminal how long a wait still lasts, or what is
// worked on and for how long.
func (p *progress) status(now time.Time) error {
	line := ""
	if left := p.until.Sub(now).Round(time.Second); left > 0 {
		line = fmt.Sprintf("  %s left (Ctrl-C ends the run)", left)
	} else if p.task != 0 {
		line = fmt.Sprintf("  TASK-%d %s %s", p.task, p.phase, max(0, now.Sub(p.since)).Truncate(time.Second))
	}
	if !p.terminal || line == "" {
		return p.clear()
	}
	if line == p.last {
		return nil
	}
	p.last = line
	_, err := fmt.Fprint(p.out, "\r\x1b[K", line)
	return err
}

// clear takes the status away, so that a line can stand there.
func (p *progress) clear() error {
	if p.last == "" {
		return nil
	}
	p.last = ""
	_, err := fmt.Fprint(p.out, "\r\x1b[K")
	return err
}

// show prints what is new.
func (p *progress) show() error {
	for {
		var events []ralph.Event
		if err := p.store.View(context.Background(), func(tx *store.Tx) (err error) {
			events, err = tx.Events(p.after, 500)
			return err
		}); err != nil {
			return err
		}
		for _, e := range events {
			p.after = e.ID
			if err := p.one(e); err != nil {
				return err
			}
		}
		if len(events) == 0 {
			return nil
		}
	}
}

// one prints one event. The last line of JSON is the run's end with its fields at
// the top (command line, "run --format json").
func (p *progress) one(e ralph.Event) error {
	if !p.json {
		p.note(e)
		line := describe(e)
		if p.batches && e.Type == ralph.EventRunEnded {
			line = describeEnd(e)
		}
		if line == "" {
			return nil
		}
		if err := p.clear(); err != nil {
			return err
		}
		before := e.Created.Local().Format("15:04:05") + "  "
		if p.journal {
			before = systemd.Prefix(level(e))
		}
		_, err := fmt.Fprintf(p.out, "%s%s\n", before, line)
		return err
	}
	told, err := e.Read()
	end, ended := told.(ralph.RunEnded)
	if err != nil || !ended {
		return json.NewEncoder(p.out).Encode(e)
	}
	return json.NewEncoder(p.out).Encode(struct {
		ralph.RunEnded
		Created ralph.Time `json:"created"`
		ID      int64      `json:"id"`
		RunID   int64      `json:"run_id"`
		Type    string     `json:"type"`
	}{end, e.Created, e.ID, e.RunID, e.Type})
}

// note keeps what the last line is to say: whatever happens after a wait was
// announced ends it.
func (p *progress) note(e ralph.Event) {
	p.until = time.Time{}
	told, err := e.Read()
	if err != nil {
		return
	}
	switch d := told.(type) {
	case ralph.RunWaiting:
		p.until = d.Until.Time
	case ralph.SessionStarted:
		if e.RunID != 0 { // else it is a worker's
			p.task, p.phase, p.since = e.TaskID, ralph.PhaseIdle, e.Created.Time
		}
	case ralph.SessionMoved:
		if e.TaskID == p.task {
			p.phase, p.since = d.State, e.Created.Time
		}
	case ralph.SessionEnded:
		if e.TaskID == p.task {
			p.task = 0
		}
	}
}

// describe is an event in one line for people; "" for those of no interest.
func describe(e ralph.Event) string {
	told, err := e.Read()
	if err != nil {
		return ""
	}
	switch d := told.(type) {
	case ralph.SessionStarted:
		return fmt.Sprintf("▶ TASK-%d %s (attempt %d, session %.8s)", e.TaskID, oneLine(d.Title, 100), d.Attempt, e.SessionID)
	case ralph.SignalGiven:
		return describeSignal(d)
	case ralph.BaselineRed:
		if e.TaskID == 0 {
			return describeRed(d.Follows, d.Checks)
		}
		return fmt.Sprintf("! the verification fails before TASK-%d is begun, and refuses its done until it passes: %s",
			e.TaskID, oneLine(d.Reason, 200))
	case ralph.DoneRefused:
		return "    refused: " + oneLine(d.Reason, 200)
	case ralph.CommandRefused:
		return fmt.Sprintf("    refused: `%s`, which only people may do", oneLine(d.Command, 200))
	case ralph.SessionEnded:
		line := fmt.Sprintf("■ TASK-%d → %s: %s (%.0f s, %s)",
			e.TaskID, d.Status, oneLine(d.StatusReason, 200), d.Seconds, dollars(d.CostUSD))
		if n := len(d.Gone); n > 0 {
			line += fmt.Sprintf("\n          ! %d files that you had not committed are gone (%s): `ralph snapshot restore %d`",
				n, oneLine(strings.Join(d.Gone, ", "), 100), d.SnapshotID)
		}
		for _, n := range d.Notes {
			line += "\n          ! " + oneLine(n, 400)
		}
		return line
	case ralph.SessionRestored:
		return "    ! " + oneLine(d.Note, 400)
	case ralph.TaskCommitted:
		return fmt.Sprintf("    committed %.12s", d.Commit)
	case ralph.PermissionAsked:
		line := fmt.Sprintf("⏸ TASK-%d stands still: may it use %s? `ralph permission allow %d`, or `ralph permission deny %d`",
			e.TaskID, text.VisibleLine(d.Tool+" "+d.Input), d.PermissionID, d.PermissionID)
		if !d.Expires.IsZero() {
			line += fmt.Sprintf(" (answers itself with deny at %s)", d.Expires.Local().Format("15:04:05"))
		}
		return line
	case ralph.RunWaiting:
		if d.State == "paused" {
			return "… " + oneLine(d.Reason, 200) + "; `ralph resume` goes on"
		}
		if d.Until.IsZero() {
			return "… waiting " + oneLine(d.Reason, 200)
		}
		return fmt.Sprintf("… waiting until %s (%s from now): %s", d.Until.Local().Format("Jan 2 15:04:05"),
			time.Until(d.Until.Time).Round(time.Second), oneLine(d.Reason, 200))
	}
	return ""
}

// describeSignal is what an agent signalled, in one line.
func describeSignal(s ralph.SignalGiven) string {
	var said struct{ Summary, Reason, Question, What, Text, On *string }
	if err := json.Unmarshal(s.Payload, &said); err != nil {
		return ""
	}
	if text := cmp.Or(said.Summary, said.Reason, said.Question, said.What, said.Text, said.On); text != nil {
		return fmt.Sprintf("    %s: %s", s.Verb, oneLine(*text, 100))
	}
	return ""
}

// describeRed tells of commands that fail before any work, with the end of what
// they printed, and what follows.
func describeRed(follows string, checks []ralph.Check) string {
	var b strings.Builder
	b.WriteString("! the verification fails before any work:")
	for _, c := range checks {
		b.WriteString("\n" + show.Check(c, show.Tail))
	}
	if follows != "" {
		b.WriteString("\n→ " + oneLine(follows, 400))
	}
	return strings.ReplaceAll(b.String(), "\n", "\n            ")
}

// level is how much an event matters to somebody who reads what went wrong only.
func level(e ralph.Event) slog.Level {
	told, err := e.Read()
	if end, ok := told.(ralph.SessionEnded); ok && err == nil {
		switch end.Status {
		case ralph.Failed, ralph.Blocked, ralph.NeedsInput:
			return slog.LevelWarn
		}
	}
	return slog.LevelInfo
}

// describeEnd is the end of a batch in one line.
func describeEnd(e ralph.Event) string {
	told, err := e.Read()
	d, ok := told.(ralph.RunEnded)
	if err != nil || !ok {
		return ""
	}
	return fmt.Sprintf("● batch ended: %s (%s on %s, %s, status %d)", oneLine(d.Reason, 200),
		text.Count(d.Sessions, "session"), text.Count(d.Tasks, "task"), dollars(d.CostUSD), d.ExitStatus)
}

// oneLine cuts text to one line of at most n characters, what hides in it made visible.
func oneLine(s string, n int) string {
	return text.Line(s, n)
}

// summary says what a run came to: per task what happened and why, what waits
// for people, cost and time.
func summary(ctx context.Context, w io.Writer, db *store.DB, result loop.Result) error {
	var run ralph.Run
	var inbox []store.InboxItem
	type line struct {
		task     ralph.Task
		sessions int
		cost     float64
		flags    []report.Flag
		notes    []string
	}
	var order []int64
	lines := map[int64]*line{}
	err := db.View(ctx, func(tx *store.Tx) (err error) {
		if run, err = tx.Run(result.RunID); err != nil {
			return err
		}
		if inbox, err = advice.Inbox(tx); err != nil {
			return err
		}
		sessions, err := tx.Sessions(store.SessionFilter{Run: run.ID})
		if err != nil {
			return err
		}
		for i := len(sessions) - 1; i >= 0; i-- {
			s := sessions[i]
			if lines[s.TaskID] == nil {
				t, err := tx.Task(s.TaskID)
				if err != nil {
					return err
				}
				lines[s.TaskID], order = &line{task: t}, append(order, s.TaskID)
			}
			lines[s.TaskID].sessions++
			lines[s.TaskID].cost += s.CostUSD
			lines[s.TaskID].notes = append(lines[s.TaskID].notes, s.Notes...)
			flags, err := report.Flagged(tx, s.ID)
			if err != nil {
				return err
			}
			lines[s.TaskID].flags = append(lines[s.TaskID].flags, flags...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, id := range order {
		l := lines[id]
		fmt.Fprintf(w, "TASK-%-4d %-11s %s\n           %s (%s, %s)\n", id, l.task.Status, oneLine(l.task.Title, 80), oneLine(l.task.StatusReason, 300), text.Count(l.sessions, "session"), dollars(l.cost))
		for _, n := range l.notes {
			fmt.Fprintf(w, "           ! %s\n", oneLine(n, 400))
		}
		for _, f := range l.flags {
			fmt.Fprintf(w, "           %s\n", oneLine(f.String(), 300))
		}
	}
	if len(inbox) > 0 {
		fmt.Fprintf(w, "\nwaiting for you (%d, see `ralph inbox`):\n", len(inbox))
		for _, i := range inbox[:min(len(inbox), 10)] {
			fmt.Fprintf(w, "  %s: %s\n    %s\n", ralph.Named(i.Kind, i.TaskID), oneLine(i.Text, 120), i.Command)
		}
	}
	fmt.Fprintf(w, "\n%s on %s, %s, %s\n", text.Count(run.Sessions, "session"), text.Count(run.Tasks, "task"), dollars(run.CostUSD), run.EndedAt.Sub(run.StartedAt.Time).Round(time.Second))
	for i, r := range result.Reasons {
		prefix := "ended: "
		if i > 0 {
			prefix = "  also: "
		}
		fmt.Fprintf(w, "%s%s\n", prefix, r)
	}
	_, err = fmt.Fprintf(w, "exit status %d\n", result.Status)
	return err
}
