package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/proc"
	"ralph/internal/words"
	"ralph/internal/worktree"
)

func newInit(a *app) *cobra.Command {
	var noCheck, own bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make this directory a project: write ralph.yaml",
		Long: `Write ralph.yaml with the verification commands that fit what is found in the
directory, create the database, and run the commands once: what is red already keeps
a run from beginning. A file that is there already, as in a new clone, is not changed.

A repository has one queue, which is that of the folder in which it began. A part of
it, as in a monorepo, becomes a project of its own by --package: with its own queue
and configuration; its agents and commands work in that folder, and what is changed
elsewhere is not its own.`,
		Example: "  cd my-project && ralph init\n  cd monorepo/web && ralph init --package",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := a.dir()
			if err != nil {
				return err
			}
			path := filepath.Join(root, configName)
			top, common, err := worktree.Find(cmd.Context(), root)
			if err != nil && !errors.Is(err, worktree.ErrNoRepo) {
				return err
			}
			// What refuses the queue refuses before anything is written.
			before := project{root: root, state: filepath.Join(root, plainState)}
			switch {
			case err == nil && own:
				before.state = packageState(common, top, root)
			case err == nil:
				if before.state, err = chooseState(cmd.Context(), root, top, common); err != nil {
					return err
				}
			}
			if err := checkPath(root, before.state); err != nil {
				return err
			}
			begun, err := before.hasQueue()
			if err != nil {
				return err
			}
			if err := roomFor(cmd.Context(), root, own, begun); err != nil {
				return err
			}
			var found likely
			written := !exists(path)
			if written {
				found = likelyCheck(root)
				if err := os.WriteFile(path, config.Starter(found.commands(), found.junit...), 0o644); err != nil {
					return fmt.Errorf("write %s: %w", path, err)
				}
				if err := found.makeRoom(root); err != nil {
					return err
				}
			}
			p, err := a.project(cmd.Context())
			if err != nil {
				return err
			}
			db, err := p.begin(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			out := initialised{Config: path, Written: written, Git: p.git, Common: p.common, State: p.state, Verify: p.config.Verify.Commands, Checks: []ralph.Check{}}
			if p.git && !own && within(top, p.root) != "." {
				out.Part = top
			}
			if found.command != "" {
				out.Missing = missingProgram(cmd.Context(), found.command)
			}
			if !a.json {
				if err := out.sayFound(a.out); err != nil {
					return err
				}
			}
			if !noCheck && len(p.config.Verify.Commands) > 0 {
				checks, holds, err := a.verify(cmd.Context(), p, db, 0, func(c ralph.Check, _ io.ReadSeeker) error {
					if a.json {
						return nil
					}
					_, err := fmt.Fprintln(a.out, words.Check(c, words.TailLines))
					return err
				})
				if err != nil {
					return err
				}
				out.Checks, out.Holds = checks, holds
			}
			return a.print(out, func(w io.Writer) error { return out.sayNext(w, noCheck) })
		},
	}
	cmd.Flags().BoolVar(&noCheck, "no-check", false, "do not run the verification commands")
	cmd.Flags().BoolVar(&own, "package", false, "make this part of a repository a project of its own, with its own queue, in which agents and commands work")
	return cmd
}

// initialised is what `ralph init` did.
type initialised struct {
	Config  string        `json:"config"`
	Written bool          `json:"written"` // the configuration was not there before
	Git     bool          `json:"git"`
	Part    string        `json:"-"` // the repository whose queue is now this part's, unless it is the whole
	Common  string        `json:"git_common_dir"`
	State   string        `json:"state"`
	Verify  []string      `json:"verify"`
	Missing string        `json:"missing,omitempty"` // what a command needs and is not installed
	Checks  []ralph.Check `json:"checks"`            // how the commands did; empty if they were not run
	Holds   bool          `json:"red"`               // one fails so that a run does not begin
}

// sayFound says what was found and written, before the commands run.
func (o initialised) sayFound(w io.Writer) error {
	wrote := "wrote"
	if !o.Written {
		wrote = "configured by"
	}
	fmt.Fprintf(w, "%s %s\nstate is kept in %s\n", wrote, o.Config, o.State)
	if o.Part != "" {
		fmt.Fprintf(w, "the one queue of the repository in %s is this folder's; other folders of it have their own: ralph init --package\n", o.Part)
	}
	if !o.Git {
		fmt.Fprintln(w, "no git repository: files changed by a session will not be known")
	}
	if len(o.Verify) == 0 {
		_, err := fmt.Fprintln(w, "no verification command was found: set verify in ralph.yaml, or `done` is taken at its word")
		return err
	}
	for _, v := range o.Verify {
		fmt.Fprintf(w, "verification: %s\n", v)
	}
	if o.Missing != "" {
		fmt.Fprintf(w, "! %s is not installed here: no done can be accepted until it is, or verify in ralph.yaml is changed\n", o.Missing)
	}
	return nil
}

// excusedByName is what becomes of tests that fail already.
const excusedByName = "tests that fail by name before a task is begun are excused, and no others"

// sayNext says what to do next.
func (o initialised) sayNext(w io.Writer, noCheck bool) error {
	switch {
	case len(o.Verify) > 0 && noCheck:
		fmt.Fprintln(w, "it was not run: `ralph verify` does, and what is red already keeps a run from beginning")
	case o.Holds && o.Missing != "":
		fmt.Fprintf(w, "red: a run does not begin before %s is installed, or verify in ralph.yaml is changed\n", o.Missing)
	case o.Holds:
		fmt.Fprintln(w, "red: a run does not begin before it passes: mend it. "+
			"In a project that begins empty `ralph run --on-red first` has the first task work until it passes")
	case !green(o.Checks):
		fmt.Fprintln(w, "a run begins all the same: "+excusedByName)
	}
	_, err := fmt.Fprintln(w, "next: ralph doctor, ralph task add TITLE --verify COMMAND, ralph run")
	return err
}

// A likely check is a command that fits what is in a directory. It names its tests
// where it can, so that those which fail already are excused.
type likely struct {
	file    string // that it was found by
	command string
	junit   []string // where it writes its tests, if `go test -json` is not what it prints
	fits    func(text []byte) bool
}

func (l likely) commands() []string {
	if l.command == "" {
		return []string{}
	}
	return []string{l.command}
}

// makeRoom makes the folder into which the command writes its tests, out of git's sight.
func (l likely) makeRoom(root string) error {
	if len(l.junit) == 0 || !strings.HasPrefix(l.junit[0], plainState+"/") {
		return nil
	}
	dir := filepath.Join(root, plainState)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o644)
}

// likelyCheck is the verification that fits what is in a directory; the zero value for
// none. What would fail in any case, such as the placeholder that npm init writes, is
// left out.
func likelyCheck(root string) likely {
	report := plainState + "/tests.xml"
	npm := "mkdir -p " + plainState + " && npm test -- "
	for _, l := range []likely{
		{file: "go.mod", command: "go test -json ./..."},
		{file: "Cargo.toml", command: "cargo test"},
		{file: "package.json", command: npm + "--reporter=default --reporter=junit --outputFile.junit=" + report, junit: []string{report}, fits: testScript(vitest)},
		{file: "package.json", command: npm + "--test-reporter=spec --test-reporter-destination=stdout --test-reporter=junit --test-reporter-destination=" + report, junit: []string{report}, fits: testScript(nodeTest)},
		{file: "package.json", command: "npm test", fits: testScript(anyTest)},
		{file: "pyproject.toml", command: python() + " -m pytest -q --junitxml=" + report, junit: []string{report}},
		{file: "pom.xml", command: "mvn -q test", junit: []string{"**/target/surefire-reports/*.xml"}},
		{file: "mix.exs", command: "mix test"},
		{file: "Makefile", command: "make test", fits: testTarget.Match},
	} {
		text, err := os.ReadFile(filepath.Join(root, l.file))
		if err == nil && (l.fits == nil || l.fits(text)) {
			return l
		}
	}
	return likely{}
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
		script := &manifest.Scripts.Test
		return json.Unmarshal(text, &manifest) == nil && !strings.Contains(*script, "no test specified") && form.MatchString(strings.TrimSpace(*script))
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
	"case", "cd", "command", "eval", "exec", "export", "for", "if", "set", "source", "time", "trap", "type", "ulimit", "umask", "unset", "until", "wait", "while",
}

// pythonModule matches a command that is a module of Python's.
var pythonModule = regexp.MustCompile(`^(python3?) -m ([a-zA-Z0-9_]+)`)

// missingProgram is what a command needs and is not installed, as far as that can be
// told from its beginning; "" if nothing is seen to be missing.
func missingProgram(ctx context.Context, command string) string {
	command = strings.TrimPrefix(strings.TrimSpace(command), "mkdir -p "+plainState+" && ")
	program, _, _ := strings.Cut(command, " ")
	if !programName.MatchString(program) || slices.Contains(shellWords, program) {
		return ""
	}
	if _, err := exec.LookPath(program); err != nil {
		return program
	}
	if m := pythonModule.FindStringSubmatch(command); m != nil {
		const find = "import importlib.util, sys; sys.exit(3 if importlib.util.find_spec(sys.argv[1]) is None else 0)"
		r, err := proc.Run(ctx, proc.Spec{Args: []string{m[1], "-c", find, m[2]}, Dir: "/", Env: os.Environ()}, 1000, nil)
		if err == nil && r.Exit.Code == 3 {
			return m[2]
		}
	}
	return ""
}
