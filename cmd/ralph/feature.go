package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

func newFeature(a *app) *cobra.Command {
	return noun("feature", "Group tasks that belong together", newFeaturePut(a, false), newFeaturePut(a, true), newFeatureList(a), newFeatureShow(a),
		&cobra.Command{
			Use: "remove NAME", Short: "Remove a feature, and what was learned for it; its tasks stay", Example: "  ralph feature remove login", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return a.write(cmd.Context(), func(tx *store.Tx) error { return tx.RemoveFeature(args[0]) })
			},
		})
}

func newFeaturePut(a *app, edit bool) *cobra.Command {
	var n ralph.Feature
	use, short, done := "add NAME", "Add a feature", "added"
	if edit {
		use, short, done = "edit NAME", "Change a feature; what is not given stays", "changed"
	}
	cmd := &cobra.Command{
		Use: use, Short: short, Example: "  ralph feature " + use[:len(use)-5] + " login -d \"Logging in\" --verify \"go test ./login/...\"", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if n.Description, err = a.text("description", n.Description); err != nil {
				return err
			}
			if n.Learnings, err = a.text("learnings", n.Learnings); err != nil {
				return err
			}
			var f ralph.Feature
			write := a.add
			if edit {
				write = a.write
			}
			if err := write(cmd.Context(), func(tx *store.Tx) error {
				f = n
				f.Name = args[0]
				if edit {
					if f, err = tx.Feature(args[0]); err != nil {
						return err
					}
					if cmd.Flags().Changed("description") {
						f.Description = n.Description
					}
					if cmd.Flags().Changed("learnings") {
						f.Learnings = n.Learnings
					}
					if cmd.Flags().Changed("verify") {
						f.Verify = n.Verify
					}
				}
				if err := tx.PutFeature(f); err != nil {
					return err
				}
				f, err = tx.Feature(args[0])
				return err
			}); err != nil {
				return err
			}
			return a.print(f, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "feature %s %s\n", oneLine(f.Name, 100), done)
				return err
			})
		},
	}
	cmd.Flags().StringVarP(&n.Description, "description", "d", "", "`TEXT`, @FILE, or - for standard input")
	cmd.Flags().StringVar(&n.Learnings, "learnings", "", "what its tasks should know: `TEXT`, @FILE or -")
	cmd.Flags().StringArrayVar(&n.Verify, "verify", nil, "a shell command that must pass for its tasks (repeatable)")
	return cmd
}

func newFeatureList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List features", Example: "  ralph feature list", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []ralph.Feature
			if err := a.read(cmd.Context(), func(tx *store.Tx) (err error) { list, err = tx.Features(); return err }); err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) error {
				for _, f := range list {
					if _, err := fmt.Fprintf(w, "%-20s %s\n", oneLine(f.Name, 100), oneLine(f.Description, 100)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func newFeatureShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a feature, how far it is, and its tasks", Example: "  ralph feature show login", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var v featureView
			if err := a.read(cmd.Context(), func(tx *store.Tx) (err error) {
				if v.Feature, err = tx.Feature(args[0]); err != nil {
					return err
				}
				if v.Progress, err = tx.Progress(args[0]); err != nil {
					return err
				}
				v.Tasks, err = tx.Tasks(store.TaskFilter{Feature: args[0]})
				return err
			}); err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) error {
				sayProgress(w, v.Feature, v.Progress)
				for _, c := range v.Verify {
					fmt.Fprintf(w, "verify  %s\n", c)
				}
				for _, t := range v.Tasks {
					if _, err := fmt.Fprintf(w, "TASK-%-5d %-11s %s\n", t.ID, t.Status, oneLine(t.Title, 100)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

// featureView is what `feature show --json` prints.
type featureView struct {
	ralph.Feature
	Progress store.Progress `json:"progress"`
	Tasks    []ralph.Task   `json:"tasks"`
}

// barWidth is how long a full bar of progress is.
const barWidth = 30

// sayProgress says how far a feature is, and what it cost.
func sayProgress(w io.Writer, f ralph.Feature, p store.Progress) {
	fmt.Fprintln(w, oneLine(f.Name, 200))
	for _, text := range []string{f.Description, f.Learnings} {
		if text = strings.TrimSpace(printable(text)); text != "" {
			fmt.Fprintf(w, "%s\n", text)
		}
	}
	wanted := 0
	var counts []string
	for _, s := range ralph.Statuses {
		n := p.Tasks[s]
		if n == 0 {
			continue
		}
		counts = append(counts, fmt.Sprintf("%d %s", n, s))
		if s != ralph.Proposed && s != ralph.Rejected && s != ralph.Cancelled {
			wanted += n
		}
	}
	if wanted > 0 {
		done := p.Tasks[ralph.Completed]
		full := barWidth * done / wanted
		fmt.Fprintf(w, "progress [%s%s] %d of %d tasks, %d %%\n", strings.Repeat("#", full), strings.Repeat("-", barWidth-full), done, wanted, 100*done/wanted)
	}
	if len(counts) > 0 {
		fmt.Fprintf(w, "tasks    %s\n", strings.Join(counts, ", "))
	}
	if p.Sessions > 0 {
		fmt.Fprintf(w, "spent    %s in %s\n", dollars(p.CostUSD), text.Count(p.Sessions, "session"))
	}
	if p.Open > 0 {
		fmt.Fprintf(w, "open     %d questions and blockers (see `ralph inbox`)\n", p.Open)
	}
	if p.Learnings > 0 {
		fmt.Fprintf(w, "learned  %d (see `ralph learning list --feature`)\n", p.Learnings)
	}
}
