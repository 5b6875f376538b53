package proc_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestASupervisorIsClosed looks at it as its descendants do, as a user other than root. Nothing is closed to root.
func TestASupervisorIsClosed(t *testing.T) {
	ralph := exec.CommandContext(t.Context(), "/proc/self/exe", "helper", "run",
		`cat /proc/$PPID/environ || echo no environment; ls /proc/$PPID/fd || echo no files; ls /proc/self/fd >&2 && echo its own`)
	ralph.Env = []string{"PATH=" + os.Getenv("PATH"), "GITHUB_TOKEN=ghp_secret"}
	ralph.Dir = "/"
	if os.Getuid() == 0 {
		ralph.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := ralph.Output()
	if want := "no environment\nno files\nits own\n"; err != nil || string(out) != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
}

// TestASupervisorHasNoSecrets looks as root, which sees all.
func TestASupervisorHasNoSecrets(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("takes root")
	}
	ralph := exec.CommandContext(t.Context(), "/proc/self/exe", "helper", "run", `! grep -z ghp_secret /proc/$PPID/environ && echo none`)
	ralph.Env = []string{"PATH=" + os.Getenv("PATH"), "GITHUB_TOKEN=ghp_secret"}
	if out, err := ralph.Output(); err != nil || string(out) != "none\n" {
		t.Errorf("got %q, %v", out, err)
	}
}
