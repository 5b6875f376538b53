package loop

import (
	"fmt"
	"path/filepath"

	"ralph"
	"ralph/loop/agent"
	"ralph/loop/session"
	"ralph/prompt"
	"ralph/signals"
	"ralph/store"
)

// planning returns what sessions need that plan.
func (l *Loop) planning() session.Planning {
	return session.Planning{Attended: l.Attended, Meet: meet, Said: l.Said}
}

// planPrompt returns the prompt of a session that plans.
func (l *Loop) planPrompt(tx *store.Tx, t ralph.Task, works agent.Agent) (string, error) {
	tools := agent.ProfileOf(works)
	if tools.MCP == agent.ByChannel {
		return "", &unknownAgentError{t.ID, tools.Name, true}
	}
	all, err := l.promptData(tx, t, works)
	if err != nil {
		return "", err
	}
	d := prompt.Plan{
		Project: filepath.Base(l.Here.Dir), Task: t, Verify: all.Verify, Human: all.FeatureHuman, Answers: all.Answers,
		Learnings: append(all.ProjectLearnings, all.FeatureLearnings...),
		MaxTasks:  signals.MaxPlanTasks, Attended: l.Attended,
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
	d.Problems, err = session.PlanProblems(tx, t.Feature, d.Draft)
	return d.Build(), err
}
