package claude

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ralph/internal/permission"
	"ralph/loop/agent"
)

// Names of ralph's tools for the model, and their prefixes. In a tool's
// name, every character except letters, digits, "_" and "-" becomes "_".
const (
	ToolPrefix   = "mcp__" + serverName + "__"
	SignalPrefix = ToolPrefix + "ralph_signal_"
	StateTool    = ToolPrefix + "update_session_state"
)

// For a person's own chat with Claude Code: the rule that allows ralph's tools without asking, the file for such a
// rule, and the command for the prompt of a claimed task.
const (
	AllowTools    = "mcp__" + serverName
	LocalSettings = ".claude/settings.local.json"
	ChatPrompt    = "/" + ToolPrefix + "work-on-task"
)

// Profile is the profile of Claude Code.
var Profile = agent.Profile{
	Name: "claude", Title: "Claude Code", Kind: "claude", Command: []string{"claude"},
	Install: "npm install -g @anthropic-ai/claude-code",
	LogIn:   "log in with `claude`, or set ANTHROPIC_API_KEY",
	Tested:  "2.1.197", ToolPrefix: ToolPrefix, MCP: agent.ByFlag, Guard: agent.Hook, Steered: true,
	Cost: agent.AtTurnsEnd, Tokens: agent.WithRequest, Windows: true, ResetTime: true, EndsAlone: true, Escalates: true,
	Effort:    true,
	Variables: Variables, Set: settings,
	Credentials: []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK",
		"CLAUDE_CODE_USE_VERTEX", "~/.claude/" + credentialsFile,
	},
	AccountID: "~/.claude.json oauthAccount.accountUuid",
	Home:      []string{"~/.claude"}, HomeVariable: "CLAUDE_CONFIG_DIR",
}

// Profile returns [Profile].
func (a *Agent) Profile() *agent.Profile { return &Profile }

// Account identifies the present account; see [process.Options.Account].
func (a *Agent) Account() string { return a.options.Account(&Profile) }

// Asks reports whether the agent asks ralph for permissions in a
// permission mode; in the others it asks nobody.
func Asks(mode string) bool { return mode == "default" || mode == "acceptEdits" }

// Refusal explains why the program would refuse to start: as root, it does not skip
// permissions. It is "" if it would start.
func Refusal(mode string, args []string, getenv func(string) string) string {
	const skip = "--dangerously-skip-permissions"
	if mode != "bypassPermissions" && !slices.Contains(args, skip) || os.Geteuid() != 0 || getenv("IS_SANDBOX") != "" {
		return ""
	}
	return "claude refuses to skip permissions as root (agent.permission_mode: bypassPermissions, or " + skip +
		" in agent.extra_args): run ralph as another user, or let the agent ask ralph (agent.permission_mode: default)"
}

// Tools describes Claude's own tools for permission rules.
var Tools = permission.Tools{
	Shell: "Bash", Edit: "Edit", Edits: []string{"Edit", "Write", "MultiEdit", "NotebookEdit"},
	Reads: []string{"Read", "Glob", "Grep"}, Fetch: "WebFetch",
	Servers: "mcp__",
	Others: []string{
		"WebSearch", "Task", "Agent", "TodoWrite", "NotebookRead", "LS", "BashOutput", "KillBash", "KillShell", "TaskOutput",
		"TaskStop", "Skill", "SlashCommand", "ToolSearch", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "LSP",
		"EnterWorktree", "ListMcpResources", "ReadMcpResource", "Monitor", "CronCreate", "CronDelete", "CronList",
	},
	Settings: []string{".claude/**", ".mcp.json"}, Own: Own,
}

// Steering are globs of the texts in a project, in addition to its settings, that Claude obeys.
var Steering = []string{"CLAUDE.md", "CLAUDE.local.md", "**/CLAUDE.md", "**/CLAUDE.local.md", "**/.claude/**"}

// Own are globs of the files in its settings folder that Claude writes itself.
var Own = []string{
	".claude/worktrees/**", ".claude/agent-memory/**", ".claude/agent-memory-local/**", ".claude/plans/**",
	".claude/*.lock",
}

// Headless reports whether the environment belongs to a Claude without a screen
// (-p). Such a Claude claims that it can ask a person, but answers "cancel" itself.
func Headless(getenv func(string) string) bool {
	return strings.HasPrefix(getenv("CLAUDE_CODE_ENTRYPOINT"), "sdk-")
}

// ChatIn returns the transcript of the chat that Claude has in a folder, see [OfChat].
func ChatIn(dir string, since time.Time, getenv func(string) string) string {
	return OfChat(getenv("CLAUDE_CONFIG_DIR"), getenv("HOME"), dir, since)
}

// data are the files and folders in Claude's own folder that are neither
// settings nor memory nor programs, apart from the transcripts.
var data = []string{
	"todos", "tasks", "plans", "shell-snapshots", "session-env", "sessions", "file-history", "debug",
	"statsig", "telemetry", "cache", "paste-cache", "image-cache", "backups", "history.jsonl", "stats-cache.json",
	credentialsFile,
}

const credentialsFile = ".credentials.json"

// Folder returns Claude's own folder, and the paths in it that its sessions in dir may
// write to, which are not a person's settings. The first is the folder of their
// transcripts; no other in its parent is theirs. Memory are read-only folders in it.
// refreshes means that it renews its credentials in its own folder, where it creates
// files for that.
func Folder(getenv func(string) string, dir string) (own string, writable, memory []string, refreshes bool) {
	if own = getenv("CLAUDE_CONFIG_DIR"); own == "" {
		own = filepath.Join(getenv("HOME"), ".claude")
	}
	transcripts := filepath.Join(own, "projects", notInName().ReplaceAllString(dir, "-"))
	writable = []string{transcripts}
	for _, name := range data {
		writable = append(writable, filepath.Join(own, name))
	}
	_, err := os.Stat(filepath.Join(own, credentialsFile))
	return own, writable, []string{filepath.Join(transcripts, "memory")}, err == nil
}

// Locks returns a folder for the locks that Claude holds while it renews its credentials.
// Sandboxes share only these locks, so that the renewals do not overlap. Variable names the
// folder to Claude, which then looks for its credentials file there, too. dir is "" if no
// credentials are renewed.
func Locks(getenv func(string) string) (dir, credentials, variable string) {
	variable = "CLAUDE_SECURESTORAGE_CONFIG_DIR"
	own, _, _, refreshes := Folder(getenv, "")
	if !refreshes || getenv(variable) != "" {
		return "", "", variable
	}
	return filepath.Join(own, "ralph"), filepath.Join(own, credentialsFile), variable
}

// Credentials names Claude's existing credentials; "" if there are none. Only a session
// can tell whether they are valid.
func Credentials(getenv func(string) string) string {
	for _, name := range Profile.Credentials {
		if name[0] != '~' && getenv(name) != "" {
			return name + " is set"
		}
	}
	home, err := os.UserHomeDir()
	file := filepath.Join(home, ".claude", credentialsFile)
	if _, serr := os.Stat(file); err == nil && serr == nil {
		return "claude is logged in (" + file + ")"
	}
	return ""
}

// AllowsByItself returns Claude's settings file in a project that allows
// something without asking; "" if none does.
func AllowsByItself(root string) string {
	for _, name := range []string{"settings.json", "settings.local.json"} {
		path := filepath.Join(root, ".claude", name)
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it does not exist, or the agent cannot read it either
		}
		var settings struct{ Permissions struct{ Allow []string } }
		if json.Unmarshal(text, &settings) == nil && len(settings.Permissions.Allow) > 0 {
			return path
		}
	}
	return ""
}

// ForeignLoop returns the file of another loop in a project, which would prevent the
// agent from ending; "" if there is none.
func ForeignLoop(root string) string {
	path := filepath.Join(root, ".claude", "ralph-loop.local.md")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}
