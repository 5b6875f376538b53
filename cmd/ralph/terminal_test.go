package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// TestTheLastLineOfARun shows on a terminal how long a wait lasts, or the task in progress, and disappears from the
// lines that stay.
func TestTheLastLineOfARun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, script, want string }{
		{"a wait", "task *\n  ratelimit 3600\n", `\r\x1b\[K[^\n]*  59 min \d+ s left \(Ctrl-C ends the run\)$`},
		{"a session", "task *\n  call update_session_state {\"state\": \"testing\"}\n  hang\n", `\r\x1b\[K[^\n]*  TASK-1 testing \d s$`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScriptedProject(t, tt.script, "#test: {shutdown_grace: 1s}\n")
			s.ralph(0, "task", "add", "Made")
			cmd := s.command("run")
			screen, err := pty.Start(cmd)
			if err != nil {
				t.Skip("skipped: no pseudo-terminal: ", err)
			}
			defer screen.Close()
			var seen strings.Builder
			want := regexp.MustCompile(tt.want)
			shown := false
			r := bufio.NewReader(screen)
			for {
				c, err := r.ReadByte()
				// A pseudo-terminal whose other end is closed gives EIO.
				if errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				seen.WriteByte(c)
				if !shown && (c == ')' || c == 's') && want.MatchString(seen.String()) {
					shown = true
					if err := cmd.Process.Signal(os.Interrupt); err != nil {
						t.Fatal(err)
					}
				}
			}
			// Its status is looked at, not how Wait calls it.
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != 130 || !shown {
				t.Errorf("exit status %d, shown %t:\n%q", got, shown, seen.String())
			}
			for l := range strings.Lines(seen.String()) {
				if i := strings.LastIndex(l, "\x1b[K"); i >= 0 && strings.HasPrefix(strings.TrimPrefix(l[i+3:], "\x1b[2m"), "  ") && strings.HasSuffix(l, "\n") {
					t.Errorf("a last line is left: %q", l)
				}
			}
		})
	}
}

// TestApproveShowsTheDifference: a person on a terminal sees the difference before they approve.
func TestApproveShowsTheDifference(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "task *\n  write .envrc \"export A=1\\n\"\n  write a.txt \"x\\n\"\n  done {\"summary\": \"made it\"}\n", "")
	s.ralph(0, "task", "add", "Made", "--verify", "test -f a.txt")
	s.has(s.ralph(4, "run"), "waits for approval of guarded files (.envrc)")
	s.has(s.ralph(0, "inbox", "C2"), "\n+export A=1\n")
	cmd := s.command("approve", "C2")
	screen, err := pty.Start(cmd)
	if err != nil {
		t.Skip("skipped: no pseudo-terminal: ", err)
	}
	defer screen.Close()
	shown, err := io.ReadAll(screen)
	if err != nil && !errors.Is(err, syscall.EIO) { // its other end is closed
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ralph approve: %v", err)
	}
	s.has(string(shown), "+export A=1", "TASK-1 is merging")
	decided, _, _ := strings.Cut(string(shown), "TASK-1 is merging")
	if strings.Contains(decided, "a.txt") {
		t.Errorf("it shows what waits for nobody:\n%s", shown)
	}
}
