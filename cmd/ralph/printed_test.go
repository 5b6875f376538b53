package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
task Plan: Pay by invoice
  call plan.task {"name": "pay", "title": "Pay by invoice", "files": ["pay.txt"], "verify": ["test -f pay.txt"]}
  call plan.done {"summary": "one task"}
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

// notHere matches examples that need a run in progress, another program or another machine, wait for the night, or
// name a state that only one moment has.
var notHere = regexp.MustCompile(`ralph (demo|machine|forge|notify|pause|resume|skip|stop|session open|amendment rollback|plan edit)|` +
	`--(between|schedule|mcp|package|git|state|as-is)\b|^gh |^RALPH_| P7|postgres:`)

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
	keep := s.kept()
	for _, command := range commands {
		if out, status := s.typed(command); status == 2 || status > 6 {
			t.Errorf("`%s` is printed, and fails with %d when it is typed:\n%s", command, status, out)
		}
		keep()
	}
}

// TestExamplesOfHelpRun types each example of `ralph help` in a project that has the things it names: none is misused.
func TestExamplesOfHelpRun(t *testing.T) {
	long(t)
	t.Parallel()
	s := newScriptedProject(t, printedScript, "sandbox: off\npermissions: {guards: false}\nlimits: {attempts: 2}\nverify: ['true']\n")
	s.env = append(s.env, "EDITOR=true")
	s.sh(`ralph add Good --verify 'test -f good.txt' && ralph add Asks && ralph add Held && ralph add Stands && ralph add Idle --verify true &&
		ralph add Bad --verify false && ralph add Behind --depends-on 6 && ralph feature login -d x && ralph discipline backend --instructions x &&
		for n in 1 2 3; do ralph learning add "The service $n needs port $n" && ralph learning add "Port $n is taken"; done
		ralph amendment propose 7 --patch '{"priority": 1}' --rationale 'it is small'
		mkdir -p docs/plans && for f in PLAN spec notes backend answer docs/plans/a; do echo '- [ ] Do it' > $f.md; done`)
	s.ralph(3, "run")
	s.sh(`ralph plan 'Pay by invoice' --feature api`)
	session := strings.Fields(s.sh("ralph session list --task 6"))[0]
	ids := strings.NewReplacer(
		"answer TASK-12 2", "answer TASK-2 2", "Q31", "Q6", "comment 12", "comment 3", "TASK-14", "TASK-8", "C12", "C9", "C31", "C10",
		"A3", "A1", "amendment list 3", "amendment list 1", "retry 4 5", "retry 6", "unblock 12 --on 7", "unblock 7 --on 6", "unblock 12", "unblock 4",
		"block 12 --on 7", "block 3 --on 4", "undo 7", "undo 1", "undo TASK-9 TASK-8", "undo TASK-1", "approve api TASK-7", "approve TASK-10", "reject api", "reject TASK-10",
		"TASK-12", "TASK-6", " 12", " 6", "bcb16b43", session)
	keep, typed := s.kept(), 0
	for _, example := range helpExamples(t) {
		command := ids.Replace(example)
		if interactive.MatchString(command) || notHere.MatchString(command) {
			continue
		}
		typed++
		if out, status := s.typed(command); status == 2 || status > 6 {
			t.Errorf("`%s` is an example, and fails with %d when it is typed as `%s`:\n%s", example, status, command, out)
		}
		keep()
	}
	if typed < 90 {
		t.Errorf("only %d examples are typed", typed)
	}
}

// TestHelpFitsATerminal: the help of commands and of topics has at most 80 columns, and a topic at most 40 lines.
func TestHelpFitsATerminal(t *testing.T) {
	for file, texts := range map[string]string{"help.txt": helpText, "topics.txt": topicsText} {
		for n, line := range strings.Split(texts, "\n") {
			if len([]rune(line)) > 80 && !strings.HasPrefix(line, "$ ") {
				t.Errorf("%s:%d has %d columns", file, n+1, len([]rune(line)))
			}
		}
	}
	for _, topic := range topicPages() {
		if lines := strings.Count(topic.page, "\n") + 3; lines > 40 {
			t.Errorf("the topic %s has %d lines", topic.name, lines)
		}
	}
}

// helpExamples returns the commands below "Examples:" in the help of all commands.
func helpExamples(t *testing.T) (examples []string) {
	t.Helper()
	for _, line := range strings.Split(helpText, "\n") {
		if command, is := strings.CutPrefix(line, "$ "); is {
			examples = append(examples, command)
		}
	}
	return examples
}

// kept saves the project and its state, and returns a function that restores both.
func (s *scriptedProject) kept() (restore func()) {
	s.t.Helper()
	saved, state := s.t.TempDir(), s.state()
	put := func(from, to string) {
		s.t.Helper()
		out, err := exec.CommandContext(s.t.Context(), "sh", "-c", `rm -rf "$2" && cp -a "$1" "$2"`, "sh", from, to).CombinedOutput()
		if err != nil {
			s.t.Fatalf("%v: %s", err, out)
		}
	}
	put(s.dir, filepath.Join(saved, "dir"))
	put(state, filepath.Join(saved, "state"))
	return func() {
		s.t.Helper()
		put(filepath.Join(saved, "dir"), s.dir)
		put(filepath.Join(saved, "state"), state)
	}
}

// typed runs a command in the project's folder with a shell, and returns its output and exit status.
func (s *scriptedProject) typed(command string) (out string, status int) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "sh", "-c", command)
	cmd.Dir, cmd.Env = s.dir, s.env
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(said), exit.ExitCode()
	}
	if err != nil {
		s.t.Fatalf("%s: %v", command, err)
	}
	return string(said), 0
}

// sh runs a script in the project, and returns its output.
func (s *scriptedProject) sh(script string) string {
	s.t.Helper()
	out, status := s.typed(script)
	if status != 0 {
		s.t.Fatalf("%s: exit status %d\n%s", script, status, out)
	}
	return out
}
