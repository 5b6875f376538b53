package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"ralph"
	"ralph/internal/text"
	"ralph/internal/transcript"
)

// header shows the run.
func (m Model) header() []string {
	s := m.snapshot
	left := bold.Render("ralph") + " " + ansi.Truncate(text.VisibleLine(s.Project), max(8, m.width-46), "…")
	if s.Running {
		left += m.figures()
	}
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
	if s.Forge != "" && m.height >= 16 {
		lines = append(lines, dim.Render(ansi.Truncate("forge: "+text.VisibleLine(s.Forge), m.width, "…")))
	}
	return lines
}

// figures counts the tasks of the night, and the items that need a person.
func (m Model) figures() (said string) {
	waits := 0
	for _, w := range m.waiting() {
		waits += 1 + len(w.Also)
	}
	for _, f := range []struct {
		n     int
		word  string
		style lipgloss.Style
	}{{m.snapshot.Merged, "merged", green}, {m.snapshot.Failed, "failed", red}, {waits, "need you", yellow.Bold(true)}} {
		if f.n > 0 {
			said += "  " + f.style.Render(fmt.Sprint(f.n, " ", f.word))
		}
	}
	return said
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
		case l.Still && l.Number != selected:
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
		more := fmt.Sprintf("     and %d more %s", len(lines)-most+1, text.Plural(len(lines)-most+1, "session"))
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
	case s.ContextUsed > 0 && s.ContextSize == 0: // of a model that no session has reported it for yet
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
