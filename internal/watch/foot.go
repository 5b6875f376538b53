package watch

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"ralph/internal/text"
)

// footer shows the keys in the last line; above it is the text in progress, a confirmation, or the result of an
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
		if w := m.read(); w != nil {
			return decisions(*w) + "  ↑↓ scroll  Esc back"
		}
		return "↑↓ scroll  Esc back"
	}
	does := ""
	if w := m.item(); w != nil && len(w.choices()) > 0 {
		does = decisions(*w) + "  "
	}
	if m.held != nil {
		does += "u undo  "
	}
	keys := does + "↑↓ Enter open  c comment  p pause  s skip  x stop  / find  ? help  q quit"
	if m.full {
		keys = "↑↓ scroll  Esc back  c comment  / find  Tab next session  s skip  ? help  q quit"
	}
	for _, dropped := range []string{"  / find", "  x stop", "  q quit"} { // help has them
		if ansi.StringWidth(keys) > m.width && m.width > 60 {
			keys = strings.Replace(keys, dropped, "", 1)
		}
	}
	return keys
}

// decisions names the keys that decide on an item.
func decisions(w Waiting) string {
	var parts []string
	if n := len(w.Options); n > 0 {
		parts = append(parts, fmt.Sprintf("1-%d choose", n))
	}
	for _, c := range w.choices() {
		parts = append(parts, c.Key+" "+c.Label)
	}
	return strings.Join(parts, "  ")
}

// styled returns all of a text that somebody decides by, in lines.
func (m Model) styled(style lipgloss.Style, all string) (lines []string) {
	for row := range strings.SplitSeq(ansi.Wrap(all, m.width, " "), "\n") {
		lines = append(lines, style.Render(row))
	}
	return lines
}

// narrow reports whether a text goes below its label instead of beside it.
func (m Model) narrow() bool { return m.width-ansi.StringWidth(m.label()) < 10 }

// label returns the prompt of an input.
func (m Model) label() string {
	label := m.wanted.Do
	switch m.wanted.Do {
	case "comment":
		label = fmt.Sprintf("comment on TASK-%d", m.wanted.ID)
	case "decide":
		c, _ := m.deciding.choice(m.key)
		label = m.deciding.Item + ": " + c.Asks
		if c.Free {
			label += " (Enter: none)"
		}
	}
	return label + " > "
}

const help = `ralph watch

  c        comment on the task that is worked on; the agent hears it at once
  a r d t  decide on the selected item; the last line says how
  1 to 9   choose an answer
  u        take the last decision back, for ten seconds
  ↑ ↓      select a session, or what waits; Enter opens it, Esc goes back
  o        all that waits for you, whole
  A D      allow or deny what an agent stands still for
  p        pause the run after this session, and go on again
  s        skip: stop this session and go on with another task
  x        stop the run after this session
  Tab      follow the next of several sessions; a number a certain one
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
