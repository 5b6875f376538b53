package ralph

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Types of events (discussion, "Events").
const (
	EventTaskCreated       = "task.created"
	EventTaskUpdated       = "task.updated"
	EventTaskStatusChanged = "task.status_changed"
	EventCommentAdded      = "task.comment.added"
	EventCommentResolved   = "task.comment.resolved"
	EventSignal            = "task.signal"
	EventAmendmentProposed = "task.amendment.proposed"
	EventAmendmentApplied  = "task.amendment.applied"
	EventAmendmentRejected = "task.amendment.rejected"
	EventTaskCommitted     = "task.committed"
	EventBaselineRed       = "task.baseline_red" // what verifies it fails before it is begun
	EventSessionStarted    = "session.started"
	EventSessionState      = "session.state"
	EventSessionProgress   = "session.progress"
	EventSessionCheckpoint = "session.checkpoint"
	EventDoneRefused       = "session.done_refused" // the agent was told, and goes on in the session
	EventSessionRefused    = "session.refused"      // it tried a command that only people may give
	EventSessionEnded      = "session.ended"
	EventSessionRestored   = "session.restored"
	EventConfigApproved    = "configuration.approved"
	EventPermissionAsked   = "permission.asked"
	EventPermissionDecided = "permission.decided"
	EventRunStarted        = "run.started"
	EventRunWaiting        = "run.waiting"
	EventRunEnded          = "run.ended"
)

// An Event is one entry of the append-only log of what happened. It is written
// in the transaction that makes it true.
type Event struct {
	ID        int64           `json:"id"`
	Type      string          `json:"type"`
	TaskID    int64           `json:"task_id,omitempty"`
	SessionID string          `json:"session_id,omitempty"`
	RunID     int64           `json:"run_id,omitempty"`
	Created   Time            `json:"created"`
	Payload   json.RawMessage `json:"payload"`
}

// An EventPayload is what events of one type tell. Every type has a struct of its own.
type EventPayload interface{ eventType() string }

// payloads has the payload of every type, in the order of docs/events.md.
var payloads = []EventPayload{
	TaskCreated{},
	TaskUpdated{},
	TaskStatusChanged{},
	CommentAdded{},
	CommentResolved{},
	SignalGiven{},
	AmendmentMade{},
	AmendmentApplied{},
	AmendmentRefused{},
	TaskCommitted{},
	BaselineRed{},
	SessionStarted{},
	SessionMoved{},
	SessionProgressed{},
	CheckpointKept{},
	DoneRefused{},
	CommandRefused{},
	SessionEnded{},
	SessionRestored{},
	ConfigurationApproved{},
	PermissionAsked{},
	PermissionDecided{},
	RunStarted{},
	RunWaiting{},
	RunEnded{},
}

// EventTypes lists every type of event.
var EventTypes = func() (types []string) {
	for _, p := range payloads {
		types = append(types, p.eventType())
	}
	return types
}()

// Telling is the event with what it tells, and the type that this makes it.
func (e Event) Telling(p EventPayload) (Event, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return e, fmt.Errorf("event %s: %w", p.eventType(), err)
	}
	e.Type, e.Payload = p.eventType(), text
	return e, nil
}

// Read is what the event tells, as the struct of its type: a [TaskCreated], not a
// pointer to one.
func (e Event) Read() (EventPayload, error) {
	for _, p := range payloads {
		if p.eventType() != e.Type {
			continue
		}
		told := reflect.New(reflect.TypeOf(p))
		if err := json.Unmarshal(e.Payload, told.Interface()); err != nil {
			return nil, fmt.Errorf("payload of event %d (%s): %w", e.ID, e.Type, err)
		}
		return told.Elem().Interface().(EventPayload), nil
	}
	return nil, fmt.Errorf("event %d is of the type %q: %w", e.ID, e.Type, ErrNotFound)
}

// TaskCreated tells of a new task.
type TaskCreated struct {
	Origin Origin `json:"origin"`
	Status Status `json:"status"`
	Title  string `json:"title"`
}

// TaskUpdated tells of an edit (title and changes), of a task that was put behind
// the others (skipped), or of one that was moved (priority and moved).
type TaskUpdated struct {
	Changes  map[string]Change `json:"changes,omitzero"`
	Moved    int64             `json:"moved,omitempty"` // the task beside which it stands now
	Priority *int              `json:"priority,omitempty"`
	Skipped  bool              `json:"skipped,omitempty"`
	Title    string            `json:"title,omitempty"`
}

// TaskStatusChanged tells of a [Move]. Of a task that becomes blocked it says whether
// a person is waited for or only another task.
type TaskStatusChanged struct {
	Blockers   *int   `json:"blockers,omitempty"` // that are open
	From       Status `json:"from"`
	Reason     string `json:"reason"`
	To         Status `json:"to"`
	Unfinished *int   `json:"unfinished,omitempty"` // dependencies
}

// CommentAdded tells of a comment that is no signal.
type CommentAdded struct {
	Author     string      `json:"authorId"`
	AuthorKind Origin      `json:"authorKind"`
	CommentID  int64       `json:"commentId"`
	Kind       CommentKind `json:"kind"`
	TaskID     int64       `json:"taskId"`
}

// CommentResolved tells with which words a comment was settled.
type CommentResolved struct {
	CommentID int64  `json:"commentId"`
	Decision  string `json:"decision"`
	TaskID    int64  `json:"taskId"`
}

// SignalGiven tells of an agent's signal, whose payload package signals reads.
type SignalGiven struct {
	CommentID int64           `json:"commentId"`
	Payload   json.RawMessage `json:"payload"`
	Verb      Verb            `json:"verb"`
}

// AmendmentMade tells of a proposal to change a task.
type AmendmentMade struct {
	AmendmentID int64    `json:"amendmentId"`
	PatchKeys   []string `json:"patchKeys"` // what it would change
	TaskID      int64    `json:"taskId"`
}

// AmendmentApplied tells that an amendment was approved.
type AmendmentApplied struct {
	AmendmentID  int64 `json:"amendmentId"`
	ClaimDropped bool  `json:"claimDropped"` // a session that works on the task is being stopped
	TaskID       int64 `json:"taskId"`
}

// AmendmentRefused tells that an amendment was rejected.
type AmendmentRefused struct {
	AmendmentID int64 `json:"amendmentId"`
	TaskID      int64 `json:"taskId"`
}

// TaskCommitted tells of a commit that ralph made of a session's work.
type TaskCommitted struct {
	Commit string `json:"commit"`
}

// BaselineRed tells that what verifies a task fails before it is begun, or, without a
// task, what verifies the project before any work.
type BaselineRed struct {
	Checks  []Check `json:"checks,omitempty"`
	Follows string  `json:"follows,omitempty"` // for people in a sentence
	OnRed   string  `json:"on_red,omitempty"`  // stop, first or go
	Reason  string  `json:"reason"`
}

// SessionStarted tells that a session has taken its task.
type SessionStarted struct {
	Attempt int    `json:"attempt"`
	Model   string `json:"model"`
	Title   string `json:"title"` // of the task
}

// SessionMoved tells of a session's new phase.
type SessionMoved struct {
	Metadata   map[string]any `json:"metadata"` // whatever the agent reported with it
	Previous   Phase          `json:"previous"`
	Source     string         `json:"source"` // [Reported] or [Observed]
	State      Phase          `json:"state"`
	Unexpected bool           `json:"unexpected"`
}

// SessionProgressed tells what a person's chat reports of its work.
type SessionProgressed struct{ Progress }

// CheckpointKept tells where a session stood.
type CheckpointKept struct {
	Checkpoint  int64  `json:"checkpoint"`
	Iteration   int    `json:"iteration"`
	Source      string `json:"source"`
	TokensLimit int64  `json:"tokens_limit"`
	TokensUsed  int64  `json:"tokens_used"`
}

// DoneRefused tells why a done was refused within its session, which goes on.
type DoneRefused struct {
	Reason string `json:"reason"`
}

// CommandRefused tells of a command that a session tried and that only people may give.
type CommandRefused struct {
	Command string `json:"command"`
}

// SessionEnded tells what became of a session and of its task.
type SessionEnded struct {
	Announce     []int64  `json:"announce"` // blocking flags
	ClosingVerb  Verb     `json:"closing_verb"`
	CostUSD      float64  `json:"cost_usd"`
	Ending       Ending   `json:"ending"`
	Files        int      `json:"files"` // that it changed
	Gone         []string `json:"gone"`  // uncommitted files of people's that it removed
	Leftovers    []string `json:"leftovers"`
	Notes        []string `json:"notes"`
	Outcome      string   `json:"outcome"`
	Reason       string   `json:"reason"`
	Seconds      float64  `json:"seconds"`
	SnapshotID   int64    `json:"snapshot_id"` // that has what is gone
	Status       Status   `json:"status"`      // of the task
	StatusReason string   `json:"status_reason"`
	Turns        int      `json:"turns"`
}

// SessionRestored tells what became of the changes of a session that failed.
type SessionRestored struct {
	Files      []string `json:"files"` // that are as they were before it
	Left       []string `json:"left"`  // that somebody has changed since
	Note       string   `json:"note"`
	SnapshotID int64    `json:"snapshot_id"` // that has what was taken back; 0 for none
}

// ConfigurationApproved tells that files by which runs are configured count as people
// want them.
type ConfigurationApproved struct {
	By    string   `json:"by"`
	Files []string `json:"files"`
}

// PermissionAsked tells that an agent stands still until a person answers.
type PermissionAsked struct {
	Expires      Time   `json:"expires"` // when it answers itself with deny; null for never
	Input        string `json:"input"`
	PermissionID int64  `json:"permissionId"`
	Tool         string `json:"tool"`
}

// PermissionDecided tells what an agent that stood still was answered.
type PermissionDecided struct {
	By           string `json:"by"` // a person's name; "" for ralph itself
	Decision     string `json:"decision"`
	PermissionID int64  `json:"permissionId"`
}

// RunStarted tells of a run and its limits.
type RunStarted struct {
	Limits Limits `json:"limits"`
	PID    int    `json:"pid"`
}

// RunWaiting tells that a run waits, or that it was paused.
type RunWaiting struct {
	Agent  bool   `json:"agent"` // the agent cannot be used now, and is what is waited for
	Reason string `json:"reason"`
	State  string `json:"state"` // "waiting" or "paused"
	Until  Time   `json:"until"`
}

// RunEnded tells why a run ended, and what it came to.
type RunEnded struct {
	CostUSD    float64 `json:"cost_usd"`
	ExitStatus int     `json:"exit_status"`
	Reason     string  `json:"reason"`
	Sessions   int     `json:"sessions"`
	Tasks      int     `json:"tasks"`
}

func (TaskCreated) eventType() string           { return EventTaskCreated }
func (TaskUpdated) eventType() string           { return EventTaskUpdated }
func (TaskStatusChanged) eventType() string     { return EventTaskStatusChanged }
func (CommentAdded) eventType() string          { return EventCommentAdded }
func (CommentResolved) eventType() string       { return EventCommentResolved }
func (SignalGiven) eventType() string           { return EventSignal }
func (AmendmentMade) eventType() string         { return EventAmendmentProposed }
func (AmendmentApplied) eventType() string      { return EventAmendmentApplied }
func (AmendmentRefused) eventType() string      { return EventAmendmentRejected }
func (TaskCommitted) eventType() string         { return EventTaskCommitted }
func (BaselineRed) eventType() string           { return EventBaselineRed }
func (SessionStarted) eventType() string        { return EventSessionStarted }
func (SessionMoved) eventType() string          { return EventSessionState }
func (SessionProgressed) eventType() string     { return EventSessionProgress }
func (CheckpointKept) eventType() string        { return EventSessionCheckpoint }
func (DoneRefused) eventType() string           { return EventDoneRefused }
func (CommandRefused) eventType() string        { return EventSessionRefused }
func (SessionEnded) eventType() string          { return EventSessionEnded }
func (SessionRestored) eventType() string       { return EventSessionRestored }
func (ConfigurationApproved) eventType() string { return EventConfigApproved }
func (PermissionAsked) eventType() string       { return EventPermissionAsked }
func (PermissionDecided) eventType() string     { return EventPermissionDecided }
func (RunStarted) eventType() string            { return EventRunStarted }
func (RunWaiting) eventType() string            { return EventRunWaiting }
func (RunEnded) eventType() string              { return EventRunEnded }
