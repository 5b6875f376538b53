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

	"ralph/internal/systemd"
)

// serviceOptions are the flags of `ralph service`.
type serviceOptions struct {
	system bool
	name   string
	user   string
}

func newService(a *app) *cobra.Command {
	var o serviceOptions
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Have systemd run this project's queue as a daemon",
		Long: `Have systemd run ` + "`ralph run --daemon`" + ` for this project: from the start of the
session or of the machine on, started anew when it fails, watched while it works.
Each project has a service of its own. docs/service.md tells how to set up a
machine for it.

A service of your user (the default) runs as you, with your files and logins. One
of the system needs root to install, and runs as --user.`,
		Example: "  ralph service install\n  ralph service install -- --between 22:00-06:00 --max-cost 20\n  ralph service status",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := cmd.PersistentFlags()
	f.BoolVar(&o.system, "system", false, "a service of the system, not of your user")
	f.StringVar(&o.name, "name", "", "call it ralph-`NAME` (default: the project's directory)")
	f.StringVar(&o.user, "user", "", "with --system: run as this `USER` (default: who called sudo)")
	cmd.AddCommand(
		&cobra.Command{
			Use: "install [-- FLAGS OF RUN]", Short: "Write the unit, start the service now and at every start", Example: "  ralph service install\n  ralph service install -- --schedule '0 22 * * 1-5'",
			RunE: func(cmd *cobra.Command, args []string) error { return installService(cmd.Context(), a, o, args) },
		},
		&cobra.Command{
			Use: "uninstall", Short: "Stop the service and remove the unit; the project stays", Example: "  ralph service uninstall", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return uninstallService(cmd.Context(), a, o) },
		},
		&cobra.Command{
			Use: "status", Short: "Say how the service is", Example: "  ralph service status --json", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return serviceStatus(cmd.Context(), a, o) },
		},
		&cobra.Command{
			Use: "print [-- FLAGS OF RUN]", Short: "Print the unit, without installing it", Example: "  ralph service print > ralph-app.service",
			RunE: func(cmd *cobra.Command, args []string) error {
				u, _, err := newUnit(cmd.Context(), a, o, args)
				if err != nil {
					return err
				}
				text, err := u.Text()
				if err != nil {
					return usage(err)
				}
				_, err = io.WriteString(a.out, text)
				return err
			},
		},
	)
	return cmd
}

// newUnit is the project's unit as the flags say, and the systemd that it is for.
// args are further flags of `ralph run`.
func newUnit(ctx context.Context, a *app, o serviceOptions, args []string) (u systemd.Unit, m systemd.Manager, err error) {
	p, err := a.project(ctx)
	if err != nil {
		return u, m, err
	}
	run := newRun(a)
	if err := run.ParseFlags(args); err != nil {
		return u, m, usage(fmt.Errorf("flags of ralph run: %w", err))
	}
	if run.Flags().NArg() > 0 {
		return u, m, usage(fmt.Errorf("flags of ralph run: %q is none; write them behind --", run.Flags().Arg(0)))
	}
	if o.user != "" && !o.system {
		return u, m, usage(errors.New("--user is for a service of the system: add --system"))
	}
	c := p.config.Config
	u = systemd.Unit{
		Name: o.name, Dir: p.root, RunArgs: args, Path: os.Getenv("PATH"), System: o.system,
		StopTimeout: c.ShutdownGrace + c.Agent.ExitGrace + c.Agent.KillGrace + settleTime,
	}
	if u.Name == "" {
		u.Name = filepath.Base(p.root)
	}
	if u.Binary, err = os.Executable(); err != nil {
		return u, m, err
	}
	config := "/etc"
	if o.system {
		if u.User, err = serviceUser(o.user); err != nil {
			return u, m, err
		}
	} else if config, err = os.UserConfigDir(); err != nil {
		return u, m, err
	}
	u.EnvFile = filepath.Join(config, "ralph", "service.env")
	return u, systemd.NewManager(o.system, config, a.environ), nil
}

// settleTime is what a stopped session takes to be settled. A verification that
// takes longer is cut off, and made up for at the next start.
const settleTime = 30 * time.Second

// serviceUser is who runs a service of the system: who was named, or who called
// sudo, or who calls.
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
	u, m, err := newUnit(ctx, a, o, args)
	if err != nil {
		return err
	}
	changed, err := m.Install(ctx, u)
	if errors.Is(err, systemd.ErrNoSystemd) {
		return fmt.Errorf("%w: `ralph service print` shows the unit; anything else that keeps a process alive can start `%s -C %s run --daemon`", err, u.Binary, u.Dir)
	}
	if err != nil {
		return err
	}
	state, err := m.Status(ctx, u)
	if err != nil {
		return err
	}
	return a.print(state, func(w io.Writer) error {
		if changed {
			fmt.Fprintf(w, "wrote %s\n", state.File)
		} else {
			fmt.Fprintf(w, "%s is as it should be\n", state.File)
		}
		if err := sayService(w, m, state); err != nil {
			return err
		}
		fmt.Fprintf(w, "after an upgrade or a change: %s\n", m.Hint("systemctl", "restart", state.Name))
		fmt.Fprintf(w, "credentials, if claude is not logged in: %s\n", u.EnvFile)
		return warnService(ctx, a, w, u)
	})
}

// warnService tells what will keep an installed service from working.
func warnService(ctx context.Context, a *app, w io.Writer, u systemd.Unit) error {
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath(p.config.Agent.Command[0]); err != nil {
		fmt.Fprintf(w, "warning: %s is not in the PATH that the service has; with sudo, say sudo env PATH=\"$PATH\" ralph service …\n", p.config.Agent.Command[0])
	}
	if u.System {
		return nil
	}
	who, err := user.Current()
	if err != nil {
		return err
	}
	if !exists(filepath.Join("/var/lib/systemd/linger", who.Username)) {
		_, err = fmt.Fprintf(w, "it ends when you log out, and starts when you log in; so that it does not: loginctl enable-linger %s\n", who.Username)
	}
	return err
}

func uninstallService(ctx context.Context, a *app, o serviceOptions) error {
	u, m, err := newUnit(ctx, a, o, nil)
	if err != nil {
		return err
	}
	was, err := m.Uninstall(ctx, u)
	if err != nil {
		return err
	}
	return a.print(map[string]any{"file": m.File(u), "removed": was}, func(w io.Writer) error {
		if !was {
			_, err := fmt.Fprintf(w, "%s is not installed\n", u.FileName())
			return err
		}
		_, err := fmt.Fprintf(w, "stopped, and removed %s; the project and its queue are as they were\n", m.File(u))
		return err
	})
}

func serviceStatus(ctx context.Context, a *app, o serviceOptions) error {
	u, m, err := newUnit(ctx, a, o, nil)
	if err != nil {
		return err
	}
	state, err := m.Status(ctx, u)
	if err != nil {
		return err
	}
	return a.print(state, func(w io.Writer) error { return sayService(w, m, state) })
}

func sayService(w io.Writer, m systemd.Manager, s systemd.State) error {
	switch {
	case !s.Systemd:
		_, err := fmt.Fprintf(w, "no service: %v (`ralph status` tells whether a run is active)\n", systemd.ErrNoSystemd)
		return err
	case !s.Installed:
		_, err := fmt.Fprintf(w, "%s is not installed (`ralph service install`)\n", s.Name)
		return err
	}
	fmt.Fprintf(w, "%s: %s (%s) since %s", s.Name, s.Active, s.Sub, s.Since)
	if s.PID != 0 {
		fmt.Fprintf(w, ", process %d", s.PID)
	} else {
		fmt.Fprintf(w, ", ended with %s, exit status %d", s.Result, s.Exit)
	}
	fmt.Fprintln(w)
	if s.Text != "" {
		fmt.Fprintf(w, "  %s\n", oneLine(s.Text, 200))
	}
	if s.Restarts > 0 {
		fmt.Fprintf(w, "  systemd has restarted it %d times\n", s.Restarts)
	}
	if !s.Enabled {
		fmt.Fprintln(w, "  it does not start by itself (`ralph service install`)")
	}
	if s.NeedsLoad {
		fmt.Fprintf(w, "  its unit was changed: %s\n", m.Hint("systemctl", "daemon-reload"))
	}
	_, err := fmt.Fprintf(w, "  log: %s\n", m.Hint("journalctl", "-u", s.Name, "-f"))
	return err
}
