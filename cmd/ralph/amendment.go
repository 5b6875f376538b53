package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/show"
	"ralph/internal/text"
	"ralph/store"
)

func newAmendment(a *app) *cobra.Command {
	return noun("amendment", newAmendmentList(a), newAmendmentPropose(a), newAmendmentRollback(a))
}

func newAmendmentList(a *app) *cobra.Command {
	var task, status string
	cmd := newCommand("list [ID]", func(cmd *cobra.Command, args []string) (err error) {
		if len(args) > 0 {
			return onNumber("amendment", a.showAmendment)(cmd, args)
		}
		f := store.AmendmentFilter{Status: ralph.AmendmentStatus(status)}
		if f.Task, err = optionalTask(task); err != nil {
			return err
		}
		if err := oneOf("--status", status, "", "proposed", "approved", "rejected", "superseded"); err != nil {
			return err
		}
		return showTable(cmd.Context(), a, func(tx *store.Tx) ([]ralph.Amendment, error) {
			if err := tx.CheckTask(f.Task); err != nil {
				return nil, err
			}
			return tx.Amendments(f)
		}, []string{"NAME", "TASK", "STATUS", "CHANGES", "BECAUSE"}, func(m ralph.Amendment) []string {
			return []string{
				fmt.Sprintf("A%d", m.ID), fmt.Sprintf("TASK-%d", m.TaskID), string(m.Status),
				strings.Join(m.Patch.Keys(), ", "), text.Line(m.Rationale, 200),
			}
		})
	})
	cmd.Flags().StringVar(&task, "task", "", "only those of `TASK`")
	cmd.Flags().StringVar(&status, "status", "", "only those of `STATUS`: proposed, approved, rejected or superseded")
	return cmd
}

func (a *app) showAmendment(ctx context.Context, id int64) error {
	var t ralph.Task
	return showOf(ctx, a, read, func(tx *store.Tx) (m ralph.Amendment, err error) {
		if m, err = tx.Amendment(id); err == nil {
			t, err = tx.Task(m.TaskID)
		}
		return m, err
	}, func(w io.Writer, m ralph.Amendment) { show.Amendment(w, m, t, a.screen()) })
}

func newAmendmentPropose(a *app) *cobra.Command {
	var patch, rationale string
	cmd := newCommand("propose TASK", onTask(func(ctx context.Context, id int64) error {
		raw, err := a.text("--patch", patch)
		if err != nil {
			return err
		}
		p, err := ralph.ParsePatch([]byte(raw))
		if err != nil {
			return usage(err)
		}
		return a.changeAmendment(ctx, func(tx *store.Tx) (int64, string, error) {
			id, err := tx.Propose(ralph.Amendment{
				TaskID: id, Author: a.person(), AuthorKind: ralph.ByHuman, Patch: p, Rationale: rationale,
			})
			return id, "is proposed", err
		})
	}))
	cmd.Flags().StringVar(&patch, "patch", "", "`JSON` with one or more of title, description, "+
		"contracts {acceptance, verify} and priority; @FILE, or - for standard input")
	cmd.Flags().StringVar(&rationale, "rationale", "", "why, a `TEXT`")
	return cmd
}

// changeAmendment runs a change and prints its result.
func (a *app) changeAmendment(ctx context.Context, change func(tx *store.Tx) (id int64, said string, err error)) error {
	var said string
	return showOf(ctx, a, alter, after(func(tx *store.Tx) (id int64, err error) {
		id, said, err = change(tx)
		return id, err
	}, (*store.Tx).Amendment), func(w io.Writer, m ralph.Amendment) {
		fmt.Fprintf(w, "amendment %d of TASK-%d %s\n", m.ID, m.TaskID, said)
	})
}

func newAmendmentRollback(a *app) *cobra.Command {
	cmd := newCommand("rollback ID", onNumber("amendment", func(ctx context.Context, id int64) error {
		var conflicts []string
		err := a.changeAmendment(ctx, func(tx *store.Tx) (_ int64, _ string, err error) {
			if conflicts, err = tx.RollBack(id, a.person()); err == nil && len(conflicts) > 0 {
				err = errDryRun
			}
			return id, "is rolled back", err
		})
		if errors.Is(err, errDryRun) {
			return ralph.Conflict("%s of the task changed after amendment %d was applied: nothing was done; "+
				"see `ralph amendment list %d` and `ralph task edit`",
				strings.Join(conflicts, ", "), id, id)
		}
		return err
	}))
	cmd.PostRunE = a.endClaims
	return cmd
}
