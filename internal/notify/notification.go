package notify

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/internal/words"
)

// A Type is a kind of notification.
type Type string

// The types.
const (
	QuestionAsked    Type = "question.asked"    // by an agent, blocking or not
	TaskFailed       Type = "task.failed"       // for good, until a person retries it
	TaskBlocked      Type = "task.blocked"      // until a person acts
	TaskCompleted    Type = "task.completed"    // and verified
	PermissionAsked  Type = "permission.asked"  // an agent stands still until a person allows or denies something
	FlagBlocking     Type = "flag.blocking"     // an agent flagged a blocking problem (pipeline rule 7)
	RunEnded         Type = "run.ended"         // for any reason
	LimitReached     Type = "limit.reached"     // the run ended at a limit, or stagnated
	AgentUnavailable Type = "agent.unavailable" // no agent: the run ended or waits long for it
	StorageFull      Type = "storage.full"      // a run cannot store events: its disk is full
	TroubleFound     Type = "trouble.found"     // a person must fix something besides tasks

	typeTest   Type = "test"   // `ralph notify`
	typeDigest Type = "digest" // several types, all wanted by the receiver
)

// Types lists the types that a receiver can subscribe to.
var Types = []Type{
	QuestionAsked, PermissionAsked, TaskFailed, TaskBlocked, TaskCompleted, FlagBlocking, RunEnded, LimitReached,
	AgentUnavailable, StorageFull, TroubleFound,
}

// longWait is how long a wait for the agent must be to cause a notification.
const longWait = 5 * time.Minute

// Bounds of a title, and of each text by people or agents, in characters.
const (
	maxTitle = 300
	maxText  = 4000
)

// A Notification is the payload for a receiver: that of Standard Webhooks, with the id next to the other fields.
type Notification struct {
	ID        string     `json:"id"` // the same for each delivery of an event to anyone
	Type      Type       `json:"type"`
	Timestamp ralph.Time `json:"timestamp"` // timestamp of the event
	Data      Data       `json:"data"`
}

// Data describes the event. Fields that do not apply to a type are absent.
type Data struct {
	EventID   int64  `json:"event_id"`
	Project   string `json:"project"`
	Title     string `json:"title"`             // one line
	Text      string `json:"text"`              // details; may be empty
	Command   string `json:"command,omitempty"` // for a person to type
	URL       string `json:"url,omitempty"`     // page of the dashboard on which a person decides or looks
	TaskID    int64  `json:"task_id,omitempty"`
	TaskTitle string `json:"task_title,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	RunID     int64  `json:"run_id,omitempty"`

	CommentID int64    `json:"comment_id,omitempty"` // comment id of a question or flag
	Question  string   `json:"question,omitempty"`
	Options   []string `json:"options,omitempty"`
	Preferred string   `json:"preferred,omitempty"`
	Blocking  *bool    `json:"blocking,omitempty"` // whether a question blocks
	Category  string   `json:"category,omitempty"` // category of a flag
	Trouble   string   `json:"trouble,omitempty"`  // the kind of a trouble

	Reason     string      `json:"reason,omitempty"`
	ExitStatus *int        `json:"exit_status,omitempty"` // exit status of a run
	Sessions   int         `json:"sessions,omitempty"`
	Tasks      int         `json:"tasks,omitempty"`
	CostUSD    float64     `json:"cost_usd,omitempty"`
	Until      *ralph.Time `json:"until,omitempty"` // end of a wait; time at which a request is denied

	Digest []Notification `json:"digest,omitempty"` // the notifications in whose place this one is sent
}

// About has details of an event that its payload lacks.
type About struct {
	Project   string
	Dashboard string // its address; "" for none
	TaskTitle string
	Comment   string // body of the added comment
	Morning   string // summary of a run that has ended, in lines
	Figures   string // its outcomes after a colon, such as ": 3 failed"; "" for none
}

// page returns the address of the dashboard's page about an event; "" without a dashboard.
func (a About) page(e ralph.Event) string {
	to := strings.TrimSuffix(a.Dashboard, "/")
	if to != "" && e.TaskID != 0 {
		to += fmt.Sprintf("/tasks/%d", e.TaskID)
	}
	return to
}

// From returns the notifications for an event: none, one or several.
func From(e ralph.Event, about About) ([]Notification, error) {
	told, err := e.Read()
	if err != nil {
		return nil, err
	}
	m := words.Long(e, told, about.TaskTitle, about.Comment)
	d := Data{
		EventID: e.ID, Project: about.Project, TaskID: e.TaskID, TaskTitle: about.TaskTitle, SessionID: e.SessionID,
		RunID: e.RunID, URL: about.page(e), Title: m.Title, Text: cmp.Or(about.Morning, m.Text), Command: m.Command,
	}
	var notes []Notification
	tell := func(t Type) { notes = append(notes, note(t, e, d)) }
	if d.Trouble = troubleIn(told); d.Trouble != "" {
		tell(TroubleFound)
	}
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
	case ralph.PermissionAsked:
		if d.Until = &p.Expires; p.Expires.IsZero() {
			d.Until = nil
		}
		tell(PermissionAsked)
	case ralph.TaskStatusChanged:
		d.Reason = p.Reason
		// A task that waits only for other tasks is not news for people.
		if t := changed[p.To]; t != "" && (t != TaskBlocked || p.Waits != nil && p.Waits.People() > 0) {
			tell(t)
		}
	case ralph.RunWaiting:
		if d.Reason, d.Until = p.Reason, &p.Until; p.Agent && p.Until.Sub(e.Created.Time) >= longWait {
			tell(AgentUnavailable)
		}
	case ralph.RunEnded:
		d.Reason, d.ExitStatus, d.Sessions, d.Tasks, d.CostUSD = p.Reason, &p.ExitStatus, p.Sessions, p.Tasks, p.CostUSD
		d.Title += about.Figures
		tell(RunEnded)
		switch p.ExitStatus {
		case ralph.ExitLimit:
			d.Title = fmt.Sprintf("Run %d reached a limit", e.RunID) + about.Figures
			tell(LimitReached)
		case ralph.ExitAgent:
			d.Title = "The agent cannot be used"
			tell(AgentUnavailable)
		}
	}
	return notes, nil
}

// troubleIn returns the kind of the trouble that an event reports; "" for none.
func troubleIn(told ralph.EventPayload) string {
	switch p := told.(type) {
	case ralph.TroubleFound:
		return p.Kind
	case ralph.QueuePaused:
		return "merging"
	case ralph.TargetBehind:
		if p.Reason != "" { // otherwise it has caught up
			return "behind"
		}
	}
	return ""
}

// changed maps the statuses that cause notifications.
var changed = map[ralph.Status]Type{
	ralph.Completed: TaskCompleted, ralph.Failed: TaskFailed, ralph.Blocked: TaskBlocked,
}

// commentOf returns the comment whose body is needed; 0 for none.
func commentOf(e ralph.Event) int64 {
	told, err := e.Read()
	if p, ok := told.(ralph.CommentAdded); ok && err == nil && p.Kind == ralph.Question {
		return p.CommentID
	}
	return 0
}

// note completes a notification: it bounds the texts and derives a permanent id from the event.
func note(t Type, e ralph.Event, d Data) Notification {
	d.Title, d.Text = text.Short(d.Title, maxTitle), text.Clip(d.Text, maxText)
	d.Reason, d.Question = text.Clip(d.Reason, maxText), text.Clip(d.Question, maxText)
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%d\n%s\n%s\n%d\n%s\n%d\n%s", t, e.ID, e.Type, e.Created, e.TaskID, e.SessionID, e.RunID, e.Payload)
	return Notification{ID: "msg_" + hex.EncodeToString(h.Sum(nil)[:16]), Type: t, Timestamp: e.Created, Data: d}
}

// fullNote returns the notification of a full disk, on which no event can be stored.
func fullNote(project string, why error, now time.Time) Notification {
	d := Data{
		Project: project, Title: "the disk of the queue is full", Text: "No progress is stored before there is room.",
		Reason: why.Error(), Command: "ralph doctor",
	}
	e := ralph.Event{Type: string(StorageFull), Created: ralph.At(now), Payload: json.RawMessage(`{}`)}
	return note(StorageFull, e, d)
}

// testNote returns the notification of `ralph notify`.
func testNote(project string, now time.Time) Notification {
	d := Data{
		Project: project, Title: "A test from ralph", Text: "Notifications arrive here.", Command: "ralph notify",
	}
	return note(typeTest, ralph.Event{Type: string(typeTest), Created: ralph.At(now), Payload: json.RawMessage(`{}`)}, d)
}
