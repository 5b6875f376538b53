package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/worktree"
	"ralph/loop"
	"ralph/loop/agent/claude"
	"ralph/loop/check"
	"ralph/loop/place"
	"ralph/loop/session"
	"ralph/prompt"
	"ralph/store"
)

// newLoop wires a loop from the project's configuration. It starts nothing.
func newLoop(ctx context.Context, a *app, p *project, db *store.DB) (*loop.Loop, error) {
	tree, err := worktree.Open(ctx, p.root, plainState)
	if err != nil {
		return nil, err
	}
	tree.Marker = "RALPH_LOOK=" + p.state
	c := p.config.Config
	agent, err := newAgent(a, p, db)
	if err != nil {
		return nil, err
	}
	escalation := c.EscalationModel
	if escalation == "none" {
		escalation = ""
	}
	template, err := promptTemplate(p)
	if err != nil {
		return nil, err
	}
	protect := c.Verify.Protect
	if file := templateFile(p); file != "" {
		protect = append(slices.Clone(protect), filepath.ToSlash(file)) // an agent's prompts are not its own to write
	}
	return &loop.Loop{
		Store: db, Agent: agent, Prepare: agent.Prepare, Place: &place.Place{Dir: p.root, Tree: tree, State: p.state, Saves: c.Git.Snapshot, TakesBack: c.AfterFailure == "restore", Watched: c.Stagnation.Files},
		Log:           newLog(a),
		Configuration: p.configurationFiles(), Kept: p.kept(),
		Limits:  limits(c.Limits),
		Rules:   rulesOf(c),
		Backoff: loop.Backoff{Initial: c.Backoff.Initial, Max: c.Backoff.Max, Tries: c.Backoff.Tries},
		Check: check.Rules{
			Commands: c.Verify.Commands, Timeout: c.Verify.Timeout,
			Env:    withoutSecrets(a.environ, c.Notify),
			Strict: c.Verify.Baseline == "strict", JUnit: c.Verify.JUnit, Protect: protect,
			Wrapper: p.held.wrapper, Containment: p.held.containment,
		},
		Prompts: loop.Prompts{
			Tokens: c.Prompt.MaxTokens, ToolPrefix: toolPrefix, StateTool: stateTool, Template: template,
			CommentTool: claude.ToolPrefix + "comment_on_task", AmendTool: claude.ToolPrefix + "propose_task_amendment",
		},
		Models: loop.Models{Config: c.Agent.Model, Escalation: escalation},
		Session: session.Limits{
			Reminders: c.ClosingReminders, Retries: c.Verify.InSessionRetries, Freeze: c.Verify.FreezeMax,
			Grace: c.ShutdownGrace, CheckpointAt: checkpointAt(c.Session),
		},
		OnRed: loop.OnRed(c.Verify.OnRed), Commands: func() ([]string, error) { return configuredCommands(ctx, p, db) },
		CommitTasks: c.Git.Commit == "task",
	}, nil
}

// configuredCommands are the project's commands as people configure them now: of what
// a session left and nobody approved, the approved version.
func configuredCommands(ctx context.Context, p *project, db *store.DB) (commands []string, err error) {
	now := *p
	now.unapproved, now.instead = nil, nil
	if now.config, err = p.load(nil); err == nil {
		err = now.judgeConfiguration(ctx, db)
	}
	return now.config.Verify.Commands, err
}

// checkpointAt is when checkpoints are made by themselves; 0 for never.
func checkpointAt(s config.Session) int {
	if !s.CheckpointOnTokenLimit {
		return 0
	}
	return s.CheckpointAt
}

// noTemplate is what prompt.template is where ralph's own prompts are wanted.
const noTemplate = "none"

// templateFile is the file of the project's prompt template, relative to its
// root; "" if there is none, or if it stands in the configuration itself.
func templateFile(p *project) string {
	if t := p.config.Prompt.Template; t != noTemplate && !strings.Contains(t, "{{") {
		return t
	}
	return ""
}

// promptTemplate reads the project's template for prompts; nil if it has none. A
// broken one is an error of usage, before any session starts.
func promptTemplate(p *project) (*prompt.Template, error) {
	text, name := p.config.Prompt.Template, "prompt.template in ralph.yaml"
	if text == noTemplate {
		return nil, nil
	}
	if file := templateFile(p); file != "" {
		path := file
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.root, path)
		}
		if copied, ok := p.instead[path]; ok {
			path = copied
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, usage(fmt.Errorf("prompt.template: %w; write the file, or remove the key from ralph.yaml", err))
		}
		text, name = string(b), file
	}
	t, err := prompt.ParseTemplate(name, text, toolPrefix)
	if err != nil {
		return nil, usage(err)
	}
	return t, nil
}

// limits are those of a run, by the configuration.
func limits(c config.Limits) ralph.Limits {
	return ralph.Limits{
		MaxSessions: c.MaxSessions, MaxTasks: c.MaxTasks, MaxSeconds: c.MaxDuration.Seconds(),
		MaxCostUSD: c.MaxCostUSD, MaxDayCostUSD: c.MaxCostPerDayUSD, Usage: c.Usage,
		SessionSeconds: c.SessionTimeout.Seconds(), IdleSeconds: c.IdleTimeout.Seconds(), SessionTurns: c.SessionTurns,
		SessionCostUSD: c.SessionCostUSD, Attempts: c.Attempts, StagnantMaximum: c.StagnantSessions,
	}
}

func newAgent(a *app, p *project, db *store.DB) (*claude.Agent, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := p.config.Agent
	env := map[string]string{}
	for _, entry := range withoutSecrets(a.environ, p.config.Notify) {
		name, value, _ := strings.Cut(entry, "=")
		for _, pattern := range c.EnvPass {
			if prefix, open := strings.CutSuffix(pattern, "*"); name == pattern || open && strings.HasPrefix(name, prefix) {
				env[name] = value
			}
		}
	}
	maps.Copy(env, c.Env)
	permissions, err := askRalph(a, p)
	if err != nil {
		return nil, usage(err)
	}
	var editHook []string
	if p.config.Sessions.Enforce {
		editHook = []string{self, "hook", "--database", db.Path()}
	}
	return claude.New(claude.Options{
		EditHook: editHook,
		Command:  c.Command, ExtraArgs: c.ExtraArgs, MCPCommand: []string{self, "mcp"}, Database: db.Path(),
		SettingSources: c.SettingSources, PermissionMode: c.PermissionMode, AllowedTools: c.AllowedTools,
		DisallowedTools: c.DisallowedTools, Permissions: permissions, Env: env, Environ: a.environ, ExitGrace: c.ExitGrace, KillGrace: c.KillGrace,
		Wrapper: p.held.wrapper, Containment: p.held.containment,
	}), nil
}

// askRalph are the rules by which ralph answers the agent's questions; "" in the
// modes in which the agent asks nobody.
func askRalph(a *app, p *project) (string, error) {
	rules, err := permissionRules(p.config.Permissions, p, a.getenv("TMPDIR"), a.getenv("HOME"))
	if err != nil {
		return "", err
	}
	if mode := p.config.Agent.PermissionMode; mode != "default" && mode != "acceptEdits" {
		return "", nil
	}
	b, err := json.Marshal(rules)
	return string(b), err
}

// withoutProtocol is an environment without ralph's own variables and systemd's: a
// verification that runs ralph must not take itself for a session, and one that
// starts a server must not take itself for the service.
func withoutProtocol(environ []string) []string {
	var kept []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, "RALPH_") && !slices.Contains(protocol, name) {
			kept = append(kept, e)
		}
	}
	return kept
}
