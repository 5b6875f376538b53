package claude

import (
	"encoding/json"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"ralph/loop/agent"

	"ralph"
)

// serverName is what ralph's MCP server is called in the agent's configuration.
const serverName = "ralph"

// permissionTool is the tool of ralph's server that answers the agent's questions
// for permission, as the agent knows it.
const permissionTool = ToolPrefix + "ralph_permission"

// disallowed are the tools that make no sense without a person, or after the
// end of the session (unattended, "Launching the agent").
const disallowed = "AskUserQuestion,CronCreate,CronDelete,CronList,EnterPlanMode,ExitPlanMode," +
	"Monitor,ScheduleWakeup,Workflow"

// since lists the flags that not every version in use has, with the first
// version that does. A version that is not known gets all of them.
var since = map[string][3]int{
	"--max-budget-usd":       {2, 0, 28},
	"--replay-user-messages": {2, 0, 5}, // the flag is older, the mark isReplay is not
}

// Arguments are those for one session, the program not among them: the flags
// that ralph cannot do without, then o.ExtraArgs. version is what the program
// answers to --version, "" if that is not known.
func Arguments(version string, o Options, a agent.Assignment) []string {
	args := []string{
		"-p", "--verbose",
		"--output-format", "stream-json", "--input-format", "stream-json",
		"--strict-mcp-config", "--mcp-config", mcpConfig(o, a),
		"--session-id", a.SessionID,
		"--setting-sources", strings.Join(o.SettingSources, ","), // "" reads none
		"--permission-mode", o.PermissionMode,
		"--allowedTools", strings.Join(append([]string{"mcp__" + serverName}, o.AllowedTools...), ","),
		"--disallowedTools", strings.Join(append([]string{disallowed}, o.DisallowedTools...), ","),
	}
	add := func(flag string, values ...string) {
		if has(version, flag) {
			args = append(append(args, flag), values...)
		}
	}
	add("--replay-user-messages")
	if o.Permissions != "" {
		add("--permission-prompt-tool", permissionTool)
	}
	if len(o.EditHook) > 0 {
		add("--settings", hookSettings(o.EditHook))
	}
	if a.Model != "" {
		add("--model", a.Model)
	}
	if a.MaxTurns > 0 {
		add("--max-turns", strconv.Itoa(a.MaxTurns))
	}
	if a.MaxCost > 0 {
		add("--max-budget-usd", strconv.FormatFloat(a.MaxCost, 'f', -1, 64))
	}
	return append(args, o.ExtraArgs...)
}

// editTools are the tools that change files, as Claude's hooks match them.
const editTools = "Edit|Write|MultiEdit|NotebookEdit"

// hookSettings are settings that have a command asked before files are changed.
func hookSettings(command []string) string {
	type hook struct {
		Type    string `json:"type"`
		Command string `json:"command"`
	}
	type matcher struct {
		Matcher string `json:"matcher"`
		Hooks   []hook `json:"hooks"`
	}
	quoted := make([]string, len(command))
	for i, c := range command {
		quoted[i] = "'" + strings.ReplaceAll(c, "'", `'\''`) + "'"
	}
	b, err := json.Marshal(map[string]any{"hooks": map[string][]matcher{
		editEvent: {{Matcher: editTools, Hooks: []hook{{"command", strings.Join(quoted, " ")}}}},
	}})
	if err != nil {
		panic(err) // texts always marshal
	}
	return string(b)
}

// has tells whether a version knows a flag.
func has(version, flag string) bool {
	first, ok := since[flag]
	have, known := parseVersion(version)
	return !ok || !known || slices.Compare(have[:], first[:]) >= 0
}

// parseVersion reads "2.1.197 (Claude Code)".
func parseVersion(s string) (v [3]int, ok bool) {
	number, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	parts := strings.Split(number, ".")
	if len(parts) != len(v) {
		return v, false
	}
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil {
			return v, false
		}
		v[i] = n
	}
	return v, true
}

// mcpConfig is the configuration that has the agent start ralph's MCP server
// for this session, and wait for it before it begins.
func mcpConfig(o Options, a agent.Assignment) string {
	type server struct {
		Type       string            `json:"type"`
		Command    string            `json:"command"`
		Args       []string          `json:"args"`
		Env        map[string]string `json:"env"`
		AlwaysLoad bool              `json:"alwaysLoad"`
	}
	command := o.MCPCommand
	env := map[string]string{
		"RALPH_TASK_ID":    strconv.FormatInt(a.TaskID, 10),
		"RALPH_SESSION_ID": a.SessionID,
		"RALPH_DB_PATH":    o.Database,
		"RALPH_DISCIPLINE": a.Discipline,
	}
	if o.Permissions != "" {
		env["RALPH_PERMISSIONS"] = o.Permissions
	}
	if runtime.GOOS != "windows" {
		// The agent keeps the server's standard error to itself, and that is where
		// it stands why the server does not start.
		env["RALPH_MCP_STDERR"] = mcpLog(a)
		command = append([]string{"/bin/sh", "-c", `exec "$@" 2>>"$RALPH_MCP_STDERR"`, serverName}, command...)
	}
	b, err := json.Marshal(map[string]any{"mcpServers": map[string]server{serverName: {
		Type: "stdio", Command: command[0], Args: command[1:], Env: env, AlwaysLoad: true,
	}}})
	if err != nil {
		panic(err) // strings and a bool always marshal
	}
	return string(b)
}

// toolNames are the names under which the model sees the signals: all but
// letters, digits, "_" and "-" of a tool's name becomes "_".
func toolNames() []string {
	names := make([]string, len(ralph.Verbs))
	for i, v := range ralph.Verbs {
		names[i] = SignalPrefix + string(v)
	}
	return names
}
