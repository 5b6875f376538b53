// Package kinds creates the agents that ralph supports, and reads their
// transcripts. Callers do not need to know any agent by name.
package kinds

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/config"
	"ralph/loop/agent"
	"ralph/loop/agent/acp"
	"ralph/loop/agent/claude"
	"ralph/loop/agent/codex"
	"ralph/loop/agent/command"
	"ralph/loop/agent/process"
)

// A kind is a protocol for talking to agents.
type kind struct {
	profiles []*agent.Profile // kinds that ralph ships
	make     func(p *agent.Profile, own process.Options, c config.NamedAgent, o claude.Options) agent.Agent
	wrote    func(line []byte) bool // reports whether a transcript with this first line was written by such an agent
	reader   func() agent.Reader    // reads that transcript
}

// kinds lists every kind, the built-in agent's first.
var kinds = []kind{
	{
		[]*agent.Profile{&claude.Profile},
		func(_ *agent.Profile, own process.Options, _ config.NamedAgent, o claude.Options) agent.Agent {
			o.Options = own
			return claude.New(o)
		},
		func(line []byte) bool { return bytes.HasPrefix(line, []byte("{")) && !exchanged(line) },
		claude.NewReader,
	},
	{
		[]*agent.Profile{&codex.Profile},
		func(_ *agent.Profile, own process.Options, c config.NamedAgent, _ claude.Options) agent.Agent {
			return codex.New(codex.Options{Options: own, Guarded: true, Cost: pricing(c)})
		},
		func(line []byte) bool { return exchanged(line) && !negotiated(line) },
		codex.NewReader,
	},
	{
		[]*agent.Profile{&command.Profile},
		func(_ *agent.Profile, own process.Options, _ config.NamedAgent, _ claude.Options) agent.Agent {
			own.Env["PATH"] = withSelf(own)
			return command.New(own)
		},
		func(line []byte) bool { return line[0] != '{' },
		command.NewReader,
	},
	{
		ofACP(),
		func(p *agent.Profile, own process.Options, c config.NamedAgent, _ claude.Options) agent.Agent {
			at := slices.IndexFunc(acp.Profiles, func(a *acp.Profile) bool { return a.Name == p.Name })
			return acp.New(acp.Options{Options: own, Profile: acp.Profiles[at], Cost: pricing(c)})
		},
		func(line []byte) bool { return exchanged(line) && negotiated(line) },
		acp.NewReader,
	},
}

// Profiles lists the profiles that ralph ships, the built-in one first.
var Profiles = func() (list []*agent.Profile) {
	for _, k := range kinds {
		list = append(list, k.profiles...)
	}
	return list
}()

func ofACP() (list []*agent.Profile) {
	for _, p := range acp.Profiles {
		list = append(list, &p.Profile)
	}
	return list
}

// Configured returns the configured agents by name, and the built-in one.
// It starts nothing. Keys of agent that concern only some agents are in
// the options of Claude Code. The error is a usage error about a key.
func Configured(c config.Config, o claude.Options) (map[string]agent.Agent, error) {
	all := map[string]agent.Agent{ralph.DefaultAgent: claude.New(o)}
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		a, err := agentNamed(name, c.Agents[name], o)
		if err != nil {
			return nil, ralph.Usage(fmt.Errorf("agents.%s: %w", name, err))
		}
		all[name] = a
	}
	for i, name := range append([]string{c.Agent.Use}, c.Agent.Fallback...) {
		if _, ok := all[name]; !ok {
			key := map[bool]string{true: "agent.use", false: "agent.fallback"}[i == 0]
			return nil, ralph.Usage(fmt.Errorf("%s: no agent is called %q; add it below agents (there are: %s)",
				key, name, strings.Join(slices.Sorted(maps.Keys(all)), ", ")))
		}
	}
	return all, nil
}

// Order returns the names of the configured agents: the default one, its
// stand-ins, then the others.
func Order(c config.Config) (names []string) {
	for _, name := range slices.Concat([]string{c.Agent.Use}, c.Agent.Fallback, slices.Sorted(maps.Keys(c.Agents))) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// agentNamed returns one configured agent.
func agentNamed(name string, c config.NamedAgent, o claude.Options) (agent.Agent, error) {
	p, err := ProfileOf(name, c)
	if err != nil {
		return nil, err
	}
	own := o.Options
	switch {
	case len(c.Command) > 0:
		own.Command, own.Key = c.Command, "agents."+name+".command"
	case p.Kind != claude.Profile.Kind: // for claude, the key is agent.command
		own.Command, own.Key = p.Command, "agents."+name+".command"
	}
	if len(own.Command) == 0 {
		return nil, fmt.Errorf("it has no command: say how %s is started", name)
	}
	own.Env = maps.Clone(o.Env)
	maps.Copy(own.Env, c.Env)
	at := slices.IndexFunc(kinds, func(k kind) bool { return slices.Contains(k.profiles, p) })
	return kinds[at].make(p, own, c, o), nil
}

// withSelf returns a PATH that contains ralph.
func withSelf(o process.Options) string {
	path := o.Env["PATH"]
	for _, entry := range o.Environ {
		if v, ok := strings.CutPrefix(entry, "PATH="); ok && path == "" {
			path = v
		}
	}
	return filepath.Dir(o.MCPCommand[0]) + string(filepath.ListSeparator) + path
}

// ProfileOf returns the profile for an agent's name and configuration: its kind's, which names a profile or a
// protocol, or else its own name's.
func ProfileOf(name string, c config.NamedAgent) (*agent.Profile, error) {
	kind := cmp.Or(c.Kind, name)
	var known []string
	for _, p := range Profiles { // the profile for a whole protocol has its name
		if p.Name == kind {
			return p, nil
		}
		known = append(known, p.Name)
	}
	if c.Kind == "" {
		return nil, fmt.Errorf("say what it is: its kind is one of %s (docs/agents.md)", strings.Join(known, ", "))
	}
	return nil, fmt.Errorf("there is no kind %q (there are: %s)", c.Kind, strings.Join(known, ", "))
}

// Present lists the profiles whose programs look finds, the built-in one first.
func Present(look func(program string) bool) (list []*agent.Profile) {
	for _, p := range Profiles {
		if len(p.Command) > 0 && p.Name != "claude-agent-acp" && look(p.Command[0]) { // Claude Code has its own way
			list = append(list, p)
		}
	}
	return list
}

// NewReader returns a reader of any agent's transcript, from its beginning.
func NewReader() agent.Reader { return &reader{} }

// Names returns the names of the agents that ralph knows.
func Names() (names []string) {
	for _, p := range Profiles {
		names = append(names, p.Name)
	}
	return names
}
