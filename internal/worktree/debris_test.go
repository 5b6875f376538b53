package worktree_test

import (
	"slices"
	"strings"
	"testing"

	"ralph/internal/worktree"
)

// TestDebris: names alone separate tools' leftovers from a project's files.
func TestDebris(t *testing.T) {
	for _, c := range []struct{ name, added, base, roots string }{
		{
			"a night in Python", "a.py __pycache__/a.pyc x/__pycache__/b.pyc .pytest_cache/v/1 htmlcov/i.html .coverage a_.py.bak debug_scratch.py",
			"setup.py", ".coverage .pytest_cache/ __pycache__/ a_.py.bak htmlcov/ x/__pycache__/",
		},
		{
			"a night in JavaScript", "i.js node_modules/a/index.js node_modules/b/node_modules/c/x.js npm-debug.log coverage/lcov.info web/coverage/x",
			"package.json web/index.js", "coverage/ node_modules/ npm-debug.log",
		},
		{"a night in Rust", "src/a.rs target/debug/a core.1234 .DS_Store", "Cargo.toml src/main.rs", ".DS_Store core.1234 target/"},
		{"builds of the web", "web/.next/x .nuxt/a .svelte-kit/b .vite/c", "web/a.js", ".nuxt/ .svelte-kit/ .vite/ web/.next/"},
		{"builds beside their files", "a/.build/x _build/log b/_build/y", "a/Package.swift dune-project b/c", "_build/ a/.build/"},
		{"builds of .NET and CMake", "app/bin/a.dll app/obj/x/y TestResults/z bin/run b/CMakeCache.txt build/CMakeCache.txt build/x", "app/app.csproj src/t.fsproj CMakeLists.txt", "app/bin/ app/obj/ build/"},
		{"packages and caches of tools", "m.egg-info/PKG-INFO src/n.egg-info/x .cache/a .phpunit.result.cache .stylelintcache .rspec_status egg-info/x", "setup.py", ".cache/ .phpunit.result.cache .rspec_status .stylelintcache m.egg-info/ src/n.egg-info/"},
		{"coverage and dumps", "coverage.out a.gcda x.profraw lcov.info java_pid7.hprof __debug_bin123 coverage/x", "Gemfile go.mod", "__debug_bin123 a.gcda coverage.out coverage/ java_pid7.hprof lcov.info x.profraw"},
		{"editors and desktops", "._a.c .#a.c ~$a.docx desktop.ini .nfs0001 app.log.1 a.#b", "", ".#a.c ._a.c .nfs0001 app.log.1 desktop.ini ~$a.docx"},
		{"a virtual environment", "env/pyvenv.cfg env/bin/python", "a.py", "env/"},
		{"editors", "a.c~ .a.c.swp #a.c# a.c.orig a.c.rej", "a.c", "#a.c# .a.c.swp a.c.orig a.c.rej a.c~"},
		{"folders of a common name", "target/x build/y coverage/z env/prod.yaml deps/a.c venv.md _build/x", "a.c", ""},
		{"a project that keeps its dependencies", "node_modules/b/x.js", "package.json node_modules/a/x.js", ""},
		{"a project that keeps its logs", "logs/2026.log", "logs/2025.log", ""},
		{"inputs of tests", "testdata/a.log tests/x.bak docs/nohup.out", "a.go", ""},
		{"names that are alike", "core.c core catalog login.logic bak node_modules.md a.pyx blog.py", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			files, roots := worktree.Debris(strings.Fields(c.added), strings.Fields(c.base))
			if got := strings.Join(roots, " "); got != c.roots {
				t.Errorf("the roots are %q, want %q", got, c.roots)
			}
			for _, f := range files {
				if !slices.Contains(strings.Fields(c.added), f) {
					t.Errorf("%s was not added", f)
				}
			}
		})
	}
	for name, want := range map[string]bool{"a/__pycache__/b.pyc": true, "node_modules/x": true, "a.log": false, "a~": false, "target/x": false} {
		if worktree.Remade(name) != want {
			t.Errorf("%s: made again by its tool: %v, want %v", name, !want, want)
		}
	}
}
