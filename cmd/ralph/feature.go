package main

import (
	"context"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/show"
	"ralph/internal/text"
	"ralph/store"
)

func newFeature(a *app) *cobra.Command {
	var n ralph.Feature
	cmd := (&named[ralph.Feature]{
		noun: "feature", list: (*store.Tx).Features, get: (*store.Tx).Feature, remove: (*store.Tx).RemoveFeature,
		head: []string{"FEATURE", "DESCRIPTION"}, cells: func(f ralph.Feature) []string {
			return []string{text.Line(f.Name, 100), text.Line(f.Description, 200)}
		},
		show: func(ctx context.Context, name string) error {
			named := func(tx *store.Tx) (show.FeatureView, error) { return show.ReadFeature(tx, name) }
			return showOf(ctx, a, read, named, show.Feature)
		},
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
	}).command(a)
	cmd.Flags().StringVarP(&n.Description, "description", "d", "", "`TEXT`, @FILE, or - for standard input")
	cmd.Flags().StringVar(&n.Learnings, "learnings", "", "notes for its tasks: `TEXT`, @FILE or -")
	cmd.Flags().StringArrayVar(&n.Verify, "verify", nil, "a shell `COMMAND` that must pass for its tasks (repeatable)")
	return cmd
}
