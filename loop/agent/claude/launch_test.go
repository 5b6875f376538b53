package claude_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph/loop/agent"
	"ralph/loop/agent/claude"
	"ralph/loop/agent/process"
)

func TestArguments(t *testing.T) {
	task := agent.Assignment{
		SessionID: "S", TaskID: 7, Discipline: "backend", Model: "opus", Effort: "max", MaxTurns: 30, MaxCost: 2.5, LogDir: "/logs", Channel: agent.Channel{Socket: "/c/mcp"},
		Servers: []agent.Server{{Name: "db", Type: "stdio", Command: "db-mcp", Env: map[string]string{"URL": "${DB_URL}"}}},
	}
	options := claude.Options{
		Options:        process.Options{MCPCommand: []string{"/bin/ralph", "mcp"}},
		PermissionMode: "acceptEdits", ExtraArgs: []string{"--effort", "high"},
	}
	config := `{"mcpServers":{"ralph":{"type":"stdio","command":"/bin/ralph","args":["mcp"],` +
		`"env":{"RALPH_CHANNEL":"/c/mcp","RALPH_SESSION_ID":"S"},"alwaysLoad":true}}}`
	config = strings.Replace(config, `"ralph":`, `"db":{"args":[],"command":"db-mcp","env":{"URL":"${DB_URL}"},"type":"stdio"},"ralph":`, 1)
	always := []string{
		"-p", "--verbose", "--output-format", "stream-json", "--input-format", "stream-json",
		"--strict-mcp-config", "--mcp-config", config, "--session-id", "S",
		"--setting-sources", "project,local", "--permission-mode", "acceptEdits",
		"--allowedTools", "mcp__ralph",
		"--disallowedTools", "AskUserQuestion,CronCreate,CronDelete,CronList,EnterPlanMode,ExitPlanMode,Monitor,ScheduleWakeup,Workflow",
	}
	all := slices.Concat(always, []string{"--replay-user-messages", "--model", "opus", "--effort", "max", "--max-turns", "30", "--max-budget-usd", "2.5", "--effort", "high"})
	old := slices.Concat(always, []string{"--model", "opus", "--effort", "max", "--max-turns", "30", "--effort", "high"})
	tests := []struct {
		name, version string
		want          []string
	}{
		{"the version that was measured gets everything", "2.1.197 (Claude Code)", all},
		{"a later one too", "3.0.0", all},
		{"an unknown one too", "", all},
		{"and one that is no number", "nightly", all},
		{"an old one gets what it knows", "1.0.90 (Claude Code)", old},
		{"versions are compared by number", "2.0.5", slices.Delete(slices.Clone(all), len(all)-4, len(all)-2)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, claude.Arguments(tt.version, options, task)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("what is not limited is not mentioned", func(t *testing.T) {
		got := claude.Arguments("", options, agent.Assignment{SessionID: "S"})
		for _, flag := range []string{"--model", "--max-turns", "--max-budget-usd"} {
			if slices.Contains(got, flag) {
				t.Errorf("%s is among %q", flag, got)
			}
		}
	})
}

func TestEnvironment(t *testing.T) {
	task := agent.Assignment{SessionID: "S", TaskID: 7}
	always := []string{"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1", "MCP_TIMEOUT=60000", "MCP_TOOL_TIMEOUT=3600000", "RALPH_SESSION_ID=S", "RALPH_TASK_ID=7"}
	tests := []struct {
		name    string
		environ []string
		added   map[string]string
		want    []string // in addition to always
	}{
		{"the basics pass", []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "XDG_CACHE_HOME=/c", "EMPTY="}, nil, []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "XDG_CACHE_HOME=/c"}},
		{
			"the agent's own credentials pass",
			[]string{"ANTHROPIC_API_KEY=a", "CLAUDE_CODE_OAUTH_TOKEN=b"},
			nil,
			[]string{"ANTHROPIC_API_KEY=a", "CLAUDE_CODE_OAUTH_TOKEN=b"},
		},
		{
			"a cloud's do if the agent is configured for it",
			[]string{"AWS_PROFILE=a", "GOOGLE_APPLICATION_CREDENTIALS=b", "AZURE_TOKEN=c", "CLAUDE_CODE_USE_VERTEX=0"},
			map[string]string{"CLAUDE_CODE_USE_BEDROCK": "1"},
			[]string{"AWS_PROFILE=a", "CLAUDE_CODE_USE_BEDROCK=1", "CLAUDE_CODE_USE_VERTEX=0"},
		},
		{"and not otherwise", []string{"AWS_SECRET_ACCESS_KEY=a", "GOOGLE_API_KEY=b", "AZURE_TOKEN=c", "OTEL_EXPORTER_OTLP_HEADERS=d", "MCP_CLIENT_SECRET=e"}, nil, nil},
		{"other services' do not", []string{"GITHUB_TOKEN=a", "DATABASE_URL=b", "STRIPE_KEY=c", "SLACK_WEBHOOK=d"}, nil, nil},
		{"nor do those of build tools", []string{"CARGO_REGISTRY_TOKEN=a", "npm_config__auth=b", "npm_config_//r.example/:_authToken=c", "MAVEN_PASSWORD=d", "NPM_CONFIG_REGISTRY=e"}, nil, []string{"NPM_CONFIG_REGISTRY=e"}},
		{"what sounds secret and is none passes", []string{"SSH_AUTH_SOCK=/s", "GIT_AUTHOR_NAME=A"}, nil, []string{"SSH_AUTH_SOCK=/s", "GIT_AUTHOR_NAME=A"}},
		{"build tools' settings pass", []string{"GOFLAGS=-mod=mod", "CGO_CFLAGS=-O1", "JAVA_HOME=/j"}, nil, []string{"GOFLAGS=-mod=mod", "CGO_CFLAGS=-O1", "JAVA_HOME=/j"}},
		{"nothing of ralph's own passes", []string{"RALPH_DB_PATH=/db", "RALPH_WEBHOOK_SECRET=x", "RALPH_SESSION_ID=other", "RALPH_SUPERVISOR=1"}, nil, nil},
		{"an enclosing session's leftovers do not", []string{"CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_CODE_SESSION_ID=x", "CLAUDE_CODE_CHILD_SESSION=1", "CLAUDE_CODE_SSE_PORT=1", "CLAUDE_CODE_EXECPATH=/x", "CLAUDE_EFFORT=x", "AI_AGENT=x", "CLAUDE_CONFIG_DIR=/c"}, nil, []string{"CLAUDE_CONFIG_DIR=/c"}},
		{"what is configured is added", []string{"PATH=/bin"}, map[string]string{"GITHUB_TOKEN": "t", "PATH": "/mine"}, []string{"GITHUB_TOKEN=t", "PATH=/mine"}},
		{"but cannot change the marker", nil, map[string]string{"RALPH_SESSION_ID": "x"}, nil},
		{"what is no entry is left out", []string{"PATH", "=C:=x", ""}, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := slices.Sorted(slices.Values(slices.Concat(always, tt.want)))
			got := process.Environment(&claude.Profile, tt.environ, tt.added, task)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("configuration wins over the defaults", func(t *testing.T) {
		got := process.Environment(&claude.Profile, []string{"MCP_TIMEOUT=1"}, map[string]string{"MCP_TOOL_TIMEOUT": "2"}, task)
		if !slices.Contains(got, "MCP_TIMEOUT=60000") || !slices.Contains(got, "MCP_TOOL_TIMEOUT=2") || slices.Contains(got, "MCP_TIMEOUT=1") {
			t.Errorf("got %q", got)
		}
	})
}

func TestMessagesAreOneLineEach(t *testing.T) {
	line := claude.UserMessage("a\nb", "/cost")
	if strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") || !json.Valid([]byte(line)) {
		t.Errorf("got %q", line)
	}
	if got := heard(line); got != "a\nb+\n/cost" {
		t.Errorf("got %q: the CLI would run a text that begins with a slash", got)
	}
}
