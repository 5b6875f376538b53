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

// TestAWaitIsCountedDown on a terminal, and nothing of it is left in the lines
// that stay.
func TestAWaitIsCountedDown(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "task *\n  ratelimit 3600\n", "")
	s.ralph(0, "task", "add", "Limited")
	cmd := s.command("run")
	screen, err := pty.Start(cmd)
	if err != nil {
		t.Skip("skipped: no pseudo-terminal: ", err)
	}
	defer screen.Close()
	var seen strings.Builder
	counted := regexp.MustCompile(`\r\x1b\[K  59m\d+s left \(Ctrl-C ends the run\)`)
	interrupted := false
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
		if !interrupted && c == ')' && counted.MatchString(seen.String()) {
			interrupted = true
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Its status is looked at, not how Wait calls it.
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 130 || !interrupted {
		t.Errorf("exit status %d, counted down %t:\n%q", got, interrupted, seen.String())
	}
	for l := range strings.Lines(seen.String()) {
		if i := strings.LastIndex(l, "\x1b[K"); i >= 0 && strings.Contains(l[i:], "left") && strings.HasSuffix(l, "\n") {
			t.Errorf("a countdown is left: %q", l)
		}
	}
}
