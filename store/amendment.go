package store

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"ralph"
)

var amendmentRows = reads("task_amendments m", func(m *ralph.Amendment) []field {
	return []field{
		{"m.id", &m.ID},
		{"m.task_id", &m.TaskID},
		{"coalesce(m.session_id, '')", &m.SessionID},
		{"m.author", &m.Author},
		{"m.author_kind", &m.AuthorKind},
		{"m.patch", column(&m.Patch)},
		{"m.rationale", &m.Rationale},
		{"m.status", &m.Status},
		{"m.decision_note", &m.Note},
		{"m.decided_by", &m.DecidedBy},
		{"m.decided_at", &m.DecidedAt},
		{"m.applied_snapshot", snapshotOf{m}}, // taskSnapshot; must come after the patch, which Scan uses
		{"m.rolled_back_at", &m.RolledBack},
		{"m.created", &m.Created},
	}
})

// A snapshotOf scans a stored task snapshot into the values that an amendment replaced.
type snapshotOf struct{ *ralph.Amendment }

// Scan implements sql.Scanner.
func (m snapshotOf) Scan(value any) error {
	if value == "" {
		return nil
	}
	var before taskSnapshot
	if err := column(&before).Scan(value); err != nil {
		return fmt.Errorf("snapshot of amendment %d: %w", m.ID, err)
	}
	q := m.Patch.Of(before.task())
	m.Before = &q
	return nil
}

// A taskSnapshot is a task's row before an amendment was applied.
type taskSnapshot struct {
	Title       string       `json:"title"`
	Description string       `json:"description"`
	Acceptance  []string     `json:"acceptance"`
	Verify      []string     `json:"verify"`
	Priority    int          `json:"priority"`
	Status      ralph.Status `json:"status"`
	Feature     string       `json:"feature"`
	Discipline  string       `json:"discipline"`
	Model       string       `json:"model"`
}

func (s taskSnapshot) task() ralph.Task {
	return ralph.Task{
		Title: s.Title, Description: s.Description, Acceptance: s.Acceptance, Verify: s.Verify, Priority: s.Priority,
	}
}

// Amendment returns one amendment. The error wraps [ralph.ErrNotFound] if there is none.
func (tx *Tx) Amendment(id int64) (ralph.Amendment, error) {
	return amendmentRows.one(tx, fmt.Sprintf("amendment %d", id), ralph.ListAmendments, `WHERE m.id = $1`, id)
}

// An AmendmentFilter narrows a list of amendments; the zero value selects all.
type AmendmentFilter struct {
	Task   int64
	Status ralph.AmendmentStatus
}

// Amendments lists amendments, oldest first.
func (tx *Tx) Amendments(f AmendmentFilter) ([]ralph.Amendment, error) {
	var by filter
	if f.Task != 0 {
		by.and("m.task_id = ?", f.Task)
	}
	if f.Status != "" {
		by.and("m.status = ?", f.Status)
	}
	return amendmentRows.all(tx, by.where()+" ORDER BY m.id", by.args...)
}

// Propose adds an amendment. Earlier proposals for the same task become superseded.
func (tx *Tx) Propose(m ralph.Amendment) (int64, error) {
	t, err := tx.Task(m.TaskID)
	if err != nil {
		return 0, err
	}
	if t.Status.Ended() && t.Status != ralph.Failed {
		return 0, ralph.Conflict("TASK-%d %s and cannot be amended", t.ID, t.Is())
	}
	if err := errors.Join(m.Patch.Check(), ralph.CheckText("rationale", m.Rationale, true)); err != nil {
		return 0, err
	}
	if err := tx.do(`
		UPDATE task_amendments SET status = 'superseded', decided_at = $1
		WHERE task_id = $2 AND status = 'proposed'`, tx.Now(), m.TaskID); err != nil {
		return 0, err
	}
	id, err := tx.add("task_amendments", cells{
		"task_id":     m.TaskID,
		"session_id":  null(m.SessionID),
		"author":      m.Author,
		"author_kind": m.AuthorKind,
		"patch":       asJSON(m.Patch),
		"rationale":   m.Rationale,
		"created":     tx.Now(),
	})
	if err != nil {
		return 0, err
	}
	return id, tx.record(ralph.Event{TaskID: m.TaskID, SessionID: m.SessionID},
		ralph.AmendmentMade{TaskID: m.TaskID, AmendmentID: id, PatchKeys: m.Patch.Keys()})
}

// proposedAmendment returns an undecided amendment and its task. The error wraps [ralph.ErrConflict] if it was decided.
func (tx *Tx) proposedAmendment(id int64) (ralph.Amendment, ralph.Task, error) {
	m, err := tx.Amendment(id)
	if err != nil {
		return m, ralph.Task{}, err
	}
	if m.Status != ralph.AmendmentProposed {
		return m, ralph.Task{}, ralph.Conflict("amendment %d is %s already by %s", id, m.Status, cmp.Or(m.DecidedBy, "ralph"))
	}
	t, err := tx.Task(m.TaskID)
	return m, t, err
}

// ApproveAmendment applies an amendment and keeps a snapshot of the task as it was. If the patch
// changes the contract of a task in progress, its session is asked to stop, its work is kept, and
// claimDropped is true.
func (tx *Tx) ApproveAmendment(id int64, note, by string) (claimDropped bool, err error) {
	m, t, err := tx.proposedAmendment(id)
	if err != nil {
		return false, err
	}
	if t.Status.Ended() && t.Status != ralph.Failed {
		return false, ralph.Conflict("TASK-%d %s and cannot be amended", t.ID, t.Is())
	}
	if err := tx.UpdateTask(m.Patch.Apply(t)); err != nil {
		return false, err
	}
	if err := tx.set("task_amendments", id, cells{
		"status": "approved", "decision_note": note, "decided_by": by, "decided_at": tx.Now(),
		"applied_snapshot": asJSON(taskSnapshot{
			t.Title, t.Description, t.Acceptance, t.Verify, t.Priority, t.Status, t.Feature, t.Discipline, t.Model,
		}),
	}); err != nil {
		return false, err
	}
	if err := tx.Renew(t.ID); err != nil {
		return false, err
	}
	if claimDropped, err = tx.StopForContract(t, m.Patch.Apply(t), true, by); err != nil {
		return false, err
	}
	return claimDropped, tx.record(ralph.Event{TaskID: t.ID},
		ralph.AmendmentApplied{TaskID: t.ID, AmendmentID: id, ClaimDropped: claimDropped})
}

// RejectAmendment rejects an amendment; the note says why and is required.
func (tx *Tx) RejectAmendment(id int64, note, by string) error {
	m, _, err := tx.proposedAmendment(id)
	if err != nil {
		return err
	}
	if err := ralph.CheckText("note", note, true); err != nil {
		return err
	}
	if err := tx.set("task_amendments", id, cells{
		"status": "rejected", "decision_note": note, "decided_by": by, "decided_at": tx.Now(),
	}); err != nil {
		return err
	}
	return tx.record(ralph.Event{TaskID: m.TaskID}, ralph.AmendmentRefused{TaskID: m.TaskID, AmendmentID: id})
}

// RollBack restores the values that an approved amendment replaced. If any of those fields has
// changed since, it does nothing and names them in conflicts.
func (tx *Tx) RollBack(id int64, by string) (conflicts []string, err error) {
	m, err := tx.Amendment(id)
	if err != nil {
		return nil, err
	}
	if m.Status != ralph.AmendmentApproved || m.Before == nil || !m.RolledBack.IsZero() {
		why := string(m.Status)
		if !m.RolledBack.IsZero() {
			why = "rolled back already"
		}
		return nil, fmt.Errorf("amendment %d is %s: %w", id, why, ralph.ErrConflict)
	}
	t, err := tx.Task(m.TaskID)
	if err != nil {
		return nil, err
	}
	if conflicts = changedSince(m.Patch, m.Patch.Of(t)); len(conflicts) > 0 {
		return conflicts, nil
	}
	if err := tx.UpdateTask(m.Before.Apply(t)); err != nil {
		return nil, err
	}
	if err := tx.set("task_amendments", id, cells{"rolled_back_at": tx.Now(), "rolled_back_by": by}); err != nil {
		return nil, err
	}
	_, err = tx.StopForContract(t, m.Before.Apply(t), true, by)
	return nil, err
}

// StopForContract asks the session that works on a task to stop if a change of the task gives it a
// new contract; see [ralph.NewContract]. It reports whether it did.
func (tx *Tx) StopForContract(before, after ralph.Task, amended bool, by string) (stopped bool, err error) {
	session, err := tx.EndedBy(before, after, amended)
	if err != nil || session == "" {
		return false, err
	}
	return true, tx.RequestStop(session, "contract", by)
}

// EndedBy returns the id of the session that a change of its task gives a new contract; "" for none.
func (tx *Tx) EndedBy(before, after ralph.Task, amended bool) (string, error) {
	if before.Status != ralph.InProgress || before.ClaimedBy == "" {
		return "", nil
	}
	s, err := tx.Session(before.ClaimedBy)
	if err != nil || !ralph.NewContract(before, after, s.Origin == ralph.FromHuman, amended) {
		return "", err
	}
	return s.ID, nil
}

// changedSince names the keys of a patch whose current values differ from its own.
func changedSince(set, now ralph.Patch) (keys []string) {
	for _, k := range []struct {
		name string
		same bool
	}{
		{"title", reflect.DeepEqual(set.Title, now.Title)},
		{"description", reflect.DeepEqual(set.Description, now.Description)},
		{"contracts", sameContract(set.Contracts, now.Contracts)},
		{"priority", reflect.DeepEqual(set.Priority, now.Priority)},
	} {
		if !k.same {
			keys = append(keys, k.name)
		}
	}
	return keys
}

func sameContract(a, b *ralph.Contract) bool {
	if a == nil || b == nil {
		return a == b
	}
	list := func(l *[]string) []string {
		if l == nil || len(*l) == 0 {
			return nil
		}
		return *l
	}
	return slices.Equal(list(a.Acceptance), list(b.Acceptance)) && slices.Equal(list(a.Verify), list(b.Verify))
}
