package store

import (
	"fmt"
	"slices"
	"strings"

	"ralph"
	"ralph/signals"
)

// Suggestion returns an undecided suggest signal. The error wraps [ralph.ErrConflict] if the
// comment is not a suggestion or has been decided.
func (tx *Tx) Suggestion(comment int64) (ralph.Comment, signals.Suggest, error) {
	c, err := tx.Comment(comment)
	if err != nil {
		return c, signals.Suggest{}, err
	}
	if c.Verb != ralph.VerbSuggest {
		return c, signals.Suggest{}, ralph.Conflict("comment %d is not a suggestion", comment)
	}
	if !c.ResolvedAt.IsZero() {
		return c, signals.Suggest{}, ralph.Conflict("comment %d was decided on by %s (%s)",
			comment, c.ResolvedBy, c.Decision)
	}
	p, err := signals.Parse(c.Verb, c.Payload)
	if err != nil {
		return c, signals.Suggest{}, fmt.Errorf("comment %d: %w", comment, err)
	}
	s, ok := p.(signals.Suggest)
	if !ok {
		return c, s, ralph.Conflict("comment %d is not a suggestion", comment)
	}
	proposed, err := values[int64](tx, `SELECT id FROM tasks WHERE source_comment = $1`, comment)
	if err == nil && len(proposed) > 0 {
		err = refused(ralph.DecideProposal, proposed[0], "comment %d is TASK-%d already", comment, proposed[0])
	}
	return c, s, err
}

// TaskOf makes a queued task of a suggestion and returns its id. The task belongs to the feature of
// the task on which it was suggested; the suggestion is resolved. An empty title is replaced by the
// suggestion's first line.
func (tx *Tx) TaskOf(comment int64, title, by string) (int64, error) {
	c, s, err := tx.Suggestion(comment)
	if err != nil {
		return 0, err
	}
	from, err := tx.Task(c.TaskID)
	if err != nil {
		return 0, err
	}
	if title == "" {
		title = signals.ProposedTitle(s)
	}
	id, err := tx.AddTask(ralph.Task{
		Title: title, Feature: from.Feature, Discipline: from.Discipline, Priority: from.Priority, Origin: ralph.ByAgent,
		Description: fmt.Sprintf("%s\n\nWhy: %s\n\nSuggested (%s) in TASK-%d, %s.",
			strings.TrimSpace(s.What), strings.TrimSpace(s.Why), s.Kind, from.ID, from.Title),
	}, "human")
	if err != nil {
		return 0, err
	}
	return id, tx.Resolve(comment, fmt.Sprintf("made TASK-%d of it", id), by)
}

// Adopt tells the next session of the task, by a person's comment, to do it the suggested way. A
// task that has no next session is refused with [ralph.ErrConflict].
func (tx *Tx) Adopt(comment int64, by string) (task int64, err error) {
	c, s, err := tx.Suggestion(comment)
	if err != nil {
		return 0, err
	}
	t, err := tx.Task(c.TaskID)
	if err != nil {
		return 0, err
	}
	if t.Status.Ended() && t.Status != ralph.Failed {
		return 0, refused(ralph.MakeTask, comment, "TASK-%d %s and has no next session", t.ID, t.Is())
	}
	body := "Do it as was suggested (comment " + fmt.Sprint(comment) + "): " + strings.TrimSpace(s.What)
	if err := tx.note(c.TaskID, body, by, nil); err != nil {
		return 0, err
	}
	return c.TaskID, tx.Resolve(comment, "adopted", by)
}

// Split replaces a task by parts and returns their ids. The task is cancelled; tasks that waited
// for it wait for all parts; the last part waits for the others, and has the acceptance criteria
// and verification of the whole. A task that is worked on or has ended cannot be split.
func (tx *Tx) Split(id int64, parts []ralph.Part, by string) ([]int64, error) {
	t, err := tx.Task(id)
	if err != nil {
		return nil, err
	}
	if !t.Splittable() {
		return nil, ralph.Conflict("TASK-%d %s and cannot be split", id, t.Is())
	}
	if len(parts) < 2 {
		return nil, &ralph.FieldError{Field: "parts", Problem: "must be two or more"}
	}
	var ids []int64
	for i, p := range parts {
		part := ralph.Task{
			Title: p.Title, Feature: t.Feature, Discipline: t.Discipline, Priority: t.Priority, Model: t.Model, Agent: t.Agent,
			Review: t.Review, Origin: t.Origin, DependsOn: t.DependsOn,
			Description: strings.TrimSpace(p.Description + fmt.Sprintf("\n\nPart %d of %d of TASK-%d, %s.\n\n",
				i+1, len(parts), t.ID, t.Title) + t.Description),
		}
		if i == len(parts)-1 {
			part.Acceptance, part.Verify = t.Acceptance, t.Verify
			part.DependsOn = slices.Concat(t.DependsOn, ids)
		}
		n, err := tx.AddTask(part, "human")
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i+1, err)
		}
		ids = append(ids, n)
	}
	waiting, err := values[int64](tx, `SELECT task_id FROM task_dependencies WHERE depends_on = $1 ORDER BY task_id`, id)
	if err != nil {
		return nil, err
	}
	for _, w := range waiting {
		for _, n := range ids {
			if err := tx.AddDependency(w, n, "human"); err != nil {
				return nil, err
			}
		}
		if err := tx.DropDependency(w, id); err != nil {
			return nil, err
		}
	}
	names := make([]string, len(ids))
	for i, n := range ids {
		names[i] = fmt.Sprintf("TASK-%d", n)
	}
	return ids, tx.Move(id, ralph.Cancelled, ralph.Person, "split by "+by+" into "+strings.Join(names, ", "))
}
