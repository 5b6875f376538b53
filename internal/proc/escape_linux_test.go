package proc_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ralph/internal/proc"
)

// escapes are what a session does at the same time to outlive its end. Each
// prints "up" when it has got as far as it can; $0 is this test binary.
var escapes = []string{
	// a session of its own
	`setsid sh -c 'echo up; exec sleep 1000' &`,
	// a daemon: forked twice, elsewhere, without streams and environment
	`(setsid sh -c 'cd /; (echo up; exec env -i sleep 1000 <&- >&- 2>&-) &' &)`,
	// deaf to whatever can be ignored
	`setsid sh -c 'trap "" HUP INT QUIT TERM USR1 USR2 PIPE ALRM; echo up; while :; do sleep 1000; done' &`,
	// stopped, so that it can only be killed
	`setsid sh -c 'echo up; kill -STOP $$; exec sleep 1000' &`,
	// forking while it is killed
	`setsid sh -c 'echo up; n=0; while [ $n -lt 200 ]; do (setsid sleep 1000 &); n=$((n+1)); done; wait' &`,
	// replacing itself while it is hunted
	`hop='[ $1 -gt 0 ] || exec sleep 1000; setsid sh -c "$0" "$0" $(($1-1)) & exit 0'
	 sh -c "$hop" "$hop" 3000 & echo up`,
	// under the name of a kernel thread, adopting orphans itself
	`setsid "$0" helper disguised &`,
	// a main thread that has ended looks like a zombie, and is none
	`setsid "$0" helper headless &`,
}

var escapeHelpers = map[string]func([]string) error{
	"timeouts":  timeouts,
	"disguised": disguised,
	"headless":  headless,
	"wrap":      wrap,
	"stops":     stops,
}

// TestATimedOutSessionLeavesNoProcess runs sessions that try to get away, one after the other, in a process that adopts
// all that escape a supervisor: the kernel itself tells whether any process is left when Wait returns.
// RALPH_TEST_ESCAPES is the number of sessions; 30 by default.
func TestATimedOutSessionLeavesNoProcess(t *testing.T) {
	n := "30"
	if more := os.Getenv("RALPH_TEST_ESCAPES"); more != "" {
		n = more
	}
	out, err := exec.CommandContext(t.Context(), os.Args[0], "helper", "timeouts", n).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// timeouts runs a number of sessions that are ended by their time limit.
func timeouts(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	for i := range n {
		if err := timeout(time.Duration(i%4) * 5 * time.Millisecond); err != nil {
			return fmt.Errorf("session %d: %w", i+1, err)
		}
	}
	return nil
}

// timeout runs one session and wants no process when Wait has returned.
func timeout(grace time.Duration) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	marker := newMarker()
	script := "trap '' INT TERM\n" + strings.Join(escapes, "\n") + "\nwhile :; do sleep 1000; done"
	p, err := proc.Start(proc.Spec{
		Args: []string{"sh", "-c", script, os.Args[0]}, Env: []string{"PATH=" + os.Getenv("PATH"), marker},
		Stdout: w, Stderr: w, KillGrace: grace, Marker: marker,
	})
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	lines := bufio.NewReader(r)
	for range escapes {
		if line, err := lines.ReadString('\n'); line != "up\n" {
			return fmt.Errorf("read %q: %w", line, err)
		}
	}
	if err := p.Interrupt(); err != nil {
		return err
	}
	exit, err := p.Wait()
	none := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	if !errors.Is(none, unix.ECHILD) {
		return fmt.Errorf("alive after Wait (%w): %q", errors.Join(none, err), children())
	}
	if err != nil {
		return err
	}
	if len(exit.Leftovers) < len(escapes) {
		return fmt.Errorf("%d leftovers of %d escapes: %+v", len(exit.Leftovers), len(escapes), exit.Leftovers)
	}
	return nil
}

// children describes this process's children.
func children() []string {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return []string{err.Error()}
	}
	var list []string
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if pid, parent, _, _, _, err := proc.ParseStat(string(stat)); err == nil && parent == os.Getpid() {
			list = append(list, commandOf(pid)+string(stat))
		}
	}
	return list
}

// disguised takes another name and adopts the orphans of its own children.
func disguised([]string) error {
	err := errors.Join(os.Chdir("/"), os.WriteFile("/proc/self/comm", []byte("kworker/0:1"), 0),
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0),
		exec.Command("/bin/sh", "-c", "(sleep 1000 >&- 2>&- &)").Run())
	if err != nil {
		return err
	}
	return lurk()
}

// headless ends its main thread, and goes on with the others.
func headless([]string) error {
	ended := make(chan struct{})
	for range 100 { // sooner or later on the main thread
		go func() {
			runtime.LockOSThread()
			if unix.Gettid() != os.Getpid() {
				<-ended
				return
			}
			close(ended)
			_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0) // it does not return
		}()
	}
	<-ended
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", os.Getpid()))
		if err != nil {
			return err
		}
		if _, _, _, state, _, err := proc.ParseStat(string(stat)); err != nil || state == 'Z' {
			return errors.Join(err, lurk())
		}
	}
}

// lurk says "up" and then holds nothing open.
func lurk() error {
	fmt.Println("up")
	for _, fd := range []int{0, 1, 2} {
		if err := syscall.Close(fd); err != nil {
			return err
		}
	}
	select {}
}

// wrap runs a command below two processes of its own, as bubblewrap does.
func wrap(args []string) error {
	if args[0] != "inside" {
		args = append([]string{os.Args[0], "helper", "wrap", "inside"}, args...)
	} else {
		args = args[1:]
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	return err
}

// stops stops a process all the time.
func stops(args []string) error {
	pid, err := strconv.Atoi(args[0])
	fmt.Println("up")
	for err == nil {
		err = syscall.Kill(pid, syscall.SIGSTOP)
	}
	return err
}
