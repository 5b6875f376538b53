package words

import (
	"cmp"
	"fmt"

	"ralph"
	"ralph/internal/text"
)

// A Message describes an event for people elsewhere.
type Message struct {
	Title   string
	Text    string
	Command string // for a person to type
}

// Long describes an event as a message. title is its task's title; body is that of the comment that
// it refers to. The message is empty for events without notification.
func Long(e ralph.Event, told ralph.EventPayload, title, body string) (m Message) {
	of := func(what string) string { return fmt.Sprintf("TASK-%d %s: %s", e.TaskID, what, title) }
	switch p := told.(type) {
	case ralph.SignalGiven:
		said, err := Read(p)
		switch {
		case err != nil:
		case p.Verb == ralph.VerbAsk:
			return Message{of("asks"), question(said), fmt.Sprintf("ralph answer Q%d TEXT", p.CommentID)}
		case p.Verb == ralph.VerbFlag:
			return Message{
				of("flags a " + said.Severity + " problem"), said.Category + ": " + said.What,
				fmt.Sprintf("ralph comment %d TEXT", e.TaskID),
			}
		}
	case ralph.CommentAdded:
		return Message{of("asks"), body, fmt.Sprintf("ralph comment %d TEXT --reply-to %d", e.TaskID, p.CommentID)}
	case ralph.PermissionAsked:
		return Message{
			of("waits for your permission"), text.Request(p.Tool + " " + p.Input),
			fmt.Sprintf("ralph approve P%d, or ralph reject P%[1]d", p.PermissionID),
		}
	case ralph.TaskStatusChanged:
		switch m.Text = p.Reason; p.To {
		case ralph.Completed:
			m.Title = of("completed")
		case ralph.Failed:
			m.Title, m.Command = of("failed"), fmt.Sprintf("ralph task retry %d", e.TaskID)
		case ralph.Blocked:
			m.Title, m.Command = of("is blocked"), "ralph inbox"
		}
	case ralph.TroubleFound:
		return Message{"Trouble: " + text.Short(p.What, 100), p.What, p.Command}
	case ralph.TargetBehind:
		return Message{"Not on " + p.Branch + " yet", p.Reason, p.Command}
	case ralph.QueuePaused:
		return Message{"Merging is paused", p.Reason, "ralph resume --merging"}
	case ralph.RunWaiting:
		m.Title, m.Command = "The agent is unavailable", "ralph status"
		m.Text = fmt.Sprintf("%s\nThe run waits until %s, and goes on by itself.", p.Reason,
			text.When(p.Until.Time, e.Created.Time))
	case ralph.RunEnded:
		m.Title, m.Command = fmt.Sprintf("Run %d ended", e.RunID), cmp.Or(ralph.ExitRemedy(p.ExitStatus), "ralph inbox")
		m.Text = fmt.Sprintf("%s\n%s on %s, $%.2f, exit status %d", p.Reason,
			text.Count(p.Sessions, "session"), text.Count(p.Tasks, "task"), p.CostUSD, p.ExitStatus)
	}
	return m
}

func question(s Signal) string {
	all := s.Question
	for _, o := range s.Options {
		all += "\n- " + o
		if o == s.Preferred {
			all += " (preferred)"
		}
	}
	if !s.Blocking {
		all += "\nThe work goes on meanwhile."
	}
	return all
}
