package advice

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

// A Session is one of a run's simultaneous sessions, or a free number.
type Session struct {
	Number  int
	Session *ralph.Session // nil if it is free
	Task    ralph.Task     // task of the session
	Idle    string         // why it is free, if known
	Port    int            // the first port of the session; 0 for none
	Still   bool           // it stands still until a person answers a permission request

	SpentUSD float64 // so far, approximately; 0 if unknown
}

// Sessions returns the sessions of a run in progress that has several; none otherwise. The caller adds
// the ports.
func Sessions(tx *store.Tx, run ralph.Run) ([]Session, error) {
	if run.Limits.Parallel <= 1 || !run.EndedAt.IsZero() {
		return nil, nil
	}
	open, err := tx.OpenSessions()
	if err != nil {
		return nil, err
	}
	asked, err := tx.InboxOf("permission")
	if err != nil {
		return nil, err
	}
	list := make([]Session, run.Limits.Parallel)
	for i := range list {
		list[i].Number, list[i].Idle = i+1, run.Idle
		for _, s := range open {
			if s.RunID != run.ID || s.Number != i+1 {
				continue
			}
			list[i].Session = &s
			list[i].Still = slices.ContainsFunc(asked, func(i store.InboxItem) bool { return i.Session == s.ID })
			if list[i].Task, err = tx.Task(s.TaskID); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// Line describes a session in one line of at most width columns.
func (l Session) Line(now ralph.Time, width int) string {
	if l.Session == nil {
		line := fmt.Sprintf("%3d  free", l.Number)
		if l.Idle != "" {
			line += ": " + text.Line(l.Idle, width-len(line)-2)
		}
		return line
	}
	doing := cmp.Or(l.Session.Verifies(now), string(l.Session.State))
	if l.Still {
		doing = "stands still"
	}
	more := ""
	switch limit := text.Money(l.Session.CostLimitUSD); {
	case l.Session.CostLimitUSD <= 0:
	case l.SpentUSD > 0:
		more = "  " + text.Money(l.SpentUSD) + " of " + limit
	default: // its spending is unknown
		more = "  ≤" + limit
	}
	if l.Port > 0 {
		more += fmt.Sprintf("  :%d", l.Port)
	}
	took := max(0, now.Sub(l.Session.StartedAt.Time)).Truncate(time.Second)
	if took >= time.Minute {
		took = took.Truncate(time.Minute)
	}
	said := strings.TrimSuffix(took.String(), "0s")
	if took < time.Minute {
		said = took.String()
	}
	title := max(width*7/20, min(width*9/20, width-43))
	name := text.Line(fmt.Sprintf("TASK-%d %s", l.Task.ID, l.Task.Title), title)
	name += strings.Repeat(" ", max(0, title-utf8.RuneCountInString(name)))
	head := fmt.Sprintf("%3d  %s  %6s  ", l.Number, name, said)
	room := max(1, width-utf8.RuneCountInString(head))
	return head + text.Line(text.Line(doing, max(longestPhase, room-utf8.RuneCountInString(more)))+more, room)
}

// longestPhase is the length of a session's activity that is shown before all else.
const longestPhase = len(ralph.PhaseImplementing)
