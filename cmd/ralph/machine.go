package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/text"
	"ralph/store"
)

func newMachine(a *app) *cobra.Command {
	return noun("machine",
		newCommand("list", func(cmd *cobra.Command, _ []string) error {
			return showList(cmd.Context(), a, (*store.Tx).Machines, sayMachine)
		}),
		newMachineDrain(a),
		newCommand("remove NAME", func(cmd *cobra.Command, args []string) error {
			return a.removeMachine(cmd.Context(), args[0])
		}),
	)
}

// sayMachine prints a machine.
func sayMachine(w io.Writer, m ralph.Machine) {
	state := "gone"
	switch {
	case m.Alive:
		state = "works"
	case m.LeaseUntil.IsZero():
		state = "no run"
	}
	fmt.Fprintf(w, "%-16s %-7s run %-5d %-11s seen %s", text.Line(m.Name, 100), state, m.RunID,
		text.Count(m.Sessions, "session"), text.When(m.SeenAt.Time, time.Now()))
	if m.Alive && !m.LeaseUntil.IsZero() {
		fmt.Fprintf(w, ", lease until %s", text.When(m.LeaseUntil.Time, time.Now()))
	}
	if !m.DrainedAt.IsZero() {
		fmt.Fprintf(w, "  drained by %s", text.Line(m.DrainedBy, 100))
	}
	fmt.Fprintln(w)
}

func newMachineDrain(a *app) *cobra.Command {
	undo := false
	cmd := newCommand("drain NAME", func(cmd *cobra.Command, args []string) error {
		m, err := alter(cmd.Context(), a, func(tx *store.Tx) (m ralph.Machine, err error) {
			if err = tx.Drain(args[0], a.person(), undo); err == nil {
				m, err = tx.Machine(args[0])
			}
			return m, err
		})
		if err != nil {
			return err
		}
		said := fmt.Sprintf("no run may begin on %s until `ralph machine drain %[1]s --undo`", m.Name)
		switch {
		case undo:
			said = "runs may begin on " + m.Name
		case m.Alive:
			said = fmt.Sprintf("run %d on %s takes no further task, and ends after its sessions in progress (%s); ",
				m.RunID, m.Name, text.Count(m.Sessions, "session")) + said
		}
		return a.say(m, "%s", said)
	})
	cmd.Flags().BoolVar(&undo, "undo", false, "allow runs there again")
	return cmd
}

// removeMachine deletes a machine, and decides on its open sessions.
func (a *app) removeMachine(ctx context.Context, name string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return a.with(ctx, func(p *project.Project, db *store.DB) error {
		if err := db.Tx(ctx, func(tx *store.Tx) error { return tx.RemoveMachine(name) }); err != nil {
			return err
		}
		var err error
		if p.Confinement, err = p.Confine(ctx); err != nil { // a done may need a check
			return err
		}
		l, err := p.Loop(ctx, db)
		if err == nil {
			err = l.TakeOver(ctx)
		}
		is := "are decided"
		if err == nil {
			err = db.View(ctx, func(tx *store.Tx) error {
				left, err := tx.LostSessions(true)
				if err != nil || !slices.ContainsFunc(left, func(s ralph.Session) bool { return s.Machine == name }) {
					return err
				}
				is = "are being decided by another machine"
				away, err := tx.RemoteAway()
				if err == nil && away {
					err = ralph.Conflict("the remote, which may have its work, cannot be reached")
				}
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("%s is removed; the next run decides on its sessions: %w", name, err)
		}
		return a.say(map[string]string{"machine": name}, "%s is removed, and its open sessions %s", name, is)
	})
}
