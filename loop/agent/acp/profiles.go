package acp

import (
	"encoding/json"
	"maps"
	"strings"

	"ralph/internal/environment"
	"ralph/loop/agent"
)

// A Profile describes one agent that speaks the protocol.
type Profile struct {
	agent.Profile

	// Arguments returns a session's arguments after the command, with ralph's MCP server in
	// the form of a settings file; nil for none.
	Arguments func(server map[string]any, a agent.Assignment) []string
	// Environment returns its environment, made from the configured one; nil adds nothing.
	Environment func(configured map[string]string) map[string]string
	// Mine recognizes a question about one of ralph's own tools, which the rules need not answer.
	Mine func(c toolCall) bool
	// CommandInTitle means that only the title of its question contains the complete
	// command.
	CommandInTitle bool
	// Total means that the token counts at the end of a turn are for the whole session.
	// LastOnly means that they are for its last request only.
	Total, LastOnly bool
	// ModelByFlag means that the arguments name the model.
	ModelByFlag bool
	// Login is the method for signing in with a variable, if its session does not begin without.
	Login map[string]string
}

// Profiles are the agents that ralph ships. The last one fits any other.
var Profiles = []*Profile{
	{
		Profile: agent.Profile{
			Name: "gemini", Title: "Gemini CLI", Kind: kind, Command: []string{"gemini", "--acp", "--skip-trust"},
			Install: "npm install -g @google/gemini-cli", LogIn: "log in with `gemini`, or set GEMINI_API_KEY",
			Tested: "0.61.0", ToolPrefix: "mcp_ralph_", Dot: ".", MCP: agent.BySession, Guard: agent.Question,
			Cost: agent.Never, Tokens: agent.AtTurnsEnd, NoIdentity: true,
			Variables: environment.Own{
				Account: strings.Fields("GEMINI_* GOOGLE_* GCLOUD_* CLOUDSDK_* CODE_ASSIST_*"),
				Left:    strings.Fields("GEMINI_CLI GEMINI_CLI_IDE_* GEMINI_SANDBOX"),
			},
			// Its parent process has no ear for signals.
			Set: map[string]string{"GEMINI_CLI_NO_RELAUNCH": "true"},
			Credentials: strings.Fields("GEMINI_API_KEY GOOGLE_API_KEY GOOGLE_APPLICATION_CREDENTIALS " +
				"~/.gemini/oauth_creds.json"),
			AccountID: "~/.gemini/google_accounts.json active",
			Home:      []string{"~/.gemini"}, HomeVariable: "GEMINI_CLI_HOME/.gemini",
			Data:     strings.Fields("tmp history oauth_creds.json google_accounts.json"),
			Replaced: []string{"projects.json"},
		},
		Arguments:   modelFlag("-m"),
		ModelByFlag: true,
		Mine: func(c toolCall) bool {
			return c.Kind == "other" && strings.HasSuffix(c.Title, " (ralph MCP Server)")
		},
		CommandInTitle: true,
		Login:          map[string]string{"GEMINI_API_KEY": "gemini-api-key", "GOOGLE_API_KEY": "vertex-ai"},
	},
	{
		Profile: agent.Profile{
			Name: "opencode", Title: "opencode", Kind: kind, Command: []string{"opencode", "acp"},
			Install: "npm install -g opencode-ai", LogIn: "log in with `opencode auth login`, or set its provider's key",
			Tested: "1.18.33", ToolPrefix: "ralph_", MCP: agent.BySession, Guard: agent.Question, RefusalEnds: true,
			Cost: agent.AtTurnsEnd, Tokens: agent.AtTurnsEnd, SilentRetry: true, EndsAlone: true,
			Variables:   environment.Own{Account: providers("OPENCODE_*")},
			Credentials: strings.Fields("OPENCODE_API_KEY ANTHROPIC_API_KEY OPENAI_API_KEY ~/.local/share/opencode/auth.json"),
			Home:        []string{"~/.local/share/opencode", "~/.local/state/opencode", "~/.cache/opencode"},
			Settings:    []string{"~/.config/opencode"},
			Note: "It does not ask before it uses tools of the project's MCP servers. It reports the tokens of a turn's last " +
				"request, and the whole cost.",
		},
		// It asks nobody by default.
		Environment: func(configured map[string]string) map[string]string {
			const name = "OPENCODE_CONFIG_CONTENT"
			settings := map[string]any{}
			// The agent would refuse invalid JSON, too.
			_ = json.Unmarshal([]byte(configured[name]), &settings)
			settings["permission"] = map[string]string{
				"bash": "ask", "edit": "ask", "webfetch": "ask", "external_directory": "ask",
			}
			settings["autoupdate"], settings["share"] = false, "disabled"
			env := maps.Clone(configured)
			env[name] = jsonOf(settings)
			return env
		},
		LastOnly: true,
	},
	{
		Profile: agent.Profile{
			Name: "copilot", Title: "Copilot CLI", Kind: kind, Command: []string{"copilot", "--acp"},
			Install: "npm install -g @github/copilot", LogIn: "log in with `copilot`, or set GH_TOKEN",
			Tested: "1.0.102", ToolPrefix: "ralph-", Dot: "-", MCP: agent.ByFlag, Guard: agent.Question, RefusalEnds: true,
			Cost: agent.Never, Tokens: agent.AtTurnsEnd, EndsAlone: true, ErrorWord: "Error: ",
			Variables: environment.Own{Account: providers("COPILOT_* GH_TOKEN GITHUB_TOKEN")},
			Credentials: strings.Fields("COPILOT_GITHUB_TOKEN GH_TOKEN GITHUB_TOKEN COPILOT_PROVIDER_API_KEY " +
				"~/.copilot/config.json"),
			Home: []string{"~/.copilot"}, HomeVariable: "COPILOT_HOME",
			Data: []string{"logs", "session-state", "pkg"}, Effort: true,
		},
		ModelByFlag: true,
		// It takes no server of tools from a session that is a program.
		Arguments: func(server map[string]any, a agent.Assignment) []string {
			server["type"], server["tools"] = "local", []string{"*"}
			servers := map[string]any{serverName: server}
			for _, s := range a.Servers {
				own := s.Entry()
				if own["tools"] = []string{"*"}; s.Type == "stdio" {
					own["type"] = "local"
				}
				servers[s.Name] = own
			}
			config := jsonOf(map[string]any{"mcpServers": servers})
			args := []string{"--no-auto-update", "--additional-mcp-config", config}
			if a.Effort != "" {
				args = append(args, "--reasoning-effort", a.Effort)
			}
			return append(args, modelFlag("--model")(server, a)...)
		},
		Mine:  func(c toolCall) bool { return c.Kind == "other" && ours(c.Title) },
		Total: true,
	},
	{
		Profile: agent.Profile{
			Name: "qwen", Title: "Qwen Code", Kind: kind, Command: []string{"qwen", "--acp"},
			Install: "npm install -g @qwen-code/qwen-code", LogIn: "log in with `qwen`, or set OPENAI_API_KEY",
			Tested: "0.15.10", ToolPrefix: "mcp__ralph__", MCP: agent.BySession, Guard: agent.Question,
			Cost: agent.Never, Tokens: agent.WithRequest,
			Variables:   environment.Own{Account: providers("QWEN_* DASHSCOPE_*")},
			Credentials: strings.Fields("OPENAI_API_KEY DASHSCOPE_API_KEY ~/.qwen/oauth_creds.json"),
			Home:        []string{"~/.qwen"}, HomeVariable: "QWEN_HOME",
			Data:      strings.Fields("tmp projects debug history oauth_creds.json"),
			NoServers: "its questions do not name the server, so no rule could",
		},
		ModelByFlag: true,
		// Without that tool it shows its model all of ralph's at once.
		Arguments: func(server map[string]any, a agent.Assignment) []string {
			args := []string{"--exclude-tools", "tool_search", "--allowed-mcp-server-names", serverName}
			return append(args, modelFlag("-m")(server, a)...)
		},
		// It has no other server, and describes only the arguments of a server's tools.
		Mine: func(c toolCall) bool { return c.Kind == "other" && strings.HasPrefix(c.Title, "{") },
	},
	{
		Profile: agent.Profile{
			Name: "claude-agent-acp", Title: "Claude Code by ACP", Kind: kind, Command: []string{"claude-agent-acp"},
			Install: "npm install -g @agentclientprotocol/claude-agent-acp",
			LogIn:   "log in with `claude`, or set ANTHROPIC_API_KEY",
			Tested:  "0.49.0", ToolPrefix: "mcp__ralph__", MCP: agent.BySession, Guard: agent.Question,
			Cost: agent.AtTurnsEnd, Tokens: agent.AtTurnsEnd, EndsAlone: true,
			Variables:   environment.Own{Account: strings.Fields("ANTHROPIC_* CLAUDE_*")},
			Credentials: strings.Fields("ANTHROPIC_API_KEY CLAUDE_CODE_OAUTH_TOKEN ~/.claude/.credentials.json"),
			Home:        []string{"~/.claude"}, HomeVariable: "CLAUDE_CONFIG_DIR",
			Data: []string{"projects", "todos", ".credentials.json"},
		},
		Mine: func(c toolCall) bool { return c.Kind == "other" && strings.HasPrefix(c.Title, "mcp__ralph__") },
	},
	{
		Profile: agent.Profile{
			Name: "acp", Title: "any other agent of the protocol", Kind: kind, ToolPrefix: "ralph_", MCP: agent.BySession,
			Guard: agent.None, RefusalEnds: true, Cost: agent.AtTurnsEnd, Tokens: agent.Never,
			Variables: environment.Own{Account: providers("")},
		},
		Mine: func(c toolCall) bool { return c.Kind == "other" && ours(c.Title) },
	},
}

// kind is the name in ralph.yaml for agents that speak the protocol.
const kind = "acp"

// providers returns the variables of the services that models are at, with more.
func providers(more string) []string {
	return strings.Fields(more + ` ANTHROPIC_* OPENAI_* GEMINI_* GOOGLE_* OPENROUTER_* MISTRAL_* GROQ_* XAI_* DEEPSEEK_*
		AZURE_OPENAI_* AWS_*`)
}

// modelFlag names the model by a flag.
func modelFlag(flag string) func(map[string]any, agent.Assignment) []string {
	return func(_ map[string]any, a agent.Assignment) []string {
		if a.Model == "" {
			return nil
		}
		return []string{flag, a.Model}
	}
}

// ours recognizes the name of one of ralph's tools, with or without the server's name before it.
func ours(name string) bool {
	name = strings.TrimPrefix(strings.NewReplacer(".", "_", "-", "_").Replace(name), "ralph_")
	return strings.HasPrefix(strings.TrimPrefix(name, "ralph_"), "signal_") || name == "update_session_state" ||
		name == "comment_on_task" || name == "propose_task_amendment"
}

// jsonOf returns JSON of texts and containers of texts.
func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts always marshal
	}
	return string(b)
}
