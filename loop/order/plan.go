package order

import (
	"fmt"

	"ralph"
	"ralph/loop/agent"
	"ralph/prompt"
	"ralph/signals"
	"ralph/store"
)

// planPrompt returns the prompt of a session that plans.
func (c *Config) planPrompt(tx *store.Tx, t ralph.Task, works agent.Agent) (string, error) {
	tools := agent.ProfileOf(works)
	if tools.MCP == agent.ByChannel {
		return "", &UnknownAgentError{t.ID, tools.Name, true}
	}
	all, err := c.promptData(tx, t, works)
	if err != nil {
		return "", err
	}
	d := prompt.Plan{
		Project: c.Project(), Task: t, Verify: all.Verify, Human: all.FeatureHuman, Answers: all.Answers,
		Learnings: append(all.ProjectLearnings, all.FeatureLearnings...),
		MaxTasks:  signals.MaxPlanTasks, Attended: c.Attended,
		TaskTool: "`" + tools.Tool(ralph.PlanTaskTool) + "`", AskTool: "`" + tools.Tool(ralph.PlanAskTool) + "`",
		DoneTool: "`" + tools.Tool(ralph.PlanDoneTool) + "`",
	}
	if d.Disciplines, err = tx.Disciplines(); err != nil {
		return "", err
	}
	tasks, err := tx.Tasks(store.TaskFilter{Feature: t.Feature})
	if err != nil {
		return "", err
	}
	waits, err := tx.WaitsByTask(t.Feature)
	if err != nil {
		return "", err
	}
	for _, of := range tasks {
		name := fmt.Sprintf("TASK-%d", of.ID)
		if of.ExternalSource == ralph.PlanSource+t.Feature {
			name = of.ExternalID
		}
		if of.Role == ralph.RoleWork && of.Status != ralph.Rejected && of.Status != ralph.Cancelled {
			d.Existing = append(d.Existing, prompt.Existing{Name: name, Task: of, Waits: waits[of.ID]})
		}
	}
	if d.Draft, err = tx.PlanOf(t.ID); err != nil || len(d.Draft.Tasks) == 0 {
		return d.Build(), err
	}
	f, err := FitOf(tx, t.Feature, d.Draft)
	d.Problems = f.Problems
	return d.Build(), err
}

// A Fit describes how well a plan fits the present tasks.
type Fit struct {
	Known     signals.Nameable
	States    map[int64]string   // states of the tasks of the feature
	Waits     map[int64][]string // parts of these that wait for a person
	Overtaken []string           // names of tasks of the plan whose counterparts have changed
	Problems  []string           // reasons against proposing it
}

// FitOf returns how a plan of a feature fits the present tasks.
func FitOf(tx *store.Tx, feature string, p ralph.Plan) (f Fit, err error) {
	if f.Known, err = tx.KnownToPlan(feature); err != nil {
		return f, err
	}
	if f.States, err = tx.StatesForPlan(feature); err != nil {
		return f, err
	}
	if f.Waits, err = tx.WaitsByTask(feature); err != nil {
		return f, err
	}
	list, err := tx.Disciplines()
	var names []string
	for _, d := range list {
		names = append(names, d.Name)
	}
	f.Problems = signals.PlanProblems(p, f.Known, names)
	f.Overtaken = signals.Overtaken(p, f.Known, f.States)
	for _, name := range f.Overtaken {
		t, _ := f.Known.Find(name)
		f.Problems = append(f.Problems, signals.OvertakenBy(p, name, t))
	}
	return f, err
}
