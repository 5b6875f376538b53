package claude

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ralph"
	"ralph/internal/pipe"
	"ralph/loop/agent"
)

// serverName is the name of ralph's MCP server in the agent's configuration.
const serverName = "ralph"

// permissionTool is the agent's name for the tool of ralph's server that
// answers its requests for permission.
const permissionTool = ToolPrefix + "ralph_permission"

// disallowed are the tools that make no sense without a person, or after
// the end of the session (unattended, "Launching the agent").
const disallowed = "AskUserQuestion,CronCreate,CronDelete,CronList,EnterPlanMode,ExitPlanMode," +
	"Monitor,ScheduleWakeup,Workflow"

// since lists the flags that some versions in use lack, with the first version that has
// them. An unknown version gets all of them.
var since = map[string][3]int{
	"--max-budget-usd":       {2, 0, 28},
	"--replay-user-messages": {2, 0, 5}, // the flag is older, but isReplay is not
}

// Arguments returns the arguments for one session, without the program: the flags that ralph
// needs, then o.ExtraArgs. version is the program's answer to --version, "" if unknown.
func Arguments(version string, o Options, a agent.Assignment) []string {
	args := []string{
		"-p", "--verbose",
		"--output-format", "stream-json", "--input-format", "stream-json",
		"--strict-mcp-config", "--mcp-config", serversArgument(o, a),
		"--session-id", a.SessionID,
		"--setting-sources", "project,local", // a user's own hooks and plugins stay out
		"--permission-mode", o.PermissionMode,
		"--allowedTools", "mcp__" + serverName,
		"--disallowedTools", disallowed,
	}
	add := func(flag string, values ...string) {
		if has(version, flag) {
			args = append(append(args, flag), values...)
		}
	}
	add("--replay-user-messages")
	if o.AsksRalph {
		add("--permission-prompt-tool", permissionTool)
	}
	if a.Channel.Unreported != "" {
		add("--settings", hookSettings(a.Channel.Unreported))
	}
	if a.Model != "" {
		add("--model", a.Model)
	}
	if a.Effort != "" {
		add("--effort", a.Effort)
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

// unreported is the message to an agent that changes a file too early.
const unreported = "Report your phase before you change files: call " + StateTool +
	` with {"state": "implementing"}, then try again.`

// hookSettings returns settings that prevent the agent from changing files while a file
// exists. The agent could remove that file, just as it could report any phase.
func hookSettings(path string) string {
	type hook struct {
		Type    string `json:"type"`
		Command string `json:"command"`
	}
	type matcher struct {
		Matcher string `json:"matcher"`
		Hooks   []hook `json:"hooks"`
	}
	denial := jsonOf(map[string]any{"hookSpecificOutput": map[string]string{
		"hookEventName": editEvent, "permissionDecision": "deny", "permissionDecisionReason": unreported,
	}})
	command := "[ ! -e " + quoted(path) + " ] || printf %s " + quoted(denial)
	return jsonOf(map[string]any{"hooks": map[string][]matcher{
		editEvent: {{Matcher: editTools, Hooks: []hook{{"command", command}}}},
	}})
}

// editEvent is the hook's event.
const editEvent = "PreToolUse"

// quoted quotes a word for a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// jsonOf marshals texts, and lists and maps of them.
func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts always marshal
	}
	return string(b)
}

// has reports whether a version supports a flag.
func has(version, flag string) bool {
	first, ok := since[flag]
	have, known := parseVersion(version)
	return !ok || !known || slices.Compare(have[:], first[:]) >= 0
}

// parseVersion parses "2.1.197 (Claude Code)".
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

// serversArgument returns the configuration of servers itself or, if it has a ticket, the file that it is read from:
// other programs can read arguments.
func serversArgument(o Options, a agent.Assignment) string {
	if a.Channel.Ticket == "" {
		return mcpConfig(o, a)
	}
	return serversFile(a)
}

// serversFile returns the file with the list of servers, which the agent reads once.
func serversFile(a agent.Assignment) string {
	return filepath.Join(filepath.Dir(a.Channel.Socket), "servers.json")
}

// mcpConfig returns the configuration that makes the agent connect to ralph's MCP server
// for this session, and wait for the server before it begins.
func mcpConfig(o Options, a agent.Assignment) string {
	type server struct {
		Type       string            `json:"type"`
		Command    string            `json:"command"`
		Args       []string          `json:"args"`
		Env        map[string]string `json:"env"`
		AlwaysLoad bool              `json:"alwaysLoad"`
	}
	env := map[string]string{pipe.Variable: a.Channel.Socket, "RALPH_SESSION_ID": a.SessionID}
	if a.Channel.Ticket != "" {
		env[pipe.Ticket] = a.Channel.Ticket
	}
	servers := map[string]any{serverName: server{
		Type: "stdio", Command: o.MCPCommand[0], Args: o.MCPCommand[1:], AlwaysLoad: true, Env: env,
	}}
	for _, s := range a.Servers {
		servers[s.Name] = s.Entry() // it fills in variables itself
	}
	return jsonOf(map[string]any{"mcpServers": servers})
}

// toolNames returns the model's names of the tools that close a session.
func toolNames(a agent.Assignment) []string {
	if names := a.Own(); len(names) > 0 {
		for i, name := range names {
			names[i] = Profile.Tool(name)
		}
		return names
	}
	var names []string
	for _, v := range ralph.Verbs {
		if v.Closes() {
			names = append(names, SignalPrefix+string(v))
		}
	}
	return names
}

// Program returns the name of the program that a command starts Claude
// with; "" if it is ralph itself, which stands in for it.
func Program(command []string) string {
	if len(command) == 0 || filepath.Base(command[0]) == "ralph" {
		return ""
	}
	return filepath.Base(command[0])
}
