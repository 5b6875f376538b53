package proc_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ralph/internal/proc"
)

// waitFor looks again and again until something is the case.
func waitFor(t *testing.T, what string, isTheCase func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !isTheCase() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// carriers lists the processes, zombies excepted, whose environment has marker.
func carriers(t *testing.T, marker string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(files) == 0 {
		t.Fatalf("no processes found: %v", err)
	}
	var list []string
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if strings.Contains("\x00"+string(environ), "\x00"+marker+"\x00") {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			list = append(list, filepath.Base(filepath.Dir(file))+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return list
}

// commandOf returns the command line of a process with a blank after each argument.
func commandOf(pid int) string {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(string(line), "\x00", " ")
}

// startStray starts a shell script without a supervisor and waits until it says
// "up". The file ends when no process of it is left.
func startStray(t *testing.T, script, marker string) (*exec.Cmd, *os.File) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), marker}
	out := pipe(t)
	cmd.Stdout = out.w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// It has been killed already where the test passed.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	out.w.Close()
	if _, err := out.r.Read(make([]byte, len("up\n"))); err != nil {
		t.Fatal(err)
	}
	return cmd, out.r
}

// wantGone fails if a process of a stray is left.
func wantGone(t *testing.T, marker string, out *os.File) {
	t.Helper()
	if alive := carriers(t, marker); len(alive) > 0 {
		t.Errorf("alive after Sweep: %q", alive)
	}
	// A loaded machine may have used up the time that the file was opened with.
	err := out.SetReadDeadline(time.Now().Add(patience))
	if err == nil {
		_, err = io.ReadAll(out)
	}
	if err != nil {
		t.Errorf("the output is still held open: %v", err)
	}
}

func TestSweepKillsMarkedProcesses(t *testing.T) {
	marker := newMarker()
	_, out := startStray(t, `(setsid sh -c '(trap "" TERM; echo up; exec sleep 1000) &' &); exec sleep 1000`, marker)
	other, _ := startStray(t, `echo up; exec sleep 1000`, marker+"0")
	prefixed, _ := startStray(t, `echo up; exec sleep 1000`, "X"+marker)
	none, _ := startStray(t, `echo up; exec tail -F `+marker, "A=B")

	leftovers, err := proc.Sweep(marker)
	if err != nil || len(leftovers) < 2 { // and the shell in between, if it has not ended yet
		t.Errorf("got %+v, %v; want two leftovers", leftovers, err)
	}
	wantGone(t, marker, out)
	for _, cmd := range []*exec.Cmd{other, prefixed, none} {
		var status syscall.WaitStatus
		if pid, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WNOHANG|syscall.WUNTRACED, nil); pid != 0 || err != nil {
			t.Errorf("a process with another marker was touched: %#x, %v", status, err)
		}
	}
	if leftovers, err := proc.Sweep(marker); err != nil || len(leftovers) > 0 {
		t.Errorf("got %+v, %v the second time; want nothing", leftovers, err)
	}
}

func TestSweepKillsAForkStorm(t *testing.T) {
	marker := newMarker()
	_, out := startStray(t, `
		hop='[ $1 -gt 0 ] || exec sleep 1000
			setsid sh -c "$0" "$0" $(($1-1)) & exit 0'
		for i in 1 2 3 4 5 6 7 8; do sh -c "$hop" "$hop" 3000 & done
		echo up; exec sleep 1000`, marker)
	if _, err := proc.Sweep(marker); err != nil {
		t.Error(err)
	}
	wantGone(t, marker, out)
}

func TestSweepRefusesAMarkerThatIsNone(t *testing.T) {
	for _, marker := range []string{"", "=", "NAME", "NAME=", "=value"} {
		if _, err := proc.Sweep(marker); err == nil || !strings.Contains(err.Error(), "NAME=value") {
			t.Errorf("Sweep(%q): got the error %v, want one that names the form", marker, err)
		}
	}
}

func TestSweepNeverKillsItsCaller(t *testing.T) {
	marker := newMarker()
	ralph := exec.Command(os.Args[0], "helper", "sweep", marker)
	ralph.Env = append(os.Environ(), marker)
	out, err := ralph.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "itself carries the marker") {
		t.Errorf("got %q, %v; want an error about the marker", out, err)
	}
}
