package claude

import (
	"strings"

	"ralph/internal/environment"
)

// Variables are the variables of ralph's environment that concern Claude.
var Variables = environment.Own{
	Account: strings.Fields(`
		ANTHROPIC_* CLAUDE_* DISABLE_* ENABLE_* FORCE_PROMPT_CACHING_* MAX_THINKING_TOKENS API_TIMEOUT_MS USE_BUILTIN_RIPGREP
		MCP_TIMEOUT MCP_TOOL_TIMEOUT MCP_CONNECTION_NONBLOCKING MCP_SERVER_CONNECTION_BATCH_SIZE MAX_MCP_OUTPUT_TOKENS
		BASH_DEFAULT_TIMEOUT_MS BASH_MAX_TIMEOUT_MS BASH_MAX_OUTPUT_LENGTH`),
	If: map[string][]string{
		"CLAUDE_CODE_USE_BEDROCK":      {"AWS_*"},
		"CLAUDE_CODE_USE_VERTEX":       strings.Fields("GOOGLE_* GCLOUD_* CLOUDSDK_* CLOUD_ML_REGION VERTEX_*"),
		"CLAUDE_CODE_USE_FOUNDRY":      {"AZURE_*"},
		"CLAUDE_CODE_ENABLE_TELEMETRY": strings.Fields("OTEL_* TRACEPARENT TRACESTATE"),
	},
	Left: strings.Fields(`
		CLAUDECODE CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SSE_PORT CLAUDE_CODE_SESSION_ID CLAUDE_CODE_CHILD_SESSION
		CLAUDE_CODE_EXECPATH CLAUDE_CODE_PARENT_* CLAUDE_CODE_REMOTE* CLAUDE_AGENT_SDK_* CLAUDE_PROJECT_DIR
		CLAUDE_PLUGIN_* CLAUDE_ENV_FILE CLAUDE_EFFORT CLAUDE_CODE_TASK_LIST_ID CLAUDE_CODE_AGENT_* CLAUDE_CODE_TEAM_*`),
}

// settings are variables that a session without a person needs. MCP calls
// may take long: one of them waits for a person's permission.
var settings = map[string]string{
	"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
	"MCP_TIMEOUT":                          "60000",   // ms, for the server to start
	"MCP_TOOL_TIMEOUT":                     "3600000", // ms, for a call
}
