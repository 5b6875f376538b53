// Package acp runs agents that speak the Agent Client Protocol, version 1: one protocol session for each of ralph's, a
// prompt for each turn. The differences between agents are in their [Profile], which is a literal.
//
// Messages are read into a history, and classify derives the ending from it. Both use structure, never prose, and
// accept unknown messages. Agents ask before they use a tool, but the protocol cannot tell them the reason of a
// refusal: the next prompt has it.
package acp

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"ralph"
	"ralph/loop/agent"
	"ralph/loop/agent/conversation"
	"ralph/loop/agent/process"
)

// serverName is the name of ralph's MCP server in an agent's session.
const serverName = "ralph"

// Options configure how an agent is run.
type Options struct {
	process.Options
	Profile *Profile
	// Cost returns the price of a model's tokens; nil uses list prices.
	Cost agent.Pricing
}

// An Agent speaks the protocol. Several goroutines may use it.
type Agent struct {
	options Options
	prober  process.Prober
}

var (
	_ agent.Program = (*Agent)(nil)
	_ agent.Known   = (*Agent)(nil)
)

// New returns an agent. Nothing is started or looked for yet.
func New(o Options) *Agent {
	o.Options = o.WithDefaults()
	if o.Cost == nil {
		o.Cost = agent.Listed
	}
	return &Agent{options: o}
}

// Profile returns its profile.
func (a *Agent) Profile() *agent.Profile { return &a.options.Profile.Profile }

// Command returns the program and its first arguments.
func (a *Agent) Command() []string { return a.options.Command }

// Account returns the present account; see [process.Options.Account].
func (a *Agent) Account() string { return a.options.Account(a.Profile()) }

// Cost implements [agent.Priced].
func (a *Agent) Cost(model string, t ralph.Tokens) (usd float64, known bool) {
	return a.options.Cost(model, t)
}

// Version returns the program's answer to --version; see [process.Prober].
func (a *Agent) Version(ctx context.Context, dir string) (string, error) {
	return a.prober.Version(ctx, a.options.Options, a.Profile(), dir)
}

// authored returns a configured environment with the author of commits, where neither it nor ralph's own names one.
func authored(configured map[string]string, environ []string, author [2]string) map[string]string {
	env := maps.Clone(configured)
	for i, what := range []string{"NAME", "EMAIL"} {
		for _, who := range []string{"AUTHOR", "COMMITTER"} {
			name := "GIT_" + who + "_" + what
			given := slices.ContainsFunc(environ, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
			if _, ok := env[name]; !ok && !given && author[i] != "" {
				env[name] = author[i]
			}
		}
	}
	return env
}

// Work runs one session; see [agent.Agent]. The report is valid even with an error, if the
// agent was started.
func (a *Agent) Work(ctx context.Context, task agent.Assignment) (agent.Report, error) {
	o := a.options
	if len(o.MCPCommand) == 0 {
		return agent.Report{}, errors.New("no command for ralph's MCP server")
	}
	version, err := a.Version(ctx, task.Dir)
	if err != nil {
		return agent.Report{}, err
	}
	o.Env = authored(o.Env, o.Environ, task.Author)
	if o.Profile.Environment != nil {
		o.Env = o.Profile.Environment(o.Env)
	}
	task.Servers = o.Servers(a.Profile(), task)
	var args []string
	if o.Profile.Arguments != nil {
		args = o.Profile.Arguments(server(o, task), task)
	}
	p, err := o.Start(a.Profile(), task, args...)
	if err != nil {
		return agent.Report{}, err
	}
	how := conversation.Options{Profile: a.Profile(), Wait: o.ExitGrace, Start: o.StartWait, Tools: o.ToolsWait}
	if o.Profile.EndsAlone {
		how.Alone = o.ExitGrace
	}
	report, err := conversation.Run(ctx, newSession(o, task), p, task, how)
	if report.Version == "" {
		report.Version = version
	}
	return report, err
}
