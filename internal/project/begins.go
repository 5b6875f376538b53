package project

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/google/uuid"

	"ralph/internal/config"
	"ralph/loop/agent"
	"ralph/loop/agent/claude"
	"ralph/loop/agent/kinds"
	"ralph/loop/workspace"
	"ralph/mcpserver"
)

// tryTime is the time limit for an agent to begin a session.
const tryTime = 90 * time.Second

// A ConfiguredAgent is an agent that may be started, with its name.
type ConfiguredAgent struct {
	Name string
	agent.Agent
	Config config.NamedAgent
}

// ConfiguredAgents lists the default agent, its stand-ins, and the others configured in agents. It
// starts nothing.
func (p *Project) ConfiguredAgents() (list []ConfiguredAgent, err error) {
	all, err := p.agents()
	if err != nil {
		return nil, err
	}
	for _, name := range kinds.Order(p.Config.Config) {
		list = append(list, ConfiguredAgent{name, all[name], p.Config.Agents[name]})
	}
	return list, nil
}

// Begins starts a session of an agent in the sandbox, without sending anything to its model. The
// error explains why ralph's tools do not reach the agent.
func (p *Project) Begins(ctx context.Context, a agent.Agent) (err error) {
	late := errors.New("it has not begun a session within " + config.FormatDuration(tryTime))
	ctx, cancel := context.WithTimeoutCause(ctx, tryTime, late)
	defer cancel()
	logs, err := os.MkdirTemp("", "ralph-try-")
	if err != nil {
		return err
	}
	id := uuid.NewString()
	folder := workspace.Channel(id)
	defer func() { err = errors.Join(err, os.RemoveAll(logs), os.RemoveAll(folder)) }()
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	served := mcpserver.Session{SessionID: id, State: p.State, Dir: p.Root, Version: p.Version}
	c, err := mcpserver.OpenChannel(served, folder)
	if err != nil {
		return err
	}
	report, err := a.Work(ctx, agent.Assignment{
		SessionID: id, Dir: p.Root, LogDir: logs, Dry: true, Profile: agent.ProfileOf(a),
		Channel: agent.Channel{Socket: c.Socket(), Ticket: c.Ticket(), Permit: c.Permit, Listed: c.Listed()},
	})
	err = errors.Join(err, c.Close())
	select {
	case <-c.Listed():
		return err
	default:
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = errors.New(report.Reason)
	}
	return err
}

// Credentials describes the visible credentials of an agent; "" if there are none. Only a session
// shows whether they are valid.
func (p *Project) Credentials(a ConfiguredAgent) string {
	profile := agent.ProfileOf(a.Agent)
	getenv := func(name string) string {
		if v := a.Config.Env[name]; v != "" {
			return v
		}
		return p.agentEnv(name)
	}
	if profile.Kind == claude.Profile.Kind {
		return claude.Credentials(getenv)
	}
	for _, name := range profile.Credentials {
		if name[0] != '~' {
			if getenv(name) != "" {
				return name + " is set"
			}
			continue
		}
		for _, path := range p.paths([]string{profile.Own(name, getenv)}, getenv("HOME")) {
			if _, err := os.Stat(path); err == nil {
				return "it is logged in (" + path + ")"
			}
		}
	}
	return ""
}
