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

// ErrNoSystemd says that systemd does not run this machine.
var ErrNoSystemd = errors.New("systemd does not run this machine")

// A Manager installs units with one instance of systemd: a user's, or the system's.
type Manager struct {
	System  bool
	Folder  string   // where its units are
	Environ []string // the environment of systemctl
	Booted  string   // the folder that is there if systemd runs this machine, as sd_booted(3) says
}

// systemUnits is where an administrator's units are.
const systemUnits = "/etc/systemd/system"

// NewManager is the manager of the system, or of the user whose folder of
// configuration, such as ~/.config, is given.
func NewManager(system bool, config string, environ []string) Manager {
	m := Manager{System: system, Folder: systemUnits, Environ: environ, Booted: "/run/systemd/system"}
	if !system {
		m.Folder = filepath.Join(config, "systemd", "user")
	}
	return m
}

// File is where the unit is installed.
func (m Manager) File(u Unit) string { return filepath.Join(m.Folder, u.FileName()) }

// Available returns an error that wraps [ErrNoSystemd] where there is none.
func (m Manager) Available() error {
	if _, err := os.Stat(m.Booted); err != nil {
		return ErrNoSystemd
	}
	return nil
}

// installed is the text of the unit's file, "" if there is none. The error is
// also for a unit of another project.
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

// Install writes the unit, has it started now and with every start of the
// machine or session, and reports whether the file is new or has changed. A
// service that runs goes on as it is until it is restarted.
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

// write replaces a file as a whole.
func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// systemd does not read files with this ending.
	part := path + ".part"
	if err := os.WriteFile(part, []byte(text), 0o644); err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	return os.Rename(part, path)
}

// Uninstall stops the service, with its session in progress, and removes the
// unit. It reports whether there was one. The project and its database stay.
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

// A State is what systemd says of a service.
type State struct {
	Systemd   bool   `json:"systemd"` // systemd runs this machine
	Name      string `json:"name"`    // of the unit
	File      string `json:"file"`
	Installed bool   `json:"installed"`
	Enabled   bool   `json:"enabled"`    // starts by itself
	Active    string `json:"active"`     // "active", "inactive", "failed", "activating" or "deactivating"
	Sub       string `json:"sub"`        // in systemd's words: "running", "dead", "auto-restart"
	Text      string `json:"text"`       // what ralph says it is doing
	PID       int    `json:"pid"`        // 0 if it does not run
	Result    string `json:"result"`     // how it ended last: "success", "exit-code", "watchdog"
	Exit      int    `json:"exit"`       // its last exit status
	Restarts  int    `json:"restarts"`   // since it was started by hand or by the machine
	Since     string `json:"since"`      // when Active became so, in systemd's words
	NeedsLoad bool   `json:"needs_load"` // the file was changed by hand since systemd read it
}

// properties are what Status asks for, in the order of the fields.
var properties = []string{
	"UnitFileState", "ActiveState", "SubState", "StatusText", "MainPID",
	"Result", "ExecMainStatus", "NRestarts", "StateChangeTimestamp", "NeedDaemonReload",
}

// Status asks systemd for the service. Without systemd, and without a unit, it
// says just that.
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

// read takes over what `systemctl show` prints: a property a line.
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

// systemctlTime is more than the longest stop of a service takes.
const systemctlTime = 15 * time.Minute

// systemctl runs it and returns what it prints.
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
		return "", fmt.Errorf("%s: %s: this is no session of its user that systemd knows of: "+
			"log in directly (not by su or sudo), or use --system", strings.Join(command, " "), said)
	}
	return "", fmt.Errorf("%s: exit status %d: %s", strings.Join(command, " "), result.Exit.Code, said)
}

// Hint is the command line of systemctl or journalctl for people.
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
