package exchange

import (
	"ralph"
)

// A Line is one line of ralph's own export: a feature, a discipline, a task or a learning,
// according to "ralph". Its JSON is documented in docs/import.md.
type Line struct {
	Kind string `json:"ralph"` // "feature", "discipline", "task" or "learning"

	Name         string   `json:"name,omitempty"` // name of a feature or discipline
	Description  string   `json:"description,omitempty"`
	Learnings    string   `json:"learnings,omitempty"` // learnings of a feature, written by people
	Verify       []string `json:"verify,omitempty"`
	Instructions string   `json:"instructions,omitempty"` // instructions of a discipline
	Model        string   `json:"model,omitempty"`
	Agent        string   `json:"agent,omitempty"`

	ID           string       `json:"id,omitempty"` // id of a task; a later import uses it to recognize the task
	Title        string       `json:"title,omitempty"`
	Acceptance   []string     `json:"acceptance,omitempty"`
	Files        []string     `json:"files,omitempty"` // globs of files that the task will touch
	Priority     *int         `json:"priority,omitempty"`
	Status       ralph.Status `json:"status,omitempty"`
	StatusReason string       `json:"status_reason,omitempty"`
	Feature      string       `json:"feature,omitempty"`
	Discipline   string       `json:"discipline,omitempty"`
	Origin       ralph.Origin `json:"origin,omitempty"`
	DependsOn    []string     `json:"depends_on,omitempty"` // ids of tasks

	Text      string `json:"text,omitempty"` // text of a learning
	KindOf    string `json:"kind,omitempty"`
	Scope     string `json:"scope,omitempty"`
	Rationale string `json:"rationale,omitempty"`
	Author    string `json:"author,omitempty"`
	Pinned    bool   `json:"pinned,omitempty"`
}

// ownStatus maps the statuses in ralph's export to those of the import. Waiting tasks and tasks in progress
// become pending, because the file does not have their reasons to wait.
var ownStatus = func() map[string]ralph.Status {
	taken := map[string]ralph.Status{"": ralph.Pending}
	for _, s := range ralph.Statuses {
		if taken[string(s)] = s; s.Wanted() {
			taken[string(s)] = ralph.Pending
		}
	}
	return taken
}()

// readJSONL reads ralph's own export.
func readJSONL(data []byte) (in ralph.Import, err error) {
	return in, eachLine(&in, data, func(line int, v Line) error {
		switch v.Kind {
		case "feature":
			in.Features = append(in.Features, ralph.ImportedFeature{Line: line, Feature: ralph.Feature{
				Name: v.Name, Description: v.Description, Learnings: v.Learnings, Verify: v.Verify,
			}})
		case "discipline":
			in.Disciplines = append(in.Disciplines, ralph.ImportedDiscipline{Line: line, Discipline: ralph.Discipline{
				Name: v.Name, Instructions: v.Instructions, Model: v.Model, Agent: v.Agent,
			}})
		case "learning":
			if err := v.origin(line); err != nil {
				return err
			}
			in.Learnings = append(in.Learnings, ralph.ImportedLearning{Line: line, Learning: ralph.Learning{
				Text: v.Text, Kind: v.KindOf, Scope: v.Scope, Feature: v.Feature, Rationale: v.Rationale,
				Origin: v.Origin, Author: v.Author, Pinned: v.Pinned,
			}})
		case "task":
			t, err := v.task(line)
			if err != nil {
				return err
			}
			in.Tasks = append(in.Tasks, t)
		default:
			return wrong(line, `"ralph" is %q (accepted: feature, discipline, task, learning)`, v.Kind)
		}
		return nil
	})
}

// origin checks an origin.
func (v Line) origin(line int) error {
	switch v.Origin {
	case "", ralph.ByAgent, ralph.ByHuman:
		return nil
	}
	return wrong(line, "the origin %q is not known (accepted: human, agent)", v.Origin)
}

func (v Line) task(line int) (ralph.ImportedTask, error) {
	t := ralph.ImportedTask{Line: line, Key: v.ID, Task: ralph.Task{
		Title: v.Title, Description: v.Description, Acceptance: v.Acceptance, Verify: v.Verify, StatusReason: v.StatusReason,
		Feature: v.Feature, Discipline: v.Discipline, Origin: v.Origin, Model: v.Model, Agent: v.Agent,
		Priority: ralph.DefaultPriority, Files: v.Files,
	}}
	if v.ID == "" {
		return t, wrong(line, `a task has no "id"`)
	}
	err := v.origin(line)
	if err != nil {
		return t, err
	}
	if t.Status, err = statusOf(line, string(v.Status), ownStatus); err != nil {
		return t, err
	}
	if v.Priority != nil {
		if err := ralph.CheckPriority("priority", *v.Priority); err != nil {
			return t, wrong(line, "%v", err)
		}
		t.Priority = *v.Priority
	}
	for _, d := range v.DependsOn {
		t.Needs = append(t.Needs, ralph.Need{Key: d})
	}
	return t, nil
}
