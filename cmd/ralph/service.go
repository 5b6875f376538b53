package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ralph/internal/config"
	"ralph/internal/project"
	"ralph/internal/state"
	"ralph/internal/systemd"
	"ralph/internal/text"
)

// serviceOptions are the flags of `ralph service`.
type serviceOptions struct {
	system bool
	name   string
	user   string
}

func newService(a *app) *cobra.Command {
	var o serviceOptions
	const use = "service install|uninstall|status|print [-- FLAGS OF RUN]"
	cmd := newCommand(use, func(cmd *cobra.Command, args []string) error {
		ctx, what, flags := cmd.Context(), args[0], args[1:]
		if err := oneOf("service", what, "install", "uninstall", "status", "print"); err != nil {
			return err
		}
		switch {
		case what == "install":
			return installService(ctx, a, o, flags)
		case what == "print":
			return printService(ctx, a, o, flags)
		case len(flags) > 0:
			return usage(fmt.Errorf("`ralph service %s` takes no flags of run", what))
		case what == "uninstall":
			return uninstallService(ctx, a, o)
		}
		return serviceStatus(ctx, a, o)
	})
	cmd.Args, cmd.ValidArgs = cobra.MinimumNArgs(1), []string{"install", "uninstall", "status", "print"}
	f := cmd.Flags()
	f.BoolVar(&o.system, "system", false, "a service of the system, not of your user")
	f.StringVar(&o.name, "name", "", "call it ralph-`NAME` (default: the project's directory)")
	f.StringVar(&o.user, "user", "", "with --system: run as this `USER` (default: the caller of sudo)")
	return cmd
}

// printService prints the unit.
func printService(ctx context.Context, a *app, o serviceOptions, args []string) error {
	_, u, _, err := newUnit(ctx, a, o, args)
	if err != nil {
		return err
	}
	text, err := u.Text()
	if err != nil {
		return usage(err)
	}
	_, err = io.WriteString(a.out, text)
	return err
}

// newUnit returns the project's unit and the systemd instance for it. args are flags for `ralph
// run`.
func newUnit(ctx context.Context, a *app, o serviceOptions, args []string) (
	p *project.Project, u systemd.Unit, m systemd.Manager, err error,
) {
	if p, err = a.project(ctx); err != nil {
		return p, u, m, err
	}
	run := newRun(a)
	if err := run.ParseFlags(args); err != nil {
		return p, u, m, usage(fmt.Errorf("flags of ralph run: %w", err))
	}
	if run.Flags().NArg() > 0 {
		return p, u, m, usage(fmt.Errorf("flags of ralph run: %q is none; write them behind --", run.Flags().Arg(0)))
	}
	if o.user != "" && !o.system {
		return p, u, m, usage(errors.New("--user is for a service of the system: add --system"))
	}
	u = systemd.Unit{
		Name: o.name, Dir: p.Root, RunArgs: args, Path: os.Getenv("PATH"), System: o.system,
		State:       p.Begun(),
		StopTimeout: config.Fixed.ShutdownGrace + config.Fixed.ExitGrace + config.Fixed.KillGrace + decideTime,
	}
	if u.Name == "" {
		u.Name = filepath.Base(p.Root)
	}
	if u.Binary, err = os.Executable(); err != nil {
		return p, u, m, err
	}
	config := "/etc"
	if o.system {
		if u.User, err = serviceUser(o.user); err != nil {
			return p, u, m, err
		}
	} else if config, err = os.UserConfigDir(); err != nil {
		return p, u, m, err
	}
	u.EnvFile = filepath.Join(config, "ralph", "service.env")
	return p, u, systemd.NewManager(o.system, config, a.environ), nil
}

// decideTime is the time to decide on a stopped session. A longer verification is cut off and repeated at the next
// start.
const decideTime = 30 * time.Second

// serviceUser returns the user that a system service runs as: the named one, or the caller of sudo, or the current one.
func serviceUser(name string) (string, error) {
	if name == "" {
		name = os.Getenv("SUDO_USER")
	}
	if name != "" {
		_, err := user.Lookup(name)
		return name, usage(err)
	}
	current, err := user.Current()
	if err != nil {
		return "", err
	}
	return current.Username, nil
}

func installService(ctx context.Context, a *app, o serviceOptions, args []string) error {
	p, u, m, err := newUnit(ctx, a, o, args)
	if err != nil {
		return err
	}
	changed, err := m.Install(ctx, u)
	if errors.Is(err, systemd.ErrNoSystemd) {
		return fmt.Errorf("%w: `ralph service print` shows the unit; anything else that keeps a process alive can start "+
			"`%s -C %s run --daemon`", err, u.Binary, u.Dir)
	}
	if err != nil {
		return err
	}
	now, err := m.Status(ctx, u)
	if err != nil {
		return err
	}
	return a.print(now, func(w io.Writer) {
		if changed {
			fmt.Fprintf(w, "wrote %s\n", now.File)
		} else {
			fmt.Fprintf(w, "%s is as it should be\n", now.File)
		}
		sayService(w, m, now)
		fmt.Fprintf(w, "after an upgrade or a change: %s\n", m.Hint("systemctl", "restart", now.Name))
		fmt.Fprintf(w, "credentials, if claude is not logged in: %s\n", u.EnvFile)
		warnService(w, p.Config.Agent.Command[0], u)
	})
}

// warnService warns of obstacles for an installed service.
func warnService(w io.Writer, agent string, u systemd.Unit) {
	if _, err := exec.LookPath(agent); err != nil {
		fmt.Fprintf(w, "warning: %s is not in the PATH that the service has; "+
			"with sudo, say sudo env PATH=\"$PATH\" HOME=\"$HOME\" ralph service …\n", agent)
	}
	who, err := user.Current()
	if err == nil && !u.System && !state.Exists(filepath.Join("/var/lib/systemd/linger", who.Username)) {
		fmt.Fprintf(w, "it ends when you log out, and starts when you log in; "+
			"so that it does not: loginctl enable-linger %s\n", who.Username)
	}
}

func uninstallService(ctx context.Context, a *app, o serviceOptions) error {
	_, u, m, err := newUnit(ctx, a, o, nil)
	if err != nil {
		return err
	}
	was, err := m.Uninstall(ctx, u)
	if err != nil {
		return err
	}
	v := map[string]any{"file": m.File(u), "removed": was}
	if !was {
		return a.say(v, "%s is not installed", u.FileName())
	}
	return a.say(v, "stopped, and removed %s; the project and its queue are as they were", m.File(u))
}

func serviceStatus(ctx context.Context, a *app, o serviceOptions) error {
	_, u, m, err := newUnit(ctx, a, o, nil)
	if err != nil {
		return err
	}
	now, err := m.Status(ctx, u)
	if err != nil {
		return err
	}
	return a.print(now, func(w io.Writer) { sayService(w, m, now) })
}

func sayService(w io.Writer, m systemd.Manager, s systemd.State) {
	switch {
	case !s.Systemd:
		fmt.Fprintf(w, "no service: %v (`ralph status` tells whether a run is active)\n", systemd.ErrNoSystemd)
		return
	case !s.Installed:
		fmt.Fprintf(w, "%s is not installed (`ralph service install`)\n", s.Name)
		return
	}
	fmt.Fprintf(w, "%s: %s (%s) since %s", s.Name, s.Active, s.Sub, s.Since)
	if s.PID != 0 {
		fmt.Fprintf(w, ", process %d", s.PID)
	} else {
		fmt.Fprintf(w, ", ended with %s, exit status %d", s.Result, s.Exit)
	}
	fmt.Fprintln(w)
	if s.Text != "" {
		fmt.Fprintf(w, "  %s\n", text.Line(s.Text, 200))
	}
	if s.Restarts > 0 {
		fmt.Fprintf(w, "  systemd has restarted it %s\n", text.Count(s.Restarts, "time"))
	}
	if !s.Enabled {
		fmt.Fprintln(w, "  it does not start by itself (`ralph service install`)")
	}
	if s.NeedsLoad {
		fmt.Fprintf(w, "  its unit was changed: %s\n", m.Hint("systemctl", "daemon-reload"))
	}
	fmt.Fprintf(w, "  log: %s\n", m.Hint("journalctl", "-u", s.Name, "-f"))
}
