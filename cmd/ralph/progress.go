package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/report"
	"ralph/internal/systemd"
	"ralph/internal/text"
	"ralph/internal/words"
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
		line := words.Short(e, time.Now())
		if told, err := e.Read(); err == nil && p.batches {
			if end, ok := told.(ralph.RunEnded); ok {
				line = words.Batch(end)
			}
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
		fmt.Fprintf(w, "TASK-%-4d %-11s %s\n           %s (%s, %s)\n",
			id, l.task.Status, text.Line(l.task.Title, 80),
			text.Line(l.task.StatusReason, 300), text.Count(l.sessions, "session"), text.Money(l.cost))
		for _, n := range l.notes {
			fmt.Fprintf(w, "           ! %s\n", text.Line(n, 400))
		}
		for _, f := range l.flags {
			fmt.Fprintf(w, "           %s\n", text.Line(f.String(), 300))
		}
	}
	if len(inbox) > 0 {
		fmt.Fprintf(w, "\nwaiting for you (%d, see `ralph inbox`):\n", len(inbox))
		for _, i := range inbox[:min(len(inbox), 10)] {
			fmt.Fprintf(w, "  %s: %s\n    %s\n", ralph.Named(i.Kind, i.TaskID), text.Line(i.Text, 120), i.Command)
		}
	}
	fmt.Fprintf(w, "\n%s on %s, %s, %s\n",
		text.Count(run.Sessions, "session"), text.Count(run.Tasks, "task"), text.Money(run.CostUSD),
		run.EndedAt.Sub(run.StartedAt.Time).Round(time.Second))
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
