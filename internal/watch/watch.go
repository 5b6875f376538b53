// Package watch is the terminal screen that follows a run.
//
// The model is pure: what it shows is a function of the last snapshot, what the
// agent did, the size of the terminal and the keys that were pressed. Everything
// that it wants to know or to have done goes through a [Source]; it decides
// nothing about tasks and keeps no more than the last lines of a session.
package watch

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"ralph"
	"ralph/internal/transcript"
)

// A Snapshot is what there is to see at a moment.
type Snapshot struct {
	At      ralph.Time
	Project string

	Running bool   // a run is active
	State   string // of the run: "running", "waiting", "paused"; of the last one: "ended"
	Control string // what a person has asked of it, as in ralph.Run
	Reason  string // why it waits, or why it ended
	Until   ralph.Time
	Since   ralph.Time
	Exit    *int // of the last run, if none is active

	Sessions, MaxSessions int
	CostUSD, MaxCostUSD   float64 // of the run
	DayUSD, MaxDayUSD     float64 // since midnight

	Session     *ralph.Session // in progress; nil if there is none
	Task        ralph.Task     // of the session
	SessionUSD  float64        // its limit
	ContextUsed int64          // tokens of its context, 0 if it is not known
	ContextSize int64

	Windows   []ralph.UsageWindow
	MaxWindow map[string]int // how much of a window may be used, by its name, in percent
	Counts    map[ralph.Status]int
	Queue     []ralph.Task // the next ones, in order
	Waiting   []Waiting
}

// Waiting is one thing that waits for a person.
type Waiting struct {
	Kind    string
	TaskID  int64
	Comment int64
	Text    string
	Command string // that settles it
	Title   string // of the task
	Options []string
	Diff    []string   // what an amendment changes
	Expires ralph.Time // when a permission answers itself with deny
}

// An Action is what a person wants to have done.
type Action struct {
	Do   string // "comment", "answer", "allow", "deny", "pause", "resume", "skip" or "stop"
	ID   int64  // the task to comment on, the comment to answer, or the permission
	Text string
}

// A Source is where a screen gets what it shows. Its methods are called one at a
// time each, and not in the goroutine that draws.
type Source interface {
	// Look returns what there is to see.
	Look(ctx context.Context) (Snapshot, error)
	// Read returns what the session has done since the last call for it.
	Read(ctx context.Context, session string) ([]transcript.Entry, error)
	// Act has something done and says in a line what came of it.
	Act(ctx context.Context, a Action) (string, error)
}

// Refresh is how often a screen looks for news.
const Refresh = 500 * time.Millisecond

// Run shows the screen until the person leaves it or ctx ends.
func Run(ctx context.Context, s Source, options ...tea.ProgramOption) error {
	_, err := tea.NewProgram(New(ctx, s), append([]tea.ProgramOption{tea.WithContext(ctx)}, options...)...).Run()
	return err
}

type (
	looked struct {
		snapshot Snapshot
		entries  []transcript.Entry
		session  string
		err      error
	}
	acted struct {
		said string
		err  error
	}
)

// look asks the source, in the background.
func (m Model) look() tea.Cmd {
	ctx, s := m.ctx, m.source
	return func() tea.Msg {
		l := looked{}
		if l.snapshot, l.err = s.Look(ctx); l.err == nil && l.snapshot.Session != nil {
			l.session = l.snapshot.Session.ID
			l.entries, l.err = s.Read(ctx, l.session)
		}
		return l
	}
}

func (m Model) act(a Action) tea.Cmd {
	ctx, s := m.ctx, m.source
	return func() tea.Msg {
		said, err := s.Act(ctx, a)
		return acted{said, err}
	}
}
