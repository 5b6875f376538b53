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

// A slowCheck is a project whose check waits for the test.
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
	s.ralph(0, "task", "add", "Make it", "--verify", "test -f made.txt && echo x > "+s.begun+" && read n < "+s.answer+" && exit $n")
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

// opens has later checks, such as that of the merge, pass at once.
func (s *slowCheck) opens() {
	s.t.Helper()
	if err := errors.Join(os.Remove(s.begun), os.Remove(s.answer), os.WriteFile(s.answer, []byte("0\n"), 0o600)); err != nil {
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

const makeIt = "task *\n  run echo x > made.txt\n  done {\"summary\": \"made it\"}\n"

// TestARunIsStoppedWhileItChecks: the done is not judged, and nothing is merged.
func TestARunIsStoppedWhileItChecks(t *testing.T) {
	t.Parallel()
	s := newSlowCheck(t, makeIt, "")
	cmd, out := s.start()
	s.waits()
	s.ralph(0, "stop", "--now")
	s.ended(cmd, out, 130)
	s.has(s.ralph(0, "task", "list", "--all", "--json"), `"status": "queued"`, `"attempts": 0`)
	if state.Exists(filepath.Join(s.dir, "made.txt")) {
		t.Error("it has been merged")
	}
	wantGone(t, s.dir)
}

// TestAPersonSpeaksWhileItsDoneIsChecked: the agent hears it before its session ends, and ralph checks its later work
// again.
func TestAPersonSpeaksWhileItsDoneIsChecked(t *testing.T) {
	t.Parallel()
	s := newSlowCheck(t, makeIt+"turn\n  run echo y >> made.txt\n  done {\"summary\": \"as you said\"}\n", "")
	cmd, out := s.start()
	s.waits()
	s.ralph(0, "comment", "1", "mind unicode")
	s.says("0")
	s.waits()
	s.says("0")
	s.opens()
	s.has(s.ended(cmd, out, 0), "done and verified: as you said", "1 task, ")
	s.has(s.ralph(0, "timeline", "1", "--json"), `"delivered_at": "2`, `"delivered_to": "`)
	s.has(s.ralph(0, "timeline", "1", "--no-signals", "--json"), `"session_id": ""`)
	if text, err := os.ReadFile(filepath.Join(s.dir, "made.txt")); err != nil || string(text) != "x\ny\n" {
		t.Errorf("made.txt is %q, %v", text, err)
	}
	wantGone(t, s.dir)
}
