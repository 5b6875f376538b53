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
	put := func(edit bool) *cobra.Command {
		var n ralph.Feature
		cmd := putting(a, &named[ralph.Feature]{
			noun: "feature", show: (*store.Tx).Feature,
			put: func(tx *store.Tx, name string, f ralph.Feature) error {
				f.Name = name
				return tx.PutFeature(f)
			},
			texts: map[string]*string{"description": &n.Description, "learnings": &n.Learnings},
			set: map[string]func(f *ralph.Feature){
				"description": func(f *ralph.Feature) { f.Description = n.Description },
				"learnings":   func(f *ralph.Feature) { f.Learnings = n.Learnings },
				"verify":      func(f *ralph.Feature) { f.Verify = n.Verify },
			},
		}, edit)
		cmd.Flags().StringVarP(&n.Description, "description", "d", "", "`TEXT`, @FILE, or - for standard input")
		cmd.Flags().StringVar(&n.Learnings, "learnings", "", "what its tasks should know: `TEXT`, @FILE or -")
		cmd.Flags().StringArrayVar(&n.Verify, "verify", nil, "a shell command that must pass for its tasks (repeatable)")
		return cmd
	}
	list := listing(a, "list", (*store.Tx).Features,
		func(w io.Writer, f ralph.Feature) {
			fmt.Fprintf(w, "%-20s %s\n", oneLine(f.Name, 100), oneLine(f.Description, 100))
		})
	remove := removing(a, (*store.Tx).RemoveFeature)
	return noun("feature", put(false), put(true), list, newFeatureShow(a), remove)
}

// featureView is what `feature show --json` prints.
type featureView struct {
	ralph.Feature
	Progress store.Progress `json:"progress"`
	Tasks    []ralph.Task   `json:"tasks"`
}

func newFeatureShow(a *app) *cobra.Command {
	return newCommand("show NAME", func(cmd *cobra.Command, args []string) error {
		return showOf(cmd.Context(), a, read, func(tx *store.Tx) (v featureView, err error) {
			if v.Feature, err = tx.Feature(args[0]); err != nil {
				return v, err
			}
			if v.Progress, err = tx.Progress(args[0]); err != nil {
				return v, err
			}
			v.Tasks, err = tx.Tasks(store.TaskFilter{Feature: args[0]})
			return v, err
		}, func(w io.Writer, v featureView) {
			sayProgress(w, v.Feature, v.Progress)
			for _, c := range v.Verify {
				fmt.Fprintf(w, "verify  %s\n", c)
			}
			for _, t := range v.Tasks {
				fmt.Fprintf(w, "TASK-%-5d %-11s %s\n", t.ID, t.Status, oneLine(t.Title, 100))
			}
		})
	})
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
		fmt.Fprintf(w, "progress [%s%s] %d of %d tasks, %d %%\n",
			strings.Repeat("#", full), strings.Repeat("-", barWidth-full), done, wanted, 100*done/wanted)
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
