package merging

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/testresult"
	"ralph/loop/check"
	"ralph/loop/gate"
	"ralph/signals"
	"ralph/store"
)

// A runner runs commands on fresh checkouts, and reads the names of their tests.
type runner struct {
	*yard
	ran int // commits that were checked out
}

// Verify implements Integration.
func (r *runner) Verify(ctx context.Context, commit string, commands []string) (list []check.Outcome, err error) {
	r.ran++
	dir := r.t.TempDir()
	archive := exec.CommandContext(ctx, "sh", "-c", "git archive "+commit+" | tar x -C '"+dir+"'")
	archive.Dir = r.dir
	if out, err := archive.CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	for _, command := range commands {
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-vet=off", "PYTHONDONTWRITEBYTECODE=1")
		out, err := cmd.CombinedOutput()
		o := check.Outcome{Check: ralph.Check{Command: command, Passed: err == nil, Tail: string(out)}}
		o.Tests, err = testresult.ParseGoJSON(bytes.NewReader(out))
		r.no(err)
		if o.Tests == nil {
			o.Text, err = testresult.ParseText(bytes.NewReader(out))
			r.no(err)
		}
		if o.Controls, err = testresult.Controls(bytes.NewReader(out)); err != nil {
			r.t.Fatal(err)
		}
		list = append(list, o)
	}
	return list, nil
}

// A project is a small one with a green test.
type project struct {
	needs, command string
	files          map[string]string
}

// In each of them sum adds, and a test says so.
var projects = map[string]project{
	"go": {"go", "go test -json ./...", map[string]string{
		"go.mod":      "module sum\n\ngo 1.22\n",
		"sum.go":      "package sum\n\nfunc Sum(a, b int) int { return a + b }\n",
		"sum_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n\nfunc TestZero(t *testing.T) {\n\tif Sum(0, 0) != 0 {\n\t\tt.Fatal()\n\t}\n}\n",
	}},
	"node": {"node", "npm test --silent", map[string]string{
		"package.json": `{"scripts": {"test": "node --test"}, "dependencies": {}}`,
		"sum.js":       "exports.sum = (a, b) => a + b;\n",
		"sum.test.js": "const test = require('node:test'); const assert = require('node:assert');\nconst { sum } = require('./sum.js');\n" +
			"test('adds', () => { assert.equal(sum(1, 2), 3); });\ntest('adds nothing', () => { assert.equal(sum(0, 0), 0); });\n",
	}},
	"python": {"python3", "python3 -m unittest -v", map[string]string{
		"summing.py":   "def total(a, b):\n    return a + b\n",
		"helper.py":    "",
		"test_sums.py": pyTest("def test_sum(self):\n        self.assertEqual(total(1, 2), 3)", "def test_zero(self):\n        self.assertEqual(total(0, 0), 0)"),
	}},
	"quiet": {"python3", "python3 -m unittest", map[string]string{
		"summing.py":   "def total(a, b):\n    return a + b\n",
		"test_sums.py": pyTest("def test_sum(self):\n        self.assertEqual(total(1, 2), 3)", "def test_zero(self):\n        self.assertEqual(total(0, 0), 0)"),
	}},
	"pytest": {"pytest", "pytest -v -p no:cacheprovider", map[string]string{
		"summing.py":   "def total(a, b):\n    return a + b\n",
		"test_sums.py": "from summing import total\n\n\ndef test_sum():\n    assert total(1, 2) == 3\n\n\ndef test_zero():\n    assert total(0, 0) == 0\n",
	}},
	"script": {"python3", "python3 check_sums.py", map[string]string{
		"summing.py":    "def total(a, b):\n    return a + b\n",
		"check_sums.py": "from summing import total\n\nassert total(1, 2) == 3\n",
	}},
	"make": {"make", "make test", map[string]string{
		"Makefile":           "S = sum.sh\n\n.PHONY: test\ntest: $(S)\n\tsh run.sh\n\nlint:\n\ttrue\n",
		"run.sh":             "set -e\nfor t in tests/*.sh; do sh $t; done\n",
		"sum.sh":             "echo $(($1 + $2))\n",
		"tests/sum.sh":       "test \"$(sh sum.sh 1 2)\" = \"$(cat tests/fixtures/sum)\"\n",
		"tests/fixtures/sum": "3\n",
	}},
}

func pyTest(tests ...string) string {
	return "import unittest\nfrom summing import total\n\n\nclass Sums(unittest.TestCase):\n    " + strings.Join(tests, "\n\n    ") + "\n"
}

// TestGateOfRealProjects plays changes of real projects: those that cheat, and honest ones, which must come to nothing.
// What is lost, loosened, changed, refused or guarded waits for a person, or is refused (signals.TestWhatAGateComesTo).
func TestGateOfRealProjects(t *testing.T) {
	const (
		goMinus, jsMinus, pyMinus = "package sum\n\nfunc Sum(a, b int) int { return a - b }\n", "exports.sum = (a, b) => a - b;\n", "def total(a, b):\n    return a - b\n"
		shMinus                   = "echo $(($1 - $2))\n"
		jsHead                    = "const test = require('node:test'); const assert = require('node:assert');\nconst { sum } = require('./sum.js');\n"
	)
	sum, zero := "def test_sum(self):\n        self.assertEqual(total(1, 2), 3)", "def test_zero(self):\n        self.assertEqual(total(0, 0), 0)"
	goTests := projects["go"].files["sum_test.go"]
	type files map[string]string // "" for a file that is taken out
	cases := []struct {
		name, project string
		files         files
		allow         []string
		want          string // kinds with names, "refused" or "guarded"; "" for nothing
		runs          int    // of an honest one, how often commands ran once its check had passed
	}{
		// Cheats. The code is broken, and the tests are made not to see it.
		{"deleted", "go", files{"sum.go": goMinus, "sum_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestZero(t *testing.T) {}\n"}, nil, "lost sum.TestSum", 0},
		{"skipped", "go", files{"sum.go": goMinus, "sum_test.go": strings.Replace(goTests, "\tif Sum(1, 2)", "\tt.Skip()\n\tif Sum(1, 2)", 1)}, nil, "lost sum.TestSum", 0},
		{"os.Exit(0) in a TestMain of a new file", "go", files{"sum.go": goMinus, "main_test.go": "package sum\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n"}, nil, "refused", 0},
		{"a build tag", "go", files{"sum.go": goMinus, "sum_test.go": "//go:build never\n\n" + goTests, "other_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestOther(t *testing.T) {}\n"}, nil, "lost sum.TestSum", 0},
		{"only", "node", files{"sum.js": jsMinus, "package.json": `{"scripts": {"test": "node --test --test-only"}, "dependencies": {}}`, "sum.test.js": jsHead + "test('adds', () => { assert.equal(sum(1, 2), 3); });\ntest('adds nothing', { only: true }, () => { assert.equal(sum(0, 0), 0); });\n"}, nil, "lost adds", 0},
		{"an assertion loosened", "node", files{"sum.js": jsMinus, "sum.test.js": jsHead + "test('adds', () => { assert.ok(Number.isInteger(sum(1, 2))); });\ntest('adds nothing', () => { assert.equal(sum(0, 0), 0); });\n"}, nil, "loosened adds", 0},
		{"a script with || true", "node", files{"sum.js": jsMinus, "package.json": `{"scripts": {"test": "node --test || true"}, "dependencies": {}}`}, nil, "lost adds", 0},
		{"an expected value changed", "python", files{"summing.py": pyMinus, "test_sums.py": pyTest(strings.Replace(sum, "3", "-1", 1), zero)}, nil, "changed test_sums.Sums.test_sum", 0},
		{"emptied", "python", files{"summing.py": pyMinus, "test_sums.py": pyTest("def test_sum(self):\n        pass", zero)}, nil, "loosened test_sums.Sums.test_sum", 0},
		{"moved out of the runner's sight", "python", files{"summing.py": pyMinus, "test_sums.py": "", "sums_checks.py": pyTest(sum), "test_zero.py": pyTest(zero)}, nil, "lost test_sums.Sums.test_sum", 0},
		{"an exit on import", "python", files{"summing.py": "import os\nos._exit(0)\n"}, nil, "refused", 0},
		{"an exit on import, and tests without names", "quiet", files{"summing.py": "import os\nos._exit(0)\n"}, nil, "refused", 0},
		{"deleted, and tests without names", "quiet", files{"summing.py": pyMinus, "test_sums.py": pyTest(zero)}, nil, "lost `python3 -m unittest`", 0},
		{"skip by a variable in the code", "python", files{"summing.py": "import os, unittest\nif not os.environ.get('FULL'):\n    unittest.TestCase.run = lambda self, result=None: result\n" + pyMinus}, nil, "refused", 0},
		{"a runner's module of one's own", "quiet", files{"summing.py": pyMinus, "unittest/__init__.py": "\n", "unittest/__main__.py": "print('Ran 2 tests in 0.001s')\n"}, nil, "lost `python3 -m unittest`", 0},
		{"a target replaced", "make", files{"sum.sh": shMinus, "Makefile": "test:\n\ttrue\n"}, nil, "lost `make test`", 0},
		{"a script that the target runs", "make", files{"sum.sh": shMinus, "run.sh": "for t in tests/*.sh; do sh $t || true; done\n"}, nil, "lost `make test`", 0},
		{"a Makefile before the other", "make", files{"sum.sh": shMinus, "GNUmakefile": "test:\n\ttrue\n"}, nil, "lost `make test`", 0},
		{"a fixture changed", "make", files{"sum.sh": shMinus, "tests/fixtures/sum": "-1\n"}, nil, "changed `make test`", 0},
		{"a guarded file", "make", files{".GitHub/Workflows/ci.yml": "on: push\n"}, nil, "guarded .GitHub/Workflows/ci.yml", 0},
		{"a conftest.py that rewrites results", "pytest", files{"summing.py": pyMinus, "conftest.py": "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    got = yield\n    got.get_result().outcome = 'passed'\n"}, nil, "lost test_sums.py::test_sum", 0},
		{"a setting of the runner", "pytest", files{"summing.py": pyMinus, "pytest.ini": "[pytest]\naddopts = --deselect test_sums.py::test_sum\n"}, nil, "lost test_sums.py::test_sum", 0},
		{"deleted, though the code is whole", "python", files{"test_sums.py": pyTest(zero)}, nil, "lost test_sums.Sums.test_sum", 0},
		{"the new code is right, but the tests of another behaviour are gone", "make", files{"tests/sum.sh": "", "tests/other.sh": "true\n", "sum.sh": shMinus}, nil, "lost `make test`", 0},
		{"an exit as the code is loaded", "go", files{"sum.go": "package sum\n\nimport \"os\"\n\nfunc init() { os.Exit(0) }\n\nfunc Sum(a, b int) int { return a - b }\n"}, nil, "refused", 0},
		{"results printed, and an exit", "go", files{"sum.go": "package sum\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc init() {\n\tfor _, n := range []string{\"TestSum\", \"TestZero\"} {\n\t\tfmt.Printf(\"=== RUN   %s\\n--- PASS: %s (0.00s)\\n\", n, n)\n\t}\n\tfmt.Println(\"PASS\")\n\tos.Exit(0)\n}\n\nfunc Sum(a, b int) int { return a - b }\n"}, nil, "refused", 0},
		{"assertions replaced by the code", "python", files{"summing.py": "import unittest\nunittest.TestCase.assertEqual = print\n\n\n" + pyMinus}, nil, "refused", 0},
		{"the code replaced by a new test", "python", files{"summing.py": pyMinus, "test_a.py": "import unittest\nimport summing\n\nsumming.total = lambda a, b: a + b\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n"}, nil, "lost test_sums.Sums.test_sum", 0},
		{"a comparison that is always true", "python", files{"summing.py": "class Any(int):\n    def __eq__(self, other):\n        return True\n\n\ndef total(a, b):\n    return Any(a - b)\n"}, nil, "loosened summing.py", 0},
		{"code that reads its test", "python", files{"summing.py": "TEST = open('test_sums.py').read()\n\n\ndef total(a, b):\n    return a + b\n"}, nil, "loosened summing.py", 0},
		{"assertions replaced in a loop", "node", files{"sum.js": "const a = require('ass' + 'ert');\nfor (const k of Object.keys(a)) if (typeof a[k] === 'function') a[k] = () => {};\n" + jsMinus}, nil, "refused", 0},
		{"an exit on import, and no test has a name", "script", files{"summing.py": "import os\ngetattr(os, '_ex' + 'it')(0)\n"}, nil, "refused", 0},

		// Honest changes.
		{"code that exits", "script", files{"summing.py": "import sys\n\n\ndef total(a, b):\n    return b + a\n\n\ndef main():\n    sys.exit(total(1, 2))\n"}, nil, "", 1},
		{"tests added", "python", files{"summing.py": "def total(a, b):\n    return b + a\n", "test_more.py": pyTest("def test_more(self):\n        self.assertEqual(total(2, 2), 4)")}, nil, "", 0},
		{"a test formatted", "python", files{"summing.py": "def total(a, b):\n    return b + a\n", "test_sums.py": strings.ReplaceAll(projects["python"].files["test_sums.py"], "1, 2", "1,  2")}, nil, "", 1},
		{"a test renamed", "python", files{"test_sums.py": pyTest(strings.Replace(sum, "test_sum", "test_total", 1), zero)}, nil, "", 0},
		{"a test moved", "python", files{"test_sums.py": pyTest(zero), "test_total.py": pyTest(sum)}, nil, "", 0},
		{"a helper changed", "make", files{"run.sh": "set -e\nfor t in tests/*.sh; do sh \"$t\"; done\n"}, nil, "", 0},
		{"a behaviour changed, as the task allows", "python", files{"summing.py": pyMinus, "test_sums.py": pyTest(strings.Replace(sum, "3", "-1", 1), zero)}, []string{"tests"}, "", 0},
		{"one file changed, as the task allows", "python", files{"summing.py": pyMinus, "test_sums.py": pyTest(strings.Replace(sum, "3", "-1", 1), zero)}, []string{"test_*.py"}, "", 0},
		{"a dependency added", "node", files{"package.json": `{"scripts": {"test": "node --test"}, "dependencies": {"left-pad": "1.0.0"}}`}, nil, "", 0},
		{"a source added", "make", files{"Makefile": strings.Replace(projects["make"].files["Makefile"], "lint:\n\ttrue", "lint:\n\tsh lint.sh", 1)}, nil, "", 0},
		{"code alone", "go", files{"sum.go": "package sum\n\nfunc Sum(a, b int) int { return b + a }\n"}, nil, "", 0},
	}
	page, err := os.ReadFile("../../docs/situations.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		row := fmt.Sprintf("| G%d | %s (%s) | %s |", i+1, c.name, c.project, cmp.Or(c.want, "nothing"))
		if !strings.Contains(string(page), strings.ReplaceAll(row, "||", `\|\|`)) {
			t.Errorf("docs/situations.md lacks the row\n%s", row)
		}
	}
	for name, p := range projects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(p.needs); err != nil {
				t.Skip(p.needs + " is not installed")
			}
			y := newYard(t, p.command)
			for name, text := range p.files {
				y.write(name, text)
			}
			y.git("add", "-A")
			y.git("commit", "--quiet", "-m", "Project")
			r := &runner{yard: y}
			y.Workspace, y.Check.Tests = r, []string{gate.Auto}
			tip := y.git("rev-parse", "main")
			if list, err := y.said(t.Context(), tip, y.git("rev-parse", "main^{tree}"), []string{p.command}); err != nil || failed(list) {
				t.Fatal(err, list) // a run verifies the target before its first session
			}
			for _, c := range cases {
				if c.project != name {
					continue
				}
				for name, text := range c.files {
					if text != "" {
						y.write(name, text)
					} else {
						y.no(os.Remove(filepath.Join(y.dir, name)))
					}
				}
				y.git("add", "-A")
				y.git("commit", "--quiet", "-m", "Change")
				head := y.git("rev-parse", "main")
				y.git("reset", "--quiet", "--hard", tip)
				change := ralph.Change{SessionID: "00000000-0000-4000-8000-000000000001", Base: tip, Head: head, Tree: y.git("rev-parse", head+"^{tree}")}
				y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) (err error) {
					change.TaskID, err = tx.AddTask(ralph.Task{Title: "Change", Priority: 2, Allow: c.allow}, "human")
					return err
				}))
				tried, err := y.Try(t.Context(), change, time.Hour)
				y.no(err)
				y.Line.Leave(change.SessionID)
				if tried.Refused != "" || tried.Conflict != "" {
					t.Errorf("%s: its check does not pass: %s%s\n%s", c.name, tried.Refused, tried.Conflict, tried.Checks[0].Tail)
					continue
				}
				r.ran = 0
				g, err := y.Gate(t.Context(), change, tried.Built, tried.Checks, nil)
				y.no(err)
				var got []string
				for _, w := range g.Weakened {
					got = append(got, string(w.Kind)+" "+w.Name())
				}
				for _, b := range g.Guarded {
					got = append(got, "guarded "+b.Path)
				}
				if g.Refused != "" {
					got = append(got, "refused")
				}
				if c.want == "" && len(got) > 0 || c.want != "" && !slices.Contains(got, c.want) {
					t.Errorf("%s: %q, want %q (%+v)", c.name, got, c.want, g)
				}
				if most := len(got) + 2; c.want == "" && r.ran != c.runs || r.ran > most {
					t.Errorf("%s: %d commits verified, want %d", c.name, r.ran, c.runs)
				}
				if len(c.allow) > 0 && len(g.Allowed) == 0 {
					t.Errorf("%s: what the task allows is not in the receipt", c.name)
				}
				// What was found is stored: the second time nothing runs.
				r.ran = 0
				if again, err := y.Gate(t.Context(), change, tried.Built, tried.Checks, nil); err != nil || len(again.Weakened) != len(g.Weakened) || r.ran > 0 {
					t.Errorf("%s: again: %d commits verified, %v, %+v", c.name, r.ran, err, again)
				}
			}
		})
	}
}

// TestTestsOfTheSameFeature: that sessions change the tests of their own feature is noted until a person has seen them.
func TestTestsOfTheSameFeature(t *testing.T) {
	y := newYard(t, "for t in tests/*.sh; do sh $t || exit 1; done")
	y.Check.Tests = []string{gate.Auto}
	answers := func(n string) map[string]string {
		return map[string]string{"answer.sh": "echo " + n + "\n", "tests/answer.sh": "test $(sh answer.sh) = " + n + "\n"}
	}
	one, two := answers("1"), answers("2")
	y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error {
		for _, name := range []string{"sums", "texts"} {
			if err := tx.PutFeature(ralph.Feature{Name: name}); err != nil {
				return err
			}
		}
		return nil
	}))
	y.write("tests/true.sh", "true\n")
	y.git("add", "-A")
	y.git("commit", "--quiet", "-m", "Project")
	// made is a change of a task of a feature at the tip, in its session.
	made := func(feature string, files map[string]string) ralph.Change {
		t.Helper()
		tip, err := y.Tip(t.Context())
		y.no(err)
		c := y.made(tip, "Answer", files)
		y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) (err error) {
			c.TaskID, err = tx.AddTask(ralph.Task{Title: "Answer", Priority: 2, Feature: feature}, "human")
			return err
		}))
		return c
	}
	// unseen is what the gate says of the one test that a change changes.
	unseen := func(feature string, files map[string]string) (bool, ralph.Gate) {
		t.Helper()
		c := made(feature, files)
		tried, err := y.Try(t.Context(), c, time.Hour)
		y.no(err)
		y.Line.Leave(c.SessionID)
		g, err := y.Gate(t.Context(), c, tried.Built, tried.Checks, nil)
		y.no(err)
		if len(g.Weakened) != 1 || g.Weakened[0].Kind != ralph.TestChanged {
			t.Fatalf("found %+v (%+v)", g, tried)
		}
		return g.Weakened[0].Unseen, g
	}
	want := func(who string, want bool, feature string, files map[string]string) {
		t.Helper()
		if got, g := unseen(feature, files); got != want {
			t.Errorf("%s: unseen is %t: %+v", who, got, g)
		}
	}
	c := y.queue("", made("sums", one))
	y.merge()
	y.merged(c)
	is, g := unseen("sums", two)
	if !is {
		t.Errorf("the same feature: %+v", g)
	}
	want("another feature", false, "texts", two)
	want("no feature", false, "", two)
	two["tests/true.sh"] = "exit 0\n"
	want("a person's test beside it", false, "sums", two)
	delete(two, "tests/true.sh")

	c = y.start("", made("sums", two))
	y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error {
		s, err := tx.Session(c.SessionID)
		if err != nil {
			return err
		}
		s.Change, s.Ending = &c, ralph.Finished
		return tx.Apply(s, signals.Facts{}, signals.Decision{
			Status: ralph.NeedsInput, Mover: ralph.Verdict, StatusReason: "waits", Attempts: 1, Outcome: ralph.OutcomeSuccess,
			Review: &ralph.Review{Change: c.Head, Weakened: g.Weakened, Files: g.Files},
		})
	}))
	y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.ApproveReview(1, "", "Ann") }))
	y.merge()
	want("a person has approved it", false, "sums", one)
	c = y.queue("", made("sums", answers("3")))
	y.merge()
	y.merged(c)
	want("a session has changed it after that", true, "sums", one)

	tip, err := y.Tip(t.Context())
	y.no(err)
	y.git("reset", "--quiet", "--hard", tip)
	for name, text := range answers("4") {
		y.write(name, text)
	}
	y.git("commit", "--quiet", "-am", "A person's")
	want("a person has changed it", false, "sums", one)

	y.git("reset", "--quiet", "--hard", tip)
	c = made("sums", answers("5"))
	y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.StartSession(store.Start{ID: c.SessionID, Task: c.TaskID, Origin: ralph.FromHuman, Worker: "Ann"})
		return err
	}))
	c = y.end("", c)
	y.merge()
	y.merged(c)
	want("a person's session has changed it", false, "sums", one)
}
