package ralph

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// An Event is one entry of the append-only event log. It is written in the
// same transaction as the change that it reports.
type Event struct {
	ID        int64           `json:"id"`
	Type      string          `json:"type"`
	TaskID    int64           `json:"task_id,omitempty"`
	SessionID string          `json:"session_id,omitempty"`
	RunID     int64           `json:"run_id,omitempty"`
	Created   Time            `json:"created"`
	Payload   json.RawMessage `json:"payload"`
}

// An EventPayload is the content of an event: a struct of the table of events, by value.
type EventPayload any

// events has each type of event and its payload, in the order of docs/events.md.
var events = []struct {
	name    string
	payload EventPayload
}{
	{"task.created", TaskCreated{}},
	{"task.updated", TaskUpdated{}},
	{"task.status_changed", TaskStatusChanged{}},
	{"task.comment.added", CommentAdded{}},
	{"task.comment.resolved", CommentResolved{}},
	{"task.signal", SignalGiven{}},
	{"task.amendment.proposed", AmendmentMade{}},
	{"task.amendment.applied", AmendmentApplied{}},
	{"task.amendment.rejected", AmendmentRefused{}},
	{"task.baseline_red", BaselineRed{}},
	{"task.proves_nothing", ProvesNothing{}},
	{"session.started", SessionStarted{}},
	{"session.state", SessionMoved{}},
	{"session.progress", SessionProgressed{}},
	{"session.checkpoint", CheckpointAdded{}},
	{"verifying", SlowCheck{}},
	{"session.done_refused", DoneRefused{}},
	{"review.started", ReviewStarted{}},
	{"review.ended", ReviewEnded{}},
	{"session.refused", CommandRefused{}},
	{"session.stranger", StrangerRefused{}},
	{"session.ended", SessionEnded{}},
	{"change.queued", ChangeQueued{}},
	{"change.merged", ChangeMerged{}},
	{"change.proved", ChangeProved{}},
	{"change.sent_back", ChangeSentBack{}},
	{"change.dropped", ChangeDropped{}},
	{"queue.paused", QueuePaused{}},
	{"queue.resumed", QueueResumed{}},
	{"target.behind", TargetBehind{}},
	{"target.rewritten", TargetRewritten{}},
	{"trouble.found", TroubleFound{}},
	{"permission.asked", PermissionAsked{}},
	{"permission.decided", PermissionDecided{}},
	{"run.started", RunStarted{}},
	{"run.waiting", RunWaiting{}},
	{"run.ended", RunEnded{}},
}

// EventTypes lists all types of events.
var EventTypes = func() (types []string) {
	for _, e := range events {
		types = append(types, e.name)
	}
	return types
}()

// EventType returns the type of the events with such a payload; "" if there are none.
func EventType(p EventPayload) string {
	for _, e := range events {
		if reflect.TypeOf(e.payload) == reflect.TypeOf(p) {
			return e.name
		}
	}
	return ""
}

// Telling returns the event with payload p and the matching type.
func (e Event) Telling(p EventPayload) (Event, error) {
	e.Type = EventType(p)
	if e.Type == "" {
		return e, fmt.Errorf("no event has a payload of %T", p)
	}
	text, err := json.Marshal(p)
	if err != nil {
		return e, fmt.Errorf("event %s: %w", e.Type, err)
	}
	e.Payload = text
	return e, nil
}

// Read decodes the event's payload into the struct of its type: a
// [TaskCreated], not a pointer to one.
func (e Event) Read() (EventPayload, error) {
	for _, of := range events {
		if of.name != e.Type {
			continue
		}
		told := reflect.New(reflect.TypeOf(of.payload))
		if err := json.Unmarshal(e.Payload, told.Interface()); err != nil {
			return nil, fmt.Errorf("payload of event %d (%s): %w", e.ID, e.Type, err)
		}
		return told.Elem().Interface(), nil
	}
	return nil, fmt.Errorf("event %d is of the type %q: %w", e.ID, e.Type, ErrNotFound)
}

// TaskCreated reports a new task.
type TaskCreated struct {
	Origin Origin `json:"origin"`
	Status Status `json:"status"`
	Title  string `json:"title"`
}

// TaskUpdated reports an edit (Title and Changes), a task put behind the
// others (Skipped), or a task moved in the queue (Priority and Moved).
type TaskUpdated struct {
	Changes  map[string]Edit `json:"changes,omitzero"`
	Moved    int64           `json:"moved,omitempty"` // the task that it was moved next to
	Priority *int            `json:"priority,omitempty"`
	Skipped  bool            `json:"skipped,omitempty"`
	Title    string          `json:"title,omitempty"`
}

// TaskStatusChanged reports a [Move]. For a blocked task it says whether a
// person or only another task is needed.
type TaskStatusChanged struct {
	From   Status `json:"from"`
	Reason string `json:"reason"`
	To     Status `json:"to"`
	Waits  *Waits `json:"waits,omitempty"` // reasons of a blocked task
}

// CommentAdded reports a comment that is not a signal.
type CommentAdded struct {
	Author     string      `json:"authorId"`
	AuthorKind Origin      `json:"authorKind"`
	CommentID  int64       `json:"commentId"`
	Kind       CommentKind `json:"kind"`
	TaskID     int64       `json:"taskId"`
}

// CommentResolved reports the text with which a comment was resolved.
type CommentResolved struct {
	CommentID int64  `json:"commentId"`
	Decision  string `json:"decision"`
	TaskID    int64  `json:"taskId"`
}

// SignalGiven reports an agent's signal. Package signals decodes the payload.
type SignalGiven struct {
	CommentID int64           `json:"commentId"`
	Payload   json.RawMessage `json:"payload"`
	Verb      Verb            `json:"verb"`
}

// AmendmentMade reports a proposal to change a task.
type AmendmentMade struct {
	AmendmentID int64    `json:"amendmentId"`
	PatchKeys   []string `json:"patchKeys"` // the fields that it would change
	TaskID      int64    `json:"taskId"`
}

// AmendmentApplied reports that an amendment was approved.
type AmendmentApplied struct {
	AmendmentID  int64 `json:"amendmentId"`
	ClaimDropped bool  `json:"claimDropped"` // the session that works on the task is being stopped
	TaskID       int64 `json:"taskId"`
}

// AmendmentRefused reports that an amendment was rejected.
type AmendmentRefused struct {
	AmendmentID int64 `json:"amendmentId"`
	TaskID      int64 `json:"taskId"`
}

// BaselineRed reports that a task's verification fails before any work on it or,
// without a task, that the project's verification fails before a run's first task.
type BaselineRed struct {
	Checks      []Check `json:"checks,omitempty"`
	Consequence string  `json:"follows,omitempty"` // the consequence, as a sentence for people
	OnRed       string  `json:"on_red,omitempty"`  // stop, first or go
	Reason      string  `json:"reason"`
}

// ProvesNothing reports that a task's own commands pass before any work on it.
type ProvesNothing struct {
	Commands []string `json:"commands"`
}

// ChangeProved reports the result of running a merged change's tests on the code before it, too.
type ChangeProved struct {
	ChangeID int64    `json:"change_id"`
	Proved   []string `json:"proved"` // tests and commands, red before and green now
	Idle     int      `json:"idle"`   // new tests that pass on both
}

// SessionStarted reports that a session has claimed its task.
type SessionStarted struct {
	Attempt int    `json:"attempt"`
	Agent   string `json:"agent"` // its name in ralph.yaml
	Model   string `json:"model"`
	Title   string `json:"title"`            // title of the task
	Number  int    `json:"number,omitempty"` // the session's number in a run with several at once, from 1
	Of      int    `json:"of,omitempty"`     // the maximum number of sessions at once in such a run
}

// SessionMoved reports a session's new phase.
type SessionMoved struct {
	Metadata   map[string]any `json:"metadata"` // the agent's report
	Previous   Phase          `json:"previous"`
	Source     string         `json:"source"` // [Reported] or [Observed]
	State      Phase          `json:"state"`
	Unexpected bool           `json:"unexpected"`
}

// SessionProgressed reports the progress of a person's chat.
type SessionProgressed struct{ Progress }

// CheckpointAdded reports that a checkpoint of a session was added.
type CheckpointAdded struct {
	Checkpoint  int64  `json:"checkpoint"`
	Iteration   int    `json:"iteration"`
	Source      string `json:"source"`
	TokensLimit int64  `json:"tokens_limit"`
	TokensUsed  int64  `json:"tokens_used"`
}

// DoneRefused reports why a done was refused while its session goes on.
type DoneRefused struct {
	Reason string `json:"reason"`
}

// ReviewStarted reports that an agent reviews a session's change (docs/review.md). The event's session is the
// reviewer's.
type ReviewStarted struct {
	Agent string `json:"agent"`
	Model string `json:"model"`
}

// ReviewEnded reports the result of a review.
type ReviewEnded struct {
	Agent    string  `json:"agent"`
	Approved bool    `json:"approved"`
	Said     string  `json:"said"` // a sentence: the reviewer's checks or objections
	CostUSD  float64 `json:"cost_usd"`
}

// SlowCheck reports a verification command that takes longer than a second,
// for a session's done or, without a session, before a run's first task.
type SlowCheck struct {
	Command string `json:"command"`
}

// CommandRefused reports a command that a session tried and that only people may give.
type CommandRefused struct {
	Command string `json:"command"`
}

// StrangerRefused reports that a program of the session that is not its agent tried to use ralph's tools.
type StrangerRefused struct {
	Asked string `json:"asked"` // the tool, or the method of its first message
}

// SessionEnded reports the result of a session and of its task.
type SessionEnded struct {
	Announce     []int64  `json:"announce"` // blocking flags
	ClosingVerb  Verb     `json:"closing_verb"`
	CostUSD      float64  `json:"cost_usd"`
	CostKnown    bool     `json:"cost_known"` // false if it is an estimate, or 0 as no price is known
	Tokens       int64    `json:"tokens"`
	Ending       Ending   `json:"ending"`
	Files        int      `json:"files"` // number of changed files
	Leftovers    []string `json:"leftovers"`
	Notes        []string `json:"notes"`
	Outcome      string   `json:"outcome"`
	Reason       string   `json:"reason"`
	Seconds      float64  `json:"seconds"`
	Status       Status   `json:"status"` // status of the task
	StatusReason string   `json:"status_reason"`
	Turns        int      `json:"turns"`
	Waits        Waits    `json:"waits"` // reasons why the task waits
}

// ChangeQueued reports that a change was put into the merge queue.
type ChangeQueued struct {
	ChangeID int64  `json:"change_id"`
	Head     string `json:"head"`
}

// ChangeMerged reports that a change is in the target branch.
type ChangeMerged struct {
	ChangeID int64  `json:"change_id"`
	Commit   string `json:"commit"`
	Into     string `json:"into"`   // the branch
	Behind   string `json:"behind"` // reason why people's branch does not have it yet; "" if it does
	// For an undo: the task's status after it (cancelled: its work was taken back; completed: brought back), the
	// number of changed files, and the reversed commits.
	Undo     Status   `json:"undo,omitempty"`
	Files    int      `json:"files,omitempty"`
	Reverses []string `json:"reverses,omitempty"`
}

// ChangeSentBack reports that a change left the queue unmerged, and why.
type ChangeSentBack struct {
	ChangeID  int64    `json:"change_id"` // 0 if its session continues with it
	Conflicts []string `json:"conflicts"` // files
	Reason    string   `json:"reason"`
	Times     int      `json:"times"` // the number of times that the task's changes were sent back
}

// ChangeDropped reports that a change is no longer wanted.
type ChangeDropped struct {
	ChangeID int64  `json:"change_id"`
	Reason   string `json:"reason"`
}

// QueuePaused reports that nothing is merged until a person resumes the queue.
type QueuePaused struct {
	Reason string `json:"reason"`
}

// QueueResumed reports that merging goes on.
type QueueResumed struct {
	By string `json:"by"`
}

// TargetRewritten reports that people reset the target branch to before a
// merged change, and so removed it from the branch.
type TargetRewritten struct {
	Branch string `json:"branch"`
	From   string `json:"from"` // commit ids
	To     string `json:"to"`
	Kept   string `json:"kept"` // the ref that has the removed commits
}

// TargetBehind reports that the person's own branch could not be fast-forwarded
// to the target after a merge: why, and the command that catches up. Without
// a reason it has caught up.
type TargetBehind struct {
	Branch  string `json:"branch"`
	Commit  string `json:"commit"`
	Ahead   int    `json:"ahead"` // commits on its first-parent line
	Command string `json:"command"`
	Reason  string `json:"reason"`
}

// TroubleFound reports a problem that a person must fix. It is not repeated while another of its
// kind is open.
type TroubleFound struct {
	Kind    string `json:"kind"`
	What    string `json:"what"`
	Command string `json:"command"` // command that fixes it; "" if none does
}

// PermissionAsked reports that an agent waits for a person's permission.
type PermissionAsked struct {
	Expires      Time   `json:"expires"` // time at which the request is denied without an answer; null for never
	Input        string `json:"input"`
	PermissionID int64  `json:"permissionId"`
	Tool         string `json:"tool"`
}

// PermissionDecided reports the answer to a request for permission.
type PermissionDecided struct {
	By           string `json:"by"` // a person's name; "" for ralph itself
	Decision     string `json:"decision"`
	PermissionID int64  `json:"permissionId"`
}

// RunStarted reports the start of a run and its limits.
type RunStarted struct {
	Limits Limits `json:"limits"`
	PID    int    `json:"pid"`
}

// RunWaiting reports that a run waits, is paused, or has decided to end.
type RunWaiting struct {
	Agent  bool   `json:"agent"` // the agent cannot be used now, and the run waits for it
	Reason string `json:"reason"`
	State  string `json:"state"` // "waiting", "paused" or "ending"
	Until  Time   `json:"until"`
}

// RunEnded reports why a run ended, and its totals.
type RunEnded struct {
	CostUSD    float64 `json:"cost_usd"`
	CostKnown  bool    `json:"cost_known"` // false if the cost of a session is an estimate or unknown
	Tokens     int64   `json:"tokens"`
	ExitStatus int     `json:"exit_status"`
	Reason     string  `json:"reason"`
	Sessions   int     `json:"sessions"`
	Tasks      int     `json:"tasks"`
}
