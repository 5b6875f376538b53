// Package claude runs the `claude` CLI headless, with stream-json input and output, for one session.
//
// It has two pure halves around a process. [Arguments] and [process.Environment] determine the process's start. Its
// output is parsed line by line into a history, and classify derives the ending from it. Both use structure, never
// prose, and accept unknown lines. Between them a session reads, writes and waits:
//
//	prompt ─► turn ─► result ─► TurnEnded ─► end ─► stdin closed ─► end
//	           ▲                    │
//	           └──── message ◄──────┘  or from a person, at any time
//
// The agent can neither block ralph nor be blocked by it: lines of any length are read in bounded memory, a separate
// goroutine writes messages, and after the end of the conversation the process has [Options.ExitGrace] to exit. The
// transcript has all of its output, up to [Options.MaxTranscript]. Values of the environment never get into an error,
// a log or a report.
//
// The package never decides on a task, never waits for a limit to pass and never judges silence: the loop does.
package claude

import (
	"context"
	"errors"

	"ralph/loop/agent"
	"ralph/loop/agent/process"
)

// Options configure how the agent is run. A zero field means its default.
type Options struct {
	process.Options
	ExtraArgs      []string // appended to the arguments (agent.extra_args)
	PermissionMode string   // default "acceptEdits"
	AsksRalph      bool     // it asks ralph for permissions; otherwise it asks nobody
}

// withDefaults returns the options with defaults for zero fields.
func (o Options) withDefaults() Options {
	o.Options = o.WithDefaults()
	if len(o.Command) == 0 {
		o.Command = Profile.Command
	}
	if o.PermissionMode == "" {
		o.PermissionMode = "acceptEdits"
	}
	return o
}

// An Agent runs the CLI. It is safe for concurrent use.
type Agent struct {
	options Options
	prober  process.Prober
}

var (
	_ agent.Program = (*Agent)(nil)
	_ agent.Known   = (*Agent)(nil)
)

// New returns an agent. It starts nothing yet.
func New(o Options) *Agent { return &Agent{options: o.withDefaults()} }

// Version returns the program's answer to --version in dir, such as
// "2.1.197 (Claude Code)"; see [process.Prober].
func (a *Agent) Version(ctx context.Context, dir string) (string, error) {
	return a.prober.Version(ctx, a.options.Options, &Profile, dir)
}

// Work runs one session; see [agent.Agent]. If the agent was started, the
// report is valid even with an error.
func (a *Agent) Work(ctx context.Context, task agent.Assignment) (agent.Report, error) {
	if len(a.options.MCPCommand) == 0 {
		return agent.Report{}, errors.New("no command for ralph's MCP server")
	}
	version, err := a.Version(ctx, task.Dir)
	if err != nil {
		return agent.Report{}, err
	}
	if task.Channel.Ticket != "" {
		withdraw, err := process.HandOver(serversFile(task), mcpConfig(a.options, task))
		if err != nil {
			return agent.Report{}, err
		}
		defer withdraw()
	}
	p, err := a.options.Start(&Profile, task, Arguments(version, a.options, task)...)
	if err != nil {
		return agent.Report{}, err
	}
	s := &session{
		options: a.options, task: task, process: p, history: history{tools: toolNames(task)},
	}
	if !task.Dry {
		s.outbox = []agent.Message{{Text: task.Prompt}}
	}
	err = errors.Join(s.run(ctx), p.Close())
	report := s.report()
	if report.Version == "" {
		report.Version = version
	}
	return report, err
}

// Command returns the program and its first arguments.
func (a *Agent) Command() []string { return a.options.Command }
