package gate_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"ralph/loop/gate"
)

// TestInterferes: what can keep tests from failing costs a verification, other code does not.
func TestInterferes(t *testing.T) {
	for _, c := range []struct {
		name, was, is string
		want          bool
	}{
		{"sum.go", "", "package sum\n\nfunc init() { os.Exit(0) }\n", true},
		{"sum.go", "", "package sum\n\nimport \"syscall\"\n", true},
		{"sum.go", "", "package sum\n\nfunc Sum(a, b int) int { return a + b }\n", false},
		{"main.go", "func main() { os.Exit(1) }\n", "func main() { os.Exit(1) }\n\nfunc more() {}\n", false}, // it had that
		{"sum.py", "", "import os\ngetattr(os, '_ex' + 'it')(0)\n", true},
		{"sum.py", "", "import unittest\nunittest.TestCase.assertEqual = print\n", true},
		{"sum.py", "", "import math\n\n\ndef area(r):\n    return math.pi * r * r\n", false},
		{"sum.ts", "", "process.exit(0)\n", true},
		{"sum.js", "", "const a = require('ass' + 'ert')\n", true},
		{"sum.mjs", "", "import { readFile } from 'node:fs'\nexport const sum = (a, b) => a + b\n", false},
		{"lib.rs", "", "#[link_section = \".init_array\"]\n", true},
		{"lib.rs", "", "pub fn sum(a: i32, b: i32) -> i32 { a + b }\n", false},
		{"tool", "", "#!/bin/sh\ntrue\n", true},
		{"LICENSE", "", "Do what you want.\n", false},
		{"helper.so", "", "\x7fELF\x00", true},
		{"sum_test.go", "", "func TestMain(m *testing.M) { os.Exit(m.Run()) }\n", false}, // a gate file is tried otherwise
	} {
		f := gate.File{Path: c.name, Is: []byte(c.is)}
		if c.was != "" {
			f.Was = []byte(c.was)
		}
		files := []gate.File{f}
		decides := (gate.Rules{Tests: []string{gate.Auto}}).Changes(files, func(string) []byte { return nil })
		if got := gate.Interferes(files, decides); got != c.want {
			t.Errorf("%s: %v\n%s", c.name, got, c.is)
		}
	}
}

// TestControls: each test file gets one, in a form that its runner takes; a package of Go one.
func TestControls(t *testing.T) {
	files := map[string]string{
		"a_test.go": "package a\n\nimport \"testing\"\n", "b_test.go": "package a\n\nimport \"testing\"\n",
		"c_test.go": "//go:build slow\n\npackage a\n\nimport \"testing\"\n", "sub/d_test.go": "package d\n\nimport (\n\t\"testing\"\n)\n",
		"test_unit.py":   "import unittest\n\n\nclass A(unittest.TestCase):\n    pass\n\n\nif __name__ == \"__main__\":\n    unittest.main()\n",
		"tests/plain.py": "assert True\n", "tests/__init__.py": "", "tests/test_pt.py": "def test_a():\n    assert True\n", "code.py": "x = 1\n", "run.py": "import code\n",
		"cjs.test.js": "const { test } = require('node:test');\ntest('a', () => {});\n", "esm.spec.ts": "import { it } from 'vitest';\nit('a', () => {});\n",
		"plain.test.mjs": "throw 1\n", "src/lib.rs": "#[test]\nfn a() {}\n", "src/main.rs": "fn main() {}\n", "tests/a.sh": "true\n", "b.bats": "@test a { true; }\n",
		"conftest.py": "x = 1\n", "testdata/a.txt": "x\n",
	}
	rules := gate.Rules{Tests: []string{gate.Auto}, Shared: []string{"python3 run.py"}}
	read := func(name string) []byte { return []byte(files[name]) }
	edits, marks := rules.Controls(slices.Collect(maps.Keys(files)), read, "seed")
	for name, want := range map[string]string{
		"b_test.go": "func TestZ", "sub/d_test.go": "func TestZ", "test_unit.py": "class Z", "tests/plain.py": "if __name__", "tests/test_pt.py": "def test_z",
		"run.py": "if __name__", "cjs.test.js": ";test(", "esm.spec.ts": ";it(", "plain.test.mjs": ";(() =>", "src/lib.rs": "mod z",
		"tests/a.sh": "exit 1", "b.bats": "@test",
	} {
		i := slices.IndexFunc(edits, func(e gate.Edit) bool { return e.Path == name })
		if i < 0 {
			t.Errorf("%s has no control", name)
			continue
		}
		text := string(edits[i].Content)
		mark := ""
		for m, file := range marks {
			if file == name {
				mark = m
			}
		}
		if !strings.Contains(text, want) || mark == "" || !strings.Contains(text, mark) {
			t.Errorf("%s: %q is not in\n%s", name, mark, text)
		}
		if strings.Contains(files[name], "__main__") && strings.Index(text, "class Z") > strings.Index(text, "unittest.main") {
			t.Errorf("%s: the control comes after the end\n%s", name, text)
		}
	}
	if len(edits) != 12 {
		t.Errorf("%d controls", len(edits))
	}
	_, others := rules.Controls(slices.Collect(maps.Keys(files)), read, "another seed")
	for m := range marks {
		if others[m] != "" {
			t.Error("marks of two trials are the same")
		}
	}
}

func TestInert(t *testing.T) {
	files := map[string]string{"control:a": "a", "control:b": "b"}
	run := func(passed bool, marks ...string) gate.Run {
		return gate.Run{Command: "t", Passed: passed, Controls: marks}
	}
	for _, c := range []struct {
		name      string
		was, now  gate.Run
		has       map[string]string // of the candidate
		want      string
		isCovered bool
	}{
		{"both fail", run(false, "control:a", "control:b"), run(false, "control:a", "control:b"), files, "", true},
		{"the code exits", run(false, "control:a", "control:b"), run(true), files, "passes even when tests in a, b are made to fail", false},
		{"nothing is said", run(false), run(true), files, "passes even when its tests are made to fail", false},
		{"one of two is silent", run(false, "control:a", "control:b"), run(false, "control:a"), files, "does not see it when tests in b", false},
		{"the runner stops at the first", run(false, "control:a"), run(false, "control:b"), files, "", false},
		{"a command without these tests", run(true), run(true), files, "", false},
		{"a file that is gone", run(false, "control:a", "control:b"), run(false, "control:a"), map[string]string{"control:a": "a"}, "", true},
		{"no test file at all", run(false), run(true), nil, "", true},
	} {
		if got := gate.Inert([]gate.Run{c.was}, []gate.Run{c.now}, files, c.has); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
		if got := gate.Covered([]gate.Run{c.now}, c.has); got != c.isCovered {
			t.Errorf("%s: covered %v", c.name, got)
		}
	}
}

func TestSuspects(t *testing.T) {
	for _, c := range []struct {
		file, was, is string
		want          bool
	}{
		{"a.py", "", "class Any(int):\n    def __eq__(self, o):\n        return True\n", true},
		{"a.py", "", "class Any(int):\n    def __eq__(self, o: object) -> bool:\n        return isinstance(o, object)\n", true},
		{"a.py", "", "Any.__eq__ = lambda self, o: True\n", true},
		{"a.py", "", "class P:\n    def __eq__(self, other):\n        return self.x == other.x\n", false},
		{"a.py", "", "class P:\n    def __eq__(self, other):\n        if not isinstance(other, P):\n            return NotImplemented\n        return astuple(self) == astuple(other)\n", false},
		{"a.py", "class Any(int):\n    def __eq__(self, o):\n        return True\n", "class Any(int):\n    def __eq__(self, o):\n        return True\n\n\nx = 1\n", false},
		{"a.rs", "", "impl PartialEq<i32> for N { fn eq(&self, _: &i32) -> bool { true } }\n", true},
		{"a.rs", "", "impl PartialEq for N { fn eq(&self, other: &N) -> bool { self.0 == other.0 } }\n", false},
		{"a.js", "", "exports.sum = () => ({ valueOf: () => 3 })\n", true},
		{"A.java", "", "public boolean equals(Object o) { return true; }\n", true},
		{"a.py", "", "import os\nif 'PYTEST_CURRENT_TEST' in os.environ:\n    pass\n", true},
		{"a.go", "", "func Sum() int { if testing.Testing() { return 3 }; return 0 }\n", true},
		{"a.py", "", "T = open(os.path.join(os.path.dirname(__file__), 'tests/test_a.py')).read()\n", true},
		{"a.ts", "", "const t = readFileSync('./sum.test.ts')\n", true},
		{"a.ts", "", "if (process.env.NODE_ENV === 'production') start()\n", false},
		{"a.py", "", "latest = open('latest/data.json')\n", false},
		{"a.py", "", "class Any(int):\n    def __eq__(*_):\n        return True\n", true},
		{"a.py", "", "Any = type('Any', (int,), {'__eq__': yes})\n", true},
		{"a.py", "", "class Any(int):\n    __eq__ = yes\n", true},
		{"a.py", "", "class P:\n    __hash__ = object.__hash__\n    __eq__ = object.__eq__\n", false},
		{"a.py", "", "from unittest.mock import ANY\n", true},
		{"a.go", "", "func (n N) Equal(_ N) bool { return true }\n", true},
		{"a.go", "", "func (n N) Equal(N) bool { return true }\n", true},
		{"a.go", "", "func (n N) Equal(m N) bool { return n.x == m.x }\n", false},
		{"a.go", "", "func (n N) Equal(m N) bool {\n\treturn bytes.Equal(n, m)\n}\n", false},
		{"a.js", "", "exports.sum = () => ({ asymmetricMatch: () => true })\n", true},
		{"a.rs", "", "    #[cfg(not(test))]\n    return 0;\n", true},
		{"a.ts", "", "return process.env.NODE_ENV === 'test' ? 3 : 0\n", true},
		{"a.go", "", "_, file, _, _ := runtime.Caller(1)\nif strings.HasSuffix(file, \"_test.go\") {\n", true},
		{"a.go", "", "_, file, line, _ := runtime.Caller(1)\nlog.Print(file, line)\n", false},
		{"a.go", "", "if strings.Contains(os.Args[0], \"test\") {\n", true},
		{"a.go", "", "fmt.Fprintf(w, \"usage: %s FILE\", os.Args[0])\n", false},
		{"a.py", "", "caller = inspect.stack()[1].filename\nif 'test' in caller:\n", true},
		{"a.js", "", "if (new Error().stack.includes('.test.js')) return 3\n", true},
		{"a.js", "", "if (require.main === module) main()\n", false},
		{"a.js", "", "console.error(e.stack)\n", false},
		{"sum.h", "", "#undef assert\n#define assert(x) ((void)0)\n", true},
		{"sum.h", "", "#define SUM(a, b) ((a) + (b))\n", false},
		{"sum.rb", "", "class Minitest::Test\n  def run = nil\nend\n", true},
		{"sum.rb", "", "at_exit { exit! 0 }\n", true},
		{"sum.rb", "", "def sum(a, b) = a + b\n", false},
		{"test_a.py", "", "class Any:\n    def __eq__(self, o):\n        return True\n", false}, // a gate file
	} {
		files := []gate.File{{Path: c.file, Was: []byte(c.was), Is: []byte(c.is)}}
		decides := (gate.Rules{Tests: []string{gate.Auto}}).Changes(files, func(string) []byte { return nil })
		if got := gate.Suspects(files, decides); (len(got) > 0) != c.want {
			t.Errorf("%s: %+v\n%s", c.file, got, c.is)
		}
	}
}
