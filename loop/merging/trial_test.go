package merging

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"ralph/loop/check"
	"ralph/loop/gate"
	"ralph/loop/gate/gatetest"
)

// TestTrialOfRealProjects plays changes that keep tests from failing without touching them, by hooks, helpers, replaced
// assertions, exits and values that are equal to all, and honest changes that look like them.
func TestTrialOfRealProjects(t *testing.T) {
	t.Parallel()
	projects, err := gatetest.Trials()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range projects {
		if testing.Short() { // make check has the others
			if p.Name != "shell" && p.Name != "c" {
				continue
			}
			p.Cases = p.Cases[:2]
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			playGate(t, p)
		})
	}
}

// TestTrialOfSeveralCommands: a command may need the output of the one before, and the run of a merged candidate also
// serves for the new target.
func TestTrialOfSeveralCommands(t *testing.T) {
	t.Parallel()
	commands := []string{"mkdir -p built && cp sum.sh built/", "sh -e tests/sum.sh"}
	y := newYard(t, commands...)
	y.write("sum.sh", "sum() { echo $(($1 + $2)); }\n")
	y.write("tests/sum.sh", ". built/sum.sh\ntest \"$(sum 1 2)\" = 3\ntest \"$(sum 2 2)\" = 4\n")
	y.git("add", "-A")
	y.git("commit", "--quiet", "-m", "Project")
	r := &runner{yard: y}
	y.Workspace, y.Check.Tests, y.Check.Trial = r, []string{gate.Auto}, check.TrialAuto
	list, err := y.said(t.Context(), y.git("rev-parse", "main"), y.git("rev-parse", "main^{tree}"), commands)
	if err != nil || failed(list) {
		t.Fatal(err, list)
	}
	for _, c := range []struct {
		name, text string
		found      []string
		runs       int // beside its own: of its tests together, and of each expectation
	}{
		{"a cheat", "sum() { echo 9; }\ntest() { :; }\n", []string{"refused"}, 9},
		{"the first honest change", "sum() { expr $1 + $2; }\n", nil, 3},
		{"the next one", "sum() { echo \"$(($1 + $2))\"; }\n", nil, 3},
	} {
		tip := y.git("rev-parse", "main")
		y.write("sum.sh", c.text)
		y.git("commit", "--quiet", "-am", c.name)
		head := y.git("rev-parse", "main")
		y.git("reset", "--quiet", "--hard", tip)
		change := y.changed(tip, head)
		tried, err := y.Try(t.Context(), change)
		y.no(err)
		y.Leave(t.Context(), change.SessionID)
		r.ran = 0
		g, err := y.Gate(t.Context(), change, tried.Built, tried.Checks, nil)
		y.no(err)
		if !slices.Equal(found(g), c.found) || r.ran > c.runs {
			t.Errorf("%s: %q, want %q; %d commits verified, want at most %d", c.name, found(g), c.found, r.ran, c.runs)
		}
		if c.found == nil {
			y.git("reset", "--quiet", "--hard", tried.Built.Commit)
		}
	}
}

// TestWhenThereIsATrial: of each change if that is quick, otherwise if it touches gate files.
func TestWhenThereIsATrial(t *testing.T) {
	test := gate.Changed{File: gate.File{Path: "a_test.go", Was: []byte("1"), Is: []byte("2")}, Kind: gate.Test}
	added := gate.Changed{File: gate.File{Path: "b_test.go", Is: []byte("2")}, Kind: gate.Test}
	setting := gate.Changed{File: gate.File{Path: "conftest.py", Is: []byte("2")}, Kind: gate.Setting}
	for _, c := range []struct {
		mode  string
		took  time.Duration
		files []gate.Changed
		want  bool
	}{
		{check.TrialAuto, time.Second, nil, true},
		{check.TrialAuto, time.Minute, nil, false},
		{check.TrialAuto, time.Minute, []gate.Changed{added}, false},
		{check.TrialAuto, time.Minute, []gate.Changed{test}, true},
		{check.TrialAuto, time.Minute, []gate.Changed{setting}, true},
		{check.TrialAlways, time.Hour, nil, true},
		{check.TrialOff, time.Second, []gate.Changed{setting}, false},
		{"", time.Second, []gate.Changed{setting}, false},
	} {
		e := examination{Merger: &Merger{Check: check.Rules{Trial: c.mode}}, results: gate.Results{Files: c.files}}
		if got := e.tried(c.took); got != c.want {
			t.Errorf("%q, %s, %d files: %v", c.mode, c.took, len(c.files), got)
		}
	}
}

// TestFewerExpectations: a test file that expects less than before is named, whether or not its tests pass.
func TestFewerExpectations(t *testing.T) {
	const was = "def test_a():\n    assert f(1) == 2\n    assert f(2) == 3\n"
	for is, want := range map[string]string{
		was + "    assert f(3)\n":                               "",
		"def test_a():\n    assert f(1) == 2\n":                 "test_a.py (1, 2 before)",
		"def test_a():\n    pass\n":                             "test_a.py (0, 2 before)",
		strings.ReplaceAll(was, "assert f(2)", "# assert f(2)"): "test_a.py (1, 2 before)",
		strings.ReplaceAll(was, "== 3", "is not x"):             "test_a.py (1 with a value, 2 before)",
		strings.ReplaceAll(was, "f(2) == 3", "f(2)"):            "test_a.py (1 with a value, 2 before)",
		strings.ReplaceAll(was, "== 3", "== f(2)"):              "test_a.py (1 with a value, 2 before)",
		strings.ReplaceAll(was, "test_a", "test_b"):             "",
		"import pytest\n@pytest.mark.parametrize('a,b', [(1, 2), (2, 3)])\ndef test_a(a, b):\n    assert f(a) == b\n": "",
	} {
		e := examination{results: gate.Results{Files: []gate.Changed{
			{File: gate.File{Path: "test_a.py", Was: []byte(was), Is: []byte(is)}, Kind: gate.Test},
		}}}
		if e.fewer(); strings.Join(e.found.Trial.Fewer, " ") != want {
			t.Errorf("%s: %q, want %q", is, e.found.Trial.Fewer, want)
		}
	}
}

// TestATestWithAnyExpectationProvesNothing: two new tests fail on the old code, and the expectation of one does not
// matter. The trial of the next merge needs no run of its own on the target.
func TestATestWithAnyExpectationProvesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make check has it")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	const command = "python3 -m unittest -v"
	y := newYard(t, command)
	r := &runner{yard: y}
	y.Workspace, y.Check.Tests, y.Check.Trial, y.Check.Proof = r, []string{gate.Auto}, check.TrialAuto, check.ProofAuto
	begin := "import unittest\nimport p\n\n\nclass P(unittest.TestCase):\n"
	y.write("p.py", "def one():\n    return 1\n")
	y.write("test_p.py", begin+"    def test_one(self):\n        self.assertEqual(p.one(), 1)\n")
	y.git("add", "-A")
	y.git("commit", "--quiet", "-m", "Project")
	tip := y.git("rev-parse", "main")
	_, err := y.said(t.Context(), tip, y.git("rev-parse", "main^{tree}"), []string{command})
	y.no(err)
	c := y.queue("More", y.made(tip, "More", map[string]string{
		"p.py": "def one():\n    return 1\n\n\ndef two():\n    return 2\n",
		"test_two.py": begin + "    def test_two(self):\n        self.assertEqual(p.two(), 2)\n\n" +
			"    def test_numb(self):\n        assert p.two() == 5 or p.two()\n",
	}))
	y.merge()
	y.merged(c)
	p, err := y.proof(t.Context(), y.change(c.ID))
	y.no(err)
	if !slices.Equal(p.Proved, []string{"test_two.P.test_two"}) || p.Numb != 1 {
		t.Errorf("proof: %+v", p)
	}
	if said := p.String(); !strings.Contains(said, "1 of its tests pass with any expectation") {
		t.Error(said)
	}

	tip = y.git("rev-parse", "main")
	next := y.start("Again", y.made(tip, "Again", map[string]string{"p.py": "def one():\n    return 1\n\n\ndef two():\n    return one() + 1\n"}))
	tried, err := y.Try(t.Context(), next)
	y.no(err)
	y.Leave(t.Context(), next.SessionID)
	r.ran = 0
	g, err := y.Gate(t.Context(), next, tried.Built, tried.Checks, nil)
	y.no(err)
	if r.ran != 1 || len(g.Trial.Neutralised) > 0 || g.Trial.Tests != 3 || g.Trial.Silent != 1 {
		t.Errorf("%d commits verified, want 1: %+v", r.ran, g.Trial)
	}
}
