package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ralph"
	"ralph/internal/text"
)

// A Type is a kind of thing that receivers are told of.
type Type string

// The types.
const (
	QuestionAsked    Type = "question.asked"    // by an agent, blocking or not
	TaskFailed       Type = "task.failed"       // for good, until a person retries it
	TaskBlocked      Type = "task.blocked"      // by something that a person must settle
	TaskCompleted    Type = "task.completed"    // and verified
	FlagBlocking     Type = "flag.blocking"     // a problem that an agent flagged as blocking (pipeline rule 7)
	RunEnded         Type = "run.ended"         // for whatever reason
	LimitReached     Type = "limit.reached"     // the run ended at a limit, or it stagnated
	AgentUnavailable Type = "agent.unavailable" // the run ended for want of the agent, or waits for it for long

	typeTest Type = "test" // `ralph notify test`
)

// Types lists every type that a receiver can ask for.
var Types = []Type{QuestionAsked, TaskFailed, TaskBlocked, TaskCompleted, FlagBlocking, RunEnded, LimitReached, AgentUnavailable}

// sources are the events that something may be told of.
var sources = []string{ralph.EventSignal, ralph.EventCommentAdded, ralph.EventTaskStatusChanged, ralph.EventRunWaiting, ralph.EventRunEnded}

// longWait is how long the agent must be waited for to be worth telling.
const longWait = 5 * time.Minute

// What bounds a title, and each text that people or agents wrote, in characters.
const (
	maxTitle = 300
	maxText  = 4000
)

// A Notification is what a receiver is told: the payload of Standard Webhooks
// with the id beside its other fields.
type Notification struct {
	ID        string     `json:"id"` // the same for the same event, whoever is told and how often
	Type      Type       `json:"type"`
	Timestamp ralph.Time `json:"timestamp"` // when it happened
	Data      Data       `json:"data"`
}

// Data says what happened. Fields that do not apply to a type are absent.
type Data struct {
	EventID   int64  `json:"event_id"`
	Project   string `json:"project"`
	Title     string `json:"title"`             // one line for people
	Text      string `json:"text"`              // more for people; may be empty
	Command   string `json:"command,omitempty"` // what a person may type then
	TaskID    int64  `json:"task_id,omitempty"`
	TaskTitle string `json:"task_title,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	RunID     int64  `json:"run_id,omitempty"`

	CommentID int64    `json:"comment_id,omitempty"` // of a question or flag
	Question  string   `json:"question,omitempty"`
	Options   []string `json:"options,omitempty"`
	Preferred string   `json:"preferred,omitempty"`
	Blocking  *bool    `json:"blocking,omitempty"` // of a question
	Category  string   `json:"category,omitempty"` // of a flag

	Reason     string      `json:"reason,omitempty"`
	ExitStatus *int        `json:"exit_status,omitempty"` // of a run
	Sessions   int         `json:"sessions,omitempty"`
	Tasks      int         `json:"tasks,omitempty"`
	CostUSD    float64     `json:"cost_usd,omitempty"`
	Until      *ralph.Time `json:"until,omitempty"` // of a wait
}

// About is what an event refers to and does not hold.
type About struct {
	Project   string
	TaskTitle string
	Comment   string // the body of the comment that was added
}

// From says what is to be told of an event: nothing, one thing, or several.
func From(e ralph.Event, about About) ([]Notification, error) {
	if !slices.Contains(sources, e.Type) {
		return nil, nil
	}
	told, err := e.Read()
	if err != nil {
		return nil, err
	}
	base := Data{
		EventID: e.ID, Project: about.Project, TaskID: e.TaskID, TaskTitle: about.TaskTitle, SessionID: e.SessionID,
		RunID: e.RunID,
	}
	var notes []Notification
	tell := func(t Type, d Data) { notes = append(notes, note(t, e, d)) }
	switch p := told.(type) {
	case ralph.SignalGiven:
		var said said
		if err := json.Unmarshal(p.Payload, &said); err != nil {
			return nil, fmt.Errorf("signal of event %d: %w", e.ID, err)
		}
		switch {
		case p.Verb == ralph.VerbAsk:
			tell(QuestionAsked, question(base, p.CommentID, said))
		case p.Verb == ralph.VerbFlag && said.Severity == "blocking":
			tell(FlagBlocking, flag(base, p.CommentID, said))
		}
	case ralph.CommentAdded:
		if p.Kind == ralph.Question && p.AuthorKind == ralph.ByAgent {
			tell(QuestionAsked, commentQuestion(base, p.CommentID, about.Comment))
		}
	case ralph.TaskStatusChanged:
		if t, d, ok := status(base, p); ok {
			tell(t, d)
		}
	case ralph.RunWaiting:
		if p.Agent && p.Until.Sub(e.Created.Time) >= longWait {
			tell(AgentUnavailable, waiting(base, p))
		}
	case ralph.RunEnded:
		tell(RunEnded, ended(base, p, fmt.Sprintf("Run %d ended", e.RunID)))
		switch p.ExitStatus {
		case ralph.ExitLimit:
			tell(LimitReached, ended(base, p, fmt.Sprintf("Run %d reached a limit", e.RunID)))
		case ralph.ExitAgent:
			tell(AgentUnavailable, ended(base, p, "The agent cannot be used"))
		}
	}
	return notes, nil
}

// said has the fields of the signals that are told of.
type said struct {
	Question, Preferred, What, Severity, Category string
	Options                                       []string
	Blocking                                      bool
}

// commentOf is the comment whose body must be looked up, 0 for none.
func commentOf(e ralph.Event) int64 {
	told, err := e.Read()
	if p, ok := told.(ralph.CommentAdded); ok && err == nil && p.Kind == ralph.Question {
		return p.CommentID
	}
	return 0
}

func question(d Data, comment int64, q said) Data {
	d.CommentID, d.Question, d.Blocking = comment, text.Clip(q.Question, maxText), &q.Blocking
	d.Options, d.Preferred = q.Options, q.Preferred
	d.Title = fmt.Sprintf("TASK-%d asks: %s", d.TaskID, d.TaskTitle)
	d.Text = d.Question
	for _, o := range q.Options {
		mark := ""
		if o == q.Preferred {
			mark = " (preferred)"
		}
		d.Text += "\n- " + o + mark
	}
	if !q.Blocking {
		d.Text += "\nThe work goes on meanwhile."
	}
	d.Command = fmt.Sprintf("ralph answer %d TEXT", comment)
	return d
}

func commentQuestion(d Data, comment int64, body string) Data {
	no := false
	d.CommentID, d.Question, d.Blocking = comment, text.Clip(body, maxText), &no
	d.Title, d.Text = fmt.Sprintf("TASK-%d asks: %s", d.TaskID, d.TaskTitle), d.Question
	d.Command = fmt.Sprintf("ralph comment %d TEXT --reply-to %d", d.TaskID, comment)
	return d
}

func flag(d Data, comment int64, f said) Data {
	d.CommentID, d.Category, d.Reason = comment, f.Category, f.What
	d.Title = fmt.Sprintf("TASK-%d flags a blocking problem: %s", d.TaskID, d.TaskTitle)
	d.Text = f.Category + ": " + f.What
	d.Command = fmt.Sprintf("ralph comment %d TEXT", d.TaskID)
	return d
}

// status is for a task's new status. A task that waits for other tasks alone is
// no news to people.
func status(d Data, p ralph.TaskStatusChanged) (Type, Data, bool) {
	d.Reason, d.Text = p.Reason, p.Reason
	switch {
	case p.To == ralph.Completed:
		d.Title = fmt.Sprintf("TASK-%d completed: %s", d.TaskID, d.TaskTitle)
		return TaskCompleted, d, true
	case p.To == ralph.Failed:
		d.Title = fmt.Sprintf("TASK-%d failed: %s", d.TaskID, d.TaskTitle)
		d.Command = fmt.Sprintf("ralph task retry %d", d.TaskID)
		return TaskFailed, d, true
	case p.To == ralph.Blocked && p.Blockers != nil && *p.Blockers > 0:
		d.Title = fmt.Sprintf("TASK-%d is blocked: %s", d.TaskID, d.TaskTitle)
		d.Command = "ralph inbox"
		return TaskBlocked, d, true
	}
	return "", d, false
}

func waiting(d Data, p ralph.RunWaiting) Data {
	d.Reason, d.Until = p.Reason, &p.Until
	d.Title = "The agent is unavailable"
	d.Text = fmt.Sprintf("%s\nThe run waits until %s.", p.Reason, p.Until)
	return d
}

func ended(d Data, p ralph.RunEnded, title string) Data {
	d.Title, d.Reason, d.ExitStatus = title, p.Reason, &p.ExitStatus
	d.Sessions, d.Tasks, d.CostUSD = p.Sessions, p.Tasks, p.CostUSD
	d.Text = fmt.Sprintf("%s\n%d sessions on %d tasks, $%.2f, exit status %d", p.Reason, p.Sessions, p.Tasks, p.CostUSD, p.ExitStatus)
	d.Command = "ralph inbox"
	return d
}

// note completes a notification: texts in bounds, and an id that belongs to the
// event in this database for ever.
func note(t Type, e ralph.Event, d Data) Notification {
	d.Title, d.Text, d.Reason = text.Short(d.Title, maxTitle), text.Clip(d.Text, maxText), text.Clip(d.Reason, maxText)
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%d\n%s\n%s\n%d\n%s\n%d\n%s", t, e.ID, e.Type, e.Created, e.TaskID, e.SessionID, e.RunID, e.Payload)
	return Notification{ID: "msg_" + hex.EncodeToString(h.Sum(nil)[:16]), Type: t, Timestamp: e.Created, Data: d}
}

// testNote is what `ralph notify test` sends.
func testNote(project string, now time.Time) Notification {
	d := Data{Project: project, Title: "A test from ralph", Text: "Notifications arrive here.", Command: "ralph notify test"}
	return note(typeTest, ralph.Event{Type: string(typeTest), Created: ralph.At(now), Payload: json.RawMessage(`{}`)}, d)
}
