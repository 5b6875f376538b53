// Package claude is the agent that ralph ships: the `claude` CLI, run headless
// with its stream-json input and output for one session.
//
// Two pure halves stand around a process. [Arguments] and [Environment] say how
// it is started. What it prints is parsed line by line into a history, of which
// classify makes an ending; both go by structure, never by prose, and take what
// they do not know as normal. Between them a session reads, writes and waits:
//
//	prompt ─► turn ─► result ─► TurnEnded ─► end ─► stdin closed ─► end
//	           ▲                    │
//	           └──── message ◄──────┘  or from a person, at any time
//
// It guarantees that the agent can neither block ralph nor be blocked by it:
// output is read without a limit on lines and in bounded memory, messages are
// written by a goroutine of their own, and after the end of the conversation
// the process has [Options.ExitGrace] to go. Everything that it printed is in
// the transcript, up to [Options.MaxTranscript]. Values of the environment never
// get into an error, a log or a report.
//
// It never decides what becomes of a task, never waits for a limit to pass and
// never judges silence: those are the loop's.
package claude

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"ralph/internal/text"
	"ralph/loop/agent"

	"ralph/internal/proc"
)

// Options say how to run the agent. The zero value of a field means its default.
type Options struct {
	Command        []string // the program and its first arguments (agent.command); default claude
	ExtraArgs      []string // appended to the arguments (agent.extra_args)
	MCPCommand     []string // how the agent starts ralph's MCP server; required
	Database       string   // path of ralph's database, for that server
	SettingSources []string // nil is project and local: a user's own hooks and plugins do not leak in
	PermissionMode string   // default "acceptEdits"
	Permissions    string   // rules for ralph's permission tool, as `ralph mcp` takes them; "" if the agent asks nobody
	AllowedTools   []string // beside ralph's own; default Bash, WebFetch, WebSearch

	DisallowedTools []string // beside those that make no sense without a person

	Env     map[string]string // added to the environment (agent.env)
	Environ []string          // what the allow-list chooses from; default os.Environ()

	ExitGrace     time.Duration // from the end of the conversation to that of the process; default 15 s
	KillGrace     time.Duration // from an interrupt to the kill; default 10 s
	MaxTranscript int64         // bytes of the transcript; default 256 MiB

	Wrapper     []string         // what starts the agent, such as a sandbox; nil is none
	Containment proc.Containment // what else holds it

	// EditHook is a command that is asked before files are changed, as a hook of
	// Claude's; nil for none.
	EditHook []string
}

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	if len(o.Command) == 0 {
		o.Command = []string{"claude"}
	}
	if o.SettingSources == nil {
		o.SettingSources = []string{"project", "local"}
	}
	if o.PermissionMode == "" {
		o.PermissionMode = "acceptEdits"
	}
	if o.AllowedTools == nil {
		o.AllowedTools = []string{"Bash", "WebFetch", "WebSearch"}
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.ExitGrace == 0 {
		o.ExitGrace = 15 * time.Second
	}
	if o.KillGrace == 0 {
		o.KillGrace = 10 * time.Second
	}
	if o.MaxTranscript == 0 {
		o.MaxTranscript = 256 << 20
	}
	return o
}

// An Agent runs the CLI. It may be used by several goroutines.
type Agent struct {
	options Options

	probing sync.Mutex
	probed  bool
	version string

	preparing sync.Mutex
	next      *launch // of the next session; nil if it is not prepared
}

var (
	_ agent.Program  = (*Agent)(nil)
	_ agent.Preparer = (*Agent)(nil)
)

// New returns an agent. Nothing is started or looked for yet.
func New(o Options) *Agent { return &Agent{options: o.withDefaults()} }

// probeTimeout bounds the question for the version: 0.4 s is usual, the first
// start of a cold machine takes much longer.
const probeTimeout = 10 * time.Second

// Version is what the program answers to --version in dir, such as "2.1.197
// (Claude Code)"; "" if it does not answer in time. It is asked for once. The
// error is [exec.ErrNotFound] if there is no such program.
func (a *Agent) Version(ctx context.Context, dir string) (string, error) {
	a.probing.Lock()
	defer a.probing.Unlock()
	if a.probed {
		return a.version, nil
	}
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r, err := proc.Run(limited, proc.Spec{
		Args: append(a.options.Command[:len(a.options.Command):len(a.options.Command)], "--version"),
		Dir:  dir,
		Env:  Environment(a.options.Environ, a.options.Env, agent.Assignment{SessionID: "probe"}),
	}, 4096, nil)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrPermission) {
		return "", a.unusable(err)
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	a.probed = true
	if err == nil && r.Exit.Code == 0 {
		for line := range strings.Lines(r.Output) {
			if _, ok := parseVersion(line); ok {
				a.version = text.Clip(strings.TrimSpace(line), 100)
				break
			}
		}
	}
	return a.version, nil
}

// unusable says what to do about a program that does not start.
func (a *Agent) unusable(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: install Claude Code, or set agent.command to where %s is", err, a.options.Command[0])
	}
	return err
}

// Work runs one session of the agent; see [agent.Agent]. The report is valid even
// with an error, if the agent was started.
func (a *Agent) Work(ctx context.Context, task agent.Assignment) (agent.Report, error) {
	if len(a.options.MCPCommand) == 0 {
		return agent.Report{}, errors.New("no command for ralph's MCP server")
	}
	version, err := a.Version(ctx, task.Dir)
	if err != nil {
		return agent.Report{}, err
	}
	logs, err := openLogs(task.LogDir, a.options.MaxTranscript)
	if err != nil {
		return agent.Report{}, err
	}
	s, err := a.start(version, task, logs)
	if err != nil {
		return agent.Report{}, errors.Join(a.unusable(err), logs.close())
	}
	err = s.run(ctx)
	err = errors.Join(err, logs.close())
	report := s.report()
	if report.Version == "" {
		report.Version = version
	}
	return report, err
}

// Command is the program and its first arguments.
func (a *Agent) Command() []string { return a.options.Command }
