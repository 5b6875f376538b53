package proc_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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
	c := proc.Contain()
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
	c := proc.Contain()
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
