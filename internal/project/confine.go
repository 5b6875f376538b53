package project

import (
	"context"
	"fmt"

	"ralph"
	"ralph/internal/proc"
	"ralph/internal/sandbox"
	"ralph/loop/agent/claude"
)

// A Confinement is what holds the agent and the commands that check its work.
type Confinement struct {
	Wrapper     []string
	Containment proc.Containment
	Missing     []string // limits that cannot be kept, in words
}

// Confine finds out how what the configuration asks for can be had here. A
// sandbox that cannot be had is an error; limits are kept as far as they can be.
// It may move this process into a cgroup of its own, so it comes first.
func (p *Project) Confine(ctx context.Context) (c Confinement, err error) {
	r := p.Config.Resources
	c.Containment, c.Missing = proc.Contain(proc.Limits{
		Memory: int64(r.MemoryMiB) << 20, Processes: r.Processes, Nice: r.Nice,
	})
	if p.Config.Sandbox != "bwrap" {
		return c, nil
	}
	o := sandbox.Options{Network: p.Config.SandboxNetwork, Writable: p.writable()}
	if o.Program, err = sandbox.Available(ctx, p.Getenv("PATH"), o.Network); err != nil {
		return c, ralph.Usage(fmt.Errorf("sandbox: %w", err))
	}
	c.Wrapper = sandbox.Wrapper(o)
	return c, nil
}

// writable is what can be written in the sandbox: the project, ralph's state
// with the repository around it, folders for temporary files, what the agent
// keeps of its own, and what the configuration adds.
func (p *Project) writable() []string {
	env := func(name string) string {
		if v := p.Config.Agent.Env[name]; v != "" {
			return v
		}
		return p.Getenv(name)
	}
	paths := []string{p.Root, p.State, env("TMPDIR"), "/tmp", "/var/tmp"}
	if p.Git {
		paths = append(paths, p.Common) // which a work tree may have elsewhere
	}
	paths = append(paths, claude.Folders(env)...)
	for _, dir := range p.Config.Permissions.Writable {
		paths = append(paths, p.Path(dir))
	}
	return sandbox.Resolve(paths...)
}
