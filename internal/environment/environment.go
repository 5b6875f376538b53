// Package environment selects the variables of ralph's own environment for the processes that work for a project: the
// agent, and the commands that check its work. It is pure.
//
// One list applies to all of them, plus the configured ones. Credentials of an agent's own account, and of the cloud
// that it is configured for, reach only the agent.
package environment

import (
	"maps"
	"slices"
	"strings"
)

// A Group is a group of variables with one purpose. A name that ends in "*" is a prefix.
type Group struct {
	About string // for docs/sandbox.md
	Names []string
}

// Variables lists everything that is passed on. Anything else, such as tokens of other services,
// requires agent.env_pass or agent.env.
var Variables = []Group{
	{"the system and the person", strings.Fields(`PATH HOME USER LOGNAME SHELL LANG LANGUAGE LC_* TERM COLORTERM NO_COLOR
		TZ TMPDIR HOSTNAME CI XDG_* NIX_* SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT APPDATA LOCALAPPDATA PROGRAMDATA
		PROGRAMFILES* USERPROFILE TEMP TMP`)},
	{"the network", strings.Fields(`HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy
		SSL_* REQUESTS_CA_BUNDLE CURL_CA_BUNDLE SSH_AUTH_SOCK`)},
	{"git", strings.Fields(`GIT_AUTHOR_* GIT_COMMITTER_* GIT_SSH GIT_SSH_COMMAND GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM
		GIT_CONFIG_NOSYSTEM`)},
	{"containers", strings.Fields(`DOCKER_HOST DOCKER_CONFIG DOCKER_BUILDKIT`)},
	{"compilers", strings.Fields(`CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS LD_LIBRARY_PATH DYLD_LIBRARY_PATH LIBRARY_PATH
		CPATH PKG_CONFIG_* CMAKE_* MAKEFLAGS`)},
	{"Go", strings.Fields(`GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOTMPDIR GOFLAGS GOENV GOPROXY GONOPROXY GOSUMDB
		GONOSUMDB GOPRIVATE GOINSECURE GOTOOLCHAIN GOEXPERIMENT GOOS GOARCH GOAMD64 GODEBUG GOMAXPROCS CGO_*`)},
	{"JavaScript", strings.Fields(`NODE_* NPM_CONFIG_* npm_config_* NVM_* FNM_* VOLTA_* PNPM_HOME YARN_* COREPACK_*
		BUN_INSTALL DENO_* PLAYWRIGHT_* PUPPETEER_*`)},
	{"Python and Rust", strings.Fields(`PYTHON* PYENV_* VIRTUAL_ENV CONDA_* PIP_* PIPX_* UV_* POETRY_* RUST* CARGO_*`)},
	{"Java, .NET and others", strings.Fields(`JAVA_* JDK_* MAVEN_* M2_HOME GRADLE_* ANDROID_* KOTLIN_* SBT_* DOTNET_*
		NUGET_* RUBY* GEM_* BUNDLE_* RBENV_* PHP_* COMPOSER_* ASDF_* MISE_* HOMEBREW_*`)},
}

// An Own lists the variables of one kind of agent.
type Own struct {
	Account []string            // credentials, gateways and settings
	If      map[string][]string // passed if the key variable is set: a cloud, telemetry
	Left    []string            // set by the agent for its children, and never passed
}

// Of returns the environment of an agent, or with own nil that of a verification command: the
// listed variables of outer, overridden by added. It is sorted and has each name once. Ralph's own
// variables are not passed, and added cannot change the markers of a session's processes.
func Of(outer []string, added map[string]string, own *Own) []string {
	env, all := map[string]string{}, map[string]string{}
	for _, entry := range outer {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			all[name] = value
		}
	}
	if own == nil {
		own = &Own{}
	}
	names := slices.Clone(own.Account)
	for name, more := range own.If {
		if on(all[name]) || on(added[name]) {
			names = append(names, more...)
		}
	}
	for name, value := range all {
		if Matches(own.Left, name) || !Matches(names, name) && !passes(name) {
			continue
		}
		env[name] = value
	}
	maps.Copy(env, added)
	list := make([]string, 0, len(env))
	for name, value := range env {
		if !slices.Contains(markers, name) && !slices.Contains(never, name) {
			list = append(list, name+"="+value)
		}
	}
	slices.Sort(list)
	return list
}

// markers identify the session of a process.
var markers = []string{"RALPH_SESSION_ID", "RALPH_TASK_ID", "RALPH_CHANNEL", "RALPH_TICKET"}

// never lists variables that no agent and no check gets, even if configured: the URL of the queue's database, with its
// password, and the token of the forge.
var never = []string{"RALPH_DATABASE", "RALPH_FORGE_TOKEN", "RALPH_FORGE_HOOK_SECRET"}

// on reports whether a switch variable is on.
func on(value string) bool {
	return !slices.Contains([]string{"", "0", "false", "no", "off"}, strings.ToLower(value))
}

// passwords are name parts of password variables of tools on the list.
var passwords = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "__AUTH", ":_AUTH", "API_KEY", "APIKEY"}

// passes reports whether a variable is on the list.
func passes(name string) bool {
	upper := strings.ToUpper(name)
	return slices.ContainsFunc(Variables, func(g Group) bool { return Matches(g.Names, name) }) &&
		!slices.ContainsFunc(passwords, func(s string) bool { return strings.Contains(upper, s) })
}

// Matches reports whether a name is on a list.
func Matches(list []string, name string) bool {
	return slices.ContainsFunc(list, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, prefix)
	})
}
