package proc_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ralph/internal/proc"
)

// patience is when a test gives up on something that should happen.
const patience = time.Minute

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "helper" {
		maps.Copy(helpers, escapeHelpers)
		if err := helpers[os.Args[2]](os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, "helper:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// helpers are the functions of this test binary when it is started as "helper NAME ARGUMENT…".
var helpers = map[string]func(args []string) error{
	// run is a ralph that runs a shell script until it is killed.
	"run": func(args []string) error {
		p, err := proc.Start(proc.Spec{Args: []string{"sh", "-c", args[0]}, Env: os.Environ(), Stdout: os.Stdout})
		if err != nil {
			return err
		}
		_, err = p.Wait()
		return err
	},
	// child is a process that says "child" when it is interrupted, even if a
	// shell started it in the background and with the signal ignored.
	"child": func([]string) error {
		interrupts := make(chan os.Signal, 1)
		signal.Notify(interrupts, os.Interrupt)
		fmt.Println("up")
		<-interrupts
		fmt.Println("child")
		return nil
	},
	// sweep is a ralph that sweeps.
	"sweep": func(args []string) error {
		_, err := proc.Sweep(args[0])
		return err
	},
}

var counter atomic.Int64

// newMarker returns an environment entry that no other process has.
func newMarker() string {
	return fmt.Sprintf("PROC_TEST=%d-%d-%d", os.Getpid(), time.Now().UnixNano(), counter.Add(1))
}

// A session is a shell script that was started. All of its processes hold its
// standard output open, unless they close it.
type session struct {
	*proc.Process
	marker string
	stdin  *os.File
	stdout *bufio.Reader
	t      *testing.T
}

// startScript starts a shell script; edit may change how.
func startScript(t *testing.T, script string, edit func(*proc.Spec)) *session {
	t.Helper()
	s := &session{marker: newMarker(), t: t}
	stdin, stdout := pipe(t), pipe(t)
	s.stdin, s.stdout = stdin.w, bufio.NewReader(stdout.r)
	spec := proc.Spec{
		Args: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH"), s.marker},
		Stdin: stdin.r, Stdout: stdout.w, Stderr: os.Stderr, KillGrace: patience, Marker: s.marker,
	}
	if edit != nil {
		edit(&spec)
	}
	var err error
	if s.Process, err = proc.Start(spec); err != nil {
		t.Fatal(err)
	}
	stdin.r.Close()
	stdout.w.Close()
	return s
}

type pipeEnds struct{ r, w *os.File }

func pipe(t *testing.T) pipeEnds {
	t.Helper()
	r, w, err := os.Pipe()
	if err == nil {
		err = r.SetReadDeadline(time.Now().Add(patience))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return pipeEnds{r, w}
}

// expect reads the next lines that the processes print.
func (s *session) expect(lines ...string) {
	s.t.Helper()
	for _, want := range lines {
		if got, err := s.stdout.ReadString('\n'); err != nil || got != want+"\n" {
			s.t.Fatalf("read %q, %v; want the line %q", got, err, want)
		}
	}
}

// wait waits for the process with a time limit.
func (s *session) wait() (proc.Exit, error) {
	s.t.Helper()
	type result struct {
		exit proc.Exit
		err  error
	}
	done := make(chan result, 1)
	go func() {
		exit, err := s.Wait()
		done <- result{exit, err}
	}()
	select {
	case r := <-done:
		return r.exit, r.err
	case <-time.After(patience):
		s.t.Fatal("Wait does not return")
		return proc.Exit{}, nil
	}
}

// rest reads the output until no process holds it open.
func (s *session) rest() string {
	s.t.Helper()
	text, err := io.ReadAll(s.stdout)
	if err != nil {
		s.t.Fatalf("the output is still held open: %v", err)
	}
	return string(text)
}
