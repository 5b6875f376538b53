package ralph

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Status says where a task stands (data model, "Task status").
type Status string

// The statuses. NeedsInput and Blocked are derived from what is open (see
// [Waiting]); nothing else sets them.
const (
	Proposed   Status = "proposed"    // an agent suggested it; a person decides
	Pending    Status = "pending"     // waits for a session
	InProgress Status = "in_progress" // a session or a person works on it
	NeedsInput Status = "needs_input" // a blocking question is open
	Blocked    Status = "blocked"     // a blocker or an unfinished dependency holds it back
	Completed  Status = "completed"   // done, and the verification agreed
	Failed     Status = "failed"      // given up: stuck, unverifiable or out of attempts
	Rejected   Status = "rejected"    // the suggestion was refused
	Cancelled  Status = "cancelled"   // a person called it off
)

// Statuses lists every status in the order in which people are shown them.
var Statuses = []Status{Proposed, Pending, InProgress, NeedsInput, Blocked, Completed, Failed, Rejected, Cancelled}

// Ended reports whether no session will work on the task unless a person revives it.
func (s Status) Ended() bool {
	return s == Completed || s == Failed || s == Rejected || s == Cancelled
}

// Wanted reports whether sessions are to work on the task, now or once what holds it back
// is settled.
func (s Status) Wanted() bool { return s != Proposed && !s.Ended() }

// statusLooks are the looks of tasks.
var statusLooks = map[Status]Look{
	Proposed:   {"?", "Proposed", "teal"},
	Pending:    {"○", "Pending", "gray"},
	InProgress: {"▶", "In progress", "blue"},
	NeedsInput: {"❓", "Needs input", "yellow"},
	Blocked:    {"⊘", "Blocked", "orange"},
	Completed:  {"✓", "Completed", "green"},
	Failed:     {"✕", "Failed", "red"},
	Rejected:   {"–", "Rejected", "gray"},
	Cancelled:  {"–", "Cancelled", "gray"},
}

// Look is how tasks of the status are shown.
func (s Status) Look() Look { return statusLooks[s] }

// An Origin says who made a task or a learning.
type Origin string

// The origins of tasks and learnings.
const (
	ByHuman Origin = "human"
	ByAgent Origin = "agent"
)

// Limits of what a task may hold.
const (
	MaxTitle        = 500      // characters of a title
	MaxText         = 64 << 10 // bytes of any one text that an agent or a person gives
	HighestPriority = 0        // goes first
	LowestPriority  = 4        // goes last
	DefaultPriority = 2        // where nothing is said
)

// Named is what a thing in a list of people's is called: "question TASK-12", or
// its kind alone where it is of no task.
func Named(kind string, task int64) string {
	if task == 0 {
		return kind
	}
	return fmt.Sprintf("%s TASK-%d", kind, task)
}

// A Task is one piece of work for an agent. Its JSON is what `task list --json`
// prints of it; the fields without a JSON name are added by `task show`.
type Task struct {
	ID           int64   `json:"id"`
	Title        string  `json:"title"`
	Status       Status  `json:"status"`
	StatusReason string  `json:"status_reason"` // one line for people: why the status is what it is
	Priority     int     `json:"priority"`      // 0 highest to 4 lowest
	Feature      string  `json:"feature"`       // name, "" for none
	Discipline   string  `json:"discipline"`    // name, "" for none
	Origin       Origin  `json:"origin"`
	DependsOn    []int64 `json:"depends_on"` // ids, ascending
	Attempts     int     `json:"attempts"`   // sessions that counted; agent errors, interruptions and losses do not
	StuckCount   int     `json:"stuck_count"`
	Created      Time    `json:"created"`
	Updated      Time    `json:"updated"`
	CompletedAt  Time    `json:"completed_at"`

	Description    string   `json:"-"`
	Acceptance     []string `json:"-"` // criteria in words
	Verify         []string `json:"-"` // shell commands that must exit 0
	Model          string   `json:"-"` // "" leaves the choice to the discipline and the configuration
	ExternalID     string   `json:"-"` // its id where it was imported from, as it is there
	ExternalSource string   `json:"-"` // where that is: "beads", "prd.json/ralph/login"; one id may be in several
	VerifyFailures int      `json:"-"` // refused claims since the last new information
	PromptTooLong  int      `json:"-"` // sessions in a row whose prompt the agent could not take
	LostCount      int      `json:"-"` // sessions in a row that were lost
	NotBefore      Time     `json:"-"` // when it is tried again after those; zero is now
	ClaimedBy      string   `json:"-"` // who works on it: a session's id, or "" for nobody
}

// A Change is what an edit made of one field of a task: texts, numbers or lists.
type Change struct {
	Before any `json:"before"`
	After  any `json:"after"`
}

// Changes are the fields that differ between a task before an edit and after it, by
// their names in JSON.
func Changes(before, after Task) map[string]Change {
	changes := map[string]Change{}
	for name, field := range map[string]func(t Task) any{
		"title":       func(t Task) any { return t.Title },
		"description": func(t Task) any { return t.Description },
		"feature":     func(t Task) any { return t.Feature },
		"discipline":  func(t Task) any { return t.Discipline },
		"priority":    func(t Task) any { return t.Priority },
		"model":       func(t Task) any { return t.Model },
		"acceptance":  func(t Task) any { return append([]string{}, t.Acceptance...) },
		"verify":      func(t Task) any { return append([]string{}, t.Verify...) },
	} {
		if c := (Change{field(before), field(after)}); !reflect.DeepEqual(c.Before, c.After) {
			changes[name] = c
		}
	}
	return changes
}

// NewContract reports whether a change of a task ends the session that works on it, which
// has begun with something else. An agent's ends if anything is changed that the task asks
// for. A person's goes on, as people change both, unless criteria or verification are
// amended: that is the outcome of a discussion, not of their own edit.
func NewContract(before, after Task, person, amended bool) bool {
	if person && !amended {
		return false
	}
	asked := []string{"acceptance", "verify"}
	if !person {
		asked = append(asked, "title", "description")
	}
	changed := Changes(before, after)
	return slices.ContainsFunc(asked, func(name string) bool { _, ok := changed[name]; return ok })
}

// ParseTaskID reads "12", "#12" or "TASK-12" (command line).
func ParseTaskID(s string) (int64, error) {
	t := strings.TrimPrefix(strings.TrimSpace(s), "#")
	if len(t) > 5 && strings.EqualFold(t[:5], "task-") {
		t = t[5:]
	}
	id, err := strconv.ParseInt(t, 10, 64)
	if err != nil || id <= 0 {
		return 0, &FieldError{Field: fmt.Sprintf("task id %q",
			s), Problem: "is not a task id", Accepted: []string{"12", "#12", "TASK-12"}}
	}
	return id, nil
}

// CheckTitle reports why s cannot be a title: blank, too long, more than one
// line, or not UTF-8. The field is what the caller calls it.
func CheckTitle(field, s string) error {
	switch {
	case !utf8.ValidString(s):
		return &FieldError{Field: field, Problem: "is not valid UTF-8"}
	case strings.TrimSpace(s) == "":
		return &FieldError{Field: field, Problem: "must not be empty"}
	case strings.ContainsAny(s, "\r\n\x00"):
		return &FieldError{Field: field, Problem: "must be a single line; put the rest into the description"}
	case utf8.RuneCountInString(s) > MaxTitle:
		return &FieldError{
			Field: field, Problem: fmt.Sprintf("is longer than %d characters; put the rest into the description", MaxTitle),
		}
	}
	return nil
}

// CheckText reports why s cannot be stored as text: not UTF-8, a NUL byte, or
// longer than [MaxText]. Required text must also not be blank.
func CheckText(field, s string, required bool) error {
	switch {
	case !utf8.ValidString(s):
		return &FieldError{Field: field, Problem: "is not valid UTF-8"}
	case strings.ContainsRune(s, 0):
		return &FieldError{Field: field, Problem: "must not contain a NUL byte"}
	case len(s) > MaxText:
		return &FieldError{Field: field, Problem: fmt.Sprintf("is longer than %d KiB; keep to what matters", MaxText>>10)}
	case required && strings.TrimSpace(s) == "":
		return &FieldError{Field: field, Problem: "is required and must not be blank"}
	}
	return nil
}

// CheckPriority reports why p is no priority.
func CheckPriority(field string, p int) error {
	if p < HighestPriority || p > LowestPriority {
		return &FieldError{Field: field, Problem: fmt.Sprintf("must be a number from %d (highest) to %d (lowest), not %d",
			HighestPriority, LowestPriority, p)}
	}
	return nil
}

// A Mover is who changes a task's status.
type Mover string

// The movers.
const (
	Person  Mover = "person"  // by a command or a page
	Loop    Mover = "loop"    // when it starts, recovers or releases a session
	Verdict Mover = "verdict" // the decision after a session
	Derived Mover = "derived" // follows from what is open, see [Waiting]

	Importer Mover = "import" // `ralph import`, for what has ended where it comes from
)

// A Move is one allowed change of a task's status.
type Move struct {
	From, To Status
	By       Mover
	When     string
}

const (
	tooOften   = "stuck, refused or attempted too often, or its prompt is too long even when halved twice"
	heldOrLost = "a blocker or an unfinished dependency is open, or five of its sessions in a row were lost"
)

// Moves is every change of status that there is. Nothing else in ralph knows
// the rules: the store refuses what is not here, and docs/task-status.md is
// generated from it.
var Moves = []Move{
	{Proposed, Pending, Person, "the suggestion is approved (or auto-approved)"},
	{Proposed, Rejected, Person, "the suggestion is refused"},
	{Proposed, Cancelled, Person, "the task is called off"},

	{Pending, InProgress, Loop, "a session or a person takes it"},
	{Pending, NeedsInput, Derived, "a blocking question is open"},
	{Pending, Blocked, Derived, "a blocker or an unfinished dependency is open"},
	{Pending, Cancelled, Person, "the task is called off"},
	{Pending, Failed, Loop, "its turn comes and its attempts are used up"},

	{InProgress, Completed, Verdict, "done, and the verification agreed or there is none"},
	{InProgress, Pending, Verdict, "partial, stuck or a refused done: it is tried again"},
	{InProgress, Failed, Verdict, tooOften},
	{InProgress, NeedsInput, Verdict, "a blocking question is open"},
	{InProgress, Blocked, Verdict, heldOrLost},
	{InProgress, Pending, Loop, "its session was interrupted or lost"},
	{InProgress, Cancelled, Person, "the task is called off; its session is stopped first"},

	{NeedsInput, Pending, Derived, "the last open question is answered"},
	{NeedsInput, Completed, Person, "`ralph resolve --approve`: a verified done may change protected files"},
	{NeedsInput, Blocked, Derived, "the last open question is answered and a blocker is left"},
	{NeedsInput, Cancelled, Person, "the task is called off"},

	{Blocked, Pending, Derived, "the last blocker is resolved and every dependency completed"},
	{Blocked, NeedsInput, Derived, "a blocking question is open"},
	{Blocked, Cancelled, Person, "the task is called off"},

	{Failed, Pending, Person, "`ralph task retry`: every counter starts again"},
	{Failed, Cancelled, Person, "the task is called off"},
	{Completed, Pending, Person, "`ralph task retry`: it is to be done again"},
	{Cancelled, Pending, Person, "`ralph task retry`: it is wanted after all"},
	{Rejected, Pending, Person, "`ralph task retry`: it is wanted after all"},

	{Proposed, Completed, Importer, "it is completed where it was imported from"},
	{Proposed, Cancelled, Importer, "it is cancelled where it was imported from"},
	{Pending, Completed, Importer, "it is completed where it was imported from"},
	{Pending, Cancelled, Importer, "it is cancelled where it was imported from"},
	{Pending, Failed, Importer, "it has failed where it was imported from"},
	{Pending, Rejected, Importer, "it is rejected where it was imported from"},
	{NeedsInput, Completed, Importer, "it is completed where it was imported from"},
	{NeedsInput, Cancelled, Importer, "it is cancelled where it was imported from"},
	{Blocked, Completed, Importer, "it is completed where it was imported from"},
	{Blocked, Cancelled, Importer, "it is cancelled where it was imported from"},
	{Blocked, Failed, Importer, "it has failed where it was imported from"},
	{Blocked, Rejected, Importer, "it is rejected where it was imported from"},
}

// CanMove reports whether by may change a task's status from one to the other.
// Staying is always possible.
func CanMove(from, to Status, by Mover) bool {
	if from == to {
		return true
	}
	for _, m := range Moves {
		if m.From == from && m.To == to && m.By == by {
			return true
		}
	}
	return false
}

// Waiting is the status of a task that is neither worked on nor ended, derived
// from what is open (pipeline rule 5): questions first, then blockers and
// dependencies, then the queue.
func Waiting(openQuestions, openBlockers, unfinishedDependencies int) Status {
	switch {
	case openQuestions > 0:
		return NeedsInput
	case openBlockers+unfinishedDependencies > 0:
		return Blocked
	}
	return Pending
}

// A Part is one of the tasks that a task is split into.
type Part struct {
	Title       string
	Description string
}
