// Package command runs any program that reads its instructions from standard input, as a
// last resort. Such a program reaches ralph only through the command `ralph signal`, does
// not report its cost, asks for no permissions, and cannot receive messages.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ralph/internal/text"
	"ralph/loop/agent"
	"ralph/loop/agent/process"
)

// Profile is the profile of such programs.
var Profile = agent.Profile{
	Name: "command", Title: "any command", Kind: "command", MCP: agent.ByChannel, Guard: agent.None,
	Cost: agent.Never, Tokens: agent.Never, EndsAlone: true, NoServers: "it is not an MCP client",
	Note: "An agent with its own MCP settings can use `ralph mcp`, with the prompt's ticket in `RALPH_TICKET`, " +
		"instead of " +
		"`ralph signal`.",
}

// maxWords is the number of bytes of its last words that are kept.
const maxWords = 2000

// An Agent runs a command. It is safe for concurrent use.
type Agent struct {
	options process.Options
	prober  process.Prober
}

var _ agent.Program = (*Agent)(nil)

// New returns an agent. It starts nothing yet.
func New(o process.Options) *Agent { return &Agent{options: o.WithDefaults()} }

// Profile returns [Profile].
func (a *Agent) Profile() *agent.Profile { return &Profile }

// Command returns the program and its first arguments.
func (a *Agent) Command() []string { return a.options.Command }

// Account identifies the present account; see [process.Options.Account].
func (a *Agent) Account() string { return a.options.Account(&Profile) }

// Version returns the program's answer to --version; see [process.Prober].
func (a *Agent) Version(ctx context.Context, dir string) (string, error) {
	return a.prober.Version(ctx, a.options, &Profile, dir)
}

// how is put before the prompt.
const how = `You speak to ralph by a command that is in your PATH: ralph signal TICKET VERB FIELD=VALUE…, for example
    ralph signal %[1]s done summary='what was done, and what shows it'
Your ticket is %[1]s. It works once, and the answer has the next one: keep them to yourself, in no file and no variable.
ralph signal --help lists the verbs and their fields.

`

// Work runs one session; see [agent.Agent]. If the command was started,
// the report is valid even with an error.
func (a *Agent) Work(ctx context.Context, task agent.Assignment) (agent.Report, error) {
	if len(a.options.MCPCommand) == 0 {
		return agent.Report{}, errors.New("no command for ralph")
	}
	version, err := a.Version(ctx, task.Dir)
	if err != nil {
		return agent.Report{}, err
	}
	p, err := a.options.Start(&Profile, task)
	if err != nil {
		return agent.Report{}, err
	}
	if task.Seen != nil {
		task.Seen(agent.Event{Kind: agent.Started, Text: strings.TrimSpace(a.options.Command[0] + " " + version)})
	}
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		_, _ = fmt.Fprintf(p.Stdin, how, task.Channel.Ticket) // a command need not read its input
		_, _ = io.WriteString(p.Stdin, task.Prompt)
		_ = p.Stdin.Close()
	}()
	said := &words{seen: task.Seen}
	copied, taken := make(chan error, 1), make(chan struct{})
	go func() { _, err := io.Copy(io.MultiWriter(p.Transcript, said), p.Output()); copied <- err }()
	go func() { defer close(taken); p.CollectStderr() }()
	// The end of the command is the end of the session.
	stop := context.AfterFunc(ctx, func() {
		if err := p.Interrupt(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			_ = p.Kill() // Wait reports remaining processes
		}
	})
	exit, undead := p.Wait()
	stopped := !stop()
	err = p.Drain()
	_ = p.Stdin.Close() // the rest of the output is not read
	<-fed
	copying := <-copied
	<-taken
	if errors.Is(copying, os.ErrDeadlineExceeded) {
		copying = nil
	}
	r := agent.Report{
		Version: version, LastWords: said.tail(), Began: true,
		Leftovers: process.Leftovers(exit, undead),
	}
	if code := exit.Code; code >= 0 {
		r.Exit = &code
	}
	d := agent.Death{Code: exit.Code, Signal: exit.Signal, Stderr: p.StderrTail()}
	if stopped {
		d.Cut(ctx)
	}
	r.SetEnd(&named, trace(&d), d)
	return r, errors.Join(err, copying, p.Close())
}

// named is the profile under the name that sentences have for it.
var named = func() agent.Profile { p := Profile; p.Title = "the command"; return p }()

// trace has the end of the command: ralph knows nothing else about it.
func trace(d *agent.Death) agent.Trace {
	t := agent.Trace{Last: agent.Completed, Said: true, Calls: 1}
	last := text.LastLine(d.Stderr)
	switch {
	case d.Signal != "" || d.Code < 0:
		t.Last = agent.NoTurn
	case d.Code == 126 || d.Code == 127: // a shell's status for a missing program
		d.Refusal = &agent.Failure{Text: fmt.Sprintf("it exited with status %d", d.Code)}
	case d.Code != 0:
		t.Last = agent.Failed
		t.Failure = &agent.Failure{Text: agent.Sentence(fmt.Sprintf("it exited with status %d", d.Code), last)}
	}
	return t
}

// words keeps the end of the output.
type words struct {
	seen func(agent.Event)
	end  []byte
}

// Write implements [io.Writer].
func (w *words) Write(b []byte) (int, error) {
	w.end = append(w.end, b[max(0, len(b)-maxWords):]...)
	w.end = bytes.Clone(w.end[max(0, len(w.end)-maxWords):])
	if w.seen != nil {
		w.seen(agent.Event{Kind: agent.Said, Text: string(b)})
	}
	return len(b), nil
}

func (w *words) tail() string { return strings.ToValidUTF8(strings.TrimSpace(string(w.end)), "\uFFFD") }

// NewReader returns a reader of a transcript in which each line is one of the agent's texts.
func NewReader() agent.Reader { return reader{} }

type reader struct{}

// Line implements [agent.Reader].
func (reader) Line(line []byte) []agent.Event {
	return []agent.Event{{Kind: agent.Said, Text: string(line)}}
}

// Clone implements [agent.Reader].
func (r reader) Clone() agent.Reader { return r }

// Salvage reads the result of a session from its folder; see [agent.Agent].
func (a *Agent) Salvage(logDir string, d agent.Death) (agent.Report, error) {
	b, err := os.ReadFile(filepath.Join(logDir, agent.TranscriptFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return agent.Report{}, fmt.Errorf("transcript: %w", err)
	}
	said := &words{}
	_, _ = said.Write(b) // it never fails
	d.Stderr, err = process.StderrTail(logDir)
	r := agent.Report{LastWords: said.tail(), Began: true}
	r.SetEnd(&named, trace(&d), d)
	return r, err
}
