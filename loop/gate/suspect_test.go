package gate_test

import (
	"testing"

	"ralph/loop/gate"
)

// TestSuspects: code that asks whether it is tested is found, and code that asks for other things is not.
func TestSuspects(t *testing.T) {
	for _, c := range []struct {
		file, was, is string
		want          bool
	}{
		{"a.py", "", "import os\nif 'PYTEST_CURRENT_TEST' in os.environ:\n    pass\n", true},
		{"a.go", "", "func Sum() int { if testing.Testing() { return 3 }; return 0 }\n", true},
		{"a.py", "", "if os.getcwd().endswith('/seen/tree'):\n    pass\n", true},
		{"a.js", "", "const list = glob('workspaces/*/package.json')\n", false},
		{"a.py", "", "T = open(os.path.join(os.path.dirname(__file__), 'tests/test_a.py')).read()\n", true},
		{"a.ts", "", "const t = readFileSync('./sum.test.ts')\n", true},
		{"a.ts", "", "if (process.env.NODE_ENV === 'production') start()\n", false},
		{"a.py", "", "latest = open('latest/data.json')\n", false},
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
		{"a.py", "if 'PYTEST_CURRENT_TEST' in os.environ: pass\n", "if 'PYTEST_CURRENT_TEST' in os.environ: pass\nx = 1\n", false}, // it is not an addition
		{"tool.py", "", "import os\nif 'PYTEST_CURRENT_TEST' in os.environ:\n    pass\n", true},                                    // a command runs it: it may be the code
		{"test_a.py", "", "import os\nif 'PYTEST_CURRENT_TEST' in os.environ:\n    pass\n", false},                                 // a gate file
	} {
		files := []gate.File{{Path: "test_b.py", Is: []byte("1\n")}, {Path: c.file, Was: []byte(c.was), Is: []byte(c.is)}}
		decides := (gate.Rules{Tests: []string{gate.Auto}, Shared: []string{"python3 tool.py"}}).Changes(files, func(string) []byte { return nil })
		if got := gate.Suspects(files, decides); (len(got) > 0) != c.want {
			t.Errorf("%s: %+v\n%s", c.file, got, c.is)
		}
	}
}
