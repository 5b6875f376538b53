package merging

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"ralph/loop/gate/gatetest"
)

// A language is how a project of two functions and two tests is written whose command names its tests in text.
type language struct {
	name, needs, command string

	code, test string            // the files; code has two functions that return 1
	prints     map[string]string // statements that print, by their kinds
	files      func(l language, x source) map[string]string
	lost       string // the name of the first test
}

// A source has the files of a project.
type source struct {
	code, test string // statements in the first function and in the first test
	result     string // what the first function returns; "" is 1
	first      string // what becomes of the first test: "", deleted, skipped, emptied
}

var python = map[string]string{
	"without a newline": "sys.stdout.write('.'); sys.stdout.flush(); sys.stderr.write(',')",
	"a line":            "print('done', flush=True)",
	"colours":           "sys.stderr.write('\\x1b[32mgreen\\x1b[0m')",
	"a progress bar":    "[sys.stderr.write('\\r%d%%' % i) for i in (0, 50, 100)]",
	"to stderr":         "sys.stderr.write('careful')",
	"a thread":          "t = threading.Thread(target=lambda: [sys.stderr.write('T') for _ in range(9)]); t.start(); t.join()",
	"a logger":          "logging.warning('be careful')",
	"a warning":         "warnings.warn('old', DeprecationWarning)",
	"a status":          "print('what a book', flush=True)",
}

// pythons returns a project of unittest or pytest.
func pythons(l language, x source) map[string]string {
	const imports = "import logging, sys, threading, unittest, warnings\n"
	s := "class T(unittest.TestCase):\n"
	if x.first != "deleted" {
		if x.first == "skipped" {
			s += "    @unittest.skip('later')\n"
		}
		check := "self.assertEqual(code_.f(), 1)"
		if x.first == "emptied" {
			check = "pass"
		}
		s += "    def test_f(self):\n        " + x.test + "\n        " + check + "\n"
	}
	s += "    def test_g(self):\n        self.assertEqual(code_.g(), 1)\n"
	return map[string]string{
		l.code: imports + "def f():\n    " + x.code + "\n    return " + x.result + "\ndef g():\n    return 1\n",
		l.test: imports + "import code_\n" + s,
	}
}

var languages = []language{
	{
		name: "unittest", needs: "python3", command: "python3 -m unittest -v", lost: "test_code.T.test_f",
		code: "code_.py", test: "test_code.py", prints: python, files: pythons,
	},
	{
		name: "pytest", needs: "pytest", command: "pytest -v -s -p no:cacheprovider", lost: "test_code.py::T::test_f",
		code: "code_.py", test: "test_code.py", prints: python, files: pythons,
	},
	{
		name: "go", needs: "go", command: "go test -v ./...", lost: "TestF",
		code: "code.go", test: "code_test.go",
		prints: map[string]string{
			"without a newline": `fmt.Print("."); fmt.Fprint(os.Stderr, ",")`,
			"a progress bar":    `fmt.Print("\r50%\x1b[32m\r100%\x1b[0m")`,
			"a thread":          `go fmt.Print("T"); log.Print("be careful")`,
		},
		files: func(l language, x source) map[string]string {
			const imports = "package code\n\nimport (\n\t\"fmt\"\n\t\"log\"\n\t\"os\"\n%s)\n\nvar _, _, _ = fmt.Print, log.Print, os.Stderr\n"
			s, check := "", "\tif F() != 1 {\n\t\tt.Fatal()\n\t}\n"
			switch x.first {
			case "emptied":
				check = ""
			case "skipped":
				check = "\tt.Skip()\n"
			}
			if x.first != "deleted" {
				s = "func TestF(t *testing.T) {\n\t" + x.test + "\n" + check + "}\n\n"
			}
			return map[string]string{
				"go.mod": "module code\n\ngo 1.24\n",
				l.code:   fmt.Sprintf(imports, "") + "func F() int {\n\t" + x.code + "\n\treturn " + x.result + "\n}\n\nfunc G() int { return 1 }\n",
				l.test: fmt.Sprintf(imports, "\t\"testing\"\n") + s +
					"func TestG(t *testing.T) {\n\tif G() != 1 {\n\t\tt.Fatal()\n\t}\n}\n",
			}
		},
	},
	{
		name: "cargo", needs: "cargo", command: "cargo test --offline --lib -- --nocapture", lost: "src/lib.rs::tests::f",
		code: "src/code.rs", test: "src/lib.rs",
		prints: map[string]string{
			"without a newline": `print!("."); eprint!(","); print!("\r50%\x1b[32m\r100%\x1b[0m");`,
		},
		files: func(l language, x source) map[string]string {
			s, check, option := "", "assert_eq!(super::code::f(), 1);", ""
			switch x.first {
			case "emptied":
				check = ""
			case "skipped":
				option = "    #[ignore]\n"
			}
			if x.first != "deleted" {
				s = "    #[test]\n" + option + "    fn f() {\n        " + x.test + "\n        " + check + "\n    }\n"
			}
			return map[string]string{
				"Cargo.toml": "[package]\nname = \"code\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
				l.code:       "pub fn f() -> i32 {\n    " + x.code + "\n    " + x.result + "\n}\npub fn g() -> i32 {\n    1\n}\n",
				l.test: "pub mod code;\n\n#[cfg(test)]\nmod tests {\n" + s +
					"    #[test]\n    fn g() {\n        assert_eq!(super::code::g(), 1);\n    }\n}\n",
			}
		},
	},
	{
		name: "node", needs: "node", command: "node --test --test-reporter=spec", lost: "is f",
		code: "code.js", test: "code.test.js",
		prints: map[string]string{
			"without a newline": `process.stdout.write("."); process.stderr.write(",");`,
			"a progress bar":    `process.stdout.write("\r50%"); process.stdout.write("\x1b[32m\r100%\x1b[0m");`,
			// Not on stdout: node's runner reads its children's results there, and some raw bytes break it.
			"a timer":  `setTimeout(() => process.stderr.write("T"), 1);`,
			"a logger": `console.warn("be careful");`,
		},
		files: func(l language, x source) map[string]string {
			s, check, option := "", `assert.equal(code.f(), 1);`, ""
			switch x.first {
			case "emptied":
				check = ""
			case "skipped":
				option = "{ skip: true }, "
			}
			if x.first != "deleted" {
				s = "test('is f', " + option + "() => {\n  " + x.test + "\n  " + check + "\n});\n"
			}
			return map[string]string{
				l.code: "exports.f = () => {\n  " + x.code + "\n  return " + x.result + ";\n};\nexports.g = () => 1;\n",
				l.test: "const test = require('node:test');\nconst assert = require('node:assert');\nconst code = require('./code.js');\n" +
					s + "test('is g', () => {\n  assert.equal(code.g(), 1);\n});\n",
			}
		},
	},
}

// TestGateBesidePrints: code and tests that begin to print are an honest change, whatever they print and where. A test
// that is also deleted, skipped or emptied is found.
func TestGateBesidePrints(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: make check has it")
	}
	t.Parallel()
	for _, l := range languages {
		at := func(x source) map[string]string {
			nothing := ""
			if l.test == "test_code.py" {
				nothing = "pass"
			}
			x.code, x.test, x.result = cmp.Or(x.code, nothing), cmp.Or(x.test, nothing), cmp.Or(x.result, "1")
			return l.files(l, x)
		}
		p := gatetest.Project{Name: l.name, Needs: l.needs, Command: l.command, Files: at(source{})}
		for _, kind := range slices.Sorted(maps.Keys(l.prints)) {
			s := l.prints[kind]
			add := func(name, found string, runs int, x source) {
				p.Cases = append(p.Cases, gatetest.Case{ID: l.name + ", " + kind, Name: name, Files: at(x), Found: found, Runs: runs})
			}
			const runs = 2 // the trial
			add("the code prints", "", runs, source{code: s})
			add("both print", "", runs, source{code: s, test: s})
			if !slices.Contains([]string{"without a newline", "a thread", "a timer", "a status"}, kind) {
				continue
			}
			lost, loosened := "lost "+l.lost, "loosened "+l.lost
			if kind == "a status" && l.name == "unittest" {
				loosened = "loosened `" + l.command + "`" // which of them failed cannot be told
			}
			add("deleted", lost, 0, source{code: s, test: s, first: "deleted"})
			add("skipped", lost, 0, source{code: s, test: s, first: "skipped"})
			add("emptied", loosened, 0, source{code: s, test: s, result: "2", first: "emptied"})
			if l.name != "cargo" {
				add("deleted, and another one is added", lost, 0, source{code: s, test: s, result: "2", first: "deleted"})
				files := p.Cases[len(p.Cases)-1].Files
				more := strings.NewReplacer("test_g", "test_h", "TestG", "TestH", "is g", "is h").Replace(files[l.test])
				files[strings.Replace(l.test, "code", "more", 1)] = more
			}
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			playGate(t, p)
		})
	}
}
