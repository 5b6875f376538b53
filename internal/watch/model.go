package watch

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"ralph/internal/advice"
	"ralph/internal/transcript"
)

// keptLines is the number of a session's lines kept for scrolling back.
const keptLines = 2000

// A mode determines the meaning of keys.
type mode int

const (
	normal     mode = iota
	writing         // a comment, an answer or a filter
	confirming      // confirming an irreversible action
	reading         // everything that waits, in full
	opened          // of the items, the selected one in full
	helping
)

// A line is a line of the session's log, not yet fitted to the screen.
type line struct {
	kind string // kind in transcript.Line
	text string
}

// A draft is a text in progress, by its purpose.
type draft struct {
	do  string
	of  row
	key string
}

// A Model is the screen.
type Model struct {
	ctx    context.Context
	source Source
	looks  *sync.Mutex     // one at a time
	works  *sync.WaitGroup // actions that are carried out

	width, height int
	snapshot      Snapshot
	loaded        bool
	problem       string // the error of the last look

	number  int // followed; 0 for the first one in use
	session string
	lines   []line
	up      int  // lines scrolled back
	full    bool // the session's transcript fills the screen
	down    int  // lines of the text above the screen
	filter  string
	chosen  row // selected; if it is gone, the first item is

	mode     mode
	input    textinput.Model
	wanted   Action  // text being written or confirmed
	deciding Waiting // whose words are written
	key      string  // key of the decision
	drafts   map[draft]string
	held     *held            // the decision that can be taken back; nil for none
	gone     map[row]bool     // decided rows, until they wait no longer
	changes  map[row][]string // lines of held changes
	message  string           // result of the last action
	failed   bool
}

// A row can be selected: a session by its number, or an item.
type row struct {
	number    int
	kind      string
	task, ref int64
}

// regret is the time for taking back a decision.
const regret = 10 * time.Second

// A held decision is carried out when it can be taken back no longer.
type held struct {
	row    row
	action Action
}

// rows returns the rows from top to bottom, and the index of the selected one.
func (m Model) rows() (rows []row, at int) {
	for _, l := range m.ordered() {
		if l.Session != nil {
			rows = append(rows, row{number: l.Number})
		}
	}
	sessions := len(rows)
	for _, w := range m.waiting() {
		rows = append(rows, rowOf(w))
	}
	if at = slices.Index(rows, m.chosen); at < 0 {
		at = max(0, min(sessions, len(rows)-1))
	}
	return rows, at
}

// ordered returns the sessions, paused ones first.
func (m Model) ordered() []advice.Session {
	list := slices.Clone(m.snapshot.Parallel)
	first := func(l advice.Session) int {
		if l.Still {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b advice.Session) int { return first(a) - first(b) })
	return list
}

func rowOf(w Waiting) row { return row{kind: w.Kind, task: w.TaskID, ref: w.Ref.ID} }

// waiting returns the items that are not decided.
func (m Model) waiting() (list []Waiting) {
	for _, w := range m.snapshot.Waiting {
		if !m.gone[rowOf(w)] {
			list = append(list, w)
		}
	}
	return list
}

// selected returns the selected row; the zero row if there is none.
func (m Model) selected() row {
	if rows, at := m.rows(); len(rows) > 0 {
		return rows[at]
	}
	return row{}
}

// item returns the selected item; nil for none.
func (m Model) item() *Waiting {
	selected := m.selected()
	for _, w := range m.waiting() {
		if rowOf(w) == selected {
			return &w
		}
	}
	return nil
}

// read returns the opened item; nil if it does not wait any more.
func (m Model) read() *Waiting {
	if w := m.item(); w != nil && rowOf(*w) == m.chosen {
		return w
	}
	return nil
}

// move selects the row that many rows further down.
func (m *Model) move(by int) {
	if rows, at := m.rows(); len(rows) > 0 {
		m.chosen = rows[max(0, min(at+by, len(rows)-1))]
	}
}

// New returns a screen without a snapshot.
func New(ctx context.Context, s Source) Model {
	input := textinput.New()
	input.CharLimit = 4000
	input.Prompt = ""
	return Model{
		ctx: ctx, source: s, looks: new(sync.Mutex), works: new(sync.WaitGroup), width: 80, height: 24, input: input,
		drafts: map[draft]string{}, gone: map[row]bool{}, changes: map[row][]string{},
	}
}

// Init starts the first look.
func (m Model) Init() tea.Cmd { return m.look(true) }

// Update handles a message, and asks for the lines of the selected change.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	next, cmd := m.handle(msg)
	w := next.item()
	if w == nil || !w.Held() {
		return next, cmd
	}
	of := rowOf(*w)
	if _, known := next.changes[of]; known {
		return next, cmd
	}
	next.changes[of] = nil
	return next, tea.Batch(cmd, func() tea.Msg {
		lines, err := m.source.Change(m.ctx, w.InboxItem)
		if err != nil {
			lines = err.Error()
		}
		return changed{of, strings.Split(strings.Trim(lines, "\n"), "\n")}
	})
}

func (m Model) handle(msg tea.Msg) (Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, 20), max(msg.Height, 3)
		m.input.SetWidth(m.room())
	case looked:
		m.take(msg)
		if !msg.again {
			return m, nil
		}
		return m, m.pause()
	case tick:
		return m, m.look(true)
	case acted:
		m.message, m.failed = msg.said, msg.err != nil
		if msg.err != nil {
			delete(m.gone, msg.row)
			m.message = advice.Explain(msg.err)
		}
	case changed:
		m.changes[msg.row] = msg.lines
	case released:
		if m.held == msg.held {
			return m.flush()
		}
	case tea.KeyPressMsg:
		return m.pressed(msg)
	case tea.PasteMsg:
		if m.mode == writing {
			return m.edit(msg)
		}
	}
	return m, nil
}

type tick struct{}

// take handles the result of a look at the source.
func (m *Model) take(l looked) {
	if l.err != nil {
		m.problem = l.err.Error()
		return
	}
	m.problem, m.loaded, m.snapshot = "", true, l.snapshot
	maps.DeleteFunc(m.gone, func(r row, _ bool) bool {
		return !slices.ContainsFunc(l.snapshot.Waiting, func(w Waiting) bool { return rowOf(w) == r })
	})
	if l.session != "" && l.session != m.session {
		m.session, m.lines, m.up = l.session, nil, 0
	}
	before := len(m.visible())
	for _, e := range l.entries {
		m.lines = append(m.lines, linesOf(e)...)
	}
	if n := len(m.lines) - keptLines; n > 0 {
		m.lines = append([]line(nil), m.lines[n:]...)
	}
	if m.up > 0 {
		m.up += max(0, len(m.visible())-before) // keep the visible lines in place
	}
}

// linesOf returns an entry's lines.
func linesOf(e transcript.Entry) (lines []line) {
	for _, l := range e.Lines() {
		if text := l.Lead + l.Text; strings.TrimSpace(text) != "" {
			lines = append(lines, line{l.Kind, text})
		}
	}
	return lines
}

// visible returns the lines that match the filter.
func (m Model) visible() []line {
	if m.filter == "" {
		return m.lines
	}
	var out []line
	for _, l := range m.lines {
		if strings.Contains(strings.ToLower(l.text), strings.ToLower(m.filter)) {
			out = append(out, l)
		}
	}
	return out
}
