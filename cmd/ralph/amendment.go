package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

func newAmendment(a *app) *cobra.Command {
	cmd := noun("amendment", "Decide on changes of what a task asks for", newAmendmentList(a), newAmendmentShow(a), newAmendmentPropose(a),
		newAmendmentApprove(a), newAmendmentReject(a), newAmendmentRollback(a))
	cmd.Long = `An agent may not change a task; it proposes an amendment, and you decide. Approving one
that touches the criteria or the verification of a task that is worked on stops its
session: the work stays, and the next session begins with the amendment (docs/discussion.md).`
	return cmd
}

func amendmentID(arg string) (int64, error) {
	id, err := strconv.ParseInt(strings.TrimPrefix(arg, "#"), 10, 64)
	if err != nil || id <= 0 {
		return 0, usage(&ralph.FieldError{Field: fmt.Sprintf("amendment %q", arg), Problem: "is not a number; see `ralph amendment list`"})
	}
	return id, nil
}

func newAmendmentList(a *app) *cobra.Command {
	var task, status string
	cmd := &cobra.Command{
		Use: "list", Short: "List amendments, oldest first", Example: "  ralph amendment list --status proposed", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			var f store.AmendmentFilter
			if task != "" {
				if f.Task, err = ralph.ParseTaskID(task); err != nil {
					return err
				}
			}
			if statuses := []string{"proposed", "approved", "rejected", "superseded"}; status != "" && !slices.Contains(statuses, status) {
				return fieldError("--status", status, statuses...)
			}
			f.Status = ralph.AmendmentStatus(status)
			var list []ralph.Amendment
			if err := a.read(cmd.Context(), func(tx *store.Tx) (err error) {
				if err := tx.CheckTask(f.Task); err != nil {
					return err
				}
				list, err = tx.Amendments(f)
				return err
			}); err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) error {
				for _, m := range list {
					if _, err := fmt.Fprintf(w, "%4d  TASK-%-4d %-10s %-24s %s\n", m.ID, m.TaskID, m.Status, strings.Join(m.Patch.Keys(), ", "), oneLine(m.Rationale, 200)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&task, "task", "", "only this task's")
	cmd.Flags().StringVar(&status, "status", "", "only proposed, approved, rejected or superseded ones")
	return cmd
}

func newAmendmentShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show what an amendment changes", Example: "  ralph amendment show 3", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := amendmentID(args[0])
			if err != nil {
				return err
			}
			var m ralph.Amendment
			var t ralph.Task
			if err := a.read(cmd.Context(), func(tx *store.Tx) (err error) {
				if m, err = tx.Amendment(id); err != nil {
					return err
				}
				t, err = tx.Task(m.TaskID)
				return err
			}); err != nil {
				return err
			}
			return a.print(m, func(w io.Writer) error { return sayAmendment(w, m, t, a.screen()) })
		},
	}
}

func sayAmendment(w io.Writer, m ralph.Amendment, t ralph.Task, s screen) error {
	fmt.Fprintf(w, "amendment %d of TASK-%d %s\n%s, proposed by %s on %s\n", m.ID, t.ID, oneLine(t.Title, ralph.MaxTitle), m.Status, oneLine(m.Author, 40), m.Created.Local().Format("2006-01-02 15:04"))
	fmt.Fprintf(w, "because: %s\n", text.VisibleLine(m.Rationale))
	if m.DecidedBy != "" {
		fmt.Fprintf(w, "decided by %s: %s\n", oneLine(m.DecidedBy, 40), text.VisibleLine(m.Note))
	}
	if !m.RolledBack.IsZero() {
		fmt.Fprintf(w, "rolled back on %s\n", m.RolledBack.Local().Format("2006-01-02 15:04"))
	}
	before := m.Patch.Of(t)
	if m.Before != nil {
		before = *m.Before
	}
	fmt.Fprintln(w)
	for _, line := range m.Patch.Diff(before) {
		colour := map[byte]string{'+': "32", '-': "31"}[line[0]]
		if _, err := fmt.Fprintln(w, s.paint(colour, printable(line))); err != nil {
			return err
		}
	}
	return nil
}

func newAmendmentPropose(a *app) *cobra.Command {
	var patch, rationale string
	cmd := &cobra.Command{
		Use: "propose TASK", Short: "Propose a change of a task, to be decided on later",
		Example: "  ralph amendment propose 12 --patch '{\"contracts\":{\"verify\":[\"go test ./...\"]}}' --rationale 'the script is gone'", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := ralph.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			raw, err := a.text("--patch", patch)
			if err != nil {
				return err
			}
			p, err := ralph.ParsePatch([]byte(raw))
			if err != nil {
				return usage(err)
			}
			return a.changeAmendment(cmd, func(tx *store.Tx) (int64, error) {
				return tx.Propose(ralph.Amendment{TaskID: id, Author: a.person(), AuthorKind: ralph.ByHuman, Patch: p, Rationale: rationale})
			}, new("is proposed"))
		},
	}
	cmd.Flags().StringVar(&patch, "patch", "", "`JSON` with one or more of title, description, contracts {acceptance, verify} and priority; @FILE, or - for standard input")
	cmd.Flags().StringVar(&rationale, "rationale", "", "why")
	return cmd
}

// changeAmendment makes a change and says what came of it.
func (a *app) changeAmendment(cmd *cobra.Command, change func(tx *store.Tx) (int64, error), said *string) error {
	var m ralph.Amendment
	err := a.write(cmd.Context(), func(tx *store.Tx) error {
		id, err := change(tx)
		if err != nil {
			return err
		}
		m, err = tx.Amendment(id)
		return err
	})
	if err != nil {
		return err
	}
	return a.print(m, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "amendment %d of TASK-%d %s\n", m.ID, m.TaskID, *said)
		return err
	})
}

func newAmendmentApprove(a *app) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: "approve ID", Short: "Apply an amendment", Example: "  ralph amendment approve 3", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := amendmentID(args[0])
			if err != nil {
				return err
			}
			said := "is applied"
			return a.changeAmendment(cmd, func(tx *store.Tx) (int64, error) {
				dropped, err := tx.ApproveAmendment(id, note, a.person())
				if dropped {
					said += "; the claim is dropped: the session that works on it ends, its work stays, and the next one begins with the amendment"
				}
				return id, err
			}, &said)
		},
	}
	cmd.PostRunE = a.endClaims
	cmd.Flags().StringVar(&note, "note", "", "a word on the decision")
	return cmd
}

func newAmendmentReject(a *app) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: "reject ID", Short: "Refuse an amendment, with a reason", Example: "  ralph amendment reject 3 --note 'the script comes back'", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := amendmentID(args[0])
			if err != nil {
				return err
			}
			return a.changeAmendment(cmd, func(tx *store.Tx) (int64, error) { return id, tx.RejectAmendment(id, note, a.person()) }, new("is rejected"))
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "why")
	return cmd
}

func newAmendmentRollback(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rollback ID", Short: "Give a task back what an approved amendment replaced", Example: "  ralph amendment rollback 3", Args: cobra.ExactArgs(1),
		Long: "Give a task back what an approved amendment replaced. If the same fields have been\nchanged since, nothing is done, and they are named.",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := amendmentID(args[0])
			if err != nil {
				return err
			}
			var conflicts []string
			err = a.changeAmendment(cmd, func(tx *store.Tx) (int64, error) {
				if conflicts, err = tx.RollBack(id, a.person()); err == nil && len(conflicts) > 0 {
					err = errDryRun
				}
				return id, err
			}, new("is rolled back"))
			if errors.Is(err, errDryRun) {
				return fmt.Errorf("%s of the task changed after amendment %d was applied: nothing was done; see `ralph amendment show %d` and `ralph task edit`: %w",
					strings.Join(conflicts, ", "), id, id, ralph.ErrConflict)
			}
			return err
		},
	}
	cmd.PostRunE = a.endClaims
	return cmd
}
