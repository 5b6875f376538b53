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
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/internal/words"
	"ralph/store"
)

// Progress prints a run's events as they are stored, one line each, for people or as JSON.
type Progress struct {
	Store  *store.DB
	Out    io.Writer
	Screen term.Screen
	JSON   bool
	After  int64 // the last event before the run

	Batches bool // runs follow each other: print each end
	Journal bool // the output is systemd's journal, which adds times itself

	numbers  map[string]int       // the numbers of sessions, if there are several
	working  map[string]time.Time // the run's sessions in progress, with the time when each began its phase
	task     int64                // newest of them
	phase    ralph.Phase
	spent    float64   // USD, by sessions that have ended
	needs    int       // items of the inbox
	until    time.Time // end of the wait; zero if there is none
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
	if p.Screen.Columns > 0 {
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
			p.until, p.working, p.checking = time.Time{}, nil, ""
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

// status updates the last line of a terminal: the time left of a wait or the current activity, the spending, and the
// number of items that need a person.
func (p *Progress) status(now time.Time) error {
	var parts []string
	ago := func(since time.Time) string { return text.Span(max(0, now.Sub(since)).Truncate(time.Second).Seconds()) }
	switch left := p.until.Sub(now).Round(time.Second); {
	case left > 0:
		parts = append(parts, text.Span(left.Seconds())+" left (Ctrl-C ends the run)")
	case p.checking != "":
		parts = append(parts, fmt.Sprintf("verifying: %s, %s", p.checking, ago(p.checked)))
	case len(p.working) == 1:
		for _, since := range p.working {
			parts = append(parts, fmt.Sprintf("TASK-%d %s %s", p.task, p.phase, ago(since)))
		}
	case len(p.working) > 1:
		parts = append(parts, text.Count(len(p.working), "session"))
	}
	if p.Screen.Columns == 0 || len(parts) == 0 {
		return p.clear()
	}
	parts = append(parts, text.Money(p.spent))
	if p.needs > 0 {
		parts = append(parts, fmt.Sprintf("%d for you in ralph inbox", p.needs))
	}
	line := p.Screen.Paint(term.Dim, p.Screen.Clip("  "+strings.Join(parts, " · "), p.Screen.Columns-1))
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
	if p.Screen.Columns > 0 {
		counts, err := store.Read(context.Background(), p.Store, (*store.Tx).InboxCounts)
		if err != nil {
			return err
		}
		p.needs = 0
		for _, n := range counts {
			p.needs += n
		}
	}
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
		before := e.Created.Local().Format("15:04") + "  "
		if p.Journal {
			before = systemd.Prefix(level(e))
		}
		_, err = fmt.Fprintln(p.Out, p.paint(e, before, line))
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

// paint wraps the line of an event, and colours its first sign.
func (p *Progress) paint(e ralph.Event, before, line string) string {
	sign, rest, ok := strings.Cut(line, " ")
	style := map[string]term.Style{
		"▶": term.Blue, "■": term.Green, "⇢": term.Purple, "↩": term.Yellow, "!": term.Yellow,
		"⏸": term.Yellow, "…": term.Dim,
	}[sign]
	if told, err := e.Read(); err == nil {
		if end, ok := told.(ralph.SessionEnded); ok {
			style = term.Looks[end.Status.Look().Colour]
		}
	}
	if !ok || style == "" {
		return p.Screen.Hang(before, line)
	}
	var rows []string
	first := before + p.Screen.Paint(style, sign) + " "
	for row := range strings.SplitSeq(rest, "\n") {
		if len(rows) > 0 {
			first = strings.Repeat(" ", term.Width(before)+2)
			row = strings.TrimLeft(row, " ")
		}
		rows = append(rows, p.Screen.Hang(first, row))
	}
	return strings.Join(rows, "\n")
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
			if p.working == nil {
				p.working = map[string]time.Time{}
			}
			p.task, p.phase, p.working[e.SessionID] = e.TaskID, ralph.PhaseIdle, e.Created.Time
		}
	case ralph.SessionMoved:
		if _, ok := p.working[e.SessionID]; ok {
			p.task, p.phase, p.working[e.SessionID] = e.TaskID, d.State, e.Created.Time
		}
	case ralph.SessionEnded:
		if _, ok := p.working[e.SessionID]; ok {
			delete(p.working, e.SessionID)
			p.spent += d.CostUSD
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
