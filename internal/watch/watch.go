// Package watch is the terminal screen that follows a run.
//
// The model is pure: the screen is a function of the last snapshot, the agent's activity, the size
// of the terminal and the pressed keys. All input and every action goes through a [Source]; the
// model makes no decisions about tasks and keeps only the last lines of a session.
package watch

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/transcript"
)

// A Snapshot is the content of a screen at one moment.
type Snapshot struct {
	At      ralph.Time
	Project string
	Forge   string // its state in a line; "" for none

	Running bool     // a run is active
	State   string   // of the run: "running", "waiting", "paused"; of the last one: "ended"
	Control string   // a person's request, as in ralph.Run
	Reason  string   // why it waits, or why it ended
	Morning []string // summary of the last night, as `ralph status` has it; its first line is the headline
	Until   ralph.Time
	Since   ralph.Time
	Exit    *int // of the last run, if none is active

	Sessions, MaxSessions int
	CostUSD, MaxCostUSD   float64 // of the run
	DayUSD, MaxDayUSD     float64 // since midnight

	Parallel    []advice.Session // if there are several
	Session     *ralph.Session   // the followed session in progress; nil for none
	Task        ralph.Task       // of the session
	SessionUSD  float64          // cost limit
	SpentUSD    float64          // its spending so far, an estimate; 0 if unknown
	ContextUsed int64            // tokens of its context; 0 if unknown
	ContextSize int64

	Windows   []ralph.UsageWindow
	MaxWindow map[string]int // limit of a window by its name, in percent
	Counts    map[ralph.Status]int

	Changed <-chan struct{} // closed when there may be something new; nil if that is not known

	Queue   []ralph.Task // the next tasks, in order
	Merging []string     // messages about the merge queue
	Waiting []Waiting
}

// Waiting is one inbox item.
type Waiting struct {
	Kind      string
	TaskID    int64
	Comment   int64
	Text      string
	Command   string // that answers it
	Item      string // its name in commands
	Decides   Decides
	Holds     bool   // work cannot go on before it is decided
	Title     string // of the task
	Options   []string
	Preferred string     // of the options, by the agent
	Diff      []string   // changes of an amendment
	Expires   ralph.Time // when a permission is denied automatically
}

// Decides is a way for a person to decide on an item.
type Decides int

// The ways to decide. Items without one are decided by their command.
const (
	ByCommand Decides = iota
	ByAnswer          // words
	ByWords           // words that say how it was resolved
	ByYesOrNo
	ByRetry // again, or called off
)

// An Action is something that a person wants to do.
type Action struct {
	// "comment", "answer", "allow", "deny", "approve", "reject", "retry", "cancel", "resolve", "pause", "resume", "skip"
	// or "stop"
	Do   string
	ID   int64  // the task to comment on, to retry or to cancel, the comment to answer or to resolve, or the permission
	Item string // to approve or to reject
	Text string
}

// A Source provides the content of a screen. Each method is called by one goroutine at a time, other than the drawing
// one.
type Source interface {
	// Snapshot returns the content; among several sessions it follows the given one, or the first one with 0.
	Snapshot(ctx context.Context, number int) (Snapshot, error)
	// Read returns the session's events since the last call for it.
	Read(ctx context.Context, session string) ([]transcript.Entry, error)
	// Act carries out an action and returns the result in one line.
	Act(ctx context.Context, a Action) (string, error)
}

// Refresh is the shortest time between two looks for changes, and the time between looks while something moves. Rest is
// the longest, while nothing does: for times shown in minutes.
const (
	Refresh = 500 * time.Millisecond
	Rest    = 10 * time.Second
)

type (
	looked struct {
		snapshot Snapshot
		entries  []transcript.Entry
		session  string
		err      error
		again    bool // more looks follow it
	}
	acted struct {
		said string
		err  error
	}
)

// look calls the source in the background. With again it is one of the regular looks as long as there is a screen; else
// it is an additional one, for an answer that a person waits for.
func (m Model) look(again bool) tea.Cmd {
	ctx, s, number, one := m.ctx, m.source, m.number, m.looks
	return func() tea.Msg {
		one.Lock()
		defer one.Unlock()
		l := looked{again: again}
		if l.snapshot, l.err = s.Snapshot(ctx, number); l.err == nil && l.snapshot.Session != nil {
			l.session = l.snapshot.Session.ID
			l.entries, l.err = s.Read(ctx, l.session)
		}
		return l
	}
}

// pause waits until it is time to look again.
func (m Model) pause() tea.Cmd {
	ctx, s := m.ctx, m.snapshot
	return func() tea.Msg {
		if wait(ctx, nil, Refresh); s.rests() {
			wait(ctx, s.Changed, Rest-Refresh)
		}
		return tick{}
	}
}

// wait waits until something has changed, for a while at most.
func wait(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-timer.C:
	}
}

// rests reports whether nothing on the screen moves by itself: no session works and nothing is counted down.
func (s Snapshot) rests() bool {
	counted := func(w Waiting) bool { return !w.Expires.IsZero() }
	return s.Changed != nil && s.Session == nil && s.Until.IsZero() && !slices.ContainsFunc(s.Waiting, counted)
}

// act begins an action at once, so that it is carried out also if the person leaves before the next message.
func (m Model) act(a Action) tea.Cmd {
	ctx, result := context.WithoutCancel(m.ctx), make(chan acted, 1)
	m.works.Go(func() {
		said, err := m.source.Act(ctx, a)
		result <- acted{said, err}
	})
	return func() tea.Msg { return <-result }
}
