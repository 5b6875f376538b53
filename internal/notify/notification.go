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
	"ralph/internal/words"
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
var Types = []Type{
	QuestionAsked, TaskFailed, TaskBlocked, TaskCompleted, FlagBlocking, RunEnded, LimitReached, AgentUnavailable,
}

// sources are the events that something may be told of.
var sources = []string{
	ralph.EventSignal, ralph.EventCommentAdded, ralph.EventTaskStatusChanged, ralph.EventRunWaiting, ralph.EventRunEnded,
}

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
	m := words.Long(e, told, about.TaskTitle, about.Comment)
	d := Data{
		EventID: e.ID, Project: about.Project, TaskID: e.TaskID, TaskTitle: about.TaskTitle, SessionID: e.SessionID,
		RunID: e.RunID, Title: m.Title, Text: m.Text, Command: m.Command,
	}
	var notes []Notification
	tell := func(t Type) { notes = append(notes, note(t, e, d)) }
	switch p := told.(type) {
	case ralph.SignalGiven:
		said, err := words.Read(p)
		if err != nil {
			return nil, fmt.Errorf("signal of event %d: %w", e.ID, err)
		}
		d.CommentID = p.CommentID
		switch {
		case p.Verb == ralph.VerbAsk:
			d.Question, d.Options, d.Preferred, d.Blocking = said.Question, said.Options, said.Preferred, &said.Blocking
			tell(QuestionAsked)
		case p.Verb == ralph.VerbFlag && said.Severity == "blocking":
			d.Category, d.Reason = said.Category, said.What
			tell(FlagBlocking)
		}
	case ralph.CommentAdded:
		if p.Kind == ralph.Question && p.AuthorKind == ralph.ByAgent {
			d.CommentID, d.Question, d.Blocking = p.CommentID, about.Comment, new(bool)
			tell(QuestionAsked)
		}
	case ralph.TaskStatusChanged:
		d.Reason = p.Reason
		// A task that waits for other tasks alone is no news to people.
		if t := changed[p.To]; t != "" && (t != TaskBlocked || p.Blockers != nil && *p.Blockers > 0) {
			tell(t)
		}
	case ralph.RunWaiting:
		if d.Reason, d.Until = p.Reason, &p.Until; p.Agent && p.Until.Sub(e.Created.Time) >= longWait {
			tell(AgentUnavailable)
		}
	case ralph.RunEnded:
		d.Reason, d.ExitStatus, d.Sessions, d.Tasks, d.CostUSD = p.Reason, &p.ExitStatus, p.Sessions, p.Tasks, p.CostUSD
		tell(RunEnded)
		switch p.ExitStatus {
		case ralph.ExitLimit:
			d.Title = fmt.Sprintf("Run %d reached a limit", e.RunID)
			tell(LimitReached)
		case ralph.ExitAgent:
			d.Title = "The agent cannot be used"
			tell(AgentUnavailable)
		}
	}
	return notes, nil
}

// changed are the new statuses that people are told of.
var changed = map[ralph.Status]Type{
	ralph.Completed: TaskCompleted, ralph.Failed: TaskFailed, ralph.Blocked: TaskBlocked,
}

// commentOf is the comment whose body must be looked up, 0 for none.
func commentOf(e ralph.Event) int64 {
	told, err := e.Read()
	if p, ok := told.(ralph.CommentAdded); ok && err == nil && p.Kind == ralph.Question {
		return p.CommentID
	}
	return 0
}

// note completes a notification: texts in bounds, and an id that belongs to the
// event in this database for ever.
func note(t Type, e ralph.Event, d Data) Notification {
	d.Title, d.Text = text.Short(d.Title, maxTitle), text.Clip(d.Text, maxText)
	d.Reason, d.Question = text.Clip(d.Reason, maxText), text.Clip(d.Question, maxText)
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%d\n%s\n%s\n%d\n%s\n%d\n%s", t, e.ID, e.Type, e.Created, e.TaskID, e.SessionID, e.RunID, e.Payload)
	return Notification{ID: "msg_" + hex.EncodeToString(h.Sum(nil)[:16]), Type: t, Timestamp: e.Created, Data: d}
}

// testNote is what `ralph notify test` sends.
func testNote(project string, now time.Time) Notification {
	d := Data{
		Project: project, Title: "A test from ralph", Text: "Notifications arrive here.", Command: "ralph notify test",
	}
	return note(typeTest, ralph.Event{Type: string(typeTest), Created: ralph.At(now), Payload: json.RawMessage(`{}`)}, d)
}
