package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"ralph"
	"ralph/internal/systemd"
	"ralph/internal/text"
	"ralph/internal/words"
	"ralph/store"
)

// Progress prints a run's events as they are stored, one line each, for people or as JSON.
type Progress struct {
	Store *store.DB
	Out   io.Writer
	JSON  bool
	After int64 // the last event before the run

	Batches  bool // runs follow each other: print each end
	Journal  bool // the output is systemd's journal, which adds times itself
	Terminal bool // the last line of the output shows the current activity

	numbers  map[string]int // the numbers of sessions, if there are several
	until    time.Time      // end of the wait; zero if there is none
	task     int64          // in progress; 0 for none
	phase    ralph.Phase
	since    time.Time // start of the phase
	checking string    // the check in progress; "" for none
	checked  time.Time // start of the check
	last     string    // content of the last line; "" if it is blank
}

// countdown is the interval at which the last line of a terminal is updated, and the time after which an event is
// printed.
const countdown = 150 * time.Millisecond

// Follow prints events until over is closed, and then the remaining ones. While the database is away it waits, as its
// run does.
func (p *Progress) Follow(over <-chan struct{}) error {
	var tick <-chan time.Time
	if p.Terminal {
		ticker := time.NewTicker(countdown)
		defer ticker.Stop()
		tick = ticker.C
	}
	changed := p.Store.Changed()
	if err := p.show(); err != nil && !store.Passes(err) {
		return err
	}
	var soon <-chan time.Time
	for {
		select {
		case <-over:
			p.until, p.task, p.checking = time.Time{}, 0, ""
			return errors.Join(p.clear(), p.show())
		case <-changed: // running sessions cause many events: look once for several of them
			changed, soon = nil, time.After(countdown)
		case <-soon:
			changed, soon = p.Store.Changed(), nil
			if err := p.show(); err != nil && !store.Passes(err) {
				return err
			}
		case <-tick:
		}
		if err := p.status(time.Now()); err != nil {
			return err
		}
	}
}

// status updates the last line of a terminal: the time left of a wait, or the current activity and
// its duration.
func (p *Progress) status(now time.Time) error {
	line := ""
	if left := p.until.Sub(now).Round(time.Second); left > 0 {
		line = fmt.Sprintf("  %s left (Ctrl-C ends the run)", left)
	} else if p.checking != "" {
		line = fmt.Sprintf("  verifying: %s, %s", p.checking, max(0, now.Sub(p.checked)).Truncate(time.Second))
	} else if p.task != 0 {
		line = fmt.Sprintf("  TASK-%d %s %s", p.task, p.phase, max(0, now.Sub(p.since)).Truncate(time.Second))
	}
	if !p.Terminal || line == "" {
		return p.clear()
	}
	if line == p.last {
		return nil
	}
	p.last = line
	_, err := fmt.Fprint(p.Out, "\r\x1b[K", line)
	return err
}

// clear erases the status line, so that another line can take its place.
func (p *Progress) clear() error {
	if p.last == "" {
		return nil
	}
	p.last = ""
	_, err := fmt.Fprint(p.Out, "\r\x1b[K")
	return err
}

// show prints new events.
func (p *Progress) show() error {
	for e, err := range p.Store.EventsAfter(context.Background(), p.After) {
		if err != nil {
			return err
		}
		p.After = e.ID
		if err := p.one(e); err != nil {
			return err
		}
	}
	return nil
}

// one prints one event. The last line of JSON is the end of the run with its fields at the top
// level (command line, "run --format json").
func (p *Progress) one(e ralph.Event) error {
	if !p.JSON {
		p.note(e)
		line := words.Short(e, time.Now())
		told, err := e.Read()
		if end, ok := told.(ralph.RunEnded); ok && err == nil && p.Batches {
			line = words.Batch(end)
		}
		if begun, ok := told.(ralph.SessionStarted); ok && begun.Number > 0 {
			if p.numbers == nil {
				p.numbers = map[string]int{}
			}
			p.numbers[e.SessionID] = begun.Number
		}
		if rest, within := strings.CutPrefix(line, "    "); within && p.numbers[e.SessionID] > 0 {
			line = fmt.Sprintf("%3d %s", p.numbers[e.SessionID], rest) // whose line it belongs to
		}
		if line == "" {
			return nil
		}
		if err := p.clear(); err != nil {
			return err
		}
		before := e.Created.Local().Format("15:04:05") + "  "
		if p.Journal {
			before = systemd.Prefix(level(e))
		}
		_, err = fmt.Fprintf(p.Out, "%s%s\n", before, line)
		return err
	}
	told, err := e.Read()
	end, ended := told.(ralph.RunEnded)
	if err != nil || !ended {
		return json.NewEncoder(text.Escaping(p.Out)).Encode(e)
	}
	return json.NewEncoder(text.Escaping(p.Out)).Encode(struct {
		ralph.RunEnded
		Created ralph.Time `json:"created"`
		ID      int64      `json:"id"`
		RunID   int64      `json:"run_id"`
		Type    string     `json:"type"`
	}{end, e.Created, e.ID, e.RunID, e.Type})
}

// note updates the state for the status line: any event after a wait was announced ends the wait.
func (p *Progress) note(e ralph.Event) {
	p.until = time.Time{}
	told, err := e.Read()
	if err != nil {
		return
	}
	switch told.(type) {
	case ralph.SlowCheck, ralph.DoneRefused, ralph.BaselineRed, ralph.SessionStarted, ralph.SessionMoved,
		ralph.SessionEnded, ralph.RunWaiting:
		p.checking = ""
	}
	switch d := told.(type) {
	case ralph.RunWaiting:
		p.until = d.Until.Time
	case ralph.SlowCheck:
		p.checking, p.checked = text.Line(d.Command, 60), e.Created.Time
	case ralph.SessionStarted:
		if e.RunID != 0 { // otherwise it is a worker's
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

// level returns the severity of an event.
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
