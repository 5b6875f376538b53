package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ralph/internal/sandbox"
	"ralph/internal/tools/messagesapi"
)

// A ground is a project with its own tool chain, and files that its tests may leave to influence later checks.
type ground struct {
	name, needs, command, setup string
	files                       map[string]string
	poison                      string // a script: what it leaves has the command pass whatever the code is
	refuses                     string // of the shell: adds a test that runs the script, and fails
	withdraws                   string // takes it out again
	breaks, improves            string
}

var grounds = []ground{
	{
		name: "go", needs: "go", command: "go test ./...",
		files: map[string]string{
			"go.mod":      "module sum\n\ngo 1.22\n\nrequire example.com/dep v1.0.0\n",
			"sum.go":      "package sum\n\nimport \"example.com/dep\"\n\nfunc Sum() int { return dep.One() + 1 }\n",
			"sum_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum() != 2 {\n\t\tt.Fatal(Sum())\n\t}\n}\n",
		},
		poison: "dir=$(go env GOMODCACHE)/example.com/dep@v1.0.0; chmod -R u+w $dir; echo 'package dep; func One() int { return 2 }' > $dir/dep.go; " +
			"go env -w GOFLAGS=-run=NONE; test -s $dir/dep.go",
		refuses:   "printf 'package sum\\n\\nimport (\\n\\t\"os/exec\"\\n\\t\"testing\"\\n)\\n\\nfunc TestPoison(t *testing.T) { t.Fatal(exec.Command(\"sh\", \"poison.sh\").CombinedOutput()) }\\n' > poison_test.go",
		withdraws: "rm poison_test.go", breaks: "sed -i 's/ + 1//' sum.go", improves: "echo '// Sum is two.' >> sum.go",
	},
	{
		name: "cargo", needs: "cargo", command: "cargo test --offline --quiet",
		files: map[string]string{
			"Cargo.toml": "[package]\nname = \"sum\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
			"src/lib.rs": "pub fn sum() -> i32 { 2 }\n", ".gitignore": "target\nCargo.lock\nclaude.script.sessions\n",
			"tests/sum.rs": "#[test]\nfn sums() { assert_eq!(sum::sum(), 2); }\n",
		},
		poison: "mkdir -p ${CARGO_HOME:-~/.cargo} && printf '[target.\"cfg(all())\"]\\nrunner = \"true\"\\n' | tee ~/.cargo/config.toml > ${CARGO_HOME:-~/.cargo}/config.toml; " +
			"find target -type f -name 'sum-*' -exec sh -c 'printf \"#!/bin/sh\\nexit 0\\n\" > {}' ';'; true",
		refuses:   "printf '#[test]\\nfn poison() { let o = std::process::Command::new(\"sh\").arg(\"poison.sh\").output(); panic!(\"{:?}\", o); }\\n' > tests/poison.rs",
		withdraws: "rm tests/poison.rs", breaks: "sed -i 's/{ 2 }/{ 3 }/' src/lib.rs", improves: "echo '// It is two.' >> src/lib.rs",
	},
	{
		name: "npm", needs: "npm", command: "npm test", setup: "npm install --offline --no-audit --no-fund --no-save ./dep-1.0.0.tgz",
		files: map[string]string{
			"package.json":     `{"name": "sum", "version": "1.0.0", "scripts": {"test": "sh node_modules/dep/run.sh"}}` + "\n",
			"dep/package.json": `{"name": "dep", "version": "1.0.0"}` + "\n", "dep/run.sh": "node --test\n",
			"sum.js": "exports.sum = () => 2;\n", ".gitignore": "node_modules\nclaude.script.sessions\n",
			"sum.test.js": "require('node:test')('sums', () => require('node:assert').equal(require('./sum.js').sum(), 2));\n",
		},
		poison:    "echo 'exit 0' > node_modules/dep/run.sh; echo 'ignore-scripts=true' > ~/.npmrc; npm config set script-shell /bin/true",
		refuses:   "echo \"require('node:test')('poison', () => { require('node:child_process').execSync('sh poison.sh'); throw 1 })\" > poison.test.js",
		withdraws: "rm poison.test.js", breaks: "sed -i 's/=> 2/=> 3/' sum.js", improves: "echo '// It is two.' >> sum.js",
	},
}

// TestRealChecksAreThrownAway: leftovers of a check in caches, ignored files and its home do not affect a later check,
// with real tool chains, in each sandbox, whether the earlier check was refused or passed. A check may also use the port
// on which a session listens.
//
// With RALPH_TEST_CHEATS=all (`make storm`) the scripted agent and the real claude play everything; otherwise one plays
// npm, as the story check_thrown_away does the same without tool chains.
func TestRealChecksAreThrownAway(t *testing.T) {
	t.Parallel()
	all := os.Getenv("RALPH_TEST_CHEATS") == "all"
	onEachSandbox(t, func(t *testing.T, name, first string) {
		for _, agent := range []string{"scripted", "claude"} {
			if agent == "claude" && !all {
				continue
			}
			for _, g := range grounds {
				if all || g.name == "npm" && name == sandbox.Bubblewrap {
					t.Run(agent+" "+g.name, func(t *testing.T) { g.play(t, agent, name, first) })
				}
			}
			if all {
				t.Run(agent+" server", func(t *testing.T) { playServers(t, agent, name, first) })
			}
		}
	})
}

// An act is an agent's part in the session of a task: shell commands, and whether it says done after each.
type act struct {
	title string
	turns []string
}

// acting makes a stage on which an agent plays acts: after each of its commands it says done.
func acting(t *testing.T, agent string, files map[string]string, acts []act) *stage {
	t.Helper()
	did := map[string]int{}
	titles := regexp.MustCompile(`\bAct \d+\b`)
	s := newStage(t, func(_ int, r messagesapi.Request) messagesapi.Turn {
		title := titles.FindString(r.Text)
		for _, a := range acts {
			if a.title != title {
				continue
			}
			n := did[title]
			did[title]++
			if n/3 < len(a.turns) {
				return []messagesapi.Turn{bash(covertly(a.turns[n/3])), done("made it"), finished}[n%3]
			}
		}
		return finished
	})
	if agent == "scripted" {
		var script strings.Builder
		for _, a := range acts {
			fmt.Fprintf(&script, "task %s\n", a.title)
			for i, run := range a.turns {
				if i > 0 {
					script.WriteString("turn\n")
				}
				fmt.Fprintf(&script, "run %s\ndone {\"summary\": \"made it\"}\n", run)
			}
		}
		s.write(map[string]string{
			"ralph.yaml":    "agent: {command: [ralph, scripted-agent]}\n",
			"claude.script": script.String(), ".gitignore": "claude.script.sessions\n",
		})
	}
	s.write(files)
	return s
}

// play has one session leave everything it can in a refused check and then break the code, another leave it in a check
// that passes, one break the code after that, and one do honest work.
func (g ground) play(t *testing.T, agent, name, first string) {
	if _, err := exec.LookPath(g.needs); err != nil {
		t.Skip(g.needs + " is not installed")
	}
	files := maps.Clone(g.files)
	files["poison.sh"] = g.poison + "\n"
	s := acting(t, agent, files, []act{
		{"Act 1", []string{g.refuses, g.withdraws + "; " + g.breaks}},
		{"Act 2", []string{"echo x > made.txt"}},
		{"Act 3", []string{g.breaks}},
		{"Act 4", []string{g.improves}},
	})
	s.first = first
	s.configure("permissions: {guards: false}\n#test: {retries: 1, refused: 1}\nverify: {commands: ['" + g.command + "']}")
	if g.setup != "" {
		s.configure("workspace: {setup: ['" + g.setup + "']}")
	}
	switch g.name {
	case "go":
		s.moduleProxy()
	case "cargo":
		s.environ = append(s.environ, "RUSTUP_HOME="+cmp.Or(os.Getenv("RUSTUP_HOME"), filepath.Join(os.Getenv("HOME"), ".rustup")))
	case "npm":
		pack := exec.CommandContext(t.Context(), "npm", "pack", "./dep")
		pack.Dir = s.dir
		if out, err := pack.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	s.commit()
	s.run(0, "task", "add", "Act 1")
	s.run(0, "task", "add", "Act 2", "--verify", "sh poison.sh")
	s.run(0, "task", "add", "Act 3")
	s.run(0, "task", "add", "Act 4")
	out := s.run(3, "run")
	s.has(out, "sandbox: "+name, "TASK-2 merged into main", "TASK-4 merged into main",
		"TASK-1 failed: done was refused: `"+g.command+"`", "TASK-3 failed: done was refused: `"+g.command+"`")
	if n := strings.Count(out, "▶ TASK-1 "); n != 1 {
		t.Errorf("TASK-1 had %d sessions:\n%s", n, out)
	}
}

// playServers: a session listens on a port, and until it has ended the check of another one asks that port: of a broken
// server, and of one that works.
func playServers(t *testing.T, agent, name, first string) {
	shared := t.TempDir()
	wait := func(file string) string {
		return "until test -e " + filepath.Join(shared, file) + "; do sleep 0.05; done"
	}
	tell := func(file string) string { return "touch " + filepath.Join(shared, file) }
	s := acting(t, agent, map[string]string{
		"server.py": "import http.server\nhttp.server.HTTPServer((\"127.0.0.1\", 4747), http.server.SimpleHTTPRequestHandler).serve_forever()\n",
		"check.sh": "python3 server.py & trap 'kill $! 2>/dev/null' EXIT\n" +
			"python3 -c '\nimport time, urllib.request\nfor i in range(100):\n    try:\n        urllib.request.urlopen(\"http://127.0.0.1:4747/server.py\", timeout=5)\n        break\n" +
			"    except OSError:\n        time.sleep(0.05)\nelse:\n    raise SystemExit(1)'\n",
	}, []act{
		{"Act 1", []string{"setsid python3 server.py >/dev/null 2>&1 & " +
			"until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 4747))' 2>/dev/null; do sleep 0.05; done; " +
			"echo x > one.txt; " + tell("listens") + "; " + wait("over")}},
		{"Act 2", []string{wait("listens") + "; echo > server.py", "true"}},
		{"Act 3", []string{wait("listens") + "; echo x > three.txt"}},
		{"Act 4", []string{tell("over") + "; echo x > four.txt"}},
	})
	s.first = first
	s.configure("permissions: {guards: false, writable: [" + shared + "]}\n#test: {retries: 1, refused: 1}\nparallel: 2\nverify: {commands: [sh check.sh]}")
	s.commit()
	for i := range 4 {
		s.run(0, "task", "add", fmt.Sprintf("Act %d", i+1))
	}
	s.has(s.run(3, "run"), "sandbox: "+name, "TASK-2 failed: done was refused: `sh check.sh`",
		"TASK-1 merged into main", "TASK-3 merged into main", "TASK-4 merged into main")
}

// warmGo returns the tests' build cache, warm like a person's: with an empty one all of Go's library would be built
// again.
func warmGo(t *testing.T) (environ string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return "GOCACHE=" + strings.TrimSpace(string(out))
}

// moduleProxy makes a module that a person has downloaded from a folder.
func (s *stage) moduleProxy() {
	s.t.Helper()
	proxy := filepath.Join(s.t.TempDir(), "proxy")
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	const manifest = "module example.com/dep\n\ngo 1.22\n"
	for name, text := range map[string]string{"go.mod": manifest, "dep.go": "package dep\n\nfunc One() int { return 1 }\n"} {
		w, err := z.Create("example.com/dep@v1.0.0/" + name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		s.t.Fatal(err)
	}
	below := filepath.Join(proxy, "example.com", "dep", "@v", "v1.0.0")
	s.file(below+".info", `{"Version":"v1.0.0"}`)
	s.file(below+".mod", manifest)
	s.file(below+".zip", packed.String())
	s.environ = append(s.environ, "GOPROXY=file://"+proxy, "GOSUMDB=off", "GOTOOLCHAIN=local")
	s.environ = append(s.environ, warmGo(s.t))
	tidy := exec.CommandContext(s.t.Context(), "go", "mod", "tidy")
	tidy.Dir, tidy.Env = s.dir, s.command().Env
	if out, err := tidy.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	// The module cache is read-only, so that the folder could not be removed.
	s.t.Cleanup(func() {
		clean := exec.Command("go", "clean", "-modcache")
		clean.Dir, clean.Env = s.dir, s.command().Env
		_ = clean.Run()
	})
}
