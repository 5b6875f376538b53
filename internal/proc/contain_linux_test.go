package proc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ralph/internal/proc"
)

func TestCgroupsAreFound(t *testing.T) {
	const sys = "23 28 0:21 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
	tests := []struct{ name, mountinfo, mount, root string }{
		{"cgroups of version 2 alone", sys + "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n", "/sys/fs/cgroup", "/"},
		{"both versions", sys + "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
			"32 30 0:28 / /sys/fs/cgroup/unified rw shared:10 master:1 - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/unified", "/"},
		{"a part of the tree", "32 30 0:28 /lxc/a /sys/fs/cgroup rw - cgroup2 none rw\n", "/sys/fs/cgroup", "/lxc/a"},
		{"version 1 alone", sys + "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "", ""},
		{"nothing", "", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if mount, root := proc.CgroupMount(test.mountinfo); mount != test.mount || root != test.root {
				t.Errorf("got %q, %q; want %q, %q", mount, root, test.mount, test.root)
			}
		})
	}
}

// needCgroups skips a test where no cgroup can be made.
func needCgroups(t *testing.T) proc.Containment {
	t.Helper()
	c, _ := proc.Contain(proc.Limits{})
	if c.Cgroup() == "" {
		t.Skip("skipped: this process may not make cgroups of version 2 below its own")
	}
	return c
}

// inGroups lists the cgroups of a session.
func inGroups(t *testing.T, c proc.Containment, marker string) []string {
	t.Helper()
	_, value, _ := strings.Cut(marker, "=")
	list, err := filepath.Glob(filepath.Join(c.Cgroup(), "ralph-"+value+".*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestACommandIsInACgroupOfItsOwn(t *testing.T) {
	c := needCgroups(t)
	s := startScript(t, `grep ^0:: /proc/self/cgroup; read line; exit 3`, func(spec *proc.Spec) { spec.Containment = c })
	line, err := s.stdout.ReadString('\n')
	groups := inGroups(t, c, s.marker)
	if err != nil || len(groups) != 1 || filepath.Base(strings.TrimSpace(line)) != filepath.Base(groups[0]) {
		t.Errorf("it is in %q, %v; want the cgroup of %q", line, err, groups)
	}
	s.stdin.Close()
	if exit, err := s.wait(); err != nil || exit.Code != 3 {
		t.Errorf("got %+v, %v; want exit status 3", exit, err)
	}
	if groups := inGroups(t, c, s.marker); len(groups) > 0 {
		t.Errorf("%q is left", groups)
	}
}

func TestAMarkerOfAnyFormNamesACgroup(t *testing.T) {
	c := needCgroups(t)
	for name, value := range map[string]string{"a path": "/home/dev/a b/*", "a long one": strings.Repeat("x", 1000)} {
		t.Run(name, func(t *testing.T) {
			s := startScript(t, `grep ^0:: /proc/self/cgroup; read line`, func(spec *proc.Spec) {
				spec.Marker += value
				spec.Env[1] = spec.Marker
				spec.Containment = c
			})
			line, err := s.stdout.ReadString('\n')
			group := filepath.Join(c.Cgroup(), filepath.Base(strings.TrimSpace(line)))
			if _, serr := os.Stat(group); err != nil || serr != nil {
				t.Errorf("it is in %q: %v, %v", line, err, serr)
			}
			if err := syscall.Kill(supervisorOf(t, s), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if _, err := s.wait(); !errors.Is(err, proc.ErrSupervisorLost) {
				t.Errorf("got the error %v, want %v", err, proc.ErrSupervisorLost)
			}
			if _, err := os.Stat(group); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left: %v", group, err)
			}
		})
	}
}

func TestAProgramThatDoesNotStartLeavesNoCgroup(t *testing.T) {
	c := needCgroups(t)
	marker := newMarker()
	binary := write(t, "binary", "\x7fELF?", 0o700)
	_, err := proc.Start(proc.Spec{Args: []string{binary}, Env: []string{marker}, Marker: marker, Containment: c})
	if !errors.Is(err, syscall.ENOEXEC) {
		t.Errorf("got the error %v, want %v", err, syscall.ENOEXEC)
	}
	if groups := inGroups(t, c, marker); len(groups) > 0 {
		t.Errorf("%q is left", groups)
	}
}

func TestACgroupHasWhatHasClearedItsEnvironment(t *testing.T) {
	c := needCgroups(t)
	const daemon = `(setsid sh -c 'echo $$; exec env -i sleep 1000 >/dev/null 2>&1' &)`
	daemonOf := func(t *testing.T, s io.Reader) int {
		var pid int
		if _, err := fmt.Fscanln(s, &pid); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "sleep to run", func() bool { return commandOf(pid) == "sleep 1000 " })
		return pid
	}
	// An orphan is not ours to reap, and whose it is may take a moment.
	dead := func(t *testing.T, pid int) {
		if line := commandOf(pid); line != "" {
			t.Errorf("process %d is alive: %s", pid, line)
		}
	}
	t.Run("when the supervisor is lost", func(t *testing.T) {
		s := startScript(t, daemon+"\nread line", func(spec *proc.Spec) { spec.Containment = c })
		pid := daemonOf(t, s.stdout)
		if err := syscall.Kill(supervisorOf(t, s), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if exit, err := s.wait(); !errors.Is(err, proc.ErrSupervisorLost) || len(exit.Leftovers) != 2 {
			t.Errorf("got %+v, %v; want two leftovers and %v", exit, err, proc.ErrSupervisorLost)
		}
		dead(t, pid)
		if groups := inGroups(t, c, s.marker); len(groups) > 0 {
			t.Errorf("%q is left", groups)
		}
	})
	t.Run("when ralph and the supervisor were killed", func(t *testing.T) {
		marker := newMarker()
		ralph := exec.Command(os.Args[0], "helper", "contain", marker, "echo $PPID\n"+daemon+"\nsleep 1000")
		out := pipe(t)
		ralph.Stdout, ralph.Stderr = out.w, os.Stderr
		if err := ralph.Start(); err != nil {
			t.Fatal(err)
		}
		var supervisor int
		if _, err := fmt.Fscanln(out.r, &supervisor); err != nil {
			t.Fatal(err)
		}
		pid := daemonOf(t, out.r)
		for _, kill := range []struct {
			pid int
			sig syscall.Signal
		}{{ralph.Process.Pid, syscall.SIGSTOP}, {supervisor, syscall.SIGKILL}, {ralph.Process.Pid, syscall.SIGKILL}} {
			if err := syscall.Kill(kill.pid, kill.sig); err != nil {
				t.Fatal(err)
			}
		}
		if err := ralph.Wait(); err == nil {
			t.Error("the helper was not killed")
		}
		if leftovers, err := proc.Sweep(marker); err != nil || len(leftovers) < 2 {
			t.Errorf("got %+v, %v; want the command and its daemon", leftovers, err)
		}
		dead(t, pid)
		if groups := inGroups(t, c, marker); len(groups) > 0 {
			t.Errorf("%q is left", groups)
		}
	})
}

// contain is a ralph that runs a shell script in a cgroup.
func contain(args []string) error {
	c, _ := proc.Contain(proc.Limits{})
	marker := args[0]
	p, err := proc.Start(proc.Spec{
		Args: []string{"sh", "-c", args[1]}, Env: []string{"PATH=" + os.Getenv("PATH"), marker},
		Marker: marker, Stdout: os.Stdout, Containment: c,
	})
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

// A confinement is what contained reports.
type confinement struct {
	Missing []string
	Result  proc.Result
}

// contained is a ralph that runs a shell script under limits: bytes of memory,
// processes, nice value.
func contained(args []string) error {
	var n [3]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(args[i]); err != nil {
			return err
		}
	}
	var r confinement
	c, missing := proc.Contain(proc.Limits{Memory: int64(n[0]), Processes: n[1], Nice: n[2]})
	r.Missing = missing
	marker := newMarker()
	var err error
	r.Result, err = proc.Run(context.Background(), proc.Spec{
		Args: []string{"sh", "-c", args[3]},
		Env:  []string{"PATH=" + os.Getenv("PATH"), marker}, Marker: marker, Containment: c,
	}, 10_000, nil)
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(r))
}

// confine runs contained; edit may change how.
func confine(t *testing.T, memory, processes, nice int, script string, edit func(*exec.Cmd)) confinement {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "helper", "contained", strconv.Itoa(memory), strconv.Itoa(processes), strconv.Itoa(nice), script)
	cmd.Dir = "/"
	if edit != nil {
		edit(cmd)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var c confinement
	if err = errors.Join(err, json.Unmarshal(out, &c)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return c
}

func TestACommandIsNice(t *testing.T) {
	was := confine(t, 0, 0, 0, "nice", nil)
	got := confine(t, 0, 0, 7, "nice; (setsid nice)", nil)
	n, err := strconv.Atoi(strings.TrimSpace(was.Result.Output))
	if want := fmt.Sprintf("%[1]d\n%[1]d\n", min(n+7, 19)); err != nil || got.Result.Output != want {
		t.Errorf("got the nice values %q, %v; want %q", got.Result.Output, err, want)
	}
}

// inGroupBelow has a process start in a cgroup of its own, as a service does.
func inGroupBelow(t *testing.T, parent string) func(*exec.Cmd) {
	t.Helper()
	group, err := os.MkdirTemp(parent, "ralph-test.*")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(group)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(dir.Close(), os.Remove(filepath.Join(group, "ralph-run")), os.Remove(group)); err != nil {
			t.Error(err)
		}
	})
	return func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	}
}

// fork is a script that needs 60 processes.
const fork = `n=0; while [ $n -lt 60 ]; do sleep 1000 & n=$((n+1)); done; echo forked $n`

func TestACgroupLimitsMemoryAndProcesses(t *testing.T) {
	parent := needCgroups(t).Cgroup()
	for _, controller := range []string{"+memory", "+pids"} {
		if err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte(controller), 0); err != nil {
			t.Skip("skipped: this process's cgroup has no memory and processes to hand out: ", err)
		}
	}
	const eat = `head -c 100000000 /dev/zero | tail -n 1 | wc -c`
	tests := []struct {
		name              string
		memory, processes int
		script            string
		output, reached   string
	}{
		{"enough memory", 1 << 30, 0, eat, "100000000\n", ""},
		{"too little memory", 64 << 20, 0, eat, "0\n", "the limit of memory was reached; processes killed for it: 1"},
		{"enough processes", 0, 100, fork, "forked 60\n", ""},
		{"too few processes", 0, 30, fork, "", "the limit of processes was reached; times that one could not be started: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := confine(t, test.memory, test.processes, 0, test.script, inGroupBelow(t, parent))
			if got.Missing != nil {
				t.Errorf("missing: %q", got.Missing)
			}
			if reached := strings.Join(got.Result.Exit.Reached, "; "); !strings.HasPrefix(reached, test.reached) || test.reached == "" && reached != "" {
				t.Errorf("reached: %q, want %q", reached, test.reached)
			}
			if !strings.HasPrefix(got.Result.Output, test.output) || test.output == "" && strings.Contains(got.Result.Output, "forked") {
				t.Errorf("got %+v, want the output %q", got.Result, test.output)
			}
		})
	}
}

func TestProcessesAreLimitedOnTopOfTheUsers(t *testing.T) {
	// As a user who has no cgroup to give, and whom the kernel does not exempt.
	binary := filepath.Join(t.TempDir(), "test")
	text, err := os.ReadFile(os.Args[0])
	if err = errors.Join(err, os.WriteFile(binary, text, 0o755), os.Chmod(filepath.Dir(filepath.Dir(binary)), 0o755)); err != nil {
		t.Fatal(err)
	}
	nobody := func(cmd *exec.Cmd) {
		cmd.Path = binary
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
	}
	if got := confine(t, 0, 1000, 0, fork, nobody); got.Result.Output != "forked 60\n" {
		t.Errorf("with room for 1000 processes: %+v", got)
	}
	got := confine(t, 0, 30, 0, fork, nobody)
	if got.Result.Exit.Code == 0 || len(got.Result.Exit.Leftovers) > 30 {
		t.Errorf("with room for 30 processes: %+v", got)
	}
}
