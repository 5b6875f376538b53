package main

import (
	"context"
	"fmt"
	"path/filepath"

	"ralph/internal/config"
	"ralph/internal/proc"
	"ralph/internal/sandbox"
)

// A confinement is what holds the agent and the commands that check its work.
type confinement struct {
	wrapper     []string
	containment proc.Containment
	missing     []string // limits that cannot be kept, in words
}

// confine finds out how what the configuration asks for can be had here. A
// sandbox that cannot be had is an error; limits are kept as far as they can be.
// It may move this process into a cgroup of its own, so it comes first.
func confine(ctx context.Context, a *app, p *project) (c confinement, err error) {
	c.containment, c.missing = proc.Contain(resources(p.config.Resources))
	if p.config.Sandbox != "bwrap" {
		return c, nil
	}
	o := sandbox.Options{Network: p.config.SandboxNetwork, Writable: writable(a, p)}
	if o.Program, err = sandbox.Available(ctx, a.getenv("PATH"), o.Network); err != nil {
		return c, usage(fmt.Errorf("sandbox: %w", err))
	}
	c.wrapper = sandbox.Wrapper(o)
	return c, nil
}

func resources(r config.Resources) proc.Limits {
	return proc.Limits{Memory: int64(r.MemoryMiB) << 20, Processes: r.Processes, Nice: r.Nice}
}

// writable is what can be written in the sandbox: the project, ralph's state
// with the repository around it, folders for temporary files, what the agent
// keeps of its own, and what the configuration adds.
func writable(a *app, p *project) []string {
	env := func(name string) string {
		if v := p.config.Agent.Env[name]; v != "" {
			return v
		}
		return a.getenv(name)
	}
	paths := []string{p.root, p.state, env("TMPDIR"), "/tmp", "/var/tmp"}
	if p.git {
		paths = append(paths, p.common) // which a work tree may have elsewhere
	}
	if dir := env("CLAUDE_CONFIG_DIR"); dir != "" {
		paths = append(paths, dir)
	}
	if home := env("HOME"); home != "" {
		paths = append(paths, filepath.Join(home, ".claude"), filepath.Join(home, ".claude.json"))
	}
	for _, dir := range p.config.Permissions.Writable {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(p.root, dir)
		}
		paths = append(paths, dir)
	}
	return sandbox.Resolve(paths...)
}

// lookAtConfinement tells what a run would find.
func lookAtConfinement(ctx context.Context, a *app, p *project) (findings []finding) {
	c, err := confine(ctx, a, p)
	if err != nil {
		findings = append(findings, finding{"sandbox", false, err.Error(), ""})
	} else if len(c.wrapper) > 0 {
		findings = append(findings, finding{"sandbox", true, c.wrapper[0], ""})
	}
	for _, m := range c.missing {
		findings = append(findings, finding{"resources", false, m, "run ralph as a service, or as the text says"})
	}
	return findings
}
