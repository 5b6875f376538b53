//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ralph/internal/state"
)

// A slowCheck is a project whose check waits for the test. Its agent undoes its work
// at its end.
type slowCheck struct {
	*scriptedProject
	begun, answer string // pipes: the check has begun; what it is to say
}

func newSlowCheck(t *testing.T, script, config string) *slowCheck {
	t.Helper()
	pipes := t.TempDir()
	s := &slowCheck{newScriptedProject(t, script, "permissions: {writable: ["+pipes+"]}\n"+config), filepath.Join(pipes, "begun"), filepath.Join(pipes, "answer")}
	for _, p := range []string{s.begun, s.answer} {
		if err := syscall.Mkfifo(p, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	agent := "#!/bin/sh\nralph scripted-agent \"$@\"\n[ \"$1\" = --version ] || rm -f made.txt\n"
	yaml, err := os.ReadFile(filepath.Join(s.dir, "ralph.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	command := strings.Replace(string(yaml), "[ralph, scripted-agent]", "[./agent.sh]", 1)
	if err := errors.Join(os.WriteFile(filepath.Join(s.dir, "agent.sh"), []byte(agent), 0o700), os.WriteFile(filepath.Join(s.dir, "ralph.yaml"), []byte(command), 0o600)); err != nil {
		t.Fatal(err)
	}
	s.ralph(0, "task", "add", "Make it", "--verify", "echo x > "+s.begun+"; read n < "+s.answer+"; test -f made.txt && exit $n")
	return s
}

// start starts a run.
func (s *slowCheck) start() (cmd *exec.Cmd, out *bytes.Buffer) {
	s.t.Helper()
	out = &bytes.Buffer{}
	cmd = s.command("run")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return cmd, out
}

// waits returns when the check has begun.
func (s *slowCheck) waits() {
	s.t.Helper()
	if _, err := os.ReadFile(s.begun); err != nil {
		s.t.Fatal(err)
	}
}

// says answers the check with an exit status.
func (s *slowCheck) says(status string) {
	s.t.Helper()
	if err := os.WriteFile(s.answer, []byte(status+"\n"), 0); err != nil {
		s.t.Fatal(err)
	}
}

// ended wants the run's exit status.
func (s *slowCheck) ended(cmd *exec.Cmd, out *bytes.Buffer, status int) string {
	s.t.Helper()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != status {
		s.t.Fatalf("exit status %d, want %d\n%s", got, status, out)
	}
	return out.String()
}

func (s *slowCheck) has(text string, parts ...string) {
	s.t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			s.t.Errorf("%q is not in\n%s", p, text)
		}
	}
}

// made wants the agent's work as it was verified.
func (s *slowCheck) made() {
	s.t.Helper()
	if !state.Exists(filepath.Join(s.dir, "made.txt")) {
		s.t.Error("the agent has moved, and undone its work")
	}
	wantGone(s.t, s.dir)
}

const makeIt = "task *\n  run echo x > made.txt\n  done {\"summary\": \"made it\"}\n"

// TestRalphIsKilledWhileItsAgentIsFrozen: nothing stays frozen or alive, and the next
// run has the done checked.
func TestRalphIsKilledWhileItsAgentIsFrozen(t *testing.T) {
	t.Parallel()
	s := newSlowCheck(t, makeIt, "")
	cmd, out := s.start()
	s.waits()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.ended(cmd, out, -1)
	waitFor(t, func() bool { return exec.CommandContext(t.Context(), "pgrep", "-f", s.dir).Run() != nil })
	s.made()
	cmd, out = s.start()
	s.waits()
	s.says("0")
	s.ended(cmd, out, 0)
	s.has(s.ralph(0, "task", "list", "--json"), `"status": "completed"`, "done and verified (")
	s.made()
}

// TestARunIsStoppedWhileItsAgentIsFrozen: it is killed without having moved, and the
// done is not judged.
func TestARunIsStoppedWhileItsAgentIsFrozen(t *testing.T) {
	t.Parallel()
	s := newSlowCheck(t, makeIt, "")
	cmd, out := s.start()
	s.waits()
	s.ralph(0, "stop", "--now")
	s.ended(cmd, out, 130)
	s.has(s.ralph(0, "task", "list", "--json"), `"status": "pending"`, `"attempts": 0`)
	s.made()
}

// TestAPersonSpeaksWhileTheAgentIsFrozen: the agent hears it before it is let go, and
// what it does then is checked anew.
func TestAPersonSpeaksWhileTheAgentIsFrozen(t *testing.T) {
	t.Parallel()
	s := newSlowCheck(t, makeIt+"turn\n  run echo y >> made.txt\n  done {\"summary\": \"as you said\"}\n", "")
	cmd, out := s.start()
	s.waits()
	s.ralph(0, "comment", "1", "mind unicode")
	s.says("0")
	s.waits()
	s.says("0")
	s.has(s.ended(cmd, out, 0), "): as you said", "1 session on 1 task")
	s.has(s.ralph(0, "timeline", "1", "--json"), `"delivered_at": "2`, `"delivered_to": "`)
	s.has(s.ralph(0, "timeline", "1", "--no-signals", "--json"), `"session_id": ""`)
	s.made()
}

// TestACheckThatTakesLongerThanAnAgentStandsStill goes on without it; what it refuses
// is told to the next session.
func TestACheckThatTakesLongerThanAnAgentStandsStill(t *testing.T) {
	t.Parallel()
	s := newSlowCheck(t, "task *\nsession 1\n  run echo x > made.txt\n  done {\"summary\": \"made it\"}\n"+
		"task *\nsession 2\nwhen exits 1\n  done {\"summary\": \"made it again\"}\n", "verify: {freeze_max: 50ms}\n")
	cmd, out := s.start()
	s.waits()
	waitFor(t, func() bool {
		return exec.CommandContext(t.Context(), "pgrep", "-f", s.dir+"/agent.sh|scripted-agent.*"+s.dir).Run() != nil
	})
	s.says("1")
	s.waits()
	s.says("0")
	text := s.ended(cmd, out, 0)
	s.has(text, "TASK-1 → pending: done was refused: `echo x", "): made it again", "2 sessions on 1 task")
	s.made()
}
