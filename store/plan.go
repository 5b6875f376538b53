package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ralph"
	"ralph/signals"
)

// SavePlan stores a session's plan so far. It changes no task.
func (tx *Tx) SavePlan(session string, p ralph.Plan) error {
	return tx.set("sessions", session, cells{"plan": asJSON(p)})
}

// PlanOf returns the plan of a task's sessions so far.
func (tx *Tx) PlanOf(task int64) (p ralph.Plan, err error) {
	_, err = found(tx.row(`
		SELECT plan FROM sessions WHERE task_id = $1 AND plan <> '' ORDER BY started_at DESC, id DESC LIMIT 1`, task).
		Scan(column(&p)))
	return p, err
}

// KnownToPlan returns the tasks that a plan of a feature may name.
func (tx *Tx) KnownToPlan(feature string) (signals.Nameable, error) {
	all, err := tx.Tasks(TaskFilter{})
	if err != nil {
		return nil, err
	}
	known := signals.Nameable{}
	for _, t := range all {
		known[fmt.Sprintf("TASK-%d", t.ID)] = t
		if t.ExternalSource == ralph.PlanSource+feature && t.Feature == feature {
			known[t.ExternalID] = t
		}
	}
	return known, nil
}

// StatesForPlan returns the states of the tasks of a feature, as digests by id: their contents and their open items.
func (tx *Tx) StatesForPlan(feature string) (map[int64]string, error) {
	states := map[int64]string{}
	f, err := tx.Feature(feature)
	if err != nil {
		return states, unlessNotFound(err)
	}
	parts, err := tx.WaitsOfPlan(f.ID)
	if err != nil {
		return nil, err
	}
	waits := map[int64][]Reference{}
	for _, p := range parts {
		waits[p.TaskID] = append(waits[p.TaskID], p.Ref)
	}
	list, err := tx.Tasks(TaskFilter{Feature: feature})
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		said, err := json.Marshal([]any{t.Title, t.Description, t.Acceptance, t.Verify, t.DependsOn, t.Files, waits[t.ID]})
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(said)
		states[t.ID] = hex.EncodeToString(sum[:8])
	}
	return states, nil
}

// WaitsByTask describes the undecided changes and cancellations of a feature's tasks, in lines by task.
func (tx *Tx) WaitsByTask(feature string) (map[int64][]string, error) {
	lines := map[int64][]string{}
	f, err := tx.Feature(feature)
	if err != nil {
		return lines, unlessNotFound(err)
	}
	parts, err := tx.WaitsOfPlan(f.ID)
	for _, p := range parts {
		if p.Kind != "proposal" {
			lines[p.TaskID] = append(append(lines[p.TaskID], p.Text), p.Diff...)
		}
	}
	return lines, err
}

// ProposePlan turns a session's plan into proposals for people: its new tasks, amendments of existing ones, and
// proposals to cancel tasks. Known are the tasks that it may name.
func (tx *Tx) ProposePlan(s ralph.Session, feature string, p ralph.Plan, known signals.Nameable) (err error) {
	ids := map[string]int64{}
	for name, t := range known {
		ids[name] = t.ID
	}
	for _, t := range p.Tasks {
		old, exists := known.Find(t.Name)
		switch {
		case exists && t.Drop != "":
			_, err = tx.AddComment(ralph.Comment{
				TaskID: old.ID, SessionID: s.ID, Author: s.Agent, AuthorKind: ralph.ByAgent, Kind: ralph.Nack,
				Body: "The plan of " + feature + " drops it", Rationale: t.Drop,
			})
		case exists:
			_, err = tx.Propose(ralph.Amendment{
				TaskID: old.ID, SessionID: s.ID, Author: s.Agent, AuthorKind: ralph.ByAgent, Patch: revision(t),
				Rationale: "the plan of " + feature + " was revised",
			})
		default:
			n := t.Task(feature)
			n.Marks = p.Marks[t.Name]
			ids[t.Name], err = tx.AddTask(n, "agent")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	for _, t := range p.Tasks {
		for _, on := range t.DependsOn {
			id, ok := ids[on]
			if !ok {
				id = ids[strings.ToUpper(on)]
			}
			if err := tx.AddDependency(ids[t.Name], id, "signal"); err != nil {
				return fmt.Errorf("%s: %w", t.Name, err)
			}
		}
	}
	return nil
}

// revision returns the patch by which a planned task changes the existing one.
func revision(t ralph.PlannedTask) (p ralph.Patch) {
	n := t.Task("")
	if t.Title != "" {
		p.Title = &n.Title
	}
	if n.Description != "" {
		p.Description = &n.Description
	}
	if t.Acceptance != nil || t.Verify != nil {
		p.Contracts = &ralph.Contract{}
	}
	if t.Acceptance != nil {
		p.Contracts.Acceptance = &t.Acceptance
	}
	if t.Verify != nil {
		p.Contracts.Verify = &t.Verify
	}
	return p
}

// unlessNotFound returns err, or nil if it wraps [ralph.ErrNotFound].
func unlessNotFound(err error) error {
	if errors.Is(err, ralph.ErrNotFound) {
		return nil
	}
	return err
}
