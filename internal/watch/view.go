package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"ralph"
	"ralph/internal/text"
	"ralph/internal/transcript"
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

// twoColumns is the width from which the queue is shown beside the log.
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

// rule is a line from edge to edge.
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
	for _, w := range m.snapshot.Waiting {
		if w.Holds {
			held++
		}
	}
	var head []string
	if len(m.snapshot.Parallel) > 0 { // else it stands above
		head = l.current()
		head = head[1:max(1, len(head)-1)]
	}
	head = atMost(head, max(0, lower-6))
	log := append(head, l.log(left-4, max(1, lower-2-len(head)))...)
	column := append(frame("1 working", ofAll(busy, of), working, left, upper), frame("4 "+title, "", log, left, lower)...)

	detail, name := []string(nil), "nothing waits for you"
	if w := m.item(); w != nil {
		detail, name = r.whole(*w), ralph.Named(w.Kind, w.TaskID)
	}
	beside := frame("2 needs you", ofHeld(held, len(m.snapshot.Waiting)), r.needs(upper-2), right, upper)
	beside = append(beside, frame(name, "", detail, right, lower-next)...)
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

// heights are those of the upper and the lower panels, and of the queue's, in so many lines.
func (m Model) heights(room int) (upper, lower, next int) {
	narrow := m
	narrow.width = m.width/2 - 4
	upper = max(min(max(len(narrow.working()), len(m.snapshot.Waiting)), room/3), 1) + 2
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
		return text.RequestLine(w.Text)
	}
	return text.VisibleLine(w.Text)
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
		add(text.Request(w.Text))
	} else {
		add(w.Text)
	}
	colours := map[byte]lipgloss.Style{'+': green, '-': red}
	for _, d := range w.Diff {
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
	case m.mode == writing && m.wanted.Do == "answer":
		title := fmt.Sprintf("TASK-%d %s", m.question.TaskID, text.VisibleLine(m.question.Title))
		lines = append(lines, bold.Render(title), "")
		lines = append(lines, m.whole(m.question)...)
		if len(m.question.Options) > 0 {
			lines = append(lines, "", dim.Render("a number chooses"))
		}
		lines = append(lines, dim.Render("Tab the next question  Esc keeps the draft"))
	case m.mode == opened:
		if w := m.read(); w != nil {
			return m.page(*w)
		}
		return []string{"it does not wait for you any more"}
	case m.mode == reading:
		for _, w := range m.snapshot.Waiting {
			lines = append(lines, m.page(w)...)
		}
		if lines == nil {
			lines = []string{"nothing waits for you"}
		}
	}
	return lines
}

// page returns a whole item, with the command that decides on it.
func (m Model) page(w Waiting) []string {
	head := ralph.Named(yellow.Render(w.Kind), w.TaskID) + " " + text.VisibleLine(w.Title)
	return append(append([]string{head}, m.whole(w)...), dim.Render("  → "+w.Command), "")
}

// header shows the run.
func (m Model) header() []string {
	s := m.snapshot
	left := bold.Render("ralph") + " " + text.VisibleLine(s.Project)
	right := "looking …"
	switch {
	case m.problem != "":
		right = red.Render(text.VisibleLine(m.problem))
	case !m.loaded:
	case s.Running:
		state := green.Render("running")
		switch s.State {
		case "waiting":
			state = yellow.Render("waiting")
		case "paused":
			state = yellow.Render("paused")
		case "ending":
			state = yellow.Render("ending")
		}
		next := map[string]string{
			ralph.ControlPause: "pauses", ralph.ControlStop: "ends", ralph.ControlStopNow: "ends",
		}[s.Control]
		switch {
		case next == "" || s.State == "ending" || s.State == "paused" && s.Control == ralph.ControlPause:
		case s.Session != nil:
			state = yellow.Render(next + " after this session")
		default:
			state = yellow.Render(next)
		}
		right = fmt.Sprintf("%s %s  session %d of %d  %s of %s", state, span(s.At.Sub(s.Since.Time)),
			s.Sessions, s.MaxSessions, text.Money(s.CostUSD), text.Money(s.MaxCostUSD))
		if s.MaxDayUSD > 0 {
			right += fmt.Sprintf("  today %s of %s", text.Money(s.DayUSD), text.Money(s.MaxDayUSD))
		}
	case s.Exit != nil:
		right = dim.Render("no run is active") + fmt.Sprintf("  the last one ended with status %d", *s.Exit)
	default:
		right = dim.Render("no run is active; start one with `ralph run`")
	}
	gap := m.width - ansi.StringWidth(left) - ansi.StringWidth(right)
	lines := []string{left + strings.Repeat(" ", max(2, gap)) + right}
	if gap < 2 {
		lines = []string{left, right}
	}
	if s.Running && len(s.Morning) > 0 && m.height >= 16 {
		said := m.wrapped(s.Morning[0])
		if most := m.height / 12; len(said) > most {
			said = append(said[:max(0, most-1)], ansi.Truncate(said[max(0, most-1)]+" …", m.width, "…"))
		}
		lines = append(lines, said...)
	}
	if s.Forge != "" && m.height >= 16 {
		lines = append(lines, dim.Render(ansi.Truncate("forge: "+text.VisibleLine(s.Forge), m.width, "…")))
	}
	return lines
}

// parallel shows the sessions, if there are several, and which one is followed.
func (m Model) parallel() (lines []string) {
	selected, at := m.selected().number, 0
	free, idle := 0, ""
	for _, l := range m.ordered() {
		if l.Session == nil {
			free, idle = free+1, cmp.Or(idle, l.Idle)
			continue
		}
		line := strings.TrimRight(l.Line(m.snapshot.At, m.width)[1:], " ")
		s := m.snapshot.Session
		followed := s != nil && l.Session.ID == s.ID
		switch {
		case m.still(l) && l.Number != selected:
			line = yellow.Bold(true).Render("⏸" + line)
		case l.Number == selected:
			line, at = "▸"+line, len(lines)
		case followed:
			line = "•" + line
		default:
			line = " " + line
		}
		if followed {
			line = bold.Render(line)
		}
		lines = append(lines, line)
	}
	if most := max(1, m.height/4); len(lines) > most {
		from := max(0, min(at-most+2, len(lines)-most+1))
		more := fmt.Sprintf("     and %d more sessions", len(lines)-most+1)
		lines = append(slices.Clone(lines[from:from+most-1]), dim.Render(more))
	}
	if free > 0 {
		line := fmt.Sprintf("     %d free", free)
		if idle != "" {
			line += ": " + text.VisibleLine(idle)
		}
		lines = append(lines, dim.Render(line))
	}
	return lines
}

// current shows the session in progress, or why there is none.
func (m Model) current() []string {
	s := m.snapshot
	if s.Session == nil {
		return m.idle()
	}
	title := fmt.Sprintf("TASK-%d ", s.Task.ID)
	attempt := fmt.Sprintf("  attempt %d", s.Session.Attempt)
	if s.Session.Worker != "" {
		attempt += ", worker " + text.VisibleLine(s.Session.Worker)
	}
	room := max(10, m.width-len(title)-len(attempt))
	name := ansi.Truncate(text.VisibleLine(s.Task.Title), room, "…")
	lines := []string{bold.Render(title) + name + dim.Render(attempt)}
	var way []string
	for _, stay := range s.Session.Stays(s.At) {
		p := phases[stay.Phase]
		text := fmt.Sprintf("%s %s %s", p.icon, stay.Phase, span(time.Duration(stay.Seconds*float64(time.Second))))
		if stay.Long {
			text += " (long)"
		}
		way = append(way, p.style.Render(text))
	}
	if verifies := s.Session.Verifies(s.At); verifies != "" {
		way = append(way, purple.Render(text.VisibleLine(verifies)))
	}
	lines = append(lines, m.tail(way, dim.Render(" → ")))
	lines = append(lines, m.joined(s.uses())...)
	return append(append(lines, m.merging()...), dim.Render(strings.Repeat("─", m.width)))
}

// idle shows why there is no session in progress.
func (m Model) idle() []string {
	s := m.snapshot
	why := "nothing is worked on"
	if m.number > 0 && len(s.Parallel) > 0 {
		why = fmt.Sprintf("no session is number %d", m.number)
	}
	switch {
	case !m.loaded:
		return nil
	case s.Reason != "":
		why = text.VisibleLine(s.Reason)
		if left := s.Until.Sub(s.At.Time); s.Running && left > 0 {
			why += fmt.Sprintf(" (%s left)", span(left))
		}
	}
	lines := []string{why}
	if len(s.Morning) > 0 && !s.Running {
		lines = nil
		for _, l := range s.Morning {
			lines = append(lines, m.wrapped(l)...)
		}
	}
	return append(append(lines, m.merging()...), dim.Render(strings.Repeat("─", m.width)))
}

// uses shows the use of the session in progress, and how full the accounts' windows are.
func (s Snapshot) uses() []string {
	var use []string
	switch {
	case s.Session.Worker != "":
	case s.SpentUSD > 0:
		use = append(use, fmt.Sprintf("~%s of %s", text.Money(s.SpentUSD), text.Money(s.SessionUSD)))
	default:
		use = append(use, "session limit "+text.Money(s.SessionUSD))
	}
	switch {
	case s.ContextUsed > 0 && s.ContextSize == 0: // of a model that no session has told it of yet
		use = append(use, fmt.Sprintf("context %dk", s.ContextUsed/1000))
	case s.ContextUsed > 0:
		percent := s.ContextUsed * 100 / s.ContextSize
		text := fmt.Sprintf("context %d %% of %dk", percent, s.ContextSize/1000)
		if percent >= 80 {
			text = yellow.Render(text)
		}
		use = append(use, text)
	}
	for _, w := range s.Windows {
		percent, most := w.Utilization*100, s.MaxWindow[w.Name]
		used := fmt.Sprintf("%s %.0f %%", text.VisibleLine(w.Title()), percent)
		if most > 0 {
			used = fmt.Sprintf("%s %.0f of %d %%", text.VisibleLine(w.Title()), percent, most)
		}
		if percent >= 80 || most > 0 && percent >= float64(most) {
			used = yellow.Render(used)
		}
		use = append(use, used)
	}
	return use
}

// joined returns parts in lines as wide as the screen, or in one line on a low screen.
func (m Model) joined(parts []string) (lines []string) {
	for _, p := range parts {
		if n := len(lines) - 1; n >= 0 && (m.height < 16 || ansi.StringWidth(lines[n])+ansi.StringWidth(p)+3 <= m.width) {
			lines[n] += dim.Render(" · ") + p
		} else {
			lines = append(lines, p)
		}
	}
	return lines
}

// wrapped returns a text in lines as wide as the screen.
func (m Model) wrapped(s string) []string {
	return strings.Split(ansi.Wrap(text.VisibleLine(s), m.width, " "), "\n")
}

// merging shows the state of the merge queue.
func (m Model) merging() (lines []string) {
	shown := 3
	if m.height < 16 {
		shown = 1
	}
	for i, l := range m.snapshot.Merging {
		if i == shown {
			return append(lines, dim.Render(fmt.Sprintf("⇢ and %d more (see `ralph status`)", len(m.snapshot.Merging)-i)))
		}
		lines = append(lines, dim.Render("⇢ ")+text.VisibleLine(l))
	}
	return lines
}

// tail joins as many of the last parts as fit.
func (m Model) tail(parts []string, by string) string {
	for len(parts) > 1 && ansi.StringWidth(strings.Join(parts, by)) > m.width-2 {
		parts = parts[1:]
		parts[0] = "… " + strings.TrimPrefix(parts[0], "… ")
	}
	return strings.Join(parts, by)
}

// log shows the agent's activity, the latest at the bottom.
func (m Model) log(width, room int) []string {
	styles := map[string]lipgloss.Style{
		transcript.Tool: blue, transcript.Error: red, transcript.Told: cyan, transcript.Result: dim,
		transcript.Start: dim, transcript.Answer: dim, transcript.Note: yellow,
		"+": green, "-": red, "…": dim, " ": dim,
	}
	visible := m.visible()
	rows := func(l line) (list []string) {
		for text := range strings.SplitSeq(ansi.Wrap(l.text, max(10, width), " "), "\n") {
			if style, ok := styles[l.kind]; ok {
				text = style.Render(text)
			}
			list = append(list, ansi.Truncate(text, width, "…"))
		}
		return list
	}
	var out []string
	if end := len(visible) - m.up; m.up > 0 && end <= room {
		for _, l := range visible { // scrolled to the top: the oldest line comes first
			if out = append(out, rows(l)...); len(out) >= room {
				break
			}
		}
		out = out[:min(len(out), room)]
	} else {
		for i := end - 1; i >= 0 && len(out) < room; i-- {
			out = append(rows(visible[i]), out...)
		}
		out = out[max(0, len(out)-room):]
	}
	empty := len(out) == 0
	out = append(out, make([]string, room-len(out))...)
	if empty && m.loaded {
		switch {
		case m.filter != "" && len(m.lines) > 0:
			out[0] = dim.Render(fmt.Sprintf("nothing has %q in it (/ and Enter show all)", m.filter))
		case m.snapshot.Session != nil && m.snapshot.Session.Worker != "":
			out[0] = dim.Render("a worker's words are not seen here, only its reports and signals (`ralph timeline`)")
		case m.snapshot.Session != nil:
			out[0] = dim.Render("the agent has not said anything yet")
		case len(m.snapshot.Queue) == 0 && len(m.snapshot.Waiting) == 0 && len(m.snapshot.Counts) == 0:
			out[0] = dim.Render("the queue is empty: add a task with `ralph task add TITLE`")
		}
	}
	return out
}

// needs shows the items, a line each; the selected one is among them.
func (m Model) needs(most int) (lines []string) {
	selected := m.selected()
	from, to := m.around(max(1, most))
	for _, w := range m.snapshot.Waiting[from:to] {
		line := mark(w, selected) + ralph.Named(yellow.Render(w.Kind), w.TaskID) + " " + w.line()
		if rowOf(w) == selected {
			line = bold.Render(ansi.Truncate(line, m.width, "…"))
		}
		lines = append(lines, line)
	}
	return lines
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

// around returns the visible part of the items for so many rows: the selected one is in it.
func (m Model) around(most int) (from, to int) {
	n := len(m.snapshot.Waiting)
	at := max(0, slices.IndexFunc(m.snapshot.Waiting, func(w Waiting) bool { return rowOf(w) == m.selected() }))
	from = max(0, min(at-most+1, n-most))
	return from, min(n, from+most)
}

// short shows the inbox and the queue in a few lines.
func (m Model) short() []string {
	s := m.snapshot
	lines := []string{m.rule()}
	selected := m.selected()
	from, to := m.around(max(1, m.height/8))
	for _, w := range s.Waiting[from:to] {
		lines = append(lines,
			mark(w, selected)+ralph.Named(yellow.Render(w.Kind), w.TaskID)+": "+w.line())
	}
	if more := len(s.Waiting) - (to - from); more > 0 {
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
	for _, status := range ralph.Statuses {
		if n := s.Counts[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(string(status), "_", " ")))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "empty")
}

// footer shows the keys in the last line; above it stands the text in progress, a confirmation, or the result of an
// action.
func (m Model) footer() (lines []string) {
	switch {
	case m.mode == writing:
		label := yellow.Render(m.label())
		if m.narrow() {
			lines, label = append(lines, label), yellow.Render("> ")
		}
		lines = append(lines, label+m.input.View())
	case m.mode == confirming && m.wanted.Do == "skip":
		lines = m.styled(yellow, "stop this session and go on with another task? y/n")
	case m.mode == confirming && m.wanted.Do != "stop":
		what := m.wanted.Item
		if what == "" {
			what = fmt.Sprintf("TASK-%d", m.wanted.ID)
		}
		lines = m.styled(yellow, m.wanted.Do+" "+what+"? y/n")
	case m.mode == confirming:
		lines = m.styled(yellow, "end the run after this session? y/n")
	case m.message != "" && m.failed:
		lines = append(lines, red.Render(text.VisibleLine(m.message)))
	case m.message != "":
		lines = append(lines, green.Render(text.VisibleLine(m.message)))
	}
	if m.mode == normal {
		var where []string
		if m.filter != "" {
			where = append(where, fmt.Sprintf("filter: %s (/ and Enter clear it)", text.VisibleLine(m.filter)))
		}
		if m.up > 0 {
			where = append(where, text.Count(m.up, "line")+" below, G the newest")
		}
		if where != nil {
			lines = append(lines, yellow.Render(strings.Join(where, "  ")))
		}
	}
	return append(lines, dim.Render(m.keys()))
}

// keys names the keys that have a meaning now; the less a person needs one, the further right it is.
func (m Model) keys() string {
	switch m.mode {
	case writing:
		return "Enter done  Esc back"
	case confirming:
		return "y yes  any other key: no"
	case reading:
		if m.asked() != nil {
			return "A allow  D deny  ↑↓ scroll  Esc back"
		}
		return "↑↓ scroll  Esc back"
	case opened:
		keys := "↑↓ scroll  Esc back"
		switch w := m.read(); {
		case w != nil && w.Decides.keys() != "":
			keys = w.Decides.keys() + "  " + keys
		case w != nil && w.Kind == "question":
			keys = "a answer  " + keys
		case w != nil && w.Kind == "permission":
			keys = "A allow  D deny  " + keys
		}
		return keys
	}
	does := "a answer"
	if w := m.item(); w != nil && w.Kind == "permission" {
		does = "A allow  D deny"
	} else if w != nil && w.Decides.keys() != "" {
		does = w.Decides.keys()
	}
	keys := "↑↓ Enter open  c comment  " + does + "  p pause  s skip  x stop  / find  ? help  q quit"
	if m.full {
		keys = "↑↓ scroll  Esc back  c comment  / find  Tab next session  s skip  ? help  q quit"
	}
	for _, dropped := range []string{" quit", "  q", "  / find", "  x stop"} { // help has them
		if ansi.StringWidth(keys) > m.width && m.width > 60 {
			keys = strings.Replace(keys, dropped, "", 1)
		}
	}
	return keys
}

// keys are the browser's keys that decide so.
func (d Decides) keys() string {
	return [...]string{"", "a answer", "a resolve", "a approve  r refuse", "a retry  d cancel"}[d]
}

// styled is all of a text that somebody decides by, in lines.
func (m Model) styled(style lipgloss.Style, all string) (lines []string) {
	for row := range strings.SplitSeq(ansi.Wrap(all, m.width, " "), "\n") {
		lines = append(lines, style.Render(row))
	}
	return lines
}

// narrow reports whether a text has to stand below its label.
func (m Model) narrow() bool { return m.width-ansi.StringWidth(m.label()) < 10 }

// label returns the prompt of an input.
func (m Model) label() string {
	label := m.wanted.Do
	switch m.wanted.Do {
	case "comment":
		label = fmt.Sprintf("comment on TASK-%d", m.wanted.ID)
	case "resolve":
		label = "how " + m.wanted.Item + " was resolved"
	case "reject":
		label = "why not " + m.wanted.Item + " (Enter: no word)"
	case "answer":
		label = fmt.Sprintf("answer TASK-%d: %s", m.question.TaskID, text.VisibleLine(m.question.Text))
		if ansi.StringWidth(label) > m.width/2 { // it is shown above, in full
			label = fmt.Sprintf("answer TASK-%d", m.question.TaskID)
		}
	}
	return label + " > "
}

const help = `ralph watch

  c        comment on the task that is worked on; the agent hears it at once
  a        decide on what is selected: answer, approve, retry or resolve;
           a number chooses an option, Tab the next question
  r d      refuse what is selected; cancel a task that failed
  ↑ ↓      select a session, or what waits for you; Enter fills the screen with it, Esc goes back
  o        all that waits for you, whole
  A D      allow or deny what an agent stands still for
  p        pause the run after this session, and go on again
  s        skip: stop this session and go on with another task
  x        stop the run after this session
  Tab      follow the next of several sessions; 1 to 9 a certain one
  /        show only lines with a text; empty shows all
  j k      scroll; PgUp PgDn by half a screen
  g G      the oldest and the newest
  ?        this
  q        leave; the run goes on

Press any key.`

// span formats a duration.
func span(d time.Duration) string {
	d = max(0, d).Round(time.Second)
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%ds", int(d.Seconds()))
}
