package process_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ralph/internal/environment"
	"ralph/loop/agent"
	"ralph/loop/agent/process"
)

// TestAccounts: another key, address or person is another account; new tokens of the same person are not.
func TestAccounts(t *testing.T) {
	p := &agent.Profile{
		Variables: environment.Own{Account: []string{"MINE_*"}}, AccountID: "~/.mine/auth.json tokens.account",
		Home: []string{"~/.mine"}, HomeVariable: "MINE_HOME",
	}
	home, elsewhere := t.TempDir(), t.TempDir()
	account := func(login string, environ ...string) string {
		for _, path := range []string{filepath.Join(home, ".mine"), elsewhere} {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(home, ".mine", "auth.json"), []byte(login), 0o600); err != nil {
			t.Fatal(err)
		}
		o := process.Options{Environ: append([]string{"HOME=" + home, "MINE_API_KEY=1", "OTHER_KEY=1"}, environ...)}
		return o.Account(p)
	}
	const mine = `{"tokens":{"account":"me","access":"1"}}`
	first := account(mine)
	for _, tt := range []struct {
		name, login, variable string
		same                  bool
	}{
		{"the same", mine, "", true},
		{"a new token", `{"tokens":{"account":"me","access":"2"}}`, "", true},
		{"another variable", mine, "MINE_MODEL=2", true},
		{"a variable that does not reach it", mine, "OTHER_TOKEN=2", true},
		{"another login", `{"tokens":{"account":"you"}}`, "", false},
		{"logged out", `[]`, "", false},
		{"another key", mine, "MINE_API_KEY=2", false},
		{"another service", mine, "MINE_BASE_URL=x", false},
		{"another home", mine, "MINE_HOME=" + elsewhere, false},
	} {
		its := account(tt.login, tt.variable)
		if same := its == first; same != tt.same || strings.Contains(its, "me") {
			t.Errorf("%s: the same account: %t", tt.name, same)
		}
	}
}
