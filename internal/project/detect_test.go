package project

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLikelyChecks is what `ralph init` takes for the tests of each kind of project.
func TestLikelyChecks(t *testing.T) {
	python := "python3"
	if _, err := exec.LookPath("python"); err == nil {
		python = "python"
	}
	const (
		script = `{"scripts": {"test": "jest"}}`
		module = "import unittest\n"
		pytest = " -m pytest -q --junitxml=.ralph/tests.xml"
	)
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"nothing", nil, ""},
		{"a readme", map[string]string{"README.md": "test: none\n"}, ""},
		{"go", map[string]string{"go.mod": "module x\n"}, "go test -json ./..."},
		{
			"a workspace of go",
			map[string]string{"go.work": "use ./a\n", "go.mod": "module x\n"},
			"go list -f '{{.Dir}}/...' -m | xargs go test -json",
		},
		{"rust", map[string]string{"Cargo.toml": ""}, "cargo test"},
		{"npm", map[string]string{"package.json": script}, "npm test"},
		{"pnpm", map[string]string{"package.json": script, "pnpm-lock.yaml": ""}, "pnpm test"},
		{"yarn", map[string]string{"package.json": script, "yarn.lock": ""}, "yarn test"},
		{"bun", map[string]string{"package.json": script, "bun.lock": ""}, "bun run test"},
		{"bun of before", map[string]string{"package.json": script, "bun.lockb": ""}, "bun run test"},
		{
			"node's own tests",
			map[string]string{"package.json": `{"scripts": {"test": "node --test"}}`},
			"npm test",
		},
		{
			"vitest",
			map[string]string{"package.json": `{"scripts": {"test": "vitest run"}}`},
			"npm test",
		},
		{
			"the placeholder of npm init",
			map[string]string{"package.json": `{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`},
			"",
		},
		{"no script", map[string]string{"package.json": `{"name": "x"}`}, ""},
		{"no JSON", map[string]string{"package.json": `{`}, ""},
		{
			"workspaces",
			map[string]string{"package.json": `{"workspaces": ["web"]}`},
			"npm test --workspaces --if-present",
		},
		{
			"workspaces with a script for all",
			map[string]string{"package.json": `{"workspaces": ["web"], "scripts": {"test": "turbo test"}}`},
			"npm test",
		},
		{
			"a placeholder, and a Makefile",
			map[string]string{"package.json": `{"name": "x"}`, "Makefile": "all:\n\ntest: all\n\tsh t.sh\n"},
			"make test",
		},
		{"workspaces of pnpm", map[string]string{"package.json": `{"name": "x"}`, "pnpm-workspace.yaml": ""}, "pnpm -r test"},
		{"deno", map[string]string{"deno.json": "{}"}, "deno test"},
		{"pytest", map[string]string{"pyproject.toml": "[tool.pytest.ini_options]\n"}, python + pytest},
		{"unittest", map[string]string{"pyproject.toml": "", "test_a.py": module}, python + " -m unittest"},
		{"unittest in a folder", map[string]string{"pyproject.toml": "", "tests/test_a.py": module}, python + " -m unittest discover -s tests"},
		{"unittest in a package", map[string]string{"requirements.txt": "", "tests/__init__.py": "", "tests/test_a.py": module}, python + " -m unittest"},
		{"functions in a folder", map[string]string{"pyproject.toml": "", "tests/test_a.py": "def test(): pass\n"}, python + pytest},
		{
			"unittest, and pytest is named",
			map[string]string{"requirements.txt": "pytest\n", "test_a.py": module},
			python + pytest,
		},
		{
			"an environment of its own",
			map[string]string{"requirements.txt": "", "test_a.py": "def test(): pass\n", ".venv/bin/python": ""},
			".venv/bin/python" + pytest,
		},
		{"requirements without tests", map[string]string{"requirements.txt": ""}, ""},
		{"requirements with tests", map[string]string{"requirements.txt": "", "tests/test_a.py": ""}, python + pytest},
		{"setup.py with tests", map[string]string{"setup.py": "", "test/test_a.py": ""}, python + pytest},
		{"setup.py without", map[string]string{"setup.py": ""}, ""},
		{"tox", map[string]string{"tox.ini": "", "pyproject.toml": ""}, "tox -q"},
		{"gradle", map[string]string{"gradlew": ""}, "./gradlew test"},
		{"maven", map[string]string{"pom.xml": ""}, "mvn -q test"},
		{"mix", map[string]string{"mix.exs": ""}, "mix test"},
		{"rspec", map[string]string{".rspec": ""}, "bundle exec rspec"},
		{"composer", map[string]string{"composer.json": `{"scripts": {"lint": "x", "test": "phpunit"}}`}, "composer test"},
		{"composer without", map[string]string{"composer.json": `{"scripts": {}, "require": {"test": "1"}}`}, ""},
		{"just", map[string]string{"justfile": "build:\n\ttrue\n\ntest:\n\ttrue\n"}, "just test"},
		{"just without", map[string]string{"justfile": "retest:\n\ttrue\n"}, ""},
		{"make", map[string]string{"Makefile": "test :\n\ttrue\n"}, "make test"},
		{"just with parameters", map[string]string{"justfile": "test *args: build\n\ttrue\n"}, "just test"},
		{"just with a variable", map[string]string{"justfile": "test := '1'\n"}, ""},
		{"make with a variable", map[string]string{"Makefile": "test := 1\n"}, ""},
		{"make without", map[string]string{"Makefile": "tests:\n\ttrue\n"}, ""},
		{
			"packages one level below",
			map[string]string{
				"a/go.mod": "module a\n", "b/package.json": script, "docs/README.md": "", "my app/go.mod": "module m\n",
				"node_modules/x/package.json": script, "node_modules/package.json": script, ".hidden/go.mod": "module h\n",
				"deep/down/go.mod": "module d\n",
			},
			"cd a && go test -json ./...; cd b && npm test",
		},
		{
			"the root's tests are those of its packages, too",
			map[string]string{"Makefile": "test:\n\tmake -C a test\n", "a/go.mod": "module a\n"},
			"make test",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range tt.files {
				path := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, l := range LikelyChecks(root) {
				got = append(got, l.Command)
			}
			if got := strings.Join(got, "; "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestLikelySetup is what gets a fresh clone of a monorepo ready: each package in its folder.
func TestLikelySetup(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a/go.mod", "a/go.sum", "b/package.json", "b/package-lock.json", "c/package-lock.json"} {
		text := ""
		if filepath.Base(name) == "package.json" {
			text = `{"scripts": {"test": "jest"}}`
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commands := likelySetup(root)
	if want := []string{"cd a && go mod download", "cd b && npm ci --no-audit --no-fund"}; !slices.Equal(commands, want) {
		t.Errorf("commands: %q, want %q", commands, want)
	}
}
