package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"ralph"
	"ralph/internal/inbox"
	"ralph/internal/text"
)

// Colours are the terminal's own, so that they suit its light or dark background.
var (
	dim    = lipgloss.NewStyle().Faint(true)
	bold   = lipgloss.NewStyle().Bold(true)
	red    = lipgloss.NewStyle().Foreground(lipgloss.Red)
	green  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	yellow = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	blue   = lipgloss.NewStyle().Foreground(lipgloss.Blue)
	cyan   = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	purple = lipgloss.NewStyle().Foreground(lipgloss.Magenta)
)

// phases are the looks of states (docs/sessions.md).
var phases = map[ralph.Phase]struct {
	icon  string
	style lipgloss.Style
}{
	ralph.PhaseIdle: {"○", dim}, ralph.PhaseAnalyzing: {"◐", blue}, ralph.PhaseImplementing: {"◑", yellow},
	ralph.PhaseTesting: {"◒", cyan}, ralph.PhaseCommitting: {"◓", green}, ralph.PhaseReviewing: {"◔", purple},
	ralph.PhaseDone: {"●", green}, ralph.PhaseFailed: {"✕", red},
}

// twoColumns is the width from which the queue is beside the log.
const twoColumns = 110

// View draws the screen.
func (m Model) View() tea.View {
	v := tea.NewView(m.draw())
	v.AltScreen = true
	v.WindowTitle = "ralph"
	if m.asked() != nil {
		v.WindowTitle = "(1) ralph"
	}
	return v
}

// draw returns the screen as text with exactly its height, and no line wider than it.
func (m Model) draw() string {
	if m.mode == helping {
		return m.fit(strings.Split(help, "\n"))
	}
	if text := m.text(); text != nil {
		foot := m.footer()
		room := max(0, m.height-len(foot))
		from := max(0, min(m.down, len(text)-room))
		page := append([]string{}, text[from:min(len(text), from+room)]...)
		page = append(page, make([]string, room-len(page))...)
		return m.fit(append(page, foot...))
	}
	// One line of the log and the footer are shown at any height.
	bottom := m.footer()
	above := m.band()
	if !m.full {
		above = append(above, m.header()...)
		if room := m.height - len(above) - len(bottom); m.width >= twoColumns && room >= 16 {
			return m.fit(append(append(above, m.panels(room)...), bottom...))
		}
		above = append(append(above, m.parallel()...), m.rule())
	}
	top := atMost(append(above, m.current()...), m.height-1-len(bottom))
	if !m.full {
		bottom = append(atMost(m.short(), m.height-1-len(bottom)-len(top)), bottom...)
	}
	return m.fit(append(append(top, m.log(m.width-1, max(1, m.height-len(top)-len(bottom)))...), bottom...))
}

// rule returns a line from edge to edge.
func (m Model) rule() string { return dim.Render(strings.Repeat("─", m.width)) }

// panels draws four panels, and the selected one of the items that need a person, in a number of lines.
func (m Model) panels(room int) []string {
	left := m.width / 2
	right := m.width - left
	narrow := func(width int) Model { // the model as a panel sees it
		m.width = width - 4
		return m
	}
	l, r := narrow(left), narrow(right)
	working := l.working()
	upper, lower, next := m.heights(room)
	busy, of := 0, len(m.snapshot.Parallel)
	for _, s := range m.snapshot.Parallel {
		if s.Session != nil {
			busy++
		}
	}
	title, held := "nothing is followed", 0
	if m.snapshot.Session != nil {
		title = fmt.Sprintf("TASK-%d %s", m.snapshot.Task.ID, text.VisibleLine(m.snapshot.Task.Title))
	}
	for _, w := range m.waiting() {
		if w.Holds() {
			held++
		}
	}
	var head []string
	if len(m.snapshot.Parallel) > 0 { // otherwise it is above
		head = l.current()
		head = head[1:max(1, len(head)-1)]
	}
	head = atMost(head, max(0, lower-6))
	log := append(head, l.log(left-4, max(1, lower-2-len(head)))...)
	column := append(frame("1 working", ofAll(busy, of), working, left, upper), frame("4 "+title, "", log, left, lower)...)

	detail, name, times := []string(nil), "nothing waits for you", ""
	if w := m.item(); w != nil {
		detail, name, times = r.whole(*w), w.name(), w.times()
		if hidden := len(detail) - (lower - next - 2); hidden > 0 {
			detail = append(detail[:lower-next-3], dim.Render(fmt.Sprintf("  %s more: Enter", text.Count(hidden+1, "line"))))
		}
	}
	beside := frame("2 needs you", ofHeld(held, len(m.waiting())), r.needs(upper-2), right, upper)
	beside = append(beside, frame(name, times, detail, right, lower-next)...)
	beside = append(beside, frame("3 next", "", r.next(next-2), right, next)...)
	for i := range column {
		column[i] += beside[i]
	}
	return column
}

// seen reports whether all of the selected item is on the screen.
func (m Model) seen(w Waiting) bool {
	room := m.height - len(m.band()) - len(m.header()) - len(m.footer())
	if m.full || m.width < twoColumns || room < 16 {
		return false
	}
	_, lower, next := m.heights(room)
	m.width -= m.width/2 + 4
	return len(m.whole(w)) <= lower-next-2
}

// working fills the first panel: the sessions, or the one in progress.
func (m Model) working() []string {
	if lines := m.parallel(); len(lines) > 0 {
		return lines
	}
	if lines := m.current(); len(lines) > 0 {
		return lines[:len(lines)-1]
	}
	return nil
}

// heights returns the heights in lines of the upper and the lower panels, and of the queue's.
func (m Model) heights(room int) (upper, lower, next int) {
	narrow := m
	narrow.width = m.width/2 - 4
	upper = max(min(max(len(narrow.working()), len(m.waiting())), room/3), 1) + 2
	lower = room - upper
	return upper, lower, min(len(m.snapshot.Queue), lower/4) + 3
}

// frame draws lines in a box of a size, with a title and a remark in its upper edge.
func frame(title, remark string, lines []string, width, height int) []string {
	title = ansi.Truncate(title, max(1, width-ansi.StringWidth(remark)-8), "…")
	if remark != "" {
		remark = " " + remark + " ─"
	}
	rest := max(0, width-ansi.StringWidth(title)-ansi.StringWidth(remark)-5)
	box := []string{dim.Render("╭─ ") + bold.Render(title) + dim.Render(" "+strings.Repeat("─", rest)+remark+"╮")}
	for i := range max(0, height-2) {
		line := ""
		if i < len(lines) {
			line = ansi.Truncate(lines[i], width-4, "…")
		}
		box = append(box, dim.Render("│ ")+pad(line, width-4)+dim.Render(" │"))
	}
	return append(box, dim.Render("╰"+strings.Repeat("─", width-2)+"╯"))
}

func ofAll(n, all int) string {
	if all == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", n, all)
}

func ofHeld(held, all int) string {
	if held == 0 {
		return fmt.Sprint(all)
	}
	return fmt.Sprintf("%d of %d hold work back", held, all)
}

// atMost returns at most the first n lines.
func atMost(lines []string, n int) []string { return lines[:max(0, min(len(lines), n))] }

// fit cuts every line to the width, and the screen to the height.
func (m Model) fit(lines []string) string {
	for i, l := range lines {
		lines[i] = ansi.Truncate(l, m.width, "…")
	}
	if len(lines) > m.height {
		lines = lines[:m.height]
	}
	return strings.Join(lines, "\n")
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-ansi.StringWidth(s)))
}

// bandKeys is the number of lines of the band besides the request itself.
const bandKeys = 2

// band shows a paused agent's reason at the top, with its keys.
func (m Model) band() []string {
	p := m.asked()
	if p == nil {
		return nil
	}
	left := ""
	if !p.Expires.IsZero() {
		left = fmt.Sprintf("  answers itself with deny in %s", span(p.Expires.Sub(m.snapshot.At.Time)))
	}
	head := fmt.Sprintf("⏸ needs you now: TASK-%d stands still", p.TaskID)
	head = yellow.Bold(true).Render(head) + yellow.Render(left)
	text := m.whole(*p)
	keys := "A allow  D deny"
	// All of the band is visible, above a line of the log and at most three of the footer.
	if most := max(0, min(m.height/3, m.height-bandKeys-4)); len(text) > most {
		keys = fmt.Sprintf("Enter shows all %d lines of it, where A allows and D denies", len(text))
		text = text[:most]
	}
	lines := append([]string{head}, text...)
	return append(lines, yellow.Render("  "+keys))
}

// line describes an inbox item in one line.
func (w Waiting) line() string {
	if w.Kind == "permission" {
		return text.RequestLine(w.Text())
	}
	return text.VisibleLine(text.FirstLine(inbox.Gist(w.InboxItem)))
}

// name is the item's kind and task.
func (w Waiting) name() string { return ralph.Named(w.Kind, w.TaskID) }

// times returns the number of equal waiting items; "" for one.
func (w Waiting) times() string {
	if len(w.Also) == 0 {
		return ""
	}
	return fmt.Sprintf("×%d", 1+len(w.Also))
}

// whole returns all lines of an inbox item, fitted to the width.
func (m Model) whole(w Waiting) (lines []string) {
	add := func(all string) {
		for l := range strings.Lines(text.Visible(strings.TrimSpace(all))) {
			l = strings.ReplaceAll(strings.TrimRight(l, "\n"), "\t", "    ")
			for row := range strings.SplitSeq(ansi.Wrap(l, max(10, m.width-4), " "), "\n") {
				lines = append(lines, "  "+row)
			}
		}
	}
	if w.Kind == "permission" {
		add(text.Request(w.Text()))
	} else {
		add(w.Text())
	}
	if w.Also != nil {
		tasks := fmt.Sprintf("of TASK-%d", w.TaskID)
		for _, i := range w.Also {
			tasks += fmt.Sprintf(", %d", i.TaskID)
		}
		add(tasks)
	}
	colours := map[byte]lipgloss.Style{'+': green, '-': red, '@': cyan}
	for _, d := range slices.Concat(w.Diff, m.changes[rowOf(w)]) {
		from := len(lines)
		add(d)
		if style, ok := colours[(d + " ")[0]]; ok {
			for i := range lines[from:] {
				lines[from+i] = style.Render(lines[from+i])
			}
		}
	}
	for i, o := range w.Options {
		star := ""
		if o == w.Preferred {
			star = "  ★ preferred"
		}
		add(fmt.Sprintf("%d  %s%s", i+1, o, star))
	}
	return lines
}

// text returns a text to read in full: a question while it is answered, or a whole item; nil for none.
func (m Model) text() (lines []string) {
	switch {
	case m.mode == writing && m.wanted.Do == "decide":
		lines = append(lines, bold.Render(m.deciding.name())+" "+text.VisibleLine(m.deciding.Title), "")
		lines = append(lines, m.whole(m.deciding)...)
		if len(m.deciding.Options) > 0 {
			lines = append(lines, "", dim.Render("a number chooses"))
		}
		lines = append(lines, dim.Render("Esc keeps the draft"))
	case m.mode == opened:
		if w := m.read(); w != nil {
			return m.page(*w)
		}
		return []string{"it does not wait for you any more"}
	case m.mode == reading:
		for _, w := range m.waiting() {
			lines = append(lines, m.page(w)...)
		}
		if lines == nil {
			lines = []string{"nothing waits for you"}
		}
	}
	return lines
}

// page returns a complete item, with the command that decides on it.
func (m Model) page(w Waiting) []string {
	head := ralph.Named(yellow.Render(w.Kind), w.TaskID) + " " + text.VisibleLine(w.Title)
	return append(append([]string{head}, m.whole(w)...), dim.Render("  → "+w.Command()), "")
}

// needs shows the items, a line each; the selected one is among them.
func (m Model) needs(most int) (lines []string) {
	selected := m.selected()
	from, to := m.around(max(1, most))
	for _, w := range m.waiting()[from:to] {
		lines = append(lines, m.need(w, selected))
	}
	return lines
}

// need returns the row of an item.
func (m Model) need(w Waiting, selected row) string {
	line := mark(w, selected) + ralph.Named(yellow.Render(w.Kind), w.TaskID) + " " + w.line()
	if rowOf(w) == selected {
		line = bold.Render(line)
	}
	times := w.times()
	room := m.width - ansi.StringWidth(times)
	if times == "" {
		return ansi.Truncate(line, room, "…")
	}
	return pad(ansi.Truncate(line, room-1, "…"), room) + dim.Render(times)
}

// next shows the queue.
func (m Model) next(most int) []string {
	lines := []string{counts(m.snapshot)}
	for n, t := range m.snapshot.Queue {
		if len(lines) == most && n < len(m.snapshot.Queue) {
			lines[most-1] = dim.Render(fmt.Sprintf("%d more", len(m.snapshot.Queue)-n+1))
			break
		}
		name := dim.Render(fmt.Sprintf("P%d TASK-%d ", t.Priority, t.ID))
		lines = append(lines, name+text.VisibleLine(t.Title))
	}
	return lines
}

// mark shows whether a row is the selected one.
func mark(w Waiting, selected row) string {
	if rowOf(w) == selected {
		return "▸ "
	}
	return "  "
}

// around returns the visible part of the items, including the selected one, for that number of
// rows.
func (m Model) around(most int) (from, to int) {
	n := len(m.waiting())
	at := max(0, slices.IndexFunc(m.waiting(), func(w Waiting) bool { return rowOf(w) == m.selected() }))
	from = max(0, min(at-most+1, n-most))
	return from, min(n, from+most)
}

// short shows the inbox and the queue in a few lines.
func (m Model) short() []string {
	s := m.snapshot
	lines := []string{m.rule()}
	selected := m.selected()
	from, to := m.around(max(1, m.height/8))
	for _, w := range m.waiting()[from:to] {
		lines = append(lines, m.need(w, selected))
	}
	if more := len(m.waiting()) - (to - from); more > 0 {
		lines = append(lines, dim.Render(fmt.Sprintf("  and %d more wait for you", more)))
	}
	queue := bold.Render("queue") + "  " + counts(s)
	if len(s.Queue) > 0 {
		queue += dim.Render("  next: ") + fmt.Sprintf("TASK-%d %s", s.Queue[0].ID, text.VisibleLine(s.Queue[0].Title))
	}
	return append(lines, queue)
}

func counts(s Snapshot) string {
	var parts []string
	for _, word := range ralph.Words {
		if n := s.Counts[ralph.KeyOf(word)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "empty")
}
