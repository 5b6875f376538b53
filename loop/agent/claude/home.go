package claude

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ralph/internal/permission"
)

// Names of ralph's tools as the model sees them, and what stands before each: all but letters, digits, "_" and "-" of
// a tool's name becomes "_".
const (
	ToolPrefix   = "mcp__" + serverName + "__"
	SignalPrefix = ToolPrefix + "ralph_signal_"
	StateTool    = ToolPrefix + "update_session_state"
	CommentTool  = ToolPrefix + "comment_on_task"
	AmendTool    = ToolPrefix + "propose_task_amendment"
)

// Asks reports whether the agent asks ralph in a permission mode; in the others it asks
// nobody.
func Asks(mode string) bool { return mode == "default" || mode == "acceptEdits" }

// Refusal says why the program would refuse to start: it uses no tool without asking as
// root. It is "" if it would not.
func Refusal(mode string, args []string, getenv func(string) string) string {
	const skip = "--dangerously-skip-permissions"
	if mode != "bypassPermissions" && !slices.Contains(args, skip) || os.Geteuid() != 0 || getenv("IS_SANDBOX") != "" {
		return ""
	}
	return "claude refuses to skip permissions as root (agent.permission_mode: bypassPermissions, or " + skip +
		" in agent.extra_args): run ralph as another user, or let the agent ask ralph (agent.permission_mode: default)"
}

// Tools are Claude's own, as rules of permissions know them.
var Tools = permission.Tools{
	Shell: "Bash", Edit: "Edit", Edits: []string{"Edit", "Write", "MultiEdit", "NotebookEdit"},
	Reads: []string{"Read", "Glob", "Grep"}, Fetch: "WebFetch",
	Settings: []string{".claude/settings*/**", ".claude/hooks/**", ".mcp.json"},
}

// Headless reports whether the environment is that of a Claude without a screen (-p): it
// says that it can ask a person, and then answers "cancel" itself.
func Headless(getenv func(string) string) bool {
	return strings.HasPrefix(getenv("CLAUDE_CODE_ENTRYPOINT"), "sdk-")
}

// ChatIn is the transcript of the chat that Claude has in a folder, see [OfChat].
func ChatIn(dir string, since time.Time, getenv func(string) string) string {
	return OfChat(getenv("CLAUDE_CONFIG_DIR"), getenv("HOME"), dir, since)
}

// Folders are the files and folders in which Claude keeps what is its own.
func Folders(getenv func(string) string) (paths []string) {
	if dir := getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		paths = append(paths, dir)
	}
	if home := getenv("HOME"); home != "" {
		paths = append(paths, filepath.Join(home, ".claude"), filepath.Join(home, ".claude.json"))
	}
	return paths
}

// HookSession is the session that a hook is asked for.
func HookSession(call []byte) (id string, err error) {
	var c struct {
		SessionID string `json:"session_id"`
	}
	err = json.Unmarshal(call, &c)
	return c.SessionID, err
}

// HookDenial is what a hook prints that keeps the agent from using a tool.
func HookDenial(why string) any {
	return map[string]any{"hookSpecificOutput": map[string]string{
		"hookEventName": editEvent, "permissionDecision": "deny", "permissionDecisionReason": why,
	}}
}

// editEvent is when the hook is asked.
const editEvent = "PreToolUse"

// What people do where the program, or its credentials, are missing.
const (
	Install    = "npm install -g @anthropic-ai/claude-code"
	HowToLogIn = "log in with `claude`, or set ANTHROPIC_API_KEY (a keychain cannot be seen from here)"
)

// credentials are the variables by which Claude is known to its servers.
var credentials = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK",
	"CLAUDE_CODE_USE_VERTEX",
}

// Credentials says what can be seen of Claude's; "" if none can. Whether they are valid
// only a session tells.
func Credentials(getenv func(string) string) string {
	for _, name := range credentials {
		if getenv(name) != "" {
			return name + " is set"
		}
	}
	home, err := os.UserHomeDir()
	file := filepath.Join(home, ".claude", ".credentials.json")
	if _, serr := os.Stat(file); err == nil && serr == nil {
		return "claude is logged in (" + file + ")"
	}
	return ""
}

// AllowsByItself is Claude's settings file in a project that allows something without
// asking; "" if none does.
func AllowsByItself(root string) string {
	for _, name := range []string{"settings.json", "settings.local.json"} {
		path := filepath.Join(root, ".claude", name)
		text, err := os.ReadFile(path)
		if err != nil {
			continue // there is none, or the agent cannot read it either
		}
		var settings struct{ Permissions struct{ Allow []string } }
		if json.Unmarshal(text, &settings) == nil && len(settings.Permissions.Allow) > 0 {
			return path
		}
	}
	return ""
}

// ForeignLoop is what another loop left behind in a project, which would keep the agent
// from ending; "" for nothing.
func ForeignLoop(root string) string {
	path := filepath.Join(root, ".claude", "ralph-loop.local.md")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}
