// Package process runs the agents that are programs. It starts them under a supervisor, in the sandbox of their
// workspace, stores their output, and ends them with everything that they started.
//
// It does not read agents' output. Values of the environment never get into an error, a log or a report.
package process

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ralph/internal/environment"
	"ralph/internal/lazy"
	"ralph/internal/pipe"
	"ralph/internal/proc"
	"ralph/internal/text"
	"ralph/loop/agent"
)

// DrainWait is the time for reading output after the process ended, in case an unkillable
// process holds it open.
const DrainWait = 2 * time.Second

// Options configure how an agent's program is run. A zero field means its default.
type Options struct {
	Command    []string                  // the program and its first arguments; required
	Key        string                    // the configuration key of Command; "" is agent.command
	MCPCommand []string                  // the command that connects the agent to ralph's MCP server; required
	Env        map[string]string         // added to the environment (agent.env)
	Environ    []string                  // the variables that the allow-list selects from; default os.Environ()
	Through    func(io.Reader) io.Reader // masks secrets in the agent's output; nil masks nothing

	ExitGrace     time.Duration // time to exit after the end of the conversation; default 15 s
	KillGrace     time.Duration // from an interrupt to the kill; default 10 s
	StartWait     time.Duration // time for the agent to begin its conversation; default 2 min
	ToolsWait     time.Duration // time for ralph's tools to reach the agent in a turn; default 1 min
	MaxTranscript int64         // size of the transcript in bytes: its beginning and its end; default 20 MiB

	Enter proc.Enter // runs the agent in a sandbox; nil is no sandbox
	Probe proc.Enter // the same for its version, when it must leave nothing behind
}

// WithDefaults returns the options with defaults for zero fields.
func (o Options) WithDefaults() Options {
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.ExitGrace == 0 {
		o.ExitGrace = 15 * time.Second
	}
	if o.KillGrace == 0 {
		o.KillGrace = 10 * time.Second
	}
	if o.StartWait == 0 {
		o.StartWait = 2 * time.Minute
	}
	if o.ToolsWait == 0 {
		o.ToolsWait = time.Minute
	}
	if o.MaxTranscript == 0 {
		o.MaxTranscript = 20 << 20
	}
	return o
}

// Getenv returns a variable's value as configured for agents, or else from ralph's environment.
func (o Options) Getenv(name string) string {
	for _, entry := range slices.Backward(slices.Concat(o.Environ, o.Added())) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// Added returns the configured variables, sorted, as NAME=VALUE.
func (o Options) Added() (list []string) {
	for name, value := range o.Env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// Environment returns the whole environment of an agent, sorted, each name once: ralph's variables for agents, the
// profile's, the configured ones (added), which override both, and the workspace's. Variables named RALPH_… only mark
// the session's processes (unattended, "The agent's processes"), and added cannot change them.
func Environment(p *agent.Profile, environ []string, added map[string]string, a agent.Assignment) []string {
	more := map[string]string{}
	maps.Copy(more, p.Set)
	maps.Copy(more, added)
	list := slices.DeleteFunc(environment.Of(environ, more, &p.Variables), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(a.Env, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	})
	list = append(append(list, a.Env...), marker(a), "RALPH_TASK_ID="+strconv.FormatInt(a.TaskID, 10))
	if a.Channel.Socket != "" {
		list = append(list, pipe.Variable+"="+a.Channel.Socket)
	}
	slices.Sort(list)
	return list
}

// Servers returns the project's servers of tools for the agent, with the values of its environment's variables.
func (o Options) Servers(p *agent.Profile, a agent.Assignment) (list []agent.Server) {
	environ := Environment(p, o.Environ, o.Env, a)
	for _, s := range a.Servers {
		list = append(list, s.Expand(environ))
	}
	return list
}

// marker returns the variable that marks all processes of a session.
func marker(a agent.Assignment) string { return "RALPH_SESSION_ID=" + a.SessionID }

// A Process is the running program of a session.
type Process struct {
	*proc.Process
	Stdin          *os.File
	Stdout, Stderr *os.File
	Transcript     io.Writer // the session's transcript, up to its maximum size

	options Options
	logs    *logs
	host    string       // see [agent.Profile]
	leave   func()       // leaves the sandbox
	own     map[int]bool // see FindOwn
	servers bool         // the project's servers of tools are among its own
	theirs  map[int]bool // processes of these when it was ready
}

// Start launches the program for a session, with args after the command.
func (o Options) Start(p *agent.Profile, task agent.Assignment, args ...string) (*Process, error) {
	logs, err := openLogs(task.LogDir, o.MaxTranscript)
	if err != nil {
		return nil, err
	}
	started, err := o.start(p, task, logs, args)
	if err != nil {
		return nil, errors.Join(o.Unusable(p, err), logs.close())
	}
	return started, nil
}

func (o Options) start(p *agent.Profile, task agent.Assignment, logs *logs, args []string) (*Process, error) {
	s, err := newStreams()
	if err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	// Only the agent may hold its ends, or its output would never end.
	defer closeAll(s.theirs)
	spec := proc.Spec{
		Stdin: s.theirs[0], Stdout: s.theirs[1], Stderr: s.theirs[2],
		Args: slices.Concat(o.Command, args), Dir: task.Dir, Env: Environment(p, o.Environ, o.Env, task),
		Marker: marker(task), KillGrace: o.KillGrace,
	}
	if task.Channel.Socket != "" {
		spec.Reach = []string{filepath.Dir(task.Channel.Socket)}
	}
	leave, err := o.Enter.Enter(&spec)
	if err != nil {
		closeAll(s.ours)
		return nil, err
	}
	process, err := proc.Start(spec)
	if err != nil {
		closeAll(s.ours)
		leave()
		return nil, err
	}
	return &Process{
		Process: process, Stdin: s.ours[0], Stdout: s.ours[1], Stderr: s.ours[2],
		Transcript: logs.transcript, options: o, logs: logs, host: p.Host, leave: leave,
		servers: len(task.Servers) > 0,
	}, nil
}

// Unusable adds the remedy to an error about a program that does not start.
func (o Options) Unusable(p *agent.Profile, err error) error {
	if !errors.Is(err, exec.ErrNotFound) {
		return err
	}
	what := "set " + cmp.Or(o.Key, "agent.command") + " to where " + o.Command[0] + " is"
	if p.Install != "" {
		what = "install " + p.Title + " (" + p.Install + "), or " + what
	}
	return fmt.Errorf("%w: %s", err, what)
}

// Output returns the agent's output without secrets.
func (p *Process) Output() io.Reader { return p.through(p.Stdout) }

// Masked returns a line without secrets, for the transcript.
func (p *Process) Masked(line []byte) []byte {
	masked, err := io.ReadAll(p.through(bytes.NewReader(line)))
	if err != nil { // impossible: the value in memory can be read
		return nil
	}
	return masked
}

// CollectStderr stores the agent's standard error until its end.
func (p *Process) CollectStderr() { p.logs.stderr.take(p.through(p.Stderr)) }

// StderrTail returns the end of the standard error, once it has ended.
func (p *Process) StderrTail() string { return p.logs.stderr.tail() }

func (p *Process) through(r io.Reader) io.Reader {
	if p.options.Through == nil {
		return r
	}
	return p.options.Through(r)
}

// Drain limits the time for reading an output that is still open after the process ended.
func (p *Process) Drain() error {
	deadline := time.Now().Add(DrainWait)
	return errors.Join(p.Stdout.SetReadDeadline(deadline), p.Stderr.SetReadDeadline(deadline))
}

// Close releases all resources, after the process ended and its output was read.
func (p *Process) Close() error {
	p.leave()
	return errors.Join(p.Stdout.Close(), p.Stderr.Close(), p.logs.close())
}

// FindOwn records the agent's own processes when it is ready: its servers of ralph's tools and their ancestors up to
// the command. All others were started by hooks and the like, unless the project has its own servers. If processes
// cannot be listed, they cannot be frozen either.
func (p *Process) FindOwn() {
	members, err := p.Members()
	if err != nil || p.own != nil {
		return
	}
	p.own, p.theirs = ownOf(members), map[int]bool{}
	for _, m := range members {
		p.theirs[m.Pid] = p.servers && !p.own[m.Pid]
	}
}

// ownOf returns the agent's own members, or all of them if none is a server of ralph's.
func ownOf(members []proc.Member) map[int]bool {
	isServer := servers()
	parents, all, own := map[int]int{}, map[int]bool{}, map[int]bool{}
	for _, m := range members {
		parents[m.Pid], all[m.Pid] = m.Parent, true
		if isServer(m) {
			for pid := m.Pid; all[pid] && !own[pid]; pid = parents[pid] { // parents come first
				own[pid] = true
			}
		}
	}
	if len(own) == 0 {
		return all
	}
	return own
}

// servers returns a test for servers of ralph's tools. They are closed to other programs, so that
// only root may see which program they run.
func servers() func(proc.Member) bool {
	self, err := os.Executable()
	return func(m proc.Member) bool {
		program := cmp.Or(strings.TrimSuffix(m.Exe, " (deleted)"), strings.TrimSuffix(strings.TrimSpace(m.Command), " mcp"))
		return err == nil && program == self && strings.Contains(m.Command+" ", " mcp ")
	}
}

// Turn returns the turn that the agent has ended, with the processes that it needs to continue: the ones from when it
// was ready, the project's servers, and servers of ralph's tools that it restarted since.
func (p *Process) Turn() agent.Turn {
	isServer, leader := servers(), p.Pid()
	own, theirs := map[int]bool{}, map[int]bool{}
	maps.Copy(own, p.own)
	maps.Copy(theirs, p.theirs)
	return agent.Turn{Process: p.Process, Keep: func(m proc.Member) bool {
		if m.Pid == leader || own[m.Parent] && isServer(m) {
			own[m.Pid] = true
		}
		theirs[m.Pid] = theirs[m.Pid] || theirs[m.Parent] // parents come first
		return own[m.Pid] || theirs[m.Pid] || p.host != "" && filepath.Base(m.Exe) == p.host
	}}
}

// Leftovers lists the processes that outlived the agent and had to be killed; undead is the error about processes that
// could not be.
func Leftovers(exit proc.Exit, undead error) (list []string) {
	for _, l := range exit.Leftovers {
		list = append(list, fmt.Sprintf("%d: %s", l.Pid, strings.TrimSpace(l.Command)))
	}
	if undead != nil {
		list = append(list, undead.Error())
	}
	return list
}

// A Prober asks a program for its version, once.
type Prober struct {
	mu     sync.Mutex
	probed bool
	said   string
}

// probeTimeout limits the wait for the version: 0.4 s is usual, but the
// first start on a cold machine takes much longer.
const probeTimeout = 30 * time.Second

// program returns the command without the arguments that choose the protocol.
func (o Options) program(p *agent.Profile) []string {
	if len(p.Command) > 0 && len(o.Command) >= len(p.Command) {
		args := p.Command[1:]
		if n := len(o.Command) - len(args); slices.Equal(o.Command[n:], args) {
			return slices.Clone(o.Command[:n])
		}
	}
	return slices.Clone(o.Command)
}

var versionForm = lazy.Regexp(`\d+\.\d+\.\d+`)

// Version returns the version line in the program's answer to --version in
// dir, such as "2.1.197 (Claude Code)"; "" if it does not answer in time.
// The error is [exec.ErrNotFound] if there is no such program.
func (v *Prober) Version(ctx context.Context, o Options, p *agent.Profile, dir string) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.probed {
		return v.said, nil
	}
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	spec := proc.Spec{
		Args: append(o.program(p), "--version"), Dir: dir,
		Env: Environment(p, o.Environ, o.Env, agent.Assignment{SessionID: "probe"}),
	}
	// Some write into the person's folder even for this.
	leave, err := o.Probe.Enter(&spec)
	if err != nil {
		return "", err
	}
	defer leave()
	r, err := proc.Run(limited, spec, 4096, nil)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrPermission) {
		return "", o.Unusable(p, err)
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	v.probed = true
	if err == nil && r.Exit.Code == 0 {
		for line := range strings.Lines(r.Output) {
			line = text.Clip(strings.TrimSpace(line), 100)
			if v.said == "" {
				v.said = line // some have a number of another form, or none
			}
			if versionForm().MatchString(line) {
				v.said = line
				break
			}
		}
	}
	return v.said, nil
}
