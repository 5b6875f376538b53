package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ralph/internal/proc"
)

// ErrNoSystemd means that the machine does not run systemd.
var ErrNoSystemd = errors.New("systemd does not run this machine")

// A Manager manages units of one systemd instance: a user's, or the system's.
type Manager struct {
	System  bool
	Folder  string   // folder of its units
	Environ []string // the environment of systemctl
	Booted  string   // exists if the machine runs systemd; see sd_booted(3)
}

// systemUnits is the folder of the administrator's units.
const systemUnits = "/etc/systemd/system"

// NewManager returns the manager of the system, or of the user with that configuration folder, such
// as ~/.config.
func NewManager(system bool, config string, environ []string) Manager {
	m := Manager{System: system, Folder: systemUnits, Environ: environ, Booted: "/run/systemd/system"}
	if !system {
		m.Folder = filepath.Join(config, "systemd", "user")
	}
	return m
}

// File returns the path of the unit.
func (m Manager) File(u Unit) string { return filepath.Join(m.Folder, u.FileName()) }

// Available returns an error that wraps [ErrNoSystemd] if there is no systemd.
func (m Manager) Available() error {
	if _, err := os.Stat(m.Booted); err != nil {
		return ErrNoSystemd
	}
	return nil
}

// installed returns the text of the unit's file, "" if there is none. A unit of another project is
// an error.
func (m Manager) installed(u Unit) (string, error) {
	text, err := os.ReadFile(m.File(u))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !u.Of(string(text)) {
		owner, _, _ := strings.Cut(string(text), "\n")
		return "", fmt.Errorf("%s belongs to something else (%q): give the service another --name", m.File(u), owner)
	}
	return string(text), nil
}

// Install writes and enables the unit, starts it, and reports whether the file is new or has
// changed. A running service continues with the old unit until it is restarted.
func (m Manager) Install(ctx context.Context, u Unit) (changed bool, err error) {
	if err := m.Available(); err != nil {
		return false, err
	}
	text, err := u.Text()
	if err != nil {
		return false, err
	}
	before, err := m.installed(u)
	if err != nil {
		return false, err
	}
	if changed = before != text; changed {
		if err := write(m.File(u), text); err != nil {
			return false, fmt.Errorf("unit of the service: %w", err)
		}
	}
	if _, err := m.systemctl(ctx, "daemon-reload"); err != nil {
		return changed, err
	}
	_, err = m.systemctl(ctx, "enable", "--now", u.FileName())
	return changed, err
}

// write replaces a file atomically.
func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// systemd ignores files with this extension.
	part := path + ".part"
	if err := os.WriteFile(part, []byte(text), 0o644); err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	return os.Rename(part, path)
}

// Uninstall stops the service, with its session in progress, and removes the unit. It reports
// whether there was one. The project and its database stay.
func (m Manager) Uninstall(ctx context.Context, u Unit) (was bool, err error) {
	if text, err := m.installed(u); err != nil || text == "" {
		return false, err
	}
	available := m.Available() == nil
	if available {
		if _, err := m.systemctl(ctx, "disable", "--now", u.FileName()); err != nil {
			return true, err
		}
	}
	if err := os.Remove(m.File(u)); err != nil || !available {
		return true, err
	}
	_, err = m.systemctl(ctx, "daemon-reload")
	return true, err
}

// A State is the state of a service according to systemd.
type State struct {
	Systemd   bool   `json:"systemd"` // the machine runs systemd
	Name      string `json:"name"`    // name of the unit
	File      string `json:"file"`
	Installed bool   `json:"installed"`
	Enabled   bool   `json:"enabled"`    // starts automatically
	Active    string `json:"active"`     // "active", "inactive", "failed", "activating" or "deactivating"
	Sub       string `json:"sub"`        // in systemd's terms: "running", "dead", "auto-restart"
	Text      string `json:"text"`       // ralph's status text
	PID       int    `json:"pid"`        // 0 if it is not running
	Result    string `json:"result"`     // result of the last end: "success", "exit-code", "watchdog"
	Exit      int    `json:"exit"`       // last exit status
	Restarts  int    `json:"restarts"`   // automatic restarts
	Since     string `json:"since"`      // start of Active, in systemd's format
	NeedsLoad bool   `json:"needs_load"` // the file has changed since systemd read it
}

// properties are the properties that Status reads, in the order of the fields.
var properties = []string{
	"UnitFileState", "ActiveState", "SubState", "StatusText", "MainPID",
	"Result", "ExecMainStatus", "NRestarts", "StateChangeTimestamp", "NeedDaemonReload",
}

// Status reads the state of the service. Without systemd or a unit, it reports only that.
func (m Manager) Status(ctx context.Context, u Unit) (State, error) {
	s := State{Name: u.FileName(), File: m.File(u), Systemd: m.Available() == nil}
	text, err := m.installed(u)
	if s.Installed = text != ""; err != nil || !s.Installed || !s.Systemd {
		return s, err
	}
	out, err := m.systemctl(ctx, "show", "--property="+strings.Join(properties, ","), u.FileName())
	if err != nil {
		return s, err
	}
	return s, s.read(out)
}

// read parses the output of `systemctl show`: one property per line.
func (s *State) read(out string) error {
	values := map[string]string{}
	for line := range strings.Lines(out) {
		name, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		values[name] = v
	}
	s.Enabled = values["UnitFileState"] == "enabled"
	s.Active, s.Sub, s.Text = values["ActiveState"], values["SubState"], values["StatusText"]
	s.Result, s.Since, s.NeedsLoad = values["Result"], values["StateChangeTimestamp"], values["NeedDaemonReload"] == "yes"
	for name, field := range map[string]*int{"MainPID": &s.PID, "ExecMainStatus": &s.Exit, "NRestarts": &s.Restarts} {
		n, err := strconv.Atoi(values[name])
		if err != nil {
			return fmt.Errorf("systemctl show: %s is %q, no number", name, values[name])
		}
		*field = n
	}
	return nil
}

// systemctlTime exceeds the longest stop of a service.
const systemctlTime = 15 * time.Minute

// systemctl runs systemctl and returns its output.
func (m Manager) systemctl(ctx context.Context, args ...string) (string, error) {
	command := []string{"systemctl", "--no-pager"}
	if !m.System {
		command = append(command, "--user")
	}
	command = append(command, args...)
	ctx, cancel := context.WithTimeout(ctx, systemctlTime)
	defer cancel()
	result, err := proc.Run(ctx, proc.Spec{Args: command, Env: m.Environ}, 64<<10, nil)
	if err != nil {
		return "", err
	}
	said := strings.TrimSpace(result.Output)
	switch {
	case result.Exit.Code == 0:
		return result.Output, nil
	case !m.System && strings.Contains(said, "Failed to connect to bus"):
		return "", fmt.Errorf("%s: %s: systemd knows no such session of its user: "+
			"log in directly (not by su or sudo), or use --system", strings.Join(command, " "), said)
	}
	return "", fmt.Errorf("%s: exit status %d: %s", strings.Join(command, " "), result.Exit.Code, said)
}

// Hint returns a command line of systemctl or journalctl for people.
func (m Manager) Hint(tool string, args ...string) string {
	if !m.System {
		tool += " --user"
	}
	for _, arg := range args {
		if strings.Contains(arg, `\`) {
			arg = "'" + arg + "'"
		}
		tool += " " + arg
	}
	return tool
}
