package systemd_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph/internal/systemd"
)

// A stand is a machine with a systemctl that records its calls.
type stand struct {
	systemd.Manager
	dir string
}

func newStand(t *testing.T) stand {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there is no systemd on Windows")
	}
	s := stand{dir: t.TempDir()}
	script := `#!/bin/sh
echo "$@" >> "` + s.dir + `/told"
case "$*" in *show*) cat "` + s.dir + `/shown";; esac
exec cat "` + s.dir + `/says" >&2
`
	s.write(t, "systemctl", script)
	s.write(t, "says", "")
	s.write(t, "shown", "UnitFileState=enabled\nActiveState=active\nSubState=running\nStatusText=waiting = ready\nMainPID=12\nResult=success\nExecMainStatus=0\nNRestarts=3\nStateChangeTimestamp=Fri 2026-11-20\nNeedDaemonReload=no\n")
	if err := os.Chmod(filepath.Join(s.dir, "systemctl"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.Manager = systemd.NewManager(false, filepath.Join(s.dir, "config"), []string{"PATH=" + s.dir + ":/usr/bin:/bin"})
	s.Booted = s.dir
	return s
}

func (s stand) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// told returns the calls of systemctl since the last call, a line each.
func (s stand) told(t *testing.T) string {
	t.Helper()
	path := filepath.Join(s.dir, "told")
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAServiceIsInstalledAndRemoved(t *testing.T) {
	s, u := newStand(t), plain()
	for _, want := range []bool{true, false} {
		changed, err := s.Install(t.Context(), u)
		if err != nil || changed != want {
			t.Fatalf("changed = %v, %v, want %v", changed, err, want)
		}
		if got, want := s.told(t), "--no-pager --user daemon-reload\n--no-pager --user enable --now ralph-my-app.service\n"; got != want {
			t.Errorf("systemctl was told\n%s, want\n%s", got, want)
		}
	}
	written, err := os.ReadFile(filepath.Join(s.dir, "config", "systemd", "user", "ralph-my-app.service"))
	if err != nil || string(written) != text(t, u) {
		t.Errorf("%v, the unit is\n%s", err, written)
	}
	state, err := s.Status(t.Context(), u)
	want := systemd.State{
		Systemd: true, Name: "ralph-my-app.service", File: s.File(u), Installed: true, Enabled: true, Active: "active", Sub: "running",
		Text: "waiting = ready", PID: 12, Result: "success", Restarts: 3, Since: "Fri 2026-11-20",
	}
	if d := cmp.Diff(want, state); d != "" || err != nil {
		t.Errorf("status: %v\n%s", err, d)
	}
	s.told(t)
	for _, want := range []bool{true, false} {
		was, err := s.Uninstall(t.Context(), u)
		if err != nil || was != want {
			t.Fatalf("was there: %v, %v, want %v", was, err, want)
		}
	}
	if got, want := s.told(t), "--no-pager --user disable --now ralph-my-app.service\n--no-pager --user daemon-reload\n"; got != want {
		t.Errorf("systemctl was told\n%s, want\n%s", got, want)
	}
	if left, err := os.ReadDir(s.Folder); err != nil || len(left) > 0 {
		t.Errorf("%v, left in the folder: %v", err, left)
	}
}

func TestAUnitOfAnotherProjectIsLeftAlone(t *testing.T) {
	s, u := newStand(t), plain()
	if _, err := s.Install(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	s.told(t)
	other := u
	other.Dir = "/home/me/elsewhere/my-app"
	_, installed := s.Install(t.Context(), other)
	_, uninstalled := s.Uninstall(t.Context(), other)
	_, status := s.Status(t.Context(), other)
	for _, err := range []error{installed, uninstalled, status} {
		if err == nil || !strings.Contains(err.Error(), "another --name") || !strings.Contains(err.Error(), "/home/me/my-app") {
			t.Errorf("err = %v", err)
		}
	}
	if got := s.told(t); got != "" {
		t.Errorf("systemctl was told %s", got)
	}
}

func TestSystemctlsMessagesArePassedOn(t *testing.T) {
	s := newStand(t)
	s.write(t, "systemctl", "#!/bin/sh\necho Failed to connect to bus: No medium found >&2\nexit 1\n")
	if _, err := s.Install(t.Context(), plain()); err == nil || !strings.Contains(err.Error(), "No medium found") || !strings.Contains(err.Error(), "log in directly") {
		t.Errorf("err = %v", err)
	}
	s.System, s.Folder = true, filepath.Join(s.dir, "system")
	s.write(t, "systemctl", "#!/bin/sh\necho Access denied >&2\nexit 4\n")
	if _, err := s.Install(t.Context(), system()); err == nil || err.Error() != "systemctl --no-pager daemon-reload: exit status 4: Access denied" {
		t.Errorf("err = %v", err)
	}
}

func TestWithoutSystemd(t *testing.T) {
	s, u := newStand(t), plain()
	s.Booted = filepath.Join(s.dir, "no such folder")
	if _, err := s.Install(t.Context(), u); !errors.Is(err, systemd.ErrNoSystemd) {
		t.Errorf("install: %v", err)
	}
	if state, err := s.Status(t.Context(), u); err != nil || state.Systemd || state.Installed {
		t.Errorf("status: %+v, %v", state, err)
	}
	if was, err := s.Uninstall(t.Context(), u); was || err != nil {
		t.Errorf("uninstall: %v, %v", was, err)
	}
	if got := s.told(t); got != "" {
		t.Errorf("systemctl was told %s", got)
	}
}
