package project

import (
	"cmp"
	"context"
	"errors"
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
	"ralph/internal/environment"
	"ralph/internal/files"
	"ralph/internal/permission"
	"ralph/internal/secret"
	"ralph/internal/state"
	"ralph/internal/text"
	"ralph/internal/worktree"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/agent/claude"
	"ralph/loop/agent/kinds"
	"ralph/loop/agent/process"
	"ralph/loop/check"
	"ralph/loop/merging"
	"ralph/loop/order"
	"ralph/loop/workspace"
	"ralph/mcpserver"
	"ralph/prompt"
	"ralph/signals"
	"ralph/store"
)

// Loop creates a loop from the project's configuration. It starts nothing.
func (p *Project) Loop(ctx context.Context, db *store.DB) (*loop.Loop, error) {
	tree, err := worktree.Open(ctx, p.Root, p.Own()...)
	if errors.Is(err, worktree.ErrNoRepo) {
		return nil, ralph.Usage(fmt.Errorf("%w, and sessions work in clones of one: `ralph init --git` makes it, "+
			"with a first commit of this folder", err))
	}
	if err != nil {
		return nil, ralph.Usage(err)
	}
	tree.Marker = "RALPH_LOOK=" + p.State
	c, fixed := p.Config.Config, config.Fixed
	agents, err := p.agents()
	if err != nil {
		return nil, err
	}
	channel, err := p.channel(db)
	if err != nil {
		return nil, err
	}
	escalation := c.EscalationModel
	if escalation == config.None {
		escalation = ""
	}
	template, err := p.Template()
	if err != nil {
		return nil, err
	}
	reviewers, err := p.reviewers()
	if err != nil {
		return nil, err
	}
	here := &workspace.Workspace{Dir: p.Root, Tree: tree, State: p.State, Watched: config.Notes}
	settings := order.Config{
		Dir: p.Root, Agent: agents[c.Agent.Use], Agents: order.Agents{
			Use: c.Agent.Use, Fallback: c.Agent.Fallback, All: agents, Models: models(c),
		},
		Servers: c.Agent.MCP == "approved",
		Channel: channel,
		Limits:  p.Limits(),
		Rules:   p.Rules(),
		Check: check.Rules{
			Commands: c.Verify.Commands, Timeout: c.Verify.Timeout, Env: p.workEnvironment(), Through: p.Mask().Reader,
			Retry: c.Verify.Retry > 0, Strict: c.Verify.Baseline == "strict", JUnit: c.Verify.JUnit, Protect: c.Verify.Protect,
			Guard: p.guard(),
			Enter: p.Confinement.Enter(checkRole), Withheld: p.withheld(),
			Tests: c.Verify.Tests, Trial: c.Verify.Trial, Proof: c.Verify.Proof,
			Hidden: p.hidden(), HiddenFiles: p.hiddenFiles(),
		},
		Prompts: order.Prompts{
			Tokens: fixed.PromptTokens, Template: template, StateTool: mcpserver.StateTool, CommentTool: mcpserver.CommentTool,
			AmendTool: mcpserver.AmendTool,
		},
		Models: order.Models{Escalation: escalation}, Reviewers: reviewers,
		Session: order.Limits{
			Grace: fixed.ShutdownGrace, CheckpointAt: fixed.CheckpointAt,
		},
		Parallel: c.Parallel,
	}
	l := &loop.Loop{
		Config: settings, Store: db, Here: here, Pool: p.Pool(here), Log: p.Log,
		Sandbox:  p.Confinement.Said(),
		Backoff:  loop.Backoff{Initial: fixed.BackoffInitial, Max: fixed.BackoffMax, Tries: fixed.BackoffTries},
		OnRed:    loop.OnRed(c.Verify.OnRed),
		Commands: func() ([]string, error) { return p.configuredCommands() },
	}
	if l.Merger, err = p.Merger(ctx, db, tree); err != nil {
		return nil, err
	}
	l.Merger.Check, l.Merger.Pool, l.Pool.Merged = l.Check, l.Pool, l.Merger.Tip
	return l, nil
}

// Merger merges the work of workspaces into the target branch. The caller sets how to verify it.
func (p *Project) Merger(ctx context.Context, db *store.DB, tree *worktree.Tree) (*merging.Merger, error) {
	c := p.Config.Merge
	into := c.Into
	if into == "" {
		into = tree.Branch(ctx)
	}
	into, err := store.Read(ctx, db, func(tx *store.Tx) (string, error) { return tx.Target(into) })
	if err != nil {
		return nil, err
	}
	pulls, push, env := c.Mode == modePull, c.Push, p.Stripped()
	if pulls {
		push, env = p.forgeRemote(), append(env, p.forgeCredentials(ctx)...)
	}
	return &merging.Merger{
		Rules: merging.Rules{
			Into: into, Branch: pulls || c.Mode == "branch", Pulls: pulls, MaxOpen: c.MaxOpen,
			Squash: c.Strategy == "squash", Sign: c.Sign,
			MaxSentBack: config.Fixed.MaxSentBack, Wait: config.Fixed.MergeWait, Push: push,
			Message: cmp.Or(c.Message, "{task}: {title}"), After: c.After,
			AfterEnv: env, Timeout: p.Config.Verify.Timeout, State: p.State,
		},
		Store: db, Tree: tree, Links: &merging.Links{}, Log: p.Log,
	}, nil
}

// CaughtUp looks whether people have merged the work that their branch lacked at a run's last look.
func (p *Project) CaughtUp(ctx context.Context, db *store.DB) error {
	queue, err := store.Read(ctx, db, (*store.Tx).MergeQueue)
	if err != nil || queue.Behind == "" || !p.Git {
		return err
	}
	tree, err := worktree.Open(ctx, p.Root, p.Own()...)
	if err != nil {
		return err
	}
	m, err := p.Merger(ctx, db, tree)
	if err != nil {
		return err
	}
	m.Into = queue.Target
	return m.CaughtUp(ctx)
}

// lookedAt is the number of the last merged changes that are searched for reverts.
const lookedAt = 200

// Reverted lists the completed tasks whose changes people have reverted: among the newest ones, or
// only one task.
func (p *Project) Reverted(ctx context.Context, db *store.DB, task int64) ([]ralph.Reverted, error) {
	list, err := store.Read(ctx, db, func(tx *store.Tx) ([]ralph.Change, error) { return tx.LastMerged(task, lookedAt) })
	if err != nil || len(list) == 0 || !p.Git {
		return nil, err
	}
	tree, err := worktree.Open(ctx, p.Root, p.Own()...)
	if err != nil {
		return nil, err
	}
	m, err := p.Merger(ctx, db, tree)
	if err != nil {
		return nil, err
	}
	return m.Reverted(ctx, list)
}

// Pool returns the clones in which sessions work.
func (p *Project) Pool(here *workspace.Workspace) *workspace.Pool {
	c := p.Config.Workspace
	here.Tree.Sparse = c.Sparse
	return &workspace.Pool{
		Here: here, Dir: p.File("workspaces"), Name: p.Name(),
		Setup: c.Setup, PortsFrom: c.Ports, Ports: config.Fixed.WorkspacePorts,
		Env: p.workEnvironment(), Through: p.Mask().Reader,
		Enter: p.Confinement.Enter(setupRole), Layers: p.Confinement.Sandbox.Layers,
		Temps: p.Confinement.Temps, MaxSize: workspace.Bound(p.File("."), int64(c.MaxSize)<<20),
		Steering: kinds.Steering,
		Timeout:  p.Config.Verify.Timeout, Log: p.Log,
	}
}

// configuredCommands returns the project's commands in the present configuration.
func (p *Project) configuredCommands() ([]string, error) {
	now, err := p.load()
	return now.Verify.Commands, err
}

// guard returns the files that wait for a person if a session has changed them: ralph.yaml, the prompt template, and
// the project's programs that run outside of any sandbox, which configure runs; and the files that steer agents.
func (p *Project) guard() check.Guard {
	files := []string{state.ConfigName}
	if file := p.templateFile(); file != "" {
		files = append(files, filepath.ToSlash(file))
	}
	for _, r := range p.Config.Review {
		if r.Prompt != "" && filepath.IsLocal(r.Prompt) {
			files = append(files, filepath.ToSlash(filepath.Clean(r.Prompt)))
		}
	}
	words := slices.Clone(p.Config.Agent.Command)
	for _, r := range p.Config.Notify.Receivers {
		words = append(words, r.Command...)
	}
	for _, word := range words {
		path := p.Path(word)
		rel, err := filepath.Rel(p.Root, path)
		if info, serr := os.Stat(path); err == nil && filepath.IsLocal(rel) && serr == nil && info.Mode().IsRegular() {
			files = append(files, filepath.ToSlash(rel))
		}
	}
	return check.Guard{Configuration: files, Steering: kinds.Steering, Own: kinds.Own, More: p.Config.Merge.Guard}
}

// templateFile returns the file of the project's prompt template, relative to its root; "" if there
// is none, or if the template is in the configuration itself.
func (p *Project) templateFile() string {
	if t := p.Config.Prompt.Template; t != config.None && !strings.Contains(t, "{{") {
		return t
	}
	return ""
}

// Template reads the project's prompt template; nil if there is none. A broken one is a usage
// error, before any session starts.
func (p *Project) Template() (*prompt.Template, error) {
	text, name := p.Config.Prompt.Template, "prompt.template in ralph.yaml"
	if text == config.None {
		return nil, nil
	}
	if file := p.templateFile(); file != "" {
		b, err := files.Read(p.Path(file))
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

// Limits returns the configured limits of a run.
func (p *Project) Limits() ralph.Limits {
	c := p.Config.Limits
	return ralph.Limits{
		MaxSessions: c.MaxSessions, MaxTasks: c.MaxTasks, MaxSeconds: c.MaxDuration.Seconds(),
		MaxCostUSD: c.MaxCostUSD, MaxDayCostUSD: c.MaxCostPerDayUSD,
		MaxMonthCostUSD: c.MaxCostPerMonthUSD, SessionTokens: int64(c.SessionTokens), Usage: c.Usage,
		SessionSeconds: c.SessionTimeout.Seconds(), IdleSeconds: c.IdleTimeout.Seconds(), SessionTurns: c.SessionTurns,
		SessionCostUSD: c.SessionCostUSD, SessionMinUSD: config.Fixed.SessionMinUSD, Parallel: p.Config.Parallel,
		Attempts: c.Attempts, StagnantMaximum: c.StagnantSessions,
	}
}

// models returns the default models by agent.
func models(c config.Config) map[string]string {
	m := map[string]string{}
	for name, a := range c.Agents {
		m[name] = a.Model
	}
	m[ralph.DefaultAgent] = cmp.Or(m[ralph.DefaultAgent], c.Agent.Model)
	return m
}

// Agent returns the default agent. It starts nothing.
func (p *Project) Agent() (agent.Agent, error) {
	all, err := p.agents()
	return all[p.Config.Agent.Use], err
}

// CheckAgent refuses the name of an agent that is not configured; "" is accepted.
func (p *Project) CheckAgent(name string) error {
	if _, ok := p.Config.Agents[name]; ok || name == "" || name == ralph.DefaultAgent {
		return nil
	}
	known := append(slices.Collect(maps.Keys(p.Config.Agents)), ralph.DefaultAgent)
	slices.Sort(known)
	known = slices.Compact(known)
	if ready := text.Near(name, append(kinds.Names(), known...)); ready != "" {
		return &ralph.FieldError{Field: "agent", Problem: fmt.Sprintf("%q is not configured; did you mean %s? "+
			"`agents: {%s: {}}` in ralph.yaml adds it (there are: %s)", name, ready, ready, strings.Join(known, ", "))}
	}
	return &ralph.FieldError{Field: "agent", Problem: fmt.Sprintf("%q is not configured: add it below agents in "+
		"ralph.yaml (there are: %s)", name, strings.Join(known, ", "))}
}

// CheckReviewer refuses an agent that is not configured, or has no tools for reviewing.
func (p *Project) CheckReviewer(name string) error {
	if name == "" || name == ralph.NoReview {
		return nil
	}
	if err := p.CheckAgent(name); err != nil {
		return err
	}
	profile, err := kinds.ProfileOf(name, p.Config.Agents[name])
	if err == nil && profile.MCP == agent.ByChannel {
		err = &ralph.FieldError{Field: "review", Problem: fmt.Sprintf("%q is of the kind %q, which has no tools to "+
			"review with: name another agent (docs/review.md)", name, profile.Kind)}
	}
	return err
}

// agents returns all configured agents by name.
func (p *Project) agents() (map[string]agent.Agent, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := p.Config.Agent
	return kinds.Configured(p.Config.Config, claude.Options{
		Options: process.Options{
			Command: c.Command, MCPCommand: []string{self, "mcp"}, Env: maps.Clone(c.Env),
			Environ: p.withoutForge(p.Environ), Through: p.Mask().Reader,
			ExitGrace: config.Fixed.ExitGrace, KillGrace: config.Fixed.KillGrace,
			Enter: p.Confinement.Enter(agentRole), Probe: p.Confinement.Enter(probeRole),
		},
		ExtraArgs: c.ExtraArgs, PermissionMode: c.PermissionMode, AsksRalph: claude.Asks(c.PermissionMode),
	})
}

// channel returns a function that serves ralph's tools to a session's agent. The error is about a
// permission rule.
func (p *Project) channel(db *store.DB) (agent.Serve, error) {
	rules, err := p.Permissions()
	if err != nil {
		return nil, ralph.Usage(err)
	}
	return func(a agent.Assignment, folder string) (agent.Channel, func() error, error) {
		s := mcpserver.Session{
			Store: db, TaskID: a.TaskID, SessionID: a.SessionID, Discipline: a.Discipline,
			Enforce: p.Config.Sessions.Enforce, Version: p.Version, State: p.State, Dir: a.Dir,
			Mask: p.Mask().Text, Uses: a.Profile.Uses, NoTool: a.Profile.Kind != claude.Profile.Kind,
		}
		s.Review, s.Plan = a.Review, a.Plan
		s.Enforce = s.Enforce && a.Review == nil && a.Plan == nil
		if a.Profile.Kind != claude.Profile.Kind || claude.Asks(p.Config.Agent.PermissionMode) {
			its := rules
			if a.Dir != p.Root { // a workspace, which has its own temporary folder beside it
				its.Policy.Project = permission.ResolveLinks(a.Dir)
				for _, entry := range a.Env {
					if dir, ok := strings.CutPrefix(entry, "TMPDIR="); ok {
						its.Policy.Writable = append(slices.Clip(its.Policy.Writable), permission.ResolveLinks(dir))
					}
				}
			}
			s.Rules = &its
		}
		c, err := mcpserver.OpenChannel(s, folder)
		if err != nil {
			return agent.Channel{}, nil, err
		}
		return agent.Channel{
			Socket: c.Socket(), Ticket: c.Ticket(), Unreported: c.Unreported(), Permit: c.Permit, Listed: c.Listed(),
		}, c.Close, nil
	}, nil
}

// Permissions returns the rules on agents' use of tools. The error names an invalid rule.
func (p *Project) Permissions() (permission.Rules, error) {
	c := p.Config.Permissions
	for _, list := range []struct {
		key   string
		rules []string
	}{{"permissions.allow", c.Allow}, {"permissions.ask", c.Ask}, {"permissions.deny", c.Deny}} {
		for _, rule := range list.rules {
			_, err := claude.Tools.ParseRule(rule)
			if list.key != "permissions.allow" {
				err = claude.Tools.CheckDenies(rule)
			}
			if err != nil {
				return permission.Rules{}, fmt.Errorf("%s: %w", list.key, err)
			}
		}
	}
	policy := permission.Policy{
		Allow: c.Allow, Ask: c.Ask, Deny: c.Deny, Default: permission.Verdict(c.Default), Guards: c.Guards,
		Project: permission.ResolveLinks(p.Root), State: permission.ResolveLinks(p.Guarded()), Home: p.Getenv("HOME"),
		Agent: claude.Program(p.Config.Agent.Command), Tools: claude.Tools,
		Resolve: permission.ResolveLinks, Exists: permission.Exists,
	}
	for _, dir := range append([]string{p.Getenv("TMPDIR"), "/tmp", "/var/tmp"}, c.Writable...) {
		policy.Writable = append(policy.Writable, permission.ResolveLinks(p.Path(dir)))
	}
	return permission.Rules{Policy: policy, Timeout: config.Fixed.AskTimeout}, nil
}

// reviewers returns the reviewers of changes.
func (p *Project) reviewers() (list []signals.Reviewer, err error) {
	for _, r := range p.Config.Review {
		if err := p.CheckReviewer(r.Agent); err != nil {
			return nil, ralph.Usage(fmt.Errorf("review: %w", err))
		}
		who := signals.Reviewer{Agent: r.Agent, Model: r.Model, Lines: r.When.Lines, Files: r.When.Files}
		if r.Prompt != "" {
			b, err := files.Read(p.Path(r.Prompt))
			if err != nil {
				return nil, ralph.Usage(fmt.Errorf("review.prompt: %w; write the file, or remove the key from ralph.yaml", err))
			}
			who.Prompt = string(b)
		}
		list = append(list, who)
	}
	return list, nil
}

// Rules returns the thresholds in the configuration.
func (p *Project) Rules() signals.Rules {
	c := p.Config.Config
	r := signals.Rules{
		StuckLimit: config.Fixed.Stuck, VerifyFailures: config.Fixed.Refused, Attempts: c.Limits.Attempts,
		ReviewProtect: c.Verify.ProtectMode == "review", MaxSentBack: config.Fixed.MaxSentBack,
		Reminders: config.Fixed.Reminders, Retries: config.Fixed.Retries,
		Lost: c.Verify.Lost, TestsChanged: c.Verify.Changed, Scope: c.Verify.Scope,
		InPull: c.Verify.Guard == modePull && c.Merge.Mode == modePull,
	}
	if c.Suggestions == "auto_approve" {
		r.AutoApprove = config.Fixed.Suggested
	}
	return r
}

// hidden returns the project's checks that no session sees, by title.
func (p *Project) hidden() (list []ralph.Hidden) {
	for _, title := range slices.Sorted(maps.Keys(p.Config.Verify.Hidden)) {
		list = append(list, ralph.Hidden{Title: title, Command: p.Config.Verify.Hidden[title]})
	}
	return list
}

// hiddenFiles returns the folder of files for hidden checks; "" for none.
func (p *Project) hiddenFiles() string {
	if p.Config.Verify.HiddenFiles == "" {
		return ""
	}
	return p.paths([]string{p.Config.Verify.HiddenFiles}, p.agentEnv("HOME"))[0]
}

// protocol are the variables that systemd uses to talk to a service.
var protocol = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM"}

// workEnvironment returns the environment of the commands that check an agent's work or set up its
// workspace: the agent's without its account's variables.
func (p *Project) workEnvironment() []string {
	c := p.Config.Agent
	added := maps.Clone(c.Env)
	maps.DeleteFunc(added, func(name, _ string) bool { return environment.Matches(claude.Variables.Account, name) })
	return environment.Of(p.Stripped(), added, nil)
}

// Mask knows the secrets in ralph's own environment and configuration, which must not be stored,
// shown or sent to a model.
func (p *Project) Mask() *secret.Mask {
	environ, names := slices.Clone(p.Environ), []string(nil)
	for name, value := range p.Config.Agent.Env {
		environ = append(environ, name+"="+value)
	}
	for _, r := range p.Config.Notify.Receivers {
		names = append(names, config.Variable(r.URL), r.SecretEnv)
	}
	return secret.New(environ, names, permission.Exists)
}

// Stripped returns ralph's environment for other programs; agents and checks get a selection of it.
// It omits the secrets of notifications, ralph's own variables and systemd's. A verification that
// runs ralph must not look like a session, and one that starts a server must not look like the
// service.
func (p *Project) Stripped() []string {
	return slices.DeleteFunc(slices.Clone(p.Environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasPrefix(name, "RALPH_") || slices.Contains(protocol, name) ||
			slices.ContainsFunc(p.Config.Notify.Receivers, func(r config.Receiver) bool {
				return name == config.Variable(r.URL) || name == r.SecretEnv
			})
	})
}

// Verify runs the commands of a task, or with 0 those of the project, as they check a session's
// done. An interrupt stops them and every process that they started. red reports whether a
// failure prevents the start of a run.
func (p *Project) Verify(ctx context.Context, db *store.DB, task int64,
	show func(c ralph.Check, output io.ReadSeeker) error,
) (checks []ralph.Check, red bool, err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	own := *p
	if p.Blank {
		// Results are kept for later runs; without a queue they are discarded.
		if db, err = store.OpenEmpty(ctx, nil); err != nil {
			return nil, false, err
		}
		defer db.Close()
		elsewhere := *p.Home
		elsewhere.State = filepath.Dir(db.Path())
		own.Home = &elsewhere
	}
	if own.Confinement, err = own.Confine(ctx); err != nil {
		return nil, false, err
	}
	l, err := own.Loop(ctx, db)
	if err != nil {
		return nil, false, err
	}
	checks, red, err = l.Verify(ctx, task, show)
	if ctx.Err() != nil {
		err = &ralph.ExitError{
			Status: ralph.ExitStopped, Err: fmt.Errorf("the verification was stopped: %w", context.Cause(ctx)),
		}
	}
	return checks, red, err
}
