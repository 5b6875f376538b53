package project

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ralph/internal/proc"
	"ralph/internal/state"
)

// A Likely check is a command that fits what is in a directory. It names its tests
// where it can, so that those which fail already are excused.
type Likely struct {
	file    string // that it was found by
	Command string
	JUnit   []string // where it writes its tests, if `go test -json` is not what it prints
	fits    func(text []byte) bool
}

// Commands are the check, as a list.
func (l Likely) Commands() []string {
	if l.Command == "" {
		return []string{}
	}
	return []string{l.Command}
}

// MakeRoom makes the folder into which the command writes its tests, out of git's sight.
func (l Likely) MakeRoom(root string) error {
	if len(l.JUnit) == 0 || !strings.HasPrefix(l.JUnit[0], state.PlainName+"/") {
		return nil
	}
	dir := filepath.Join(root, state.PlainName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o644)
}

// LikelyCheck is the verification that fits what is in a directory; the zero value for
// none. What would fail in any case, such as the placeholder that npm init writes, is
// left out.
func LikelyCheck(root string) Likely {
	report := state.PlainName + "/tests.xml"
	npm := "mkdir -p " + state.PlainName + " && npm test -- "
	node := "--test-reporter=spec --test-reporter-destination=stdout --test-reporter=junit --test-reporter-destination="
	for _, l := range []Likely{
		{"go.mod", "go test -json ./...", nil, nil},
		{"Cargo.toml", "cargo test", nil, nil},
		{
			"package.json", npm + "--reporter=default --reporter=junit --outputFile.junit=" + report,
			[]string{report},
			testScript(vitest),
		},
		{"package.json", npm + node + report, []string{report}, testScript(nodeTest)},
		{"package.json", "npm test", nil, testScript(anyTest)},
		{"pyproject.toml", python() + " -m pytest -q --junitxml=" + report, []string{report}, nil},
		{"pom.xml", "mvn -q test", []string{"**/target/surefire-reports/*.xml"}, nil},
		{"mix.exs", "mix test", nil, nil},
		{"Makefile", "make test", nil, testTarget.Match},
	} {
		text, err := os.ReadFile(filepath.Join(root, l.file))
		if err == nil && (l.fits == nil || l.fits(text)) {
			return l
		}
	}
	return Likely{}
}

// Test scripts of package.json that take options after their own.
var (
	vitest   = regexp.MustCompile(`^vitest run$`)
	nodeTest = regexp.MustCompile(`^node --test$`)
	anyTest  = regexp.MustCompile(`.`)
)

var testTarget = regexp.MustCompile(`(?m)^test\s*:`)

// testScript tells whether package.json has a test script of a form.
func testScript(form *regexp.Regexp) func(text []byte) bool {
	return func(text []byte) bool {
		var manifest struct{ Scripts struct{ Test string } }
		if json.Unmarshal(text, &manifest) != nil {
			return false
		}
		script := strings.TrimSpace(manifest.Scripts.Test)
		return !strings.Contains(script, "no test specified") && form.MatchString(script)
	}
}

// python is how Python is started here: python is not everywhere a Python 3.
func python() string {
	if _, err := exec.LookPath("python"); err == nil {
		return "python"
	}
	return "python3"
}

// programName matches a word that a shell would look for in PATH, unless it is one
// of the shellWords.
var programName = regexp.MustCompile(`^[a-z][a-z0-9.+_-]*$`)

var shellWords = []string{
	"case", "cd", "command", "eval", "exec", "export", "for", "if", "set", "source", "time", "trap", "type", "ulimit",
	"umask", "unset", "until", "wait", "while",
}

// pythonModule matches a command that is a module of Python's.
var pythonModule = regexp.MustCompile(`^(python3?) -m ([a-zA-Z0-9_]+)`)

// MissingProgram is what a command needs and is not installed, as far as that can be
// told from its beginning; "" if nothing is seen to be missing.
func MissingProgram(ctx context.Context, command string) string {
	command = strings.TrimPrefix(strings.TrimSpace(command), "mkdir -p "+state.PlainName+" && ")
	program, _, _ := strings.Cut(command, " ")
	if !programName.MatchString(program) || slices.Contains(shellWords, program) {
		return ""
	}
	if _, err := exec.LookPath(program); err != nil {
		return program
	}
	if m := pythonModule.FindStringSubmatch(command); m != nil {
		const find = "import importlib.util, sys; sys.exit(3 if importlib.util.find_spec(sys.argv[1]) is None else 0)"
		look := proc.Spec{Args: []string{m[1], "-c", find, m[2]}, Dir: "/", Env: os.Environ()}
		r, err := proc.Run(ctx, look, 1000, nil)
		if err == nil && r.Exit.Code == 3 {
			return m[2]
		}
	}
	return ""
}
