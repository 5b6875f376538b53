package claude

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"ralph/loop/agent"
)

// passed are the variables that an agent gets from ralph's own environment; a
// name that ends in "*" stands for all that begin so. Anything else, such as
// tokens of other services, it gets by configuration (agent.env) only.
var passed = strings.Fields(`
	PATH HOME USER LOGNAME SHELL LANG LANGUAGE LC_* TERM COLORTERM NO_COLOR TZ TMPDIR HOSTNAME CI XDG_* NIX_*
	SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES* USERPROFILE TEMP TMP

	HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy
	SSL_* REQUESTS_CA_BUNDLE CURL_CA_BUNDLE SSH_AUTH_SOCK
	GIT_AUTHOR_* GIT_COMMITTER_* GIT_SSH GIT_SSH_COMMAND GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM
	DOCKER_HOST DOCKER_CONFIG DOCKER_BUILDKIT

	CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS LD_LIBRARY_PATH DYLD_LIBRARY_PATH LIBRARY_PATH CPATH
	PKG_CONFIG_* CMAKE_* MAKEFLAGS
	GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOTMPDIR GOFLAGS GOENV GOPROXY GONOPROXY GOSUMDB GONOSUMDB GOPRIVATE GOINSECURE
	GOTOOLCHAIN GOEXPERIMENT GOOS GOARCH GOAMD64 GODEBUG GOMAXPROCS CGO_*
	NODE_* NPM_CONFIG_* npm_config_* NVM_* FNM_* VOLTA_* PNPM_HOME YARN_* COREPACK_* BUN_INSTALL DENO_*
	PLAYWRIGHT_* PUPPETEER_*
	PYTHON* PYENV_* VIRTUAL_ENV CONDA_* PIP_* PIPX_* UV_* POETRY_* RUST* CARGO_*
	JAVA_* JDK_* MAVEN_* M2_HOME GRADLE_* ANDROID_* KOTLIN_* SBT_* DOTNET_* NUGET_*
	RUBY* GEM_* BUNDLE_* RBENV_* PHP_* COMPOSER_* ASDF_* MISE_* HOMEBREW_*
`)

// agentOwn are the variables that configure the agent itself: its credentials,
// its gateways and its telemetry.
var agentOwn = strings.Fields(`
	ANTHROPIC_* CLAUDE_* AWS_* GOOGLE_* GCLOUD_* CLOUDSDK_* CLOUD_ML_REGION VERTEX_* AZURE_* OTEL_* TRACEPARENT TRACESTATE
	MCP_* DISABLE_* ENABLE_* FORCE_PROMPT_CACHING_* MAX_THINKING_TOKENS MAX_MCP_OUTPUT_TOKENS
	API_TIMEOUT_MS USE_BUILTIN_RIPGREP
	BASH_DEFAULT_TIMEOUT_MS BASH_MAX_TIMEOUT_MS BASH_MAX_OUTPUT_LENGTH
`)

// leftovers are what an agent sets for its children. A ralph that was started
// by an agent does not pass them on, or the agent takes itself for a child.
var leftovers = strings.Fields(`
	CLAUDECODE CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SSE_PORT CLAUDE_CODE_SESSION_ID CLAUDE_CODE_CHILD_SESSION
	CLAUDE_CODE_EXECPATH CLAUDE_CODE_PARENT_* CLAUDE_CODE_REMOTE* CLAUDE_AGENT_SDK_* CLAUDE_PROJECT_DIR
	CLAUDE_PLUGIN_* CLAUDE_ENV_FILE CLAUDE_EFFORT CLAUDE_CODE_TASK_LIST_ID CLAUDE_CODE_AGENT_* CLAUDE_CODE_TEAM_*
`)

// secrets are parts of names that a build tool gives to passwords.
var secrets = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "__AUTH", ":_AUTH", "API_KEY", "APIKEY"}

// settings are what a session without a person needs. MCP tools may take long:
// one of them waits for a person's permission.
var settings = map[string]string{
	"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
	"MCP_TIMEOUT":                          "60000",   // ms, for the server to start
	"MCP_TOOL_TIMEOUT":                     "3600000", // ms, for a call
}

// Environment is the whole environment of an agent, sorted and each name once:
// of environ what is on the allow-list, then what ralph sets, then added, which
// is configured (agent.env) and wins over both. Nothing of ralph's own is passed
// on but what marks the session's processes (unattended, "The agent's
// processes"), which added cannot change.
func Environment(environ []string, added map[string]string, a agent.Assignment) []string {
	env := map[string]string{}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && passes(name) {
			env[name] = value
		}
	}
	maps.Copy(env, settings)
	maps.Copy(env, added)
	env["RALPH_TASK_ID"] = strconv.FormatInt(a.TaskID, 10)
	env["RALPH_SESSION_ID"] = a.SessionID

	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// marker is the entry of the environment that all processes of a session have.
func marker(a agent.Assignment) string { return "RALPH_SESSION_ID=" + a.SessionID }

// passes tells whether an agent gets a variable of ralph's own environment.
func passes(name string) bool {
	switch {
	case matches(leftovers, name):
		return false
	case matches(agentOwn, name):
		return true
	case !matches(passed, name):
		return false
	}
	upper := strings.ToUpper(name)
	return !slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(upper, s) })
}

// matches tells whether a name is on a list.
func matches(list []string, name string) bool {
	return slices.ContainsFunc(list, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, prefix)
	})
}
