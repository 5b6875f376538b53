package watch

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"ralph"
)

func (m Model) pressed(k tea.KeyPressMsg) (Model, tea.Cmd) {
	name := k.String()
	if name == "ctrl+c" && m.mode == writing {
		name = "esc" // a key must not discard a text
	}
	if name == "ctrl+c" {
		return m.leave()
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
		return m, m.act(m.wanted, row{})
	case helping:
		m.mode = normal
		return m, nil
	}
	return m.command(name)
}

// leave ends the screen. A decision that could still be taken back is carried out.
func (m Model) leave() (Model, tea.Cmd) {
	m, cmd := m.flush()
	return m, tea.Batch(cmd, tea.Quit)
}

// openedKey handles a key while an item is shown whole.
func (m Model) openedKey(name string) (Model, tea.Cmd) {
	w := m.read()
	switch {
	case w == nil || name == "esc" || name == "q" || name == "enter":
		m.mode = normal
	case w.Kind == "permission" && (name == "A" || name == "D"):
		m.mode = normal
		return m.decide(map[string]string{"A": "a", "D": "r"}[name], *w)
	case m.decides(name, *w):
		m.mode = normal
		return m.decide(name, *w)
	default:
		m.scroll(name)
	}
	return m, nil
}

// decides reports whether a key decides on an item.
func (m Model) decides(name string, w Waiting) bool {
	_, ok := w.choice(name)
	return ok || option(name, w) != ""
}

// option returns the option of a question that a number chooses; "" for none.
func option(name string, w Waiting) string {
	if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(w.Options) {
		return w.Options[n-1]
	}
	return ""
}

// writingKey handles a key while a text is written.
func (m Model) writingKey(k tea.KeyPressMsg, name string) (Model, tea.Cmd) {
	switch name {
	case "esc":
		if m.wanted.Do != "filter" {
			m.drafts[m.draft()] = m.input.Value()
		}
		m.mode = normal
		return m, nil
	case "enter":
		return m.written()
	case "up", "down", "pgup", "pgdown":
		m.scroll(name)
		return m, nil
	}
	return m.edit(k)
}

func (m Model) edit(msg tea.Msg) (Model, tea.Cmd) {
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	return m, cmd
}

// command handles a key outside of any text.
func (m Model) command(name string) (Model, tea.Cmd) {
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
		return m.leave()
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

// acting handles a key that decides, follows another session, or does something.
func (m Model) acting(name string) (Model, tea.Cmd) {
	if w := m.item(); w != nil && m.decides(name, *w) {
		if !m.seen(*w) { // nothing is decided that was not seen whole
			return m.open()
		}
		return m.decide(name, *w)
	}
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
		return m.write(Action{Do: "comment", ID: m.snapshot.Task.ID}, "")
	case "A", "D":
		if p := m.asked(); p != nil && len(m.band()) < len(m.whole(*p))+bandKeys {
			m.mode, m.down = reading, 0 // nothing is decided that was not seen in full
			return m, nil
		}
		return m.permit(name)
	case "enter":
		return m.open()
	case "o":
		if len(m.waiting()) == 0 {
			return m.refuse("nothing waits for you")
		}
		m.mode, m.down = reading, 0
	case "a", "r", "d", "t":
		return m.undecided()
	case "u":
		return m.takeBack()
	case "p", "s", "x":
		return m.control(name)
	}
	return m, nil
}

// control handles a key that stops or resumes work.
func (m Model) control(name string) (Model, tea.Cmd) {
	switch s := m.snapshot; {
	case name == "s" && s.Session == nil:
		return m.refuse("no session is running")
	case name == "s":
		m.mode, m.wanted = confirming, Action{Do: "skip", Text: s.Session.ID}
		return m, nil
	case !s.Running:
		return m.refuse("no run is active")
	case name == "x":
		m.mode, m.wanted = confirming, Action{Do: "stop"}
		return m, nil
	case s.State == "paused" || s.Control == ralph.ControlPause:
		return m, m.act(Action{Do: "resume"}, row{})
	}
	return m, m.act(Action{Do: "pause"}, row{})
}

// undecided explains why a key decides on nothing.
func (m Model) undecided() (Model, tea.Cmd) {
	w := m.item()
	switch {
	case len(m.waiting()) == 0:
		return m.refuse("nothing waits for you")
	case w == nil:
		return m.refuse("↓ selects what needs you")
	case len(w.choices()) == 0:
		return m.refuse("in a terminal: " + w.Command())
	}
	return m.refuse(w.Item + ": " + decisions(*w))
}

// decide decides on an item by one of the browser's keys, once it has the words that it needs.
func (m Model) decide(name string, w Waiting) (Model, tea.Cmd) {
	if chosen := option(name, w); chosen != "" {
		return m.hold(w, "a", chosen)
	}
	c, _ := w.choice(name)
	if c.Asks == "" || w.Kind == "permission" {
		return m.hold(w, name, "")
	}
	m.deciding, m.key, m.down = w, name, 0
	return m.write(Action{Do: "decide"}, "")
}

// hold decides on an item. The decision is carried out with the next one, after a while, or when the person leaves;
// until then it can be taken back. An agent that stands still is answered at once.
func (m Model) hold(w Waiting, key, words string) (Model, tea.Cmd) {
	of := rowOf(w)
	rows, _ := m.rows()
	if at := slices.Index(rows, of); at >= 0 && at+1 < len(rows) {
		m.chosen = rows[at+1]
	} else if at > 0 {
		m.chosen = rows[at-1]
	}
	a := Action{Do: "decide", Commands: w.commands(key, words)}
	if w.Kind == "permission" {
		return m, m.act(a, of)
	}
	m, before := m.flush()
	m.gone[of] = true
	c, _ := w.choice(key)
	m.message, m.failed = w.Item+": "+cmp.Or(words, c.Label)+"; u takes it back, for 10 s", false
	h := &held{of, a}
	m.held = h
	return m, tea.Batch(before, tea.Tick(regret, func(time.Time) tea.Msg { return released{h} }))
}

// flush carries out the decision that could be taken back.
func (m Model) flush() (Model, tea.Cmd) {
	h := m.held
	if m.held = nil; h == nil {
		return m, nil
	}
	return m, m.act(h.action, h.row)
}

// takeBack takes the last decision back.
func (m Model) takeBack() (Model, tea.Cmd) {
	if m.held == nil {
		return m.refuse("no decision can be taken back any more")
	}
	delete(m.gone, m.held.row)
	m.chosen, m.held = m.held.row, nil
	m.message, m.failed = "taken back", false
	return m, nil
}

// open shows the selection whole: a session's transcript, or an item.
func (m Model) open() (Model, tea.Cmd) {
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
func (m Model) permit(key string) (Model, tea.Cmd) {
	p := m.asked()
	if p == nil {
		return m.refuse("no agent waits for a permission")
	}
	return m.decide(map[string]string{"A": "a", "D": "r"}[key], *p)
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

func (m Model) refuse(why string) (Model, tea.Cmd) {
	m.message, m.failed = why, true
	return m, nil
}

// write starts the input of a text, or continues it.
func (m Model) write(a Action, text string) (Model, tea.Cmd) {
	m.mode, m.wanted = writing, a
	m.input.SetValue(cmp.Or(text, m.drafts[m.draft()]))
	m.input.SetWidth(m.room())
	m.input.CursorEnd()
	return m, m.input.Focus()
}

// draft returns the purpose of the text in progress.
func (m Model) draft() draft {
	if m.wanted.Do == "decide" {
		return draft{"decide", rowOf(m.deciding), m.key}
	}
	return draft{m.wanted.Do, row{task: m.wanted.ID}, ""}
}

// room returns how wide a text may be that is being written; the cursor needs a column.
func (m Model) room() int {
	if m.narrow() {
		return m.width - 3
	}
	return m.width - ansi.StringWidth(m.label()) - 1
}

// written ends the input.
func (m Model) written() (Model, tea.Cmd) {
	m.mode = normal
	text := strings.TrimSpace(m.input.Value())
	delete(m.drafts, m.draft())
	if m.wanted.Do == "filter" {
		m.filter, m.up = text, 0
		return m, nil
	}
	c, _ := m.deciding.choice(m.key)
	switch deciding := m.wanted.Do == "decide"; {
	case text == "" && !(deciding && c.Free):
		m.message, m.failed = "nothing was sent", false
		return m, nil
	case deciding:
		return m.hold(m.deciding, m.key, cmp.Or(option(text, m.deciding), text))
	}
	m.wanted.Text = text
	return m, m.act(m.wanted, row{})
}
