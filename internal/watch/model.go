package watch

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"ralph"
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
	confirming      // of an irreversible action
	reading         // everything that waits, in full
	opened          // of the items, the selected one in full
	helping
)

// A line is a line of the session's log, not yet fitted to the screen.
type line struct {
	kind string // as in transcript.Line
	text string
}

// A draft is a text in progress, by its purpose.
type draft struct {
	do string
	id int64
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
	question Waiting // that is being answered
	drafts   map[draft]string
	message  string // result of the last action
	failed   bool
}

// A row can be selected: a session by its number, or an item.
type row struct {
	number        int
	kind          string
	task, comment int64
}

// rows returns the rows from top to bottom, and the index of the selected one.
func (m Model) rows() (rows []row, at int) {
	for _, l := range m.ordered() {
		if l.Session != nil {
			rows = append(rows, row{number: l.Number})
		}
	}
	sessions := len(rows)
	for _, w := range m.snapshot.Waiting {
		rows = append(rows, rowOf(w))
	}
	if at = slices.Index(rows, m.chosen); at < 0 {
		at = max(0, min(sessions, len(rows)-1))
	}
	return rows, at
}

// ordered are the sessions, paused ones first.
func (m Model) ordered() []advice.Session {
	list := slices.Clone(m.snapshot.Parallel)
	first := func(l advice.Session) int {
		if m.still(l) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b advice.Session) int { return first(a) - first(b) })
	return list
}

// still reports whether a session stands still until a person answers.
func (m Model) still(l advice.Session) bool {
	return l.Session != nil && slices.ContainsFunc(m.snapshot.Waiting, func(w Waiting) bool {
		return w.Kind == "permission" && w.TaskID == l.Task.ID
	})
}

func rowOf(w Waiting) row { return row{kind: w.Kind, task: w.TaskID, comment: w.Comment} }

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
	for i, w := range m.snapshot.Waiting {
		if rowOf(w) == selected {
			return &m.snapshot.Waiting[i]
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

// move selects the row that is so many further down.
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
	}
}

// Init starts the first look.
func (m Model) Init() tea.Cmd { return m.look(true) }

// Update handles a message.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
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
			m.message = advice.Explain(msg.err)
		}
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		if m.mode == writing {
			return m.edit(msg)
		}
	}
	return m, nil
}

type tick struct{}

// take handles the result of a look.
func (m *Model) take(l looked) {
	if l.err != nil {
		m.problem = l.err.Error()
		return
	}
	m.problem, m.loaded, m.snapshot = "", true, l.snapshot
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

func (m Model) key(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	name := k.String()
	if name == "ctrl+c" && m.mode == writing {
		name = "esc" // a key must not discard a text
	}
	if name == "ctrl+c" {
		return m, tea.Quit
	}
	switch m.mode {
	case writing:
		return m.writingKey(k, name)
	case reading:
		switch name {
		case "A", "D":
			m.mode = normal
			return m.permit(name)
		case "esc", "q", "enter", "o":
			m.mode = normal
		default:
			m.scroll(name)
		}
		return m, nil
	case opened:
		return m.openedKey(name)
	case confirming:
		m.mode = normal
		if name != "y" {
			m.message, m.failed = "nothing was done", false
			return m, nil
		}
		return m, m.act(m.wanted)
	case helping:
		m.mode = normal
		return m, nil
	}
	return m.command(name)
}

// openedKey handles a key while one thing that waits is shown whole.
func (m Model) openedKey(name string) (tea.Model, tea.Cmd) {
	switch w := m.read(); {
	case w == nil || name == "esc" || name == "q" || name == "enter":
		m.mode = normal
	case (name == "A" || name == "D") && w.Kind == "permission":
		m.mode = normal
		return m, m.act(Action{Do: map[string]string{"A": "allow", "D": "deny"}[name], ID: w.Comment})
	case (name == "a" || name == "r" || name == "d") && w.Decides != ByCommand:
		return m.decide(name, *w)
	default:
		m.scroll(name)
	}
	return m, nil
}

// selectedKey handles a key that decides on the selected item: on a question if none is selected.
func (m Model) selectedKey(name string) (tea.Model, tea.Cmd) {
	w := m.item()
	switch {
	case w != nil && w.Kind != "permission" && w.Decides != ByAnswer && w.Decides != ByCommand:
		if !m.seen(*w) { // nothing is decided that was not seen whole
			return m.open()
		}
		return m.decide(name, *w)
	case name == "a":
		return m.answer(0)
	}
	return m, nil
}

// writingKey handles a key while a text is written.
func (m Model) writingKey(k tea.KeyPressMsg, name string) (tea.Model, tea.Cmd) {
	switch name {
	case "esc":
		m.saveDraft()
		m.mode = normal
		return m, nil
	case "tab":
		if m.wanted.Do == "answer" {
			m.saveDraft()
			return m.answer(1)
		}
	case "enter":
		return m.written()
	case "up", "down", "pgup", "pgdown":
		m.scroll(name)
		return m, nil
	}
	return m.edit(k)
}

func (m Model) edit(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	return m, cmd
}

// command handles a key outside of any text.
func (m Model) command(name string) (tea.Model, tea.Cmd) {
	m.message, m.failed = "", false
	page := max(1, m.height/2)
	if m.full {
		switch name {
		case "up":
			name = "k"
		case "down":
			name = "j"
		case "esc", "enter":
			m.full = false
			return m, nil
		}
	}
	switch name {
	case "q":
		return m, tea.Quit
	case "?", "h":
		m.mode = helping
	case "up":
		m.move(-1)
	case "down":
		m.move(1)
	case "k":
		m.up++
	case "j":
		m.up--
	case "pgup", "b":
		m.up += page
	case "pgdown", "space", "f":
		m.up -= page
	case "g", "home":
		m.up = len(m.visible())
	case "G", "end":
		m.up = 0
	case "/":
		return m.write(Action{Do: "filter"}, m.filter)
	default:
		return m.acting(name)
	}
	m.up = max(0, min(m.up, len(m.visible())))
	return m, nil
}

// acting handles a key that follows another session, or does something.
func (m Model) acting(name string) (tea.Model, tea.Cmd) {
	switch name {
	case "1", "2", "3", "4", "5", "6", "7", "8", "9":
		if n := int(name[0] - '0'); n <= len(m.snapshot.Parallel) {
			m.number = n
			return m, m.look(false)
		}
	case "tab":
		if n := len(m.snapshot.Parallel); n > 0 {
			m.number = m.number%n + 1
			return m, m.look(false)
		}
	case "c":
		if m.snapshot.Session == nil {
			return m.refuse("no session is running; comment with `ralph comment TASK TEXT`")
		}
		return m.write(Action{Do: "comment", ID: m.snapshot.Task.ID}, m.drafts[draft{"comment", m.snapshot.Task.ID}])
	case "A", "D":
		if p := m.asked(); p != nil && len(m.band()) < len(m.whole(*p))+bandKeys {
			m.mode, m.down = reading, 0 // nothing is decided that was not seen in full
			return m, nil
		}
		return m.permit(name)
	case "enter":
		return m.open()
	case "o":
		if len(m.snapshot.Waiting) == 0 {
			return m.refuse("nothing waits for you")
		}
		m.mode, m.down = reading, 0
	case "a", "r", "d":
		return m.selectedKey(name)
	case "p":
		if !m.snapshot.Running {
			return m.refuse("no run is active")
		}
		if m.snapshot.State == "paused" || m.snapshot.Control == ralph.ControlPause {
			return m, m.act(Action{Do: "resume"})
		}
		return m, m.act(Action{Do: "pause"})
	case "s":
		if m.snapshot.Session == nil {
			return m.refuse("no session is running")
		}
		m.mode, m.wanted = confirming, Action{Do: "skip", Text: m.snapshot.Session.ID}
	case "x":
		if !m.snapshot.Running {
			return m.refuse("no run is active")
		}
		m.mode, m.wanted = confirming, Action{Do: "stop"}
	}
	return m, nil
}

// decide begins to decide on an item, by one of the browser's keys.
func (m Model) decide(name string, w Waiting) (tea.Model, tea.Cmd) {
	m.mode = normal
	sure := func(a Action) (tea.Model, tea.Cmd) {
		m.mode, m.wanted = confirming, a
		return m, nil
	}
	switch {
	case name == "a" && w.Decides == ByAnswer:
		m.question = w
		return m.answer(0)
	case name == "a" && w.Decides == ByWords:
		return m.write(Action{Do: "resolve", ID: w.Comment, Item: w.Item}, m.drafts[draft{"resolve", w.Comment}])
	case name == "a" && w.Decides == ByYesOrNo:
		return sure(Action{Do: "approve", Item: w.Item})
	case name == "r" && w.Decides == ByYesOrNo:
		return m.write(Action{Do: "reject", ID: w.Comment, Item: w.Item}, m.drafts[draft{"reject", w.Comment}])
	case name == "a" && w.Decides == ByRetry:
		return sure(Action{Do: "retry", ID: w.TaskID})
	case name == "d" && w.Decides == ByRetry:
		return sure(Action{Do: "cancel", ID: w.TaskID})
	}
	return m, nil
}

// open shows the selection whole: a session's transcript, or an item.
func (m Model) open() (tea.Model, tea.Cmd) {
	selected := m.selected()
	switch {
	case selected == row{}:
		return m.refuse("nothing waits for you")
	case selected.number > 0:
		m.number, m.full = selected.number, true
		return m, m.look(false)
	}
	// The opened item stays, even if something more urgent comes.
	m.mode, m.down, m.chosen = opened, 0, selected
	return m, nil
}

// asked returns the permission that a paused agent waits for; nil for none.
func (m Model) asked() *Waiting {
	for i, w := range m.snapshot.Waiting {
		if w.Kind == "permission" {
			return &m.snapshot.Waiting[i]
		}
	}
	return nil
}

// permit allows or denies the permission that a paused agent waits for.
func (m Model) permit(key string) (tea.Model, tea.Cmd) {
	p := m.asked()
	if p == nil {
		return m.refuse("no agent waits for a permission")
	}
	return m, m.act(Action{Do: map[string]string{"A": "allow", "D": "deny"}[key], ID: p.Comment})
}

// scroll scrolls the text.
func (m *Model) scroll(name string) {
	half := m.height / 2
	step := map[string]int{
		"up": -1, "k": -1, "down": 1, "j": 1,
		"pgup": -half, "b": -half, "pgdown": half, "space": half,
	}[name]
	m.down = max(0, min(m.down+step, len(m.text())-1))
}

func (m Model) refuse(why string) (tea.Model, tea.Cmd) {
	m.message, m.failed = why, true
	return m, nil
}

// write starts the input of a text.
func (m Model) write(a Action, text string) (tea.Model, tea.Cmd) {
	m.mode, m.wanted = writing, a
	m.input.SetValue(text)
	m.input.SetWidth(m.room())
	m.input.CursorEnd()
	return m, m.input.Focus()
}

// answer begins to answer a question: the one that is being answered, or was last, if it
// waits still, or the one that is so many behind it.
func (m Model) answer(further int) (tea.Model, tea.Cmd) {
	var questions []Waiting
	at := 0
	for _, w := range m.snapshot.Waiting {
		if w.Kind != "question" {
			continue
		}
		if w.Comment == m.question.Comment {
			at = len(questions)
		}
		questions = append(questions, w)
	}
	if questions == nil {
		m.mode = normal
		return m.refuse("no question waits for an answer")
	}
	m.question, m.down = questions[(at+further)%len(questions)], 0
	return m.write(Action{Do: "answer", ID: m.question.Comment}, m.drafts[draft{"answer", m.question.Comment}])
}

// saveDraft saves the text in progress until it is continued.
func (m *Model) saveDraft() {
	if m.wanted.Do == "filter" {
		return
	}
	if m.drafts == nil {
		m.drafts = map[draft]string{}
	}
	m.drafts[draft{m.wanted.Do, m.wanted.ID}] = m.input.Value()
}

// room is how wide a text may be that is being written; the cursor needs a column.
func (m Model) room() int {
	if m.narrow() {
		return m.width - 3
	}
	return m.width - ansi.StringWidth(m.label()) - 1
}

// written ends the input.
func (m Model) written() (tea.Model, tea.Cmd) {
	m.mode = normal
	text := strings.TrimSpace(m.input.Value())
	delete(m.drafts, draft{m.wanted.Do, m.wanted.ID})
	switch {
	case m.wanted.Do == "filter":
		m.filter, m.up = text, 0
		return m, nil
	case text == "" && m.wanted.Do != "reject":
		m.message, m.failed = "nothing was sent", false
		return m, nil
	}
	if n, err := strconv.Atoi(text); m.wanted.Do == "answer" && err == nil && n >= 1 && n <= len(m.question.Options) {
		text = m.question.Options[n-1]
	}
	m.wanted.Text = text
	return m, m.act(m.wanted)
}
