// Package watch is the terminal screen that follows a run.
//
// The model is pure: the screen is a function of the last snapshot, the agent's activity, the size
// of the terminal and the pressed keys. All input and every action goes through a [Source]; the
// model makes no decisions about tasks and keeps only the last lines of a session.
package watch

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/inbox"
	"ralph/internal/transcript"
	"ralph/store"
)

// A Snapshot is the content of a screen at one moment.
type Snapshot struct {
	At      ralph.Time
	Project string
	Forge   string // its state in a line; "" for none

	Running bool     // a run is active
	State   string   // state of the run: "running", "waiting", "paused"; of the last one: "ended"
	Control string   // a person's request, as in ralph.Run
	Reason  string   // why it waits, or why it ended
	Morning []string // summary of the last night, as in `ralph status`
	Merged  int      // tasks of the night
	Failed  int      // tasks of the night
	Until   ralph.Time
	Since   ralph.Time
	Exit    *int // exit status of the last run, if none is active

	Sessions, MaxSessions int
	CostUSD, MaxCostUSD   float64 // costs of the run
	DayUSD, MaxDayUSD     float64 // since midnight

	Parallel    []advice.Session // if there are several
	Session     *ralph.Session   // the followed session in progress; nil for none
	Task        ralph.Task       // task of the session
	SessionUSD  float64          // cost limit
	SpentUSD    float64          // its spending so far, an estimate; 0 if unknown
	ContextUsed int64            // tokens of its context; 0 if unknown
	ContextSize int64

	Windows   []ralph.UsageWindow
	MaxWindow map[string]int // limit of a window by its name, in percent
	Counts    map[string]int // see [store.Tx.Tally]

	Changed <-chan struct{} // closed when there may be something new; nil if that is not known

	Queue   []ralph.Task // the next tasks, in order
	Merging []string     // messages about the merge queue
	Waiting []Waiting
}

// Waiting is an inbox item, with further ones that wait for the same reason.
type Waiting struct {
	store.InboxItem
	Also []store.InboxItem
}

// Text returns the item's text, with its label.
func (w Waiting) Text() string { return inbox.Said(w.InboxItem) }

// Holds reports whether work cannot continue before the item is decided.
func (w Waiting) Holds() bool { return inbox.SectionOf(w.InboxItem) == inbox.Holds }

// Held reports whether the item is a change that waits for an approval.
func (w Waiting) Held() bool { return inbox.KindOf(w.Kind).Form == inbox.FormHeld }

// deciding are the browser's keys that decide on items here. Others of a dialogue need a separate
// terminal.
const deciding = "ardt"

// choices returns the decisions on the item, each with its key.
func (w Waiting) choices() (list []inbox.Choice) {
	for _, c := range inbox.Choices(w.InboxItem) {
		if c.Key = cmp.Or(c.Key, "a"); strings.Contains(deciding, c.Key) {
			list = append(list, c)
		}
	}
	return list
}

// choice returns the decision with a key.
func (w Waiting) choice(key string) (c inbox.Choice, ok bool) {
	at := slices.IndexFunc(w.choices(), func(c inbox.Choice) bool { return c.Key == key })
	if at < 0 {
		return c, false
	}
	return w.choices()[at], true
}

// commands decide on the item and on its equals. Of equal proposals, one is taken up and the others are rejected as its
// doubles.
func (w Waiting) commands(key, words string) (list [][]string) {
	form := inbox.KindOf(w.Kind).Form
	for n, i := range append([]store.InboxItem{w.InboxItem}, w.Also...) {
		k, said := key, words
		if n > 0 && key == "a" && (form == inbox.FormProposal || form == inbox.FormSuggestion) {
			k, said = "r", "the same as "+w.Item
		}
		if c, ok := (Waiting{InboxItem: i}).choice(k); ok {
			list = append(list, c.Command(i, said))
		}
	}
	return list
}

// An Action is something that a person wants to do.
type Action struct {
	Do       string     // "comment", "decide", "pause", "resume", "skip" or "stop"
	ID       int64      // the task to comment on
	Text     string     // the comment, or the session to skip
	Commands [][]string // commands that decide
}

// A Source provides the content of a screen. Snapshot and Read are called by one goroutine at a time, other than the
// drawing one; Change and Act by several.
type Source interface {
	// Snapshot returns the content; among several sessions it follows the given one, or the first one with 0.
	Snapshot(ctx context.Context, number int) (Snapshot, error)
	// Change returns the difference of a change that waits for an approval, as `ralph inbox ITEM` shows it.
	Change(ctx context.Context, i store.InboxItem) (string, error)
	// Read returns the session's events since the last call for it.
	Read(ctx context.Context, session string) ([]transcript.Entry, error)
	// Act carries out an action and returns the result in one line.
	Act(ctx context.Context, a Action) (string, error)
}

// Refresh is the shortest time between two looks for changes, and the interval while something moves. Rest is the
// longest interval, while nothing moves: it suits times shown in minutes.
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
		row  row // the row of the decision; zero for none
		said string
		err  error
	}
	changed struct {
		row   row
		lines []string
	}
	released struct{ held *held }
)

// look calls the source in the background. With again it is one of the regular looks, which repeat as long as there
// is a screen. Otherwise it is an additional one, for an answer that a person waits for.
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

// rests reports whether nothing on the screen moves by itself: no session works and no countdown
// runs.
func (s Snapshot) rests() bool {
	counted := func(w Waiting) bool { return !w.Expires.IsZero() }
	return s.Changed != nil && s.Session == nil && s.Until.IsZero() && !slices.ContainsFunc(s.Waiting, counted)
}

// act begins an action at once, so that it is carried out also if the person leaves before the next message; of is the
// row that it decides on.
func (m Model) act(a Action, of row) tea.Cmd {
	ctx, result := context.WithoutCancel(m.ctx), make(chan acted, 1)
	m.works.Go(func() {
		said, err := m.source.Act(ctx, a)
		result <- acted{of, said, err}
	})
	return func() tea.Msg { return <-result }
}
