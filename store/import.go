package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ralph"
	"ralph/internal/lazy"
	"ralph/signals"
)

// The actions that an import takes on a task.
const (
	ImportAdded     = "added"
	ImportUpdated   = "updated"
	ImportUnchanged = "unchanged" // already here as in the file
	ImportKept      = "kept"      // changed in the file, but already begun or ended here
)

// An ImportResult lists the effects of an import.
type ImportResult struct {
	Tasks     []ImportedResult `json:"tasks"`     // in the order of the file
	Learnings int              `json:"learnings"` // number added
	Notes     []string         `json:"notes"`     // parts left out, with reasons
	Features  []ralph.Feature  `json:"features"`  // of the file, as they are then
}

// An ImportedResult is the result for one task of the file.
type ImportedResult struct {
	ID      int64        `json:"id"`
	Title   string       `json:"title"`
	Status  ralph.Status `json:"status"`
	Action  string       `json:"action"`            // added, updated, unchanged or kept
	Changes []string     `json:"changes,omitempty"` // fields updated, or that would have been
	Line    int          `json:"line"`

	Parent     int64    `json:"parent,omitempty"` // the parent task in the file
	Acceptance []string `json:"acceptance,omitempty"`
	Verify     []string `json:"verify,omitempty"` // commands of the task alone
	DependsOn  []int64  `json:"depends_on,omitempty"`
}

// An ImportError says which line of the file cannot be imported.
type ImportError struct {
	Line int // from 1; 0 if the cause is not in the file
	Err  error
}

// Error returns "line N: …".
func (e *ImportError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the reason.
func (e *ImportError) Unwrap() error { return e.Err }

// imported is a task as the file had it, stored to detect changes at the next import.
type imported struct {
	Key         string       `json:"key"` // the task's key in the file
	Title       string       `json:"title"`
	Description string       `json:"description"`
	Acceptance  []string     `json:"acceptance"`
	Verify      []string     `json:"verify"`
	Files       []string     `json:"files"`
	Priority    int          `json:"priority"`
	Feature     string       `json:"feature"`
	Discipline  string       `json:"discipline"`
	Model       string       `json:"model"`
	Agent       string       `json:"agent"`
	Status      ralph.Status `json:"status"`
	Needs       []string     `json:"needs"`
}

// Import takes over the contents of another tool's file. It recognizes a task by its external id. Changes in the file
// since the last import change a task that nobody has begun; nothing is added twice (docs/import.md).
func (tx *Tx) Import(in ralph.Import) (ImportResult, error) {
	r := ImportResult{
		Tasks: make([]ImportedResult, 0, len(in.Tasks)), Notes: append([]string{}, in.Notes...),
		Features: []ralph.Feature{},
	}
	for _, f := range in.Features {
		note, err := tx.importFeature(f)
		if err != nil {
			return r, &ImportError{f.Line, err}
		}
		r.Notes = append(r.Notes, note...)
		here, err := tx.Feature(f.Name)
		if err != nil {
			return r, &ImportError{f.Line, err}
		}
		r.Features = append(r.Features, here)
	}
	for _, d := range in.Disciplines {
		if err := tx.importDiscipline(d.Discipline); err != nil {
			return r, &ImportError{d.Line, err}
		}
	}
	ids := map[string]int64{}
	before := make([]imported, len(in.Tasks))
	for i, t := range in.Tasks {
		result, was, err := tx.importTask(t, in)
		if err != nil {
			return r, &ImportError{t.Line, err}
		}
		ids[t.Key], before[i] = result.ID, was
		r.Tasks = append(r.Tasks, result)
	}
	for i, t := range in.Tasks {
		if err := tx.importNeeds(&r, i, t, before[i], ids); err != nil {
			return r, &ImportError{t.Line, err}
		}
	}
	// Statuses come last: all dependencies of a task must be known before it ends.
	for i, t := range in.Tasks {
		if err := tx.importStatus(&r.Tasks[i], t); err != nil {
			return r, &ImportError{t.Line, err}
		}
	}
	for i := range r.Tasks { // a dependency may have ended after the task was read
		here, err := tx.Task(r.Tasks[i].ID)
		if err != nil {
			return r, err
		}
		r.Tasks[i].Status, r.Tasks[i].Acceptance = here.Status, here.Acceptance
		r.Tasks[i].Verify, r.Tasks[i].DependsOn = here.Verify, here.DependsOn
		r.Tasks[i].Parent = ids[in.Tasks[i].Parent]
	}
	var err error
	r.Learnings, err = tx.importLearnings(in.Learnings)
	return r, err
}

// Trial runs f in a transaction that its caller rolls back, and resets the ids that f used. PostgreSQL's sequences
// would skip them, so that the import got other ids than the trial has shown.
func (tx *Tx) Trial(f func() error) error {
	if !tx.db.Shared() {
		return f()
	}
	before, err := tx.lastIDs()
	if err == nil {
		err = f()
	}
	if err != nil {
		return err
	}
	after, err := tx.lastIDs()
	for table, last := range after {
		if err == nil && last != before[table] {
			err = tx.db.dialect.setID(tx, table, before[table])
		}
	}
	return err
}

// importFeature adds a feature. An existing one gets the commands that a person has accepted. Otherwise it stays as it
// is, with a note if its description differs.
func (tx *Tx) importFeature(f ralph.ImportedFeature) (notes []string, err error) {
	here, err := tx.Feature(f.Name)
	if errors.Is(err, ralph.ErrNotFound) {
		return nil, tx.PutFeature(ralph.Feature{
			Name: f.Name, Description: f.Description, Learnings: f.Learnings, Verify: append(f.Verify, f.Taken...),
		})
	}
	if err != nil {
		return nil, err
	}
	if f.Description != "" && f.Description != here.Description {
		notes = []string{fmt.Sprintf("the feature %q has another description here, which stays", f.Name)}
	}
	missing := slices.DeleteFunc(f.Taken, func(c string) bool { return slices.Contains(here.Verify, c) })
	if len(missing) == 0 {
		return notes, nil
	}
	here.Verify = append(here.Verify, missing...)
	return notes, tx.PutFeature(here)
}

func (tx *Tx) importDiscipline(d ralph.Discipline) error {
	there, err := value[bool](tx, `SELECT EXISTS (SELECT 1 FROM disciplines WHERE name = $1)`, d.Name)
	if err != nil || there {
		return err
	}
	return tx.PutDiscipline(ralph.Discipline{Name: d.Name, Instructions: d.Instructions, Model: d.Model, Agent: d.Agent})
}

// importTask adds a task, or updates the one that was imported or exported before.
func (tx *Tx) importTask(t ralph.ImportedTask, in ralph.Import) (r ImportedResult, was imported, err error) {
	r = ImportedResult{Title: t.Title, Status: t.Status, Line: t.Line}
	id, last, err := tx.exportedBefore(t) // first: a task of another project may have the same number
	if err == nil && id == 0 {
		id, last, err = tx.importedBefore(t.Key)
	}
	if err != nil {
		return r, was, err
	}
	now := fieldsOf(t)
	if id == 0 {
		task := t.Task
		if task.Status != ralph.Proposed {
			task.Status = ralph.Pending // it ends after its dependencies are known
		}
		r.Action = ImportAdded
		if r.ID, err = tx.AddTask(task, "import"); err != nil {
			return r, was, err
		}
		if t.StatusReason != "" {
			if err := tx.set("tasks", r.ID, cells{"status_reason": t.StatusReason}); err != nil {
				return r, was, err
			}
		}
		return r, was, tx.setImported(r.ID, now)
	}
	r.ID = id
	here, err := tx.Task(id)
	if err != nil {
		return r, was, err
	}
	if last != "" {
		if err := json.Unmarshal([]byte(last), &was); err != nil {
			return r, was, fmt.Errorf("the earlier import of TASK-%d: %w", id, err)
		}
	}
	keep := func() error { return tx.setImported(id, now) }
	if last == "" || was.Key != "" && was.Key != t.Key { // made here, or imported from another file, and exported
		if was = exported(t, in); last != "" {
			keep = func() error { return nil }
		}
	}
	r.Status, r.Action = here.Status, ImportUnchanged
	r.Changes = merge(&here, was, now)
	if r.Title = here.Title; len(r.Changes) == 0 {
		return r, was, keep()
	}
	if !untouched(here) && (!in.Live || here.Status.Ended()) {
		r.Action = ImportKept
		return r, was, nil
	}
	r.Action = ImportUpdated
	if err := tx.UpdateTask(here); err != nil {
		return r, was, err
	}
	return r, was, keep()
}

// fieldsOf returns the fields of a task in a file.
func fieldsOf(t ralph.ImportedTask) imported {
	return imported{
		Key: t.Key, Title: t.Title, Description: t.Description, Acceptance: t.Acceptance, Verify: t.Verify,
		Files: t.Files, Priority: t.Priority, Feature: t.Feature, Discipline: t.Discipline, Model: t.Model, Agent: t.Agent,
		Status: t.Status,
		Needs:  needed(t.Needs),
	}
}

// exported returns the fields of a task as the file had them when it was exported, as far as can be told. Only ralph's
// own format has all of them. In others a list of titles is no deletion of the rest.
func exported(t ralph.ImportedTask, in ralph.Import) imported {
	now := fieldsOf(t)
	here, ok := in.Here[t.Key]
	if !ok {
		here, ok = in.Here[t.ExternalID]
	}
	was := fieldsOf(here)
	switch {
	case !ok:
		return now
	case strings.HasPrefix(t.Key, exportedFrom):
		return was
	}
	if now.Title = was.Title; now.Description != "" {
		now.Description = was.Description
	}
	for _, f := range []struct{ now, was *[]string }{
		{&now.Acceptance, &was.Acceptance}, {&now.Verify, &was.Verify}, {&now.Files, &was.Files}, {&now.Needs, &was.Needs},
	} {
		if len(*f.now) > 0 {
			*f.now = *f.was
		}
	}
	return now
}

// untouched reports whether an import may still change a task: nobody has begun it.
func untouched(t ralph.Task) bool {
	switch t.Status {
	case ralph.Pending, ralph.Proposed, ralph.Blocked, ralph.NeedsInput:
		return t.ClaimedBy == ""
	}
	return false
}

// importedBefore finds the task with a key: one that was imported with it, or one that was made
// here and exported. An id of 0 means none.
func (tx *Tx) importedBefore(key string) (id int64, last string, err error) {
	source, external := ralph.ExternalID(key)
	if external == "" {
		return 0, "", nil
	}
	id, last, err = tx.importedAs(`external_id = $1 AND external_id <> '' AND external_source = $2`, external, source)
	if created, exported := strings.CutPrefix(source, exportedFrom); err == nil && id == 0 && exported {
		return tx.importedAs(`CAST(id AS TEXT) = $1 AND created = $2 AND external_id = ''`, external, created)
	}
	return id, last, err
}

// importedAs returns the first task that meets a condition, and the stored copy of its last import.
func (tx *Tx) importedAs(condition string, args ...any) (id int64, last string, err error) {
	err = tx.row(`SELECT id, imported FROM tasks WHERE `+condition+` ORDER BY id LIMIT 1`, args...).Scan(&id, &last)
	_, err = found(err)
	return id, last, err
}

// exportedID matches the names that other tools' formats give to ralph's tasks (package exchange).
var exportedID = lazy.Regexp(`^(?:TASK|ralph)-(\d{1,18})$`)

// Exported reports whether a key is one that an export gives to ralph's own tasks.
func Exported(key string) bool {
	_, id := ralph.ExternalID(key)
	return strings.HasPrefix(key, exportedFrom) || exportedID().MatchString(id)
}

// exportedBefore finds a task that was exported from here in a format that keeps only its number:
// number and title must both match.
func (tx *Tx) exportedBefore(t ralph.ImportedTask) (id int64, last string, err error) {
	m := exportedID().FindStringSubmatch(t.ExternalID)
	if m == nil {
		return 0, "", nil
	}
	return tx.importedAs(`CAST(id AS TEXT) = $1 AND normal_title = $2`, m[1], signals.NormalTitle(t.Title))
}

// exportedFrom is the prefix of the source of tasks that were made in one of ralph's databases.
const exportedFrom = "ralph/"

// ExportKey returns the key by which a later import recognizes a task: its source and external id,
// or its creation time and number.
func ExportKey(t ralph.Task) string {
	if t.ExternalID != "" {
		return ralph.ExternalKey(t.ExternalSource, t.ExternalID)
	}
	return ralph.ExternalKey(exportedFrom+t.Created.String(), strconv.FormatInt(t.ID, 10))
}

func (tx *Tx) setImported(id int64, t imported) error {
	return tx.set("tasks", id, cells{"imported": asJSON(t)})
}

// merge applies to a task the fields that changed in the file since the last import, and names
// them. Fields that did not change in the file keep their values.
func merge(here *ralph.Task, was, now imported) (changes []string) {
	text := func(name string, field *string, was, now string) {
		if was != now && *field != now {
			*field = now
			changes = append(changes, name)
		}
	}
	list := func(name string, field *[]string, was, now []string) {
		if !slices.Equal(was, now) && !slices.Equal(*field, now) {
			*field = now
			changes = append(changes, name)
		}
	}
	text("title", &here.Title, was.Title, now.Title)
	text("description", &here.Description, was.Description, now.Description)
	list("acceptance", &here.Acceptance, was.Acceptance, now.Acceptance)
	list("verify", &here.Verify, was.Verify, now.Verify)
	if now.Files != nil { // other tools' formats have none
		list("files", &here.Files, was.Files, now.Files)
	}
	text("feature", &here.Feature, was.Feature, now.Feature)
	text("discipline", &here.Discipline, was.Discipline, now.Discipline)
	text("model", &here.Model, was.Model, now.Model)
	text("agent", &here.Agent, was.Agent, now.Agent)
	if was.Priority != now.Priority && here.Priority != now.Priority {
		here.Priority = now.Priority
		changes = append(changes, "priority")
	}
	return changes
}

func needed(needs []ralph.Need) []string {
	var ids []string
	for _, n := range needs {
		ids = append(ids, n.Key)
	}
	return ids
}

// importNeeds adds new dependencies of the file and drops the ones that the file no longer has.
func (tx *Tx) importNeeds(r *ImportResult, i int, t ralph.ImportedTask, was imported, ids map[string]int64) error {
	result := &r.Tasks[i]
	here, err := tx.Task(result.ID)
	if err != nil {
		return err
	}
	if result.Action == ImportKept || result.Action != ImportAdded && !untouched(here) {
		return nil
	}
	changed := false
	for _, n := range t.Needs {
		on, ok := ids[n.Key]
		if !ok {
			if on, _, err = tx.importedBefore(n.Key); err != nil {
				return err
			}
		}
		switch {
		case on == 0 && n.Optional:
			r.Notes = append(r.Notes, fmt.Sprintf("TASK-%d waits for %s, which is not here: left out", here.ID, n.Key))
			continue
		case on == 0:
			_, id := ralph.ExternalID(n.Key)
			return &ralph.FieldError{
				Field: "the dependency " + id, Problem: "is neither in this file nor was it imported before",
			}
		case slices.Contains(here.DependsOn, on):
			continue
		}
		if err := tx.AddDependency(here.ID, on, "import"); errors.Is(err, ralph.ErrConflict) {
			if n.Optional {
				r.Notes = append(r.Notes, fmt.Sprintf("TASK-%d waits for %s, which waits for it, directly or by others: left out",
					here.ID, n.Key))
				continue
			}
			_, id := ralph.ExternalID(n.Key)
			return &ralph.FieldError{
				Field: "the dependency " + id, Problem: "closes a circle: it waits for " + t.ExternalID + ", directly or by others",
			}
		} else if err != nil {
			return err
		}
		changed = true
	}
	for _, gone := range was.Needs {
		on, ok := ids[gone]
		if !ok {
			if on, _, err = tx.importedBefore(gone); err != nil {
				return err
			}
		}
		if slices.Contains(needed(t.Needs), gone) || !slices.Contains(here.DependsOn, on) {
			continue
		}
		if err := tx.DropDependency(here.ID, on); err != nil {
			return err
		}
		changed = true
	}
	if changed && result.Action != ImportAdded {
		result.Action = ImportUpdated
		result.Changes = append(result.Changes, "depends_on")
	}
	return nil
}

// importStatus ends a task that has ended in the file.
func (tx *Tx) importStatus(r *ImportedResult, t ralph.ImportedTask) error {
	here, err := tx.Task(r.ID)
	if err != nil {
		return err
	}
	r.Status = here.Status
	if !t.Status.Ended() || here.Status == t.Status {
		return nil
	}
	if !untouched(here) {
		if r.Action != ImportAdded && here.Status.Ended() {
			return nil // it has already ended here in another way
		}
		r.Action = ImportKept
		r.Changes = append(r.Changes, "status")
		return nil
	}
	reason := string(t.Status) + " where it was imported from; ralph has not verified it"
	if t.StatusReason != "" {
		reason = t.StatusReason
	}
	if err := tx.Move(r.ID, t.Status, ralph.Importer, reason); err != nil {
		return err
	}
	if r.Status = t.Status; r.Action != ImportAdded {
		r.Action = ImportUpdated
		r.Changes = append(r.Changes, "status")
	}
	return nil
}

// importLearnings adds the learnings that are not known yet, and counts them. Learnings that were
// forgotten here are not imported again.
func (tx *Tx) importLearnings(list []ralph.ImportedLearning) (added int, err error) {
	type audience struct{ scope, feature string }
	known := map[audience]map[string]bool{}
	for _, l := range list {
		if l.Scope == "" {
			l.Scope = ralph.ScopeProject
		}
		to := audience{l.Scope, l.Feature}
		if known[to] == nil {
			there, err := tx.learningTexts(l.Scope, l.Feature)
			if err != nil {
				return added, err
			}
			known[to] = there
		}
		text := signals.NormalTitle(l.Text)
		if known[to][text] {
			continue
		}
		known[to][text] = true
		id, err := tx.AddLearning(l.Learning)
		if err != nil {
			return added, &ImportError{l.Line, err}
		}
		if err := tx.set("learnings", id, cells{"imported": text}); err != nil {
			return added, err
		}
		added++
	}
	return added, nil
}

// learningTexts returns the normalized texts of all learnings of a feature or of the project,
// forgotten ones included, and the texts with which they were imported.
func (tx *Tx) learningTexts(scope, feature string) (map[string]bool, error) {
	known := map[string]bool{}
	_, err := all(tx, func(row scanner) (none struct{}, err error) {
		var text, imported string
		err = row.Scan(&text, &imported)
		known[signals.NormalTitle(text)] = true
		if imported != "" {
			known[imported] = true
		}
		return none, err
	}, `
		SELECT text, imported FROM learnings
		WHERE scope = $1 AND (scope <> 'feature' OR feature_id = (SELECT id FROM features WHERE name = $2))`, scope, feature)
	return known, err
}
