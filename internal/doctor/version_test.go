package doctor

import "testing"

func TestCompared(t *testing.T) {
	for _, tt := range []struct{ version, tried, want string }{
		{"2.1.197 (Claude Code)", "2.1.197", ""},
		{"codex-cli 0.170.0", "0.169.0", "; ralph was tried with the older 0.169.0"},
		{"0.9", "0.10.1", "; ralph was tried with the newer 0.10.1"},
		{"nightly", "0.10.1", ""},
		{"1.2.3", "", ""},
	} {
		if got := compared(tt.version, tt.tried); got != tt.want {
			t.Errorf("%q, tried with %q: %q", tt.version, tt.tried, got)
		}
	}
}
