package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestDeny adds rules to a ralph.yaml, and leaves the rest alone.
func TestDeny(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		want []string
		keep string // a line that stays
	}{
		"empty":            {"", []string{"Edit(a/**)"}, ""},
		"no permissions":   {"# mine\nverify: [make]\n", []string{"Edit(a/**)"}, "# mine\n"},
		"no final newline": {"verify: [make]", []string{"Edit(a/**)"}, "verify: [make]\n"},
		"other rules":      {"permissions:\n  # why\n  allow: [\"Bash(ls)\"]\n", []string{"Edit(a/**)"}, "# why\n"},
		"a block":          {"permissions:\n  deny: # why\n    - \"Bash(x)\"\nparallel: 2 # two\n", []string{"Bash(x)", "Edit(a/**)"}, "parallel: 2 # two\n"},
		"flow":             {"permissions: {deny: [\"Bash(x)\"]} # all\nparallel: 2\n", []string{"Bash(x)", "Edit(a/**)"}, "parallel: 2\n"},
		"a flow list":      {"permissions:\n  deny: [\"Bash(x)\"]\n", []string{"Bash(x)", "Edit(a/**)"}, ""},
		"an empty list":    {"permissions:\n  deny: []\n", []string{"Edit(a/**)"}, ""},
		"there already":    {"permissions:\n  deny: ['Edit(a/**)']\n", []string{"Edit(a/**)"}, "deny: ['Edit(a/**)']"},
	} {
		got, err := Deny([]byte(tt.file), []string{"Edit(a/**)"})
		var read struct{ Permissions struct{ Deny []string } }
		if err == nil {
			err = yaml.Unmarshal(got, &read)
		}
		if err != nil && !strings.Contains(err.Error(), "unknown field") || !slices.Equal(read.Permissions.Deny, tt.want) ||
			!strings.Contains(string(got), tt.keep) {
			t.Errorf("%s: %v, %v\n%s", name, err, read.Permissions.Deny, got)
		}
	}
	if got, err := Deny([]byte("permissions:\nparallel: 2\n"), []string{"Edit(a)"}); err == nil {
		t.Errorf("an empty key is changed to %s", got)
	}
}
