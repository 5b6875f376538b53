package ralph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrInvariant is the error for a request that the rules of discussion forbid, such as a fourth
// open blocker or a reply to a reply. Its text begins with the code that programs match.
var ErrInvariant = errors.New("task.invariant_violated")

// MaxOpenBlockers is the number of open blockers an author may have on one task.
const MaxOpenBlockers = 3

// A Contract holds the terms by which a task's done is measured. In a patch, a nil part stays unchanged.
type Contract struct {
	Acceptance *[]string `json:"acceptance,omitempty"` // criteria in words
	Verify     *[]string `json:"verify,omitempty"`     // commands that must exit 0
}

// A Patch is a proposed change to a task. Nil fields stay as they are.
type Patch struct {
	Title       *string   `json:"title,omitempty"`
	Description *string   `json:"description,omitempty"`
	Contracts   *Contract `json:"contracts,omitempty"`
	Priority    *int      `json:"priority,omitempty"` // 0 highest to 4 lowest
}

// patchFields are the keys of a patch.
var patchFields = []string{"title", "description", "contracts", "priority"}

// ParsePatch parses a patch. Its error names the wrong key and the accepted ones.
func ParsePatch(raw []byte) (Patch, error) {
	var p Patch
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return p, &FieldError{Field: "patch", Problem: fmt.Sprintf("cannot be read (%v); it is an object with one or more of",
			err), Accepted: patchFields}
	}
	return p, p.Check()
}

// Check returns nil, or an error that names the wrong part of the patch.
func (p Patch) Check() error {
	if len(p.Keys()) == 0 {
		return &FieldError{Field: "patch", Problem: "changes nothing; it needs one or more of", Accepted: patchFields}
	}
	if p.Title != nil {
		if err := CheckTitle("patch.title", *p.Title); err != nil {
			return err
		}
	}
	if p.Description != nil {
		if err := CheckText("patch.description", *p.Description, false); err != nil {
			return err
		}
	}
	if p.Priority != nil {
		if err := CheckPriority("patch.priority", *p.Priority); err != nil {
			return err
		}
	}
	if p.Contracts == nil {
		return nil
	}
	if p.Contracts.Acceptance == nil && p.Contracts.Verify == nil {
		return &FieldError{
			Field: "patch.contracts", Problem: "changes nothing; it needs one or more of",
			Accepted: []string{"acceptance", "verify"},
		}
	}
	for name, list := range map[string]*[]string{"acceptance": p.Contracts.Acceptance, "verify": p.Contracts.Verify} {
		if list == nil {
			continue
		}
		for _, s := range *list {
			if err := CheckText("patch.contracts."+name, s, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// Keys returns the names of the fields that the patch changes, in a fixed order.
func (p Patch) Keys() (keys []string) {
	for _, k := range []struct {
		name  string
		given bool
	}{
		{"title", p.Title != nil},
		{"description", p.Description != nil},
		{"contracts", p.Contracts != nil},
		{"priority", p.Priority != nil},
	} {
		if k.given {
			keys = append(keys, k.name)
		}
	}
	return keys
}

// Apply returns the task with the patch applied.
func (p Patch) Apply(t Task) Task {
	if p.Title != nil {
		t.Title = *p.Title
	}
	if p.Description != nil {
		t.Description = *p.Description
	}
	if p.Priority != nil {
		t.Priority = *p.Priority
	}
	if c := p.Contracts; c != nil {
		if c.Acceptance != nil {
			t.Acceptance = *c.Acceptance
		}
		if c.Verify != nil {
			t.Verify = *c.Verify
		}
	}
	return t
}

// Of returns a patch with the same keys as p and the values that the task
// has for them. Applied later, it undoes p.
func (p Patch) Of(t Task) Patch {
	var q Patch
	if p.Title != nil {
		q.Title = &t.Title
	}
	if p.Description != nil {
		q.Description = &t.Description
	}
	if p.Priority != nil {
		q.Priority = &t.Priority
	}
	if c := p.Contracts; c != nil {
		q.Contracts = &Contract{}
		if c.Acceptance != nil {
			q.Contracts.Acceptance = &t.Acceptance
		}
		if c.Verify != nil {
			q.Contracts.Verify = &t.Verify
		}
	}
	return q
}

// An AmendmentStatus is the state of an amendment.
type AmendmentStatus string

// The statuses of amendments. Rejected and superseded ones are kept as history.
const (
	AmendmentProposed   AmendmentStatus = "proposed"
	AmendmentApproved   AmendmentStatus = "approved"
	AmendmentRejected   AmendmentStatus = "rejected"
	AmendmentSuperseded AmendmentStatus = "superseded"
)

// An Amendment is a proposed change to a task's terms (discussion, "Amendments").
type Amendment struct {
	ID         int64           `json:"id"`
	TaskID     int64           `json:"task_id"`
	SessionID  string          `json:"session_id"`
	Author     string          `json:"author"`
	AuthorKind Origin          `json:"author_kind"`
	Patch      Patch           `json:"patch"`
	Rationale  string          `json:"rationale"`
	Status     AmendmentStatus `json:"status"`
	Note       string          `json:"decision_note"`
	DecidedBy  string          `json:"decided_by"`
	DecidedAt  Time            `json:"decided_at"`
	Before     *Patch          `json:"applied_snapshot"` // the values that it replaced; nil until it is applied
	RolledBack Time            `json:"rolled_back_at"`
	Created    Time            `json:"created"`
}
