package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A heard has the output of a process so far.
type heard struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.String()
}

// TestADiskThatFillsUp: a disk that fills up at some moment of a run is named within ten seconds of the
// first change that cannot be stored. The run goes on with room, or has ended with status 1; nothing is
// lost. RALPH_TEST_MOMENTS says how many moments.
func TestADiskThatFillsUp(t *testing.T) {
	long(t)
	t.Parallel()
	moments := testNumber(t, "RALPH_TEST_MOMENTS", 2)
	for i := range moments {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := newScriptedProject(t, "task *\n  learned {\"text\": \"the first thing\", \"kind\": \"discovery\"}\n  run date +%N > made.txt; sleep 0.5\n"+
				"  learned {\"text\": \"another one, later\", \"kind\": \"discovery\"}\n  run sleep 0.5\n  done {\"summary\": \"made\"}\n",
				"sandbox: off\nverify: {commands: ['test -f made.txt'], on_red: go}\n"+
					"notify: [{command: [sh, -c, cat >> ../told], events: [storage.full]}]\n")
			disk := smallDisk(t, s)
			s.ralph(0, "task", "add", "Make")
			s.ralph(0, "task", "add", "Make more")
			run, out := s.command("run"), &heard{}
			run.Stdout, run.Stderr = out, out
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- run.Wait() }()
			waitFor(t, func() bool { return strings.Contains(out.String(), "▶") })
			pause := time.NewTimer(time.Duration(i) * 2 * time.Second / time.Duration(moments))
			<-pause.C // the moment itself is tested
			filler := filepath.Join(disk, "filler")
			if err := os.WriteFile(filler, make([]byte, 64<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			full := time.Now()
			var over bool
			for !over && time.Since(full) < 15*time.Second && !says(out.String()) {
				select {
				case <-ended: //nolint:errcheck // that it ended counts, and what it said
					over = true
				case <-time.After(20 * time.Millisecond):
				}
			}
			if !says(out.String()) && run.ProcessState == nil {
				t.Errorf("nothing was said within 15 s:\n%s", out)
			}
			said, _ := s.command("status").CombinedOutput()
			if !strings.Contains(string(said), "Nothing can be stored") || !strings.Contains(string(said), "ralph doctor") {
				t.Errorf("status: %s", said)
			}
			if said, _ := s.command("inbox").CombinedOutput(); !strings.Contains(string(said), "Nothing can be stored") {
				t.Errorf("inbox: %s", said)
			}
			waitFor(t, func() bool { return over || strings.Contains(s.sh("cat ../told || true"), "ralph doctor") })
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			if !over {
				<-ended //nolint:errcheck // the status says it
			}
			status := run.ProcessState.ExitCode()
			if status != 0 && status != 1 {
				t.Errorf("the run ended with %d:\n%s", status, out)
			}
			t.Logf("%v after the first session began: said %v, status %d", time.Duration(i)*2*time.Second/time.Duration(moments), says(out.String()), status)
			s.ralph(0, "run")
			if said := s.ralph(0, "inbox"); strings.Contains(said, "Nothing can be stored") {
				t.Errorf("it stays in the inbox: %s", said)
			}
			s.ralph(0, "db", "check")
			if list := s.ralph(0, "task", "list", "--all", "--json"); strings.Count(list, `"status": "merged"`) != 2 {
				t.Errorf("a task is not done: %s\nthe run: %s", list, out)
			}
		})
	}
}

func says(out string) bool {
	return strings.Contains(out, "disk is full") || strings.Contains(out, "no space left") || strings.Contains(out, "is full")
}
