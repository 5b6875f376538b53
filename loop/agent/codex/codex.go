// Package codex runs OpenAI's `codex` CLI by its app-server: a thread for each session, a turn for each prompt, and
// people's messages in the middle of a turn.
//
// Messages are read into a history, and classify derives the ending from it. Both use structure, never prose, and
// accept unknown messages. Before each use of a tool codex's hook asks the run (`ralph hook`); only this thread
// trusts the hook. A command that ran without a question ends the session.
package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/environment"
	"ralph/internal/pipe"
	"ralph/loop/agent"
	"ralph/loop/agent/conversation"
	"ralph/loop/agent/process"
)

// serverName is the name of ralph's MCP server in codex's configuration.
const serverName = "ralph"

// toolPrefix precedes its tools' names.
const toolPrefix = "mcp__" + serverName + "__"

// Profile describes codex.
var Profile = agent.Profile{
	Name: "codex", Title: "Codex", Kind: "codex", Command: []string{"codex", "app-server"},
	Install: "npm install -g @openai/codex",
	LogIn:   "log in with `codex login`, or set OPENAI_API_KEY and log in with `codex login --with-api-key`",
	Tested:  "0.169.0", ToolPrefix: toolPrefix, MCP: agent.ByFlag, Guard: agent.Hook, Uses: uses,
	Steered: true, NeedsTools: true, Effort: true,
	Note: "No hook sees input to a running program, so terminals are off; a session that types into one ends as " +
		"`mcp_failed`.",
	Cost: agent.Never, Tokens: agent.WithRequest, Windows: true, ResetTime: true, EndsAlone: true,
	// Newer models' programs run in it. It is started when it is needed.
	Host: "codex-code-mode-host",
	Variables: environment.Own{
		Account: strings.Fields("OPENAI_* CODEX_* AZURE_OPENAI_*"),
		Left:    strings.Fields("CODEX_SANDBOX* CODEX_THREAD_ID CODEX_INTERNAL_*"),
	},
	Credentials: []string{"CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "~/.codex/auth.json"},
	AccountID:   "~/.codex/auth.json tokens.account_id",
	Home:        []string{"~/.codex"}, HomeVariable: "CODEX_HOME",
	// Not config.toml, hooks, skills, plugins, prompts, rules and memories, which are people's.
	Data: strings.Fields(`auth.json sessions/ thread-writer-locks/ log cache .tmp tmp shell_snapshots installation_id
		.sandbox_migration version.json models_cache.json`),
}

// Options configure how codex is run.
type Options struct {
	process.Options
	// Guarded makes it ask through its hook; otherwise it asks nobody.
	Guarded bool
	// Cost returns the price of a model's tokens; nil uses list prices.
	Cost agent.Pricing
}

// An Agent runs codex. It may be used by several goroutines.
type Agent struct {
	options Options
	prober  process.Prober
}

var _ agent.Program = (*Agent)(nil)

// New returns an agent. Nothing is started or looked for yet.
func New(o Options) *Agent {
	o.Options = o.WithDefaults()
	if o.Cost == nil {
		o.Cost = agent.Listed
	}
	if len(o.Command) == 0 {
		o.Command = Profile.Command
	}
	return &Agent{options: o}
}

// Profile is [Profile].
func (a *Agent) Profile() *agent.Profile { return &Profile }

// Command returns the program and its first arguments.
func (a *Agent) Command() []string { return a.options.Command }

// Account returns the present account; see [process.Options.Account].
func (a *Agent) Account() string { return a.options.Account(&Profile) }

// Cost implements [agent.Priced].
func (a *Agent) Cost(model string, t ralph.Tokens) (usd float64, known bool) {
	return a.options.Cost(model, t)
}

// Version returns the program's answer to --version; see [process.Prober].
func (a *Agent) Version(ctx context.Context, dir string) (string, error) {
	return a.prober.Version(ctx, a.options.Options, &Profile, dir)
}

// Work runs one session; see [agent.Agent]. The report is valid even with an error, if codex
// was started.
func (a *Agent) Work(ctx context.Context, task agent.Assignment) (agent.Report, error) {
	if len(a.options.MCPCommand) == 0 {
		return agent.Report{}, errors.New("no command for ralph's MCP server")
	}
	version, err := a.Version(ctx, task.Dir)
	if err != nil {
		return agent.Report{}, err
	}
	p, err := a.options.Start(&Profile, task, Arguments(a.options, task)...)
	if err != nil {
		return agent.Report{}, err
	}
	report, err := conversation.Run(ctx, newSession(a.options, task), p, task, conversation.Options{
		Profile: &Profile,
		Alone:   a.options.ExitGrace, Wait: a.options.ExitGrace,
		Start: a.options.StartWait, Tools: a.options.ToolsWait, Bare: true,
	})
	report.Version = version
	return report, err
}

// tools returns the arguments that give codex ralph's tools.
func tools(o Options, a agent.Assignment) []string {
	// The variables of a server of tools are its own: codex passes none of its on.
	env := fmt.Sprintf("{%s=%s,RALPH_SESSION_ID=%s}", pipe.Variable, quoted(a.Channel.Socket), quoted(a.SessionID))
	args := []string{"-c", fmt.Sprintf("mcp_servers.%s={command=%s,args=%s,env=%s,required=true,"+
		`default_tools_approval_mode="approve",startup_timeout_sec=60,tool_timeout_sec=3600}`,
		serverName, quoted(o.MCPCommand[0]), quoted(o.MCPCommand[1:]), env)}
	for _, s := range o.Servers(&Profile, a) {
		// It asks ralph's hook about their tools, as about its own.
		what := fmt.Sprintf("url=%s,http_headers=%s", quoted(s.URL), table(s.Headers))
		if s.Type == "stdio" {
			what = fmt.Sprintf("command=%s,args=%s,env=%s", quoted(s.Command), quoted(append([]string{}, s.Args...)),
				table(s.Env))
		}
		args = append(args, "-c", "mcp_servers."+s.Name+"={"+what+
			`,required=false,default_tools_approval_mode="approve",startup_timeout_sec=60}`)
	}
	return args
}

// Arguments returns the arguments for one session, after the command.
func Arguments(o Options, a agent.Assignment) []string {
	args := tools(o, a)
	if a.Channel.Socket != "" {
		// Each session has its own databases. Several sessions would share the ones in its home
		// folder, which is only partly writable.
		args = append(args, "-c", "sqlite_home="+quoted(filepath.Join(filepath.Dir(a.Channel.Socket), "codex")))
	}
	if o.Guarded {
		// Input typed into a running program reaches no hook.
		args = append(args, "-c", "features.unified_exec_tty=false")
		args = append(args, "-c", fmt.Sprintf(
			`hooks.PreToolUse=[{matcher=".*",hooks=[{type="command",command=%s,timeout=3600}]}]`, quoted(hookCommand(o))))
	}
	return args
}

// hookCommand returns the command that codex asks before each use of a tool.
func hookCommand(o Options) string {
	return "'" + strings.ReplaceAll(o.MCPCommand[0], "'", `'\''`) + "' hook"
}

// table returns a table of texts in TOML's form.
func table(m map[string]string) string {
	var entries []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		entries = append(entries, quoted(name)+"="+quoted(m[name]))
	}
	return "{" + strings.Join(entries, ",") + "}"
}

// quoted returns a text, or a list of texts, in TOML's form, which is also JSON's.
func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts always marshal
	}
	return string(b)
}
