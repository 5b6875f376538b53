package signals

import (
	"encoding/json"
	"fmt"

	"ralph"
)

// A record is the part of Facts that is stored with a session, so that the
// decision can be made again later. Known learnings are left out, as there may
// be thousands, and so are the rules, since a replay uses the current ones.
type record struct {
	Task        recordedTask       `json:"task"`
	Ending      ralph.Ending       `json:"ending"`
	EndingWhy   string             `json:"ending_why,omitempty"`
	Said        []recordedSaid     `json:"said,omitempty"`
	Changed     bool               `json:"changed"`
	Untouched   bool               `json:"untouched"`
	Confirmed   bool               `json:"confirmed"`
	Verify      []ralph.Check      `json:"verify,omitempty"`
	Protected   []string           `json:"protected,omitempty"`
	Evidence    ralph.Evidence     `json:"evidence"`
	Void        bool               `json:"void"`
	Merges      bool               `json:"merges,omitempty"`
	Conflict    string             `json:"conflict,omitempty"`
	Conflicts   []string           `json:"conflicts,omitempty"`
	Moved       bool               `json:"moved,omitempty"`
	Told        bool               `json:"told,omitempty"`
	Head        string             `json:"head,omitempty"`
	Planned     string             `json:"planned,omitempty"`
	Approvals   []ralph.Approval   `json:"approvals,omitempty"`
	OpenFlags   []int64            `json:"open_flags,omitempty"`
	CancelledBy string             `json:"cancelled_by,omitempty"`
	Unchecked   string             `json:"unchecked,omitempty"`
	Unseen      []string           `json:"unseen,omitempty"`
	Waits       ralph.Waits        `json:"waits"`
	Upstream    map[int64]Upstream `json:"upstream,omitempty"`
	Titles      map[string]bool    `json:"titles,omitempty"`
	Features    map[string]bool    `json:"features,omitempty"`
	Approved    int                `json:"approved,omitempty"`
}

// recordedTask has the fields of a task that decisions depend on.
type recordedTask struct {
	ID             int64  `json:"id"`
	Feature        string `json:"feature,omitempty"`
	Attempts       int    `json:"attempts"`
	StuckCount     int    `json:"stuck_count"`
	VerifyFailures int    `json:"verify_failures"`
	PromptTooLong  int    `json:"prompt_too_long"`
	LostCount      int    `json:"lost_count,omitempty"`
	TimesSentBack  int    `json:"times_sent_back,omitempty"`
}

type recordedSaid struct {
	ID       int64           `json:"id"`
	Verb     ralph.Verb      `json:"verb"`
	Payload  json.RawMessage `json:"payload"`
	Answered bool            `json:"answered,omitempty"`
	Resolved bool            `json:"resolved,omitempty"`
}

// Record returns the facts as JSON for storage with a session: without
// known learnings, rules, and the output of commands.
func (f Facts) Record() ([]byte, error) {
	r := record{
		Task: recordedTask{
			ID: f.Task.ID, Feature: f.Task.Feature, Attempts: f.Task.Attempts, StuckCount: f.Task.StuckCount,
			VerifyFailures: f.Task.VerifyFailures, PromptTooLong: f.Task.PromptTooLong, LostCount: f.Task.LostCount,
			TimesSentBack: f.Task.TimesSentBack,
		},
		Ending: f.Ending, EndingWhy: f.EndingWhy, Changed: f.Changed, Untouched: f.Untouched, Confirmed: f.Confirmed,
		Protected: f.Protected, Evidence: f.Evidence, Void: f.Void, Merges: f.Merges,
		Conflict: f.Conflict, Conflicts: f.Conflicts, Moved: f.Moved, Told: f.Told,
		Head: f.Head, Planned: f.Planned, Approvals: f.Approvals, OpenFlags: f.OpenFlags,
		CancelledBy: f.CancelledBy, Unchecked: f.Unchecked, Unseen: f.Unseen,
		Waits:    f.Waits,
		Upstream: f.Upstream, Titles: f.Titles, Features: f.Features, Approved: f.Approved,
	}
	for _, c := range f.Verify {
		c.Tail = "" // no decision depends on it, and the session has it
		r.Verify = append(r.Verify, c)
	}
	for _, s := range f.Said {
		payload, err := json.Marshal(s.Payload)
		if err != nil {
			return nil, fmt.Errorf("signal %d: %w", s.ID, err)
		}
		r.Said = append(r.Said, recordedSaid{
			ID: s.ID, Verb: s.Payload.Verb(), Payload: payload, Answered: s.Answered, Resolved: s.Resolved,
		})
	}
	return json.Marshal(r)
}

// Recorded parses the output of [Facts.Record]. Known and Rules are empty.
func Recorded(text []byte) (Facts, error) {
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return Facts{}, fmt.Errorf("recorded facts: %w", err)
	}
	f := Facts{
		Task: ralph.Task{
			ID: r.Task.ID, Feature: r.Task.Feature, Attempts: r.Task.Attempts, StuckCount: r.Task.StuckCount,
			VerifyFailures: r.Task.VerifyFailures, PromptTooLong: r.Task.PromptTooLong, LostCount: r.Task.LostCount,
			TimesSentBack: r.Task.TimesSentBack,
		},
		Ending: r.Ending, EndingWhy: r.EndingWhy, Changed: r.Changed, Untouched: r.Untouched, Confirmed: r.Confirmed,
		Verify: r.Verify, Protected: r.Protected, Evidence: r.Evidence, Void: r.Void,
		CancelledBy: r.CancelledBy, Unchecked: r.Unchecked, Unseen: r.Unseen,
		Waits:    r.Waits,
		Upstream: r.Upstream, Titles: r.Titles, Features: r.Features, Approved: r.Approved, Merges: r.Merges,
		Conflict: r.Conflict, Conflicts: r.Conflicts, Moved: r.Moved, Told: r.Told,
		Head: r.Head, Planned: r.Planned, Approvals: r.Approvals, OpenFlags: r.OpenFlags,
	}
	for _, s := range r.Said {
		payload, err := Parse(s.Verb, s.Payload)
		if err != nil {
			return Facts{}, fmt.Errorf("recorded facts, signal %d: %w", s.ID, err)
		}
		f.Said = append(f.Said, Said{ID: s.ID, Payload: payload, Answered: s.Answered, Resolved: s.Resolved})
	}
	return f, nil
}
