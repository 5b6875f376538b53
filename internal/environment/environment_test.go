package environment_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph/internal/environment"
)

func TestOf(t *testing.T) {
	outer := []string{
		"PATH=/bin", "HOME=/h", "GITHUB_TOKEN=a", "DATABASE_URL=b", "AWS_SECRET_ACCESS_KEY=c", "CARGO_REGISTRY_TOKEN=d",
		"RALPH_SESSION_ID=e", "RALPH_DATABASE=postgres://a:b@c/d", "ACME_KEY=f", "ACME_LEFT=g", "CLOUD_KEY=h", "no entry", "=C:=x", "GOFLAGS=-v",
	}
	acme := &environment.Own{
		Account: []string{"ACME_*"}, If: map[string][]string{"ACME_CLOUD": {"CLOUD_*"}}, Left: []string{"ACME_LEFT"},
	}
	for _, tt := range []struct {
		name  string
		added map[string]string
		own   *environment.Own
		want  string
	}{
		{"a check has what is on the list", nil, nil, "GOFLAGS=-v HOME=/h PATH=/bin"},
		{"never the database's URL and the forge's token", map[string]string{"RALPH_DATABASE": "postgres://e", "RALPH_FORGE_TOKEN": "t"}, &environment.Own{Account: []string{"RALPH_*"}}, "GOFLAGS=-v HOME=/h PATH=/bin"},
		{"and what is added", map[string]string{"DATABASE_URL": "b", "PATH": "/mine", "RALPH_X": "1", "RALPH_TASK_ID": "2"}, nil, "DATABASE_URL=b GOFLAGS=-v HOME=/h PATH=/mine RALPH_X=1"},
		{"an agent has its account's too", nil, acme, "ACME_KEY=f GOFLAGS=-v HOME=/h PATH=/bin"},
		{"and its cloud's", map[string]string{"ACME_CLOUD": "1"}, acme, "ACME_CLOUD=1 ACME_KEY=f CLOUD_KEY=h GOFLAGS=-v HOME=/h PATH=/bin"},
		{"if that is on", map[string]string{"ACME_CLOUD": "false"}, acme, "ACME_CLOUD=false ACME_KEY=f GOFLAGS=-v HOME=/h PATH=/bin"},
	} {
		if diff := cmp.Diff(tt.want, strings.Join(environment.Of(outer, tt.added, tt.own), " ")); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}

// TestThePageHasEveryVariable: only its table tells who gets which variable.
func TestThePageHasEveryVariable(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "sandbox.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range environment.Variables {
		if row := "| " + g.About + " | `" + strings.Join(g.Names, "` `") + "` |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/sandbox.md lacks\n%s", row)
		}
	}
}
