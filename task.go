package ralph

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Status is the state of a task (data model, "Task status").
type Status string

// The statuses. NeedsInput and Blocked are derived from open questions,
// blockers and dependencies (see [Waiting]); nothing else sets them.
const (
	Proposed   Status = "proposed"    // an agent suggested it; a person decides
	Pending    Status = "pending"     // waits for a session
	InProgress Status = "in_progress" // a session or a person works on it
	Merging    Status = "merging"     // done and verified; its change waits to be merged into the target branch
	NeedsInput Status = "needs_input" // a blocking question is open
	Blocked    Status = "blocked"     // a blocker or an unfinished dependency holds it back
	Completed  Status = "completed"   // done, and the verification agreed
	Failed     Status = "failed"      // given up: stuck, unverifiable or out of attempts
	Rejected   Status = "rejected"    // the suggestion was refused
	Cancelled  Status = "cancelled"   // a person called it off
)

// Statuses lists every status in display order.
var Statuses = []Status{
	Proposed, Pending, InProgress, Merging, NeedsInput, Blocked, Completed, Failed, Rejected, Cancelled,
}

// Ended reports whether no session will work on the task unless a person reopens it.
func (s Status) Ended() bool {
	return s == Completed || s == Failed || s == Rejected || s == Cancelled
}

// Wanted reports whether the task still has to be done, now or once nothing holds it back.
func (s Status) Wanted() bool { return s != Proposed && !s.Ended() }

// statusLooks has the look of each status. Its label is the word for people, the same on every
// screen.
var statusLooks = map[Status]Look{
	Proposed:   {"?", "Needs you", "teal"},
	Pending:    {"○", "Queued", "gray"},
	InProgress: {"▶", "Running", "blue"},
	Merging:    {"⇢", "Merging", "purple"},
	NeedsInput: {"❓", "Needs you", "yellow"},
	Blocked:    {"⊘", "Needs you", "orange"},
	Completed:  {"✓", "Merged", "green"},
	Failed:     {"✕", "Failed", "red"},
	Rejected:   {"–", "Cancelled", "gray"},
	Cancelled:  {"–", "Cancelled", "gray"},
}

// Words lists the status words for people, in display order.
var Words = []string{
	"needs you", "running", "merging", "in review", "queued", "waiting", "failed", "merged", "cancelled",
}

// Look returns the look of tasks with this status.
func (s Status) Look() Look { return statusLooks[s] }

// Look returns the look of the task's status, with two exceptions: a task that is blocked only by other tasks needs no
// person, and ralph does not merge pull requests.
func (t Task) Look() Look {
	switch {
	case t.Status == Blocked && !t.NeedsPerson():
		return Look{"○", "Waiting", "gray"}
	case t.Status == Merging && t.InReview:
		return Look{"⊙", "In review", "purple"}
	}
	return t.Status.Look()
}

// Key returns [KeyOf] the task's word.
func (t Task) Key() string { return KeyOf(t.Word()) }

// KeyOf returns a word of [Words] with underscores, for JSON and addresses.
func KeyOf(word string) string { return strings.ReplaceAll(word, " ", "_") }

// WordLook returns the look of all tasks with a word of [Words].
func WordLook(word string) Look {
	looks := []Look{Task{Status: Blocked}.Look(), Task{Status: Merging, InReview: true}.Look(), NeedsInput.Look()}
	for _, s := range Statuses {
		looks = append(looks, s.Look())
	}
	i := slices.IndexFunc(looks, func(l Look) bool { return strings.EqualFold(l.Label, word) })
	return looks[max(i, 0)]
}

// Word returns the word of [Words] for the task's status.
func (t Task) Word() string { return strings.ToLower(t.Look().Label) }

// Is returns the task's word as the rest of a clause about it: "is running", "needs you".
func (t Task) Is() string {
	if t.Look().Label == NeedsInput.Look().Label {
		return t.Word()
	}
	return "is " + t.Word()
}

// NeedsPerson reports whether the task waits for a person's words or action.
func (t Task) NeedsPerson() bool {
	return t.Status == NeedsInput || t.Status == Blocked && t.Waits.People() > 0
}

// An Origin tells whether a person or an agent made a task or a learning.
type Origin string

// The origins of tasks and learnings.
const (
	ByHuman Origin = "human"
	ByAgent Origin = "agent"
)

// Limits of a task's fields.
const (
	MaxTitle        = 500      // characters of a title
	MaxText         = 64 << 10 // bytes of any one text from an agent or a person
	HighestPriority = 0        // goes first
	LowestPriority  = 4        // goes last
	DefaultPriority = 2        // if none is given
)

// Named names a thing in a person's list: "question TASK-12", or just its
// kind if it belongs to no task.
func Named(kind string, task int64) string {
	if task == 0 {
		return kind
	}
	return fmt.Sprintf("%s TASK-%d", kind, task)
}

// A Task is one piece of work for an agent. `task list --json` prints its
// JSON; `task show` adds the fields that have no JSON name here.
type Task struct {
	ID           int64   `json:"id"`
	Title        string  `json:"title"`
	Status       Status  `json:"-"`
	State        string  `json:"status"`        // the status as people read it, see [Task.Key]
	StatusReason string  `json:"status_reason"` // one line for people: why the task has this status
	Priority     int     `json:"priority"`      // 0 highest to 4 lowest
	Feature      string  `json:"feature"`       // name, "" for none
	Discipline   string  `json:"discipline"`    // name, "" for none
	Origin       Origin  `json:"origin"`
	DependsOn    []int64 `json:"depends_on"` // ids, ascending
	Waits        Waits   `json:"waits"`
	InReview     bool    `json:"-"`        // its change is a pull request, or will be one: a person merges it
	Attempts     int     `json:"attempts"` // sessions that counted: agent errors, interruptions and losses do not
	StuckCount   int     `json:"stuck_count"`
	Created      Time    `json:"created"`
	Updated      Time    `json:"updated"`
	CompletedAt  Time    `json:"completed_at"`

	Role           Role     `json:"-"` // role of its sessions: [RoleWork] or [RolePlan]
	Marks          []string `json:"-"` // notes from its planning
	Description    string   `json:"-"`
	Acceptance     []string `json:"-"` // criteria in words
	Verify         []string `json:"-"` // shell commands that must exit 0
	Allow          []string `json:"-"` // kinds of changes that need no approval: "tests", or globs of files
	Hidden         []Hidden `json:"-"` // checks that no session sees
	Review         string   `json:"-"` // the agent that reviews it, [NoReview], or "" as configured
	Files          []string `json:"-"` // globs of the files it may touch, a hint for scheduling; empty if unknown
	Model          string   `json:"-"` // "" leaves the choice to the discipline, then to the configuration
	Agent          string   `json:"-"` // a name from ralph.yaml; "" leaves the choice as for Model
	ExternalID     string   `json:"-"` // its id in the tool it was imported from
	ExternalSource string   `json:"-"` // that tool: "beads", "prd.json/ralph/login"; one id may exist in several
	TimesSentBack  int      `json:"-"` // number of times that its change was sent back since the last new information
	VerifyFailures int      `json:"-"` // refused claims since the last new information
	PromptTooLong  int      `json:"-"` // consecutive sessions whose prompt was too long for the agent
	LostCount      int      `json:"-"` // consecutive sessions that were lost
	NotBefore      Time     `json:"-"` // no retry before this time, after lost sessions; zero is now
	ClaimedBy      string   `json:"-"` // the id of the session that works on it; "" for none
}

// Splittable reports whether the task can be replaced by parts: nobody works on it, and it has not ended
// for good.
func (t Task) Splittable() bool {
	return t.Status != InProgress && t.Status != Merging && (!t.Status.Ended() || t.Status == Failed)
}

// An Edit is the old and the new value of one field: a text, a number or a list.
type Edit struct {
	Before any `json:"before"`
	After  any `json:"after"`
}

// Changes returns the fields that differ before and after an edit, by their JSON names.
func Changes(before, after Task) map[string]Edit {
	changes := map[string]Edit{}
	for name, field := range map[string]func(t Task) any{
		"title":       func(t Task) any { return t.Title },
		"description": func(t Task) any { return t.Description },
		"feature":     func(t Task) any { return t.Feature },
		"discipline":  func(t Task) any { return t.Discipline },
		"priority":    func(t Task) any { return t.Priority },
		"model":       func(t Task) any { return t.Model },
		"agent":       func(t Task) any { return t.Agent },
		"acceptance":  func(t Task) any { return append([]string{}, t.Acceptance...) },
		"verify":      func(t Task) any { return append([]string{}, t.Verify...) },
		"files":       func(t Task) any { return append([]string{}, t.Files...) },
		"allow":       func(t Task) any { return append([]string{}, t.Allow...) },
		"review":      func(t Task) any { return t.Review },
	} {
		if c := (Edit{field(before), field(after)}); !reflect.DeepEqual(c.Before, c.After) {
			changes[name] = c
		}
	}
	return changes
}

// NewContract reports whether an edit to a task ends its session, because the terms have changed since the session
// began. The title is not one of the terms. A person's session continues, because people edit both, unless an amendment
// changed the criteria or the verification: an amendment is the outcome of a discussion, not the person's own edit.
func NewContract(before, after Task, person, amended bool) bool {
	if person && !amended {
		return false
	}
	asked := []string{"acceptance", "verify"}
	if !person {
		asked = append(asked, "description")
	}
	changed := Changes(before, after)
	return slices.ContainsFunc(asked, func(name string) bool { _, ok := changed[name]; return ok })
}

// ParseTaskID parses "12", "#12" or "TASK-12" (command line).
func ParseTaskID(s string) (int64, error) {
	t := strings.TrimPrefix(strings.TrimSpace(s), "#")
	if len(t) > 5 && strings.EqualFold(t[:5], "task-") {
		t = t[5:]
	}
	id, err := strconv.ParseInt(t, 10, 64)
	if err != nil || id <= 0 {
		accepted := []string{"12", "#12", "TASK-12"}
		return 0, &FieldError{Field: strconv.Quote(s), Problem: "is not a task id", Accepted: accepted}
	}
	return id, nil
}

// CheckTitle returns an error if s cannot be a title: blank, too long, more than one line, or not UTF-8. Field is the
// name of the input.
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

// CheckText returns an error if s cannot be stored as text: not UTF-8, a NUL byte, longer than [MaxText], or blank
// although required.
func CheckText(field, s string, required bool) error {
	switch {
	case !utf8.ValidString(s):
		return &FieldError{Field: field, Problem: "is not valid UTF-8"}
	case strings.ContainsRune(s, 0):
		return &FieldError{Field: field, Problem: "must not contain a NUL byte"}
	case len(s) > MaxText:
		return &FieldError{Field: field, Problem: fmt.Sprintf("is longer than %d KiB; shorten it", MaxText>>10)}
	case required && strings.TrimSpace(s) == "":
		return &FieldError{Field: field, Problem: "is required and must not be blank"}
	}
	return nil
}

// CheckPriority returns an error if p is not a priority.
func CheckPriority(field string, p int) error {
	if p < HighestPriority || p > LowestPriority {
		return &FieldError{Field: field, Problem: fmt.Sprintf("must be a number from %d (highest) to %d (lowest), not %d",
			HighestPriority, LowestPriority, p)}
	}
	return nil
}

// A Mover changes a task's status.
type Mover string

// The movers.
const (
	Person  Mover = "person"  // by a command or a page
	Loop    Mover = "loop"    // when it starts, recovers or releases a session
	Verdict Mover = "verdict" // the decision after a session
	Merger  Mover = "merge"   // the outcome of a change in the merge queue
	Derived Mover = "derived" // follows from open questions, blockers and dependencies, see [Waiting]

	Importer Mover = "import" // `ralph import`, for tasks that have ended in the other tool
)

// A Move is one allowed change of a task's status.
type Move struct {
	From, To Status
	By       Mover
	When     string
}

const (
	tooOften   = "stuck, refused or attempted too often, or its prompt is too long even at a quarter"
	heldOrLost = "a blocker or dependency is open, or five of its sessions in a row were lost"
)

// Moves lists every allowed change of status. No other code knows these rules: the
// store refuses anything else, and docs/outcomes.md has its table from this table.
var Moves = []Move{
	{Proposed, Pending, Person, "the suggestion is approved (or auto-approved)"},
	{Proposed, Rejected, Person, "the suggestion is refused"},
	{Proposed, Cancelled, Person, "a person cancels it"},

	{Pending, InProgress, Loop, "a session or a person takes it"},
	{Pending, NeedsInput, Derived, "a blocking question is open"},
	{Pending, Blocked, Derived, "a blocker or dependency is open"},
	{Pending, Cancelled, Person, "a person cancels it"},
	{Pending, Failed, Loop, "its turn comes and no attempt is left"},

	{InProgress, Completed, Verdict, "done, and the checks passed or there are none"},
	{InProgress, Merging, Verdict, "the same, and its change waits to be merged"},
	{InProgress, Pending, Verdict, "partial, stuck or a refused done"},
	{InProgress, Failed, Verdict, tooOften},
	{InProgress, NeedsInput, Verdict, "a blocking question is open"},
	{InProgress, Blocked, Verdict, heldOrLost},
	{InProgress, Pending, Loop, "its session was interrupted or lost"},
	{InProgress, Cancelled, Person, "a person cancels it; its session stops first"},

	{Merging, Completed, Merger, "the change is in the target branch"},
	{Merging, Pending, Merger, "the change is sent back"},
	{Merging, NeedsInput, Merger, "its change waits for approval"},
	{Merging, Blocked, Merger, "the target branch is gone, or the change was sent back too often"},
	{Merging, Pending, Person, "the task is edited, or `ralph task retry --fresh`"},
	{Completed, Merging, Person, "`ralph undo`: the reverse of its change waits to be merged"},
	{Failed, Merging, Person, "the same, for work merged before a retry"},
	{Cancelled, Merging, Person, "`ralph undo` of earlier work, or of an undo"},
	{Merging, Cancelled, Merger, "`ralph undo`: the reverse is in the target branch"},
	{Merging, Cancelled, Person, "a person cancels it (refused during the merge)"},
	{Pending, Merging, Person, "`ralph task retry --as-is`"},
	{Blocked, Merging, Person, "`ralph task retry --as-is`"},

	{NeedsInput, Pending, Derived, "the last open question is answered"},
	{NeedsInput, Completed, Person, "`ralph approve` of a checked done"},
	{NeedsInput, Merging, Person, "`ralph approve` of a checked change"},
	{NeedsInput, Blocked, Derived, "the last open question is answered, and a blocker is left"},
	{NeedsInput, Cancelled, Person, "a person cancels it"},

	{Blocked, Pending, Derived, "the last blocker is resolved, and every dependency is completed"},
	{Blocked, NeedsInput, Derived, "a blocking question is open"},
	{Blocked, Cancelled, Person, "a person cancels it"},

	{Failed, Pending, Person, "`ralph task retry`, with all counters at zero"},
	{Failed, Cancelled, Person, "a person cancels it"},
	{Completed, Pending, Person, "`ralph task retry --again`"},
	{Completed, Cancelled, Person, "`ralph undo`, if people have reverted its change already"},
	{Failed, Cancelled, Person, "the same"},
	{Cancelled, Completed, Person, "`ralph undo` of an undo, if people have restored its change already"},
	{Cancelled, Pending, Person, "`ralph task retry`"},
	{Rejected, Pending, Person, "`ralph task retry`"},

	{Proposed, Completed, Importer, "it is completed in the imported file"},
	{Proposed, Cancelled, Importer, "it is cancelled in the imported file"},
	{Pending, Completed, Importer, "it is completed in the imported file"},
	{Pending, Cancelled, Importer, "it is cancelled in the imported file"},
	{Pending, Failed, Importer, "it failed in the imported file"},
	{Pending, Rejected, Importer, "it is rejected in the imported file"},
	{NeedsInput, Completed, Importer, "it is completed in the imported file"},
	{NeedsInput, Cancelled, Importer, "it is cancelled in the imported file"},
	{Blocked, Completed, Importer, "it is completed in the imported file"},
	{Blocked, Cancelled, Importer, "it is cancelled in the imported file"},
	{Blocked, Failed, Importer, "it failed in the imported file"},
	{Blocked, Rejected, Importer, "it is rejected in the imported file"},
}

// CanMove reports whether by may change a task's status from one to the
// other. Keeping the status is always allowed.
func CanMove(from, to Status, by Mover) bool {
	return from == to ||
		slices.ContainsFunc(Moves, func(m Move) bool { return m.From == from && m.To == to && m.By == by })
}

// Waits holds the reasons why a task waits.
type Waits struct {
	Questions int     `json:"questions"` // unanswered blocking questions
	Blockers  int     `json:"blockers"`  // unresolved blockers
	Tasks     []int64 `json:"tasks"`     // dependencies that have not completed, ascending
}

// People returns the number of questions and blockers that wait for a person.
func (w Waits) People() int { return w.Questions + w.Blockers }

// Status returns the status of a task that is neither worked on nor ended (pipeline
// rule 5): open questions come first, then blockers and dependencies, then the queue.
func (w Waits) Status() Status {
	switch {
	case w.Questions > 0:
		return NeedsInput
	case w.Blockers+len(w.Tasks) > 0:
		return Blocked
	}
	return Pending
}

// String lists the reasons, as in "waits for an answer and TASK-3"; "" if the task does not wait.
func (w Waits) String() string {
	var parts []string
	if w.Questions > 0 {
		parts = append(parts, "an answer")
	}
	if w.Blockers > 0 {
		parts = append(parts, "a blocker to be resolved")
	}
	if len(w.Tasks) > 0 {
		parts = append(parts, TaskNames(w.Tasks, " and "))
	}
	if len(parts) == 0 {
		return ""
	}
	return "waits for " + strings.Join(parts, " and ")
}

// TaskNames joins the names of tasks, such as "TASK-3, TASK-4".
func TaskNames(ids []int64, separator string) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = fmt.Sprintf("TASK-%d", id)
	}
	return strings.Join(names, separator)
}

// A Part is one of the tasks that a task is split into.
type Part struct {
	Title       string
	Description string
}
