package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// printedScript has the agents leave everything that a person may have to decide on.
const printedScript = `task Good
  write good.txt "x\n"
  call learned {"text": "The tests of parse are known broken.", "kind": "discovery"}
  call flag {"what": "the parser is slow", "severity": "warning", "category": "performance"}
  call suggest {"what": "Cache it", "kind": "new_task", "why": "it is slow"}
  call suggest {"what": "Do it in one pass", "kind": "alternative", "why": "it is slow"}
  done {"summary": "did it"}
task Asks
  call ask {"question": "Red or blue?", "options": ["red", "blue"], "blocking": true}
  partial {"summary": "some", "remaining": "the rest"}
task Held
  run mkdir -p .github/workflows; echo on: push > .github/workflows/ci.yml
  done {"summary": "runs it"}
task Stands
  call blocked {"on": "the key of the vault", "kind": "external"}
  stuck {"reason": "no key"}
task Idle
  done {"summary": "nothing to do"}
turn
  done {"summary": "nothing to do"}
task *
  write other.txt "x\n"
  done {"summary": "did it"}
`

var (
	inBackticks = regexp.MustCompile("`((?:ralph|git) [^`\n]+)`")
	onALine     = regexp.MustCompile(`(?m)^\s+(?:→ )?(ralph [a-z].*)$`)
	// They wait for a person or never end, or change how this test runs.
	interactive = regexp.MustCompile(`ralph (serve|watch|inbox -i|chat|service|mcp|events -f|init|db|task split|machine)|--help| -f\b|--on-red`)
)

// TestPrintedCommandsRun types each command that ralph prints of a night in which everything happened, as it is
// printed: none is misused, and none is refused.
func TestPrintedCommandsRun(t *testing.T) {
	long(t)
	t.Parallel()
	s := newScriptedProject(t, printedScript, "sandbox: off\npermissions: {guards: false}\nlimits: {attempts: 2}\n")
	for _, args := range []string{
		"Good --verify 'test -f good.txt'", "Asks", "Held", "Stands", "Idle --verify true", "Bad --verify false", "Behind --depends-on 6",
		"Undone --verify 'test -f other.txt'",
	} {
		s.sh("ralph task add " + args)
	}
	s.ralph(3, "run")
	s.ralph(0, "undo", "8")
	said := s.sh("ralph status; ralph inbox; ralph report; ralph merge; ralph doctor; for n in 1 2 3 4 5 6 7 8; do ralph task show $n; ralph diff $n; " +
		"ralph task retry $n --as-is; done 2>&1; ralph retry 1 2>&1; ralph undo 2 2>&1; ralph approve C999 2>&1; true")
	var commands []string
	for _, m := range append(inBackticks.FindAllStringSubmatch(said, -1), onALine.FindAllStringSubmatch(said, -1)...) {
		for _, command := range eitherOr.Split(m[1], -1) {
			if !slices.Contains(commands, command) && !interactive.MatchString(command) {
				commands = append(commands, command)
			}
		}
	}
	if len(commands) < 15 {
		t.Errorf("only %d commands are printed: %q", len(commands), commands)
	}
	saved, state := t.TempDir(), s.state()
	keep := func(from, to string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", `rm -rf "$2" && cp -a "$1" "$2"`, "sh", from, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	keep(s.dir, filepath.Join(saved, "dir"))
	keep(state, filepath.Join(saved, "state"))
	for _, command := range commands {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Dir, cmd.Env = s.dir, s.env
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) && (exit.ExitCode() == 2 || exit.ExitCode() > 6) || err != nil && exit == nil {
			t.Errorf("`%s` is printed, and fails when it is typed: %v\n%s", command, err, out)
		}
		keep(filepath.Join(saved, "dir"), s.dir)
		keep(filepath.Join(saved, "state"), state)
	}
}

// sh runs a script in the project, and returns what it prints.
func (s *scriptedProject) sh(script string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "sh", "-c", script)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}
