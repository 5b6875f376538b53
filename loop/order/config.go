// Package order writes the orders of sessions: agent, model, prompt, budget, commands and
// reviewers. It reads the configuration and the database, and starts nothing.
package order

import (
	"cmp"
	"fmt"
	"path/filepath"
	"time"

	"ralph"
	"ralph/loop/agent"
	"ralph/loop/check"
	"ralph/signals"
	"ralph/store"
)

// A Config is the part of a project's configuration that affects its sessions. It never changes after the first
// session has used it.
type Config struct {
	Dir    string      // the person's folder
	Agent  agent.Agent // the default agent
	Agents Agents      // the other agents
	// Channel serves ralph's tools to an agent; nil if there are none.
	Channel   agent.Serve
	Servers   bool // agents have the project's own servers of tools (MCP), too
	Models    Models
	Prompts   Prompts
	Rules     signals.Rules
	Check     check.Rules
	Reviewers []signals.Reviewer // reviewers of changes before the merge, in this order (docs/review.md)
	Limits    ralph.Limits
	Session   Limits // except for the limits that Limits sets
	Parallel  int    // number of sessions at once; 0 is 1
	Attended  bool   // a person answers the questions of sessions that plan while they wait
}

// Width returns the maximum number of sessions at once.
func (c *Config) Width() int { return max(c.Parallel, 1) }

// Project returns the project's name.
func (c *Config) Project() string { return filepath.Base(c.Dir) }

// Limits are the limits of one session.
type Limits struct {
	Time         time.Duration
	Idle         time.Duration // without any sign of life
	Deadline     time.Time     // end of the run's time; zero for none
	Turns        int
	CostUSD      float64       // the session's budget
	Tokens       int64         // tokens of every kind; 0 leaves it to CostUSD
	Grace        time.Duration // grace period when the run is stopped
	CheckpointAt int           // percentage of the model's context at which a checkpoint is made; 0 means never
}

// limits returns the limits of a session, its budget apart.
func (c *Config) limits() Limits {
	l := c.Session
	l.Time, l.Idle = Seconds(c.Limits.SessionSeconds), Seconds(c.Limits.IdleSeconds)
	l.Turns, l.Tokens = c.Limits.SessionTurns, c.Limits.SessionTokens
	return l
}

// Seconds returns s seconds.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Models determine the model of a session.
type Models struct {
	Flag       string // from `--model`; overrides every other
	Config     string // from the configuration; the default
	Escalation string // used once two sessions of a task were stuck; "" switches this off
}

// choose applies the order of decision 20: the flag, the task, escalation
// if it is due, the discipline, the configuration.
func (m Models) choose(t ralph.Task, d ralph.Discipline) string {
	if t.StuckCount < 2 {
		m.Escalation = ""
	}
	return cmp.Or(m.Flag, t.Model, m.Escalation, d.Model, m.Config)
}

// Agents are the agents that may work beside [Config.Agent], by their names in ralph.yaml.
type Agents struct {
	Flag     string   // from `--agent`; overrides every other
	Use      string   // the name of Config.Agent, the default; "" is the built-in agent's name
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

// Accounts maps the names of agents to the accounts that they work with.
func (a Agents) Accounts() map[string]string {
	accounts := map[string]string{}
	for name, its := range a.All {
		if its, ok := its.(agent.Accounted); ok {
			accounts[name] = its.Account()
		}
	}
	return accounts
}

// An UnknownAgentError means that a task names an agent that is not configured, or that
// has no tools to plan with. Such a task is never started.
type UnknownAgentError struct {
	task  int64
	name  string
	plans bool
}

// Error includes the remedy.
func (e *UnknownAgentError) Error() string {
	if e.plans {
		return fmt.Sprintf("%s cannot plan, as it has no tools: name another agent with `ralph task edit %d --agent NAME`",
			e.name, e.task)
	}
	return fmt.Sprintf("it is for the agent %q, which ralph.yaml does not configure: add it below agents, or name "+
		"another one with `ralph task edit %d --agent NAME`", e.name, e.task)
}

// Usual returns the agent for tasks that name none.
func (c *Config) Usual() agent.Agent {
	if works, ok := c.Agents.All[c.Agents.Flag]; ok {
		return works
	}
	return c.Agent
}

// named returns the agent with that name for a task.
func (c *Config) named(task int64, name string) (agent.Agent, error) {
	if works, ok := c.Agents.All[name]; ok {
		return works, nil
	}
	if name != c.Agents.use() {
		return nil, &UnknownAgentError{task: task, name: name}
	}
	return c.Agent, nil
}

// A Choice is the agent and the model for a task.
type Choice struct {
	Name  string // the agent's name in ralph.yaml
	Agent agent.Agent
	Model string // "" leaves it to the agent
}

// choose returns the agent and the model for a task. A stand-in uses only its own model.
func (c *Config) choose(tx *store.Tx, t ralph.Task) (who Choice, err error) {
	d, err := discipline(tx, t)
	if err != nil {
		return who, err
	}
	wanted := c.Agents.choose(t, d)
	if who.Name = wanted; len(c.Agents.Fallback) > 0 {
		now, err := c.turn(tx, t, d)
		if err != nil {
			return who, err
		}
		who.Name = cmp.Or(now.Name, wanted) // no agent can work now: this is a preview
	}
	if who.Agent, err = c.named(t.ID, who.Name); err != nil {
		return who, err
	}
	models := c.Models
	models.Config = cmp.Or(c.Agents.Models[who.Name], models.Config)
	if !agent.ProfileOf(who.Agent).Escalates {
		models.Escalation = ""
	}
	if who.Model = models.Config; who.Name == wanted {
		who.Model = models.choose(t, d)
	}
	return who, nil
}
