package loop

import (
	"cmp"
	"fmt"

	"ralph"
	"ralph/loop/agent"
	"ralph/loop/session"
	"ralph/store"
)

// Agents are the agents that may work beside [Loop.Agent], by their names in ralph.yaml.
type Agents struct {
	Flag     string   // from `--agent`; overrides every other
	Use      string   // the name of Loop.Agent, the default; "" is the built-in agent's name
	Fallback []string // stand in, in this order, for an agent that cannot work now
	All      map[string]agent.Agent
	Models   map[string]string // the default model of each agent
}

// choose returns the name of the agent for a task: the flag's, the task's,
// the discipline's or the configuration's.
func (a Agents) choose(t ralph.Task, d ralph.Discipline) string {
	return cmp.Or(a.Flag, t.Agent, d.Agent, a.use())
}

func (a Agents) use() string { return cmp.Or(a.Use, ralph.DefaultAgent) }

// accounts maps the names of agents to the accounts that they work with.
func (a Agents) accounts() map[string]string {
	accounts := map[string]string{}
	for name, its := range a.All {
		if its, ok := its.(agent.Accounted); ok {
			accounts[name] = its.Account()
		}
	}
	return accounts
}

// An unknownAgentError says that a task asks for an agent that is not
// configured, or that has no tools to plan with. Such a task is never started.
type unknownAgentError struct {
	task  int64
	name  string
	plans bool
}

// Error also says what to do about it.
func (e *unknownAgentError) Error() string {
	if e.plans {
		return fmt.Sprintf("%s cannot plan, as it has no tools: name another agent with `ralph task edit %d --agent NAME`",
			e.name, e.task)
	}
	return fmt.Sprintf("it is for the agent %q, which ralph.yaml does not configure: add it below agents, or name "+
		"another one with `ralph task edit %d --agent NAME`", e.name, e.task)
}

// Usual returns the agent for tasks that name none.
func (l *Loop) Usual() agent.Agent {
	if works, ok := l.Agents.All[l.Agents.Flag]; ok {
		return works
	}
	return l.Agent
}

// named returns the agent with that name for a task.
func (l *Loop) named(task int64, name string) (agent.Agent, error) {
	if works, ok := l.Agents.All[name]; ok {
		return works, nil
	}
	if name != l.Agents.use() {
		return nil, &unknownAgentError{task: task, name: name}
	}
	return l.Agent, nil
}

// who returns the agent and the model for a task. A stand-in uses only its own model.
func (l *Loop) who(tx *store.Tx, t ralph.Task) (c session.Choice, err error) {
	var d ralph.Discipline
	if t.Discipline != "" {
		if d, err = tx.Discipline(t.Discipline); err != nil {
			return c, err
		}
	}
	wanted := l.Agents.choose(t, d)
	if c.Name = wanted; len(l.Agents.Fallback) > 0 {
		now, err := l.works(tx, t, d)
		if err != nil {
			return c, err
		}
		c.Name = cmp.Or(now.name, wanted) // no agent can work now: this is a preview
	}
	if c.Agent, err = l.named(t.ID, c.Name); err != nil {
		return c, err
	}
	models := l.Models
	models.Config = cmp.Or(l.Agents.Models[c.Name], models.Config)
	if !agent.ProfileOf(c.Agent).Escalates {
		models.Escalation = ""
	}
	if c.Model = models.Config; c.Name == wanted {
		c.Model = models.choose(t, d)
	}
	return c, nil
}
