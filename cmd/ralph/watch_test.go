package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
)

// TestTheScreenFollowsARun on a pseudo-terminal: it shows the agent's steps, a comment typed there reaches the session,
// and leaving restores the terminal.
func TestTheScreenFollowsARun(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "task *\n  say I look around\n  write a.txt \"x\\n\"\n  hang\n", "#test: {reminders: 0}")
	s.ralph(0, "task", "add", "Watched")
	run := s.command("run", "--max-sessions", "1")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	cmd := s.command("watch")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Skip("skipped: no pseudo-terminal: ", err)
	}
	defer tty.Close()
	press := func(keys string) {
		if _, err := tty.WriteString(keys); err != nil {
			t.Fatal(err)
		}
	}
	// Each step waits for a visible text before it types.
	steps := []struct{ seen, keys string }{
		{"Watched", ""},
		{"Write a.txt", "c"},
		{"comment on TASK-1 >", "mind IPv6\r"},
		{"comment 1 on TASK-1", "x"},
		{"end the run after this session? y/n", "y"},
		{"stopping after TASK-1", "s"},
		{"go on with another task? y/n", "y"},
		{"is being stopped", "q"},
	}
	var raw strings.Builder
	r := bufio.NewReader(tty)
	for {
		c, err := r.ReadByte()
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		raw.WriteByte(c)
		if len(steps) > 0 && strings.Contains(ansi.Strip(raw.String()), steps[0].seen) {
			press(steps[0].keys)
			steps = steps[1:]
			raw.Reset()
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ralph watch: %v", err)
	}
	if len(steps) > 0 {
		t.Errorf("%q was never seen; the last of the screen:\n%q", steps[0].seen, raw.String())
		_ = run.Process.Signal(os.Interrupt) // it may have ended
	}
	if !strings.Contains(raw.String(), "\x1b[?1049l") {
		t.Error("the terminal is not restored")
	}
	// How it ends is the run's own business, and told by other tests.
	_ = run.Wait()
	if out := s.ralph(0, "timeline", "1"); !strings.Contains(out, "mind IPv6") {
		t.Errorf("the comment is not there:\n%s", out)
	}
}

// TestWatchWithoutATerminalPrintsLines until the run has ended.
func TestWatchWithoutATerminalPrintsLines(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "task *\n  write a.txt \"x\\n\"\n  call done {\"summary\": \"did it\"}\n", "")
	s.ralph(0, "task", "add", "One")
	if out := s.ralph(0, "watch"); out != "" {
		t.Errorf("before the first run it prints\n%s", out)
	}
	s.ralph(0, "run")
	if out := s.ralph(0, "watch"); !strings.Contains(out, "nothing is left to do") {
		t.Errorf("it prints\n%s", out)
	}
}

// TestTheScreenOnABadTerminal: smaller than anybody reads on, then of another size all the time, then gone without a
// signal, as under nohup: it ends.
func TestTheScreenOnABadTerminal(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "", "")
	s.ralph(0, "task", "add", strings.Repeat("a long title ", 38))
	cmd := s.command("watch")
	cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$@"`, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 5, Cols: 20})
	if err != nil {
		t.Skip("skipped: no pseudo-terminal: ", err)
	}
	defer tty.Close()
	late := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	raw, r := "", bufio.NewReader(tty)
	until := func(seen string) {
		for raw = ""; !strings.Contains(ansi.Strip(raw), seen); {
			c, err := r.ReadByte()
			if err != nil {
				t.Fatalf("%q is never seen: %v; the last of the screen:\n%q", seen, err, raw)
			}
			raw += string([]byte{c})
		}
	}
	until("Enter open")
	storm := make(chan error)
	go func() {
		var err error
		for i := range 300 {
			err = errors.Join(err, pty.Setsize(tty, &pty.Winsize{Rows: uint16(1 + i*7%60), Cols: uint16(1 + i*13%200)}))
		}
		storm <- errors.Join(err, pty.Setsize(tty, &pty.Winsize{Rows: 30, Cols: 100}))
	}()
	until(strings.Repeat("─", 100))
	if err := <-storm; err != nil {
		t.Fatal(err)
	}
	if _, err := tty.WriteString("?"); err != nil {
		t.Fatal(err)
	}
	until("comment on the task")
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("without a terminal it ends with %v", err)
	}
}

// TestTheScreenDoesNothingThatIsDecidedAlready: while a decision can be taken back, another person makes one.
func TestTheScreenDoesNothingThatIsDecidedAlready(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "task *\n  call stuck {\"reason\": \"no key\"}\n", "")
	s.ralph(0, "add", "Deploy")
	s.ralph(3, "run")
	cmd := s.command("watch")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Skip("skipped: no pseudo-terminal: ", err)
	}
	defer tty.Close()
	late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	raw, r := "", bufio.NewReader(tty)
	for _, step := range []struct {
		seen string
		then func()
		keys string
	}{
		{"no key", func() {}, "d"}, // which shows it whole
		{"Esc back", func() {}, "d"},
		{"u takes it back", func() { s.ralph(0, "retry", "1", "there is one") }, "q"},
	} {
		for raw = ""; !strings.Contains(ansi.Strip(raw), step.seen); {
			c, err := r.ReadByte()
			if err != nil {
				t.Fatalf("%q is never seen: %v; the last of the screen:\n%q", step.seen, err, raw)
			}
			raw += string(c)
		}
		step.then()
		if _, err := tty.WriteString(step.keys); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = io.Copy(io.Discard, r) // until it has ended, which is an error of a pseudo-terminal
	_ = cmd.Wait()
	s.has(s.ralph(0, "show", "1"), "queued")
}
