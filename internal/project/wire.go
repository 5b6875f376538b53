package project

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/permission"
	"ralph/internal/state"
	"ralph/internal/worktree"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/agent/claude"
	"ralph/loop/agent/kinds"
	"ralph/loop/check"
	"ralph/loop/place"
	"ralph/loop/session"
	"ralph/prompt"
	"ralph/signals"
	"ralph/store"
)

// Loop wires a loop from the project's configuration. It starts nothing.
func (p *Project) Loop(ctx context.Context, db *store.DB) (*loop.Loop, error) {
	tree, err := worktree.Open(ctx, p.Root, state.PlainName)
	if err != nil {
		return nil, err
	}
	tree.Marker = "RALPH_LOOK=" + p.State
	c := p.Config.Config
	works, err := p.Agent(db)
	if err != nil {
		return nil, err
	}
	var prepare func() (forget func())
	if a, ok := works.(agent.Preparer); ok {
		prepare = a.Prepare
	}
	escalation := c.EscalationModel
	if escalation == config.None {
		escalation = ""
	}
	checkpointAt := 0
	if c.Session.CheckpointOnTokenLimit {
		checkpointAt = c.Session.CheckpointAt
	}
	template, err := p.Template()
	if err != nil {
		return nil, err
	}
	protect := c.Verify.Protect
	if file := p.templateFile(); file != "" {
		protect = append(slices.Clone(protect), filepath.ToSlash(file)) // an agent's prompts are not its own to write
	}
	return &loop.Loop{
		Store: db, Agent: works, Prepare: prepare, Log: p.Log,
		Place: &place.Place{
			Dir: p.Root, Tree: tree, State: p.State, Saves: c.Git.Snapshot,
			TakesBack: c.AfterFailure == "restore", Watched: c.Stagnation.Files,
		},
		Configuration: p.configurationFiles(), Kept: p.kept(),
		Limits:  p.Limits(),
		Rules:   p.Rules(),
		Backoff: loop.Backoff{Initial: c.Backoff.Initial, Max: c.Backoff.Max, Tries: c.Backoff.Tries},
		Check: check.Rules{
			Commands: c.Verify.Commands, Timeout: c.Verify.Timeout, Env: p.Stripped(),
			Strict: c.Verify.Baseline == "strict", JUnit: c.Verify.JUnit, Protect: protect,
			Wrapper: p.Held.Wrapper, Containment: p.Held.Containment,
		},
		Prompts: loop.Prompts{
			Tokens: c.Prompt.MaxTokens, Template: template, ToolPrefix: claude.SignalPrefix, StateTool: claude.StateTool,
			CommentTool: claude.CommentTool, AmendTool: claude.AmendTool,
		},
		Models: loop.Models{Config: c.Agent.Model, Escalation: escalation},
		Session: session.Limits{
			Reminders: c.ClosingReminders, Retries: c.Verify.InSessionRetries, Freeze: c.Verify.FreezeMax,
			Grace: c.ShutdownGrace, CheckpointAt: checkpointAt,
		},
		OnRed:       loop.OnRed(c.Verify.OnRed),
		Commands:    func() ([]string, error) { return p.configuredCommands(ctx, db) },
		CommitTasks: c.Git.Commit == "task",
	}, nil
}

// configuredCommands are the project's commands as people configure them now: of what
// a session left and nobody approved, the approved version.
func (p *Project) configuredCommands(ctx context.Context, db *store.DB) (commands []string, err error) {
	now := *p
	now.unapproved, now.instead = nil, nil
	if now.Config, err = p.load(nil); err == nil {
		err = now.judge(ctx, db)
	}
	return now.Config.Verify.Commands, err
}

// templateFile is the file of the project's prompt template, relative to its
// root; "" if there is none, or if it stands in the configuration itself.
func (p *Project) templateFile() string {
	if t := p.Config.Prompt.Template; t != config.None && !strings.Contains(t, "{{") {
		return t
	}
	return ""
}

// Template reads the project's template for prompts; nil if it has none. A
// broken one is an error of usage, before any session starts.
func (p *Project) Template() (*prompt.Template, error) {
	text, name := p.Config.Prompt.Template, "prompt.template in ralph.yaml"
	if text == config.None {
		return nil, nil
	}
	if file := p.templateFile(); file != "" {
		path := p.Path(file)
		if copied, ok := p.instead[path]; ok {
			path = copied
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, ralph.Usage(fmt.Errorf("prompt.template: %w; write the file, or remove the key from ralph.yaml", err))
		}
		text, name = string(b), file
	}
	t, err := prompt.ParseTemplate(name, text, claude.SignalPrefix)
	if err != nil {
		return nil, ralph.Usage(err)
	}
	return t, nil
}

// Limits are those of a run, by the configuration.
func (p *Project) Limits() ralph.Limits {
	c := p.Config.Limits
	return ralph.Limits{
		MaxSessions: c.MaxSessions, MaxTasks: c.MaxTasks, MaxSeconds: c.MaxDuration.Seconds(),
		MaxCostUSD: c.MaxCostUSD, MaxDayCostUSD: c.MaxCostPerDayUSD, Usage: c.Usage,
		SessionSeconds: c.SessionTimeout.Seconds(), IdleSeconds: c.IdleTimeout.Seconds(), SessionTurns: c.SessionTurns,
		SessionCostUSD: c.SessionCostUSD, Attempts: c.Attempts, StagnantMaximum: c.StagnantSessions,
	}
}

// Agent is the agent as the configuration says. It starts nothing.
func (p *Project) Agent(db *store.DB) (agent.Agent, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := p.Config.Agent
	env := map[string]string{}
	for _, entry := range p.Stripped() {
		name, value, _ := strings.Cut(entry, "=")
		for _, pattern := range c.EnvPass {
			if prefix, open := strings.CutSuffix(pattern, "*"); name == pattern || open && strings.HasPrefix(name, prefix) {
				env[name] = value
			}
		}
	}
	maps.Copy(env, c.Env)
	permissions, err := p.askRalph()
	if err != nil {
		return nil, ralph.Usage(err)
	}
	var editHook []string
	if p.Config.Sessions.Enforce {
		editHook = []string{self, "hook", "--database", db.Path()}
	}
	return kinds.New(c, claude.Options{
		Command: c.Command, ExtraArgs: c.ExtraArgs, EditHook: editHook,
		MCPCommand: []string{self, "mcp"}, Database: db.Path(),
		SettingSources: c.SettingSources, PermissionMode: c.PermissionMode, AllowedTools: c.AllowedTools,
		DisallowedTools: c.DisallowedTools, Permissions: permissions, Env: env, Environ: p.Environ,
		ExitGrace: c.ExitGrace, KillGrace: c.KillGrace,
		Wrapper: p.Held.Wrapper, Containment: p.Held.Containment,
	}), nil
}

// askRalph are the rules by which ralph answers the agent's questions; "" in the
// modes in which the agent asks nobody.
func (p *Project) askRalph() (string, error) {
	rules, err := p.Permissions()
	if err != nil || !claude.Asks(p.Config.Agent.PermissionMode) {
		return "", err
	}
	b, err := json.Marshal(rules)
	return string(b), err
}

// Permissions are the rules by which agents may use tools. The error names one that is
// none.
func (p *Project) Permissions() (permission.Rules, error) {
	c := p.Config.Permissions
	for _, list := range []struct {
		key   string
		rules []string
	}{{"permissions.allow", c.Allow}, {"permissions.ask", c.Ask}, {"permissions.deny", c.Deny}} {
		for _, rule := range list.rules {
			if _, err := claude.Tools.ParseRule(rule); err != nil {
				return permission.Rules{}, fmt.Errorf("%s: %w", list.key, err)
			}
		}
	}
	policy := permission.Policy{
		Allow: c.Allow, Ask: c.Ask, Deny: c.Deny, Default: permission.Verdict(c.Default), Guards: c.Guards,
		Project: permission.Follow(p.Root), State: permission.Follow(p.Guarded()), Home: p.Getenv("HOME"),
		Resolve: permission.Follow, Tools: claude.Tools,
	}
	for _, dir := range append([]string{p.Getenv("TMPDIR"), "/tmp", "/var/tmp"}, c.Writable...) {
		policy.Writable = append(policy.Writable, permission.Follow(p.Path(dir)))
	}
	return permission.Rules{Policy: policy, Timeout: c.AskTimeout}, nil
}

// Rules are the numbers of the rules that the configuration sets.
func (p *Project) Rules() signals.Rules {
	c := p.Config.Config
	r := signals.Rules{
		StuckLimit: c.StuckLimit, VerifyFailures: c.MaxVerifyFailures, Attempts: c.Limits.Attempts,
		ReviewProtect: c.Verify.ProtectMode == "review",
	}
	if c.Suggestions == "auto_approve" {
		r.AutoApprove = c.AutoApproveMax
	}
	return r
}

// protocol is what systemd tells a service alone.
var protocol = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM"}

// Stripped is the environment for what is not ralph's own: the agent, what it wrote and
// is verified by, and people's commands. It is without the secrets of notifications,
// ralph's own variables and systemd's: a verification that runs ralph must not take
// itself for a session, and one that starts a server not for the service.
func (p *Project) Stripped() []string {
	return slices.DeleteFunc(slices.Clone(p.Environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasPrefix(name, "RALPH_") || slices.Contains(protocol, name) ||
			slices.ContainsFunc(p.Config.Notify.Receivers, func(r config.Receiver) bool {
				return name == r.URLEnv || name == r.SecretEnv
			})
	})
}

// Verify runs the commands of a task, or with 0 those of the project, as a session's
// done is checked; an interrupt stops it with everything that it started. Holds tells
// whether a failure keeps a run from beginning.
func (p *Project) Verify(ctx context.Context, db *store.DB, task int64,
	show func(c ralph.Check, output io.ReadSeeker) error,
) (checks []ralph.Check, holds bool, err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	own := *p
	if p.Blank {
		// What the commands say is kept for later runs, which nobody has begun yet.
		if db, err = store.OpenEmpty(ctx, nil); err != nil {
			return nil, false, err
		}
		defer db.Close()
		elsewhere := *p.Home
		elsewhere.State = filepath.Dir(db.Path())
		own.Home = &elsewhere
	}
	if own.Held, err = p.Confine(ctx); err != nil {
		return nil, false, err
	}
	l, err := own.Loop(ctx, db)
	if err != nil {
		return nil, false, err
	}
	checks, holds, err = l.Verify(ctx, task, show)
	if ctx.Err() != nil {
		err = &ralph.ExitError{
			Status: ralph.ExitStopped, Err: fmt.Errorf("the verification was stopped: %w", context.Cause(ctx)),
		}
	}
	return checks, holds, err
}
