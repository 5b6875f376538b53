package project

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLikelyChecks: the tests that `ralph init` finds in each kind of project.
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
		{"rspec", map[string]string{".rspec": "", "Gemfile": ""}, "bundle exec rspec"},
		{"composer", map[string]string{"composer.json": `{"scripts": {"lint": "x", "test": "phpunit"}}`}, "composer test"},
		{"composer without", map[string]string{"composer.json": `{"scripts": {}, "require": {"test": "1"}}`}, ""},
		{"just", map[string]string{"justfile": "build:\n\ttrue\n\ntest:\n\ttrue\n"}, "just test"},
		{"just without", map[string]string{"justfile": "retest:\n\ttrue\n"}, ""},
		{"make", map[string]string{"Makefile": "test :\n\ttrue\n"}, "make test"},
		{"just with parameters", map[string]string{"justfile": "test *args: build\n\ttrue\n"}, "just test"},
		{"just with a variable", map[string]string{"justfile": "test := '1'\n"}, ""},
		{"make with a variable", map[string]string{"Makefile": "test := 1\n"}, ""},
		{"make without", map[string]string{"Makefile": "tests:\n\ttrue\n"}, ""},
		{"uv without an environment", map[string]string{"pyproject.toml": "", "uv.lock": ""}, "uv run pytest -q --junitxml=.ralph/tests.xml"},
		{"uv with an environment", map[string]string{"pyproject.toml": "", "uv.lock": "", ".venv/bin/python": ""}, ".venv/bin/python" + pytest},
		{"uv with unittest", map[string]string{"pyproject.toml": "", "uv.lock": "", "tests/test_a.py": module}, "uv run python -m unittest discover -s tests"},
		{"poetry", map[string]string{"pyproject.toml": "[tool.poetry]\n", "poetry.lock": ""}, "poetry run pytest -q --junitxml=.ralph/tests.xml"},
		{"pipenv", map[string]string{"Pipfile": "", "Pipfile.lock": "", "tests/test_a.py": ""}, "pipenv run pytest -q --junitxml=.ralph/tests.xml"},
		{"pdm", map[string]string{"pyproject.toml": "", "pdm.lock": ""}, "pdm run pytest -q --junitxml=.ralph/tests.xml"},
		{"unittest without a manifest", map[string]string{"test_s.py": module}, python + " -m unittest"},
		{"unittest in a folder without a manifest", map[string]string{"tests/test_s.py": module}, python + " -m unittest discover -s tests"},
		{"functions without a manifest", map[string]string{"test_s.py": "def test(): pass\n"}, python + pytest},
		{"a script that is called like a test", map[string]string{"testing.py": ""}, ""},
		{"python files beside a Makefile", map[string]string{"test_s.py": module, "Makefile": "test:\n\ttrue\n"}, "make test"},
		{"django", map[string]string{"manage.py": "", "requirements.txt": "django\n", "app/tests.py": module}, python + " manage.py test"},
		{"django with uv", map[string]string{"manage.py": "", "pyproject.toml": "", "uv.lock": ""}, "uv run python manage.py test"},
		{"django with pytest", map[string]string{"manage.py": "", "requirements.txt": "pytest-django\n", "test_a.py": ""}, python + pytest},
		{"nox", map[string]string{"noxfile.py": "", "pyproject.toml": ""}, "nox"},
		{"gradle's wrapper", map[string]string{"gradlew": "", "build.gradle.kts": ""}, "./gradlew test"},
		{"gradle without a wrapper", map[string]string{"build.gradle": ""}, "gradle test"},
		{"maven's wrapper", map[string]string{"mvnw": "", "pom.xml": ""}, "./mvnw -q test"},
		{"sbt", map[string]string{"build.sbt": ""}, "sbt test"},
		{
			"bun without a script",
			map[string]string{"package.json": "{}", "bun.lock": "", "src/a.test.ts": ""},
			"bun test --reporter=junit --reporter-outfile=.ralph/tests.xml",
		},
		{"bun without a test", map[string]string{"package.json": "{}", "bun.lock": "", "node_modules/x/a.test.js": ""}, ""},
		{"deno with a task", map[string]string{"deno.jsonc": `{"tasks": {"dev": "x", "test": "deno test -A"}}`}, "deno task test"},
		{"rails", map[string]string{"bin/rails": "", "Gemfile": "", "test/a_test.rb": ""}, "bin/rails test"},
		{"rails with rspec", map[string]string{"bin/rails": "", "Gemfile": "", "spec/rails_helper.rb": "", "test/a_test.rb": ""}, "bundle exec rspec"},
		{"rspec without its file", map[string]string{"spec/spec_helper.rb": ""}, "rspec"},
		{"rake", map[string]string{"Rakefile": "Rake::TestTask.new(:test)\n", "Gemfile": ""}, "bundle exec rake test"},
		{"rake without bundler", map[string]string{"Rakefile": "Rake::TestTask.new(:test)\n"}, "rake test"},
		{"meson", map[string]string{"meson.build": "project('a', 'c')\ntest('a', exe)\n"}, "(test -d build || meson setup build) && meson test -C build"},
		{"meson without tests", map[string]string{"meson.build": "project('a', 'c')\n"}, ""},
		{"stack", map[string]string{"stack.yaml": "", "a.cabal": "", "test/a.hs": ""}, "stack test"},
		{"cabal", map[string]string{"a.cabal": "", "test/a.hs": ""}, "cabal test"},
		{"dune", map[string]string{"dune-project": ""}, "dune test"},
		{"leiningen", map[string]string{"project.clj": ""}, "lein test"},
		{"rebar", map[string]string{"rebar.config": ""}, "rebar3 eunit"},
		{"perl", map[string]string{"t/a.t": ""}, "prove -lr t"},
		{"bats", map[string]string{"tests/a.bats": ""}, "bats tests"},
		{"a script for all tests", map[string]string{"test.sh": "#!/bin/sh -e\n"}, "sh test.sh"},
		{"a script of bash", map[string]string{"tests/run.sh": "#!/usr/bin/env bash\n"}, "bash tests/run.sh"},
		{"a script without a shell", map[string]string{"run_tests.sh": "echo\n"}, "sh run_tests.sh"},
		{"an executable script", map[string]string{"bin/test": "#!/usr/bin/env python3\n", "scripts/test.sh": "echo\n"}, "./bin/test"},
		{"a program by the name of a script", map[string]string{"bin/test": "\x7fELF"}, ""},
		{"a script beside a package's own tests", map[string]string{"test.sh": "", "go.mod": ""}, "go test -json ./..."},
		{"rake without tests", map[string]string{"Rakefile": "task :build\n"}, ""},
		{".NET by its solution", map[string]string{"A.sln": "", "src/A.csproj": ""}, "dotnet test"},
		{".NET by its project", map[string]string{"A.csproj": ""}, "dotnet test"},
		{
			"CMake",
			map[string]string{"CMakeLists.txt": "project(a)\nenable_testing()\n"},
			"cmake -B build && cmake --build build && ctest --test-dir build --output-on-failure --no-tests=error",
		},
		{"CMake without tests", map[string]string{"CMakeLists.txt": "project(a)\n"}, ""},
		{"bazel", map[string]string{"MODULE.bazel": ""}, "bazel test //..."},
		{"a Taskfile", map[string]string{"Taskfile.yml": "version: '3'\ntasks:\n  build:\n    cmds: [x]\n  test:\n    cmds: [y]\n"}, "task test"},
		{"a Taskfile without", map[string]string{"Taskfile.yml": "version: '3'\ntasks:\n  build:\n    cmds: [x]\n"}, ""},
		{"mise", map[string]string{"mise.toml": "[tools]\ngo = '1'\n[tasks.test]\nrun = 'x'\n"}, "mise run test"},
		{"mise without", map[string]string{"mise.toml": "[tools]\ngo = '1'\n"}, ""},
		{"just with a capital", map[string]string{"Justfile": "test:\n\ttrue\n"}, "just test"},
		{"make check", map[string]string{"Makefile": "check: all\n\ttrue\n"}, "make check"},
		{"make by another name", map[string]string{"GNUmakefile": "test:\n\ttrue\n"}, "make test"},
		{"phpunit", map[string]string{"phpunit.xml.dist": "", "composer.json": "{}"}, "vendor/bin/phpunit --log-junit .ralph/tests.xml"},
		{"swift", map[string]string{"Package.swift": "", "Tests/A/a.swift": ""}, "swift test"},
		{"dart", map[string]string{"pubspec.yaml": "name: a\n", "test/a_test.dart": ""}, "dart test"},
		{"flutter", map[string]string{"pubspec.yaml": "dependencies:\n  flutter:\n    sdk: flutter\n"}, "flutter test"},
		{"zig", map[string]string{"build.zig": `b.step("test", "")`}, "zig build test"},
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
			"packages two levels below",
			map[string]string{"services/a/go.mod": "module a\n", "services/b/package.json": script, "docs/x.md": "", "fixtures/x/go.mod": "module x\n"},
			"cd services/a && go test -json ./...; cd services/b && npm test",
		},
		{"another manager than a lock file says", map[string]string{"package.json": `{"packageManager": "yarn@4.1.0", "scripts": {"test": "jest"}}`, "pnpm-lock.yaml": "", "yarn.lock": ""}, "yarn test"},
		{"hatch, with a script", map[string]string{"pyproject.toml": "[tool.hatch.envs.default.scripts]\ncov = \"x\"\ntest = \"pytest\"\n", "tests/test_a.py": ""}, "hatch run test"},
		{"hatch", map[string]string{"pyproject.toml": "[tool.hatch.envs.default]\ndependencies = [\"pytest\"]\n[tool.hatch.envs.docs.scripts]\ntest = \"x\"\n"}, "hatch test"},
		{"tox.toml", map[string]string{"tox.toml": "env_list = []\n"}, "tox -q"},
		{"a lower-case Taskfile", map[string]string{"taskfile.yaml": "tasks:\n  test:\n    cmds: [x]\n"}, "task test"},
		{"mise in its folder", map[string]string{".config/mise.toml": "[tasks.test]\nrun = \"x\"\n"}, "mise run test"},
		{"a justfile in capitals, and quiet", map[string]string{"JUSTFILE": "@test:\n  x\n"}, "just test"},
		{
			"presets of CMake",
			map[string]string{
				"CMakeLists.txt":    "enable_testing()\n",
				"CMakePresets.json": `{"testPresets": [{"name": "base", "hidden": true, "configurePreset": "ci"}, {"name": "unit", "configurePreset": "ci"}], "buildPresets": [{"name": "rel", "configurePreset": "rel"}, {"name": "all", "configurePreset": "ci"}]}`,
			},
			"cmake --preset ci && cmake --build --preset all && ctest --preset unit --output-on-failure --no-tests=error",
		},
		{"presets of CMake without tests", map[string]string{"CMakeLists.txt": "enable_testing()\n", "CMakePresets.json": "{}"}, "cmake -B build && cmake --build build && ctest --test-dir build --output-on-failure --no-tests=error"},
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
				mode := os.FileMode(0o600)
				if strings.HasPrefix(name, "bin/") {
					mode = 0o700
				}
				if err := os.WriteFile(path, []byte(text), mode); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			checks, _ := LikelyChecks(root)
			for _, l := range checks {
				got = append(got, l.Command)
			}
			if got := strings.Join(got, "; "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestOtherChecks covers the checks that `ralph init` names beside the one that it takes.
func TestOtherChecks(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module x\n", "package.json": `{"scripts": {"test": "jest"}}`, "Makefile": "test:\n\ttrue\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	checks, others := LikelyChecks(root)
	for _, l := range append(checks, others...) {
		got = append(got, l.Command+" of "+l.File)
	}
	if want := []string{"go test -json ./... of go.mod", "npm test of package.json", "make test of Makefile"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSetupOfAPackageManager covers the set-up of a fresh clone, by the lock file.
func TestSetupOfAPackageManager(t *testing.T) {
	for lock, want := range map[string]string{
		"uv.lock": "uv sync --frozen", "poetry.lock": "poetry install --no-interaction", "pdm.lock": "pdm sync", "Pipfile.lock": "pipenv sync --dev",
		"bun.lock": "bun install --frozen-lockfile", "Gemfile.lock": "bundle install", "composer.lock": "composer install --no-interaction",
		"mix.lock": "mix deps.get", "pnpm-lock.yaml": "pnpm install --frozen-lockfile", "package-lock.json": "npm ci --no-audit --no-fund",
	} {
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, lock), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := likelySetup(root); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %q", lock, got, want)
		}
	}
}

// TestLikelySetup: the commands that prepare a fresh clone of a monorepo, each package in its folder.
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

// TestOtherPackagesAreNamed: a package in another language than the root's is a further candidate.
func TestOtherPackagesAreNamed(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"package.json": `{"scripts": {"test": "jest"}}`, "web/package.json": `{"scripts": {"test": "jest"}}`, "api/go.mod": "module a\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, others := LikelyChecks(root)
	if len(list) != 1 || list[0].Command != "npm test" || len(others) != 1 || others[0].Command != "cd api && go test -json ./..." {
		t.Errorf("%+v, %+v", list, others)
	}
}
