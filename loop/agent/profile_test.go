package agent_test

import (
	"testing"

	"ralph/loop/agent"
)

func TestOwn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		home, variable, env, value, path, want string
	}{
		{"~/.codex", "CODEX_HOME", "", "", "~/.codex/auth.json", "~/.codex/auth.json"},
		{"~/.codex", "CODEX_HOME", "CODEX_HOME", "/c", "~/.codex/auth.json", "/c/auth.json"},
		{"~/.codex", "CODEX_HOME", "CODEX_HOME", "/c", "~/.codex", "/c"},
		{"~/.codex", "CODEX_HOME", "CODEX_HOME", "c", "~/.codex", "~/.codex"}, // of an unknown folder
		{"~/.gemini", "G/.gemini", "G", "/g", "~/.gemini/tmp", "/g/.gemini/tmp"},
		{"~/.local/share/opencode", "", "XDG_DATA_HOME", "/d", "~/.local/share/opencode/auth.json", "/d/opencode/auth.json"},
		{"~/.local/share/opencode", "", "XDG_STATE_HOME", "/s", "~/.local/state/opencode", "/s/opencode"},
		{"~/.local/share/opencode", "", "XDG_CONFIG_HOME", "/e", "~/.config/opencode", "/e/opencode"},
		{"~/.local/share/opencode", "", "XDG_DATA_HOME", "/d", "~/.cache/opencode", "~/.cache/opencode"},
		{"", "", "", "", "~/.agent", "~/.agent"},
	} {
		p := agent.Profile{HomeVariable: tt.variable}
		if tt.home != "" {
			p.Home = []string{tt.home}
		}
		getenv := func(name string) string {
			if name != "" && name == tt.env {
				return tt.value
			}
			return ""
		}
		if got := p.Own(tt.path, getenv); got != tt.want {
			t.Errorf("%s with %s=%s is %s, want %s", tt.path, tt.env, tt.value, got, tt.want)
		}
	}
}
