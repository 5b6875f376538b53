package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

// A named describes a kind of thing with a name: a feature or a discipline.
type named[T any] struct {
	noun   string
	list   func(tx *store.Tx) ([]T, error)
	head   []string
	cells  func(v T) []string // cells of a list
	show   func(ctx context.Context, name string) error
	check  func(ctx context.Context) error // refuses values of flags; nil for none
	get    func(tx *store.Tx, name string) (T, error)
	put    func(tx *store.Tx, name string, v T) error
	remove func(tx *store.Tx, name string) error
	texts  map[string]*string  // flags that may be @FILE or -
	set    map[string]func(*T) // setters by flag
}

// command lists the disciplines. With a NAME it shows one; with flags it creates, changes or removes it. The caller
// adds the flags that set something.
func (s *named[T]) command(a *app) *cobra.Command {
	var gone bool
	cmd := newCommand(s.noun+" [NAME]", func(cmd *cobra.Command, args []string) (err error) {
		changes := slices.ContainsFunc(slices.Collect(maps.Keys(s.set)), cmd.Flags().Changed)
		switch {
		case len(args) == 0 && (gone || changes):
			return usage(fmt.Errorf("name the %s: ralph %s NAME", s.noun, s.noun))
		case len(args) == 0:
			return showTable(cmd.Context(), a, s.list, s.head, s.cells)
		case gone:
			_, err := alter(cmd.Context(), a, func(tx *store.Tx) (any, error) { return nil, s.remove(tx, args[0]) })
			return err
		case !changes:
			return s.show(cmd.Context(), args[0])
		}
		for flag, t := range s.texts {
			if *t, err = a.text(flag, *t); err != nil {
				return err
			}
		}
		if s.check != nil {
			if err := s.check(cmd.Context()); err != nil {
				return err
			}
		}
		done := "changed"
		return showOf(cmd.Context(), a, add, func(tx *store.Tx) (v T, err error) {
			v, err = s.get(tx, args[0])
			if errors.Is(err, ralph.ErrNotFound) {
				done, err = "added", nil
			}
			if err != nil {
				return v, err
			}
			for flag, set := range s.set {
				if cmd.Flags().Changed(flag) {
					set(&v)
				}
			}
			if err := s.put(tx, args[0], v); err != nil {
				return v, err
			}
			return s.get(tx, args[0])
		}, func(w io.Writer, _ T) { fmt.Fprintf(w, "%s %s %s\n", s.noun, text.Line(args[0], 100), done) })
	})
	cmd.Flags().BoolVar(&gone, "remove", false, "remove it; its tasks stay")
	return cmd
}

func newDiscipline(a *app) *cobra.Command {
	var n ralph.Discipline
	cmd := (&named[ralph.Discipline]{
		noun: "discipline", list: (*store.Tx).Disciplines, get: (*store.Tx).Discipline, remove: (*store.Tx).RemoveDiscipline,
		head: []string{"DISCIPLINE", "MODEL", "INSTRUCTIONS"}, cells: func(d ralph.Discipline) []string {
			return []string{text.Line(d.Name, 100), text.Line(d.Model, 100), text.Line(d.Instructions, 200)}
		},
		show: func(ctx context.Context, name string) error {
			d, err := read(ctx, a, func(tx *store.Tx) (ralph.Discipline, error) { return tx.Discipline(name) })
			if err != nil {
				return err
			}
			return a.say(d, "%s  %s\n%s", text.Line(d.Name, 100), text.Line(d.Model, 100), text.Visible(d.Instructions))
		},
		check: func(ctx context.Context) error {
			return a.checkAgents(ctx, ralph.Task{Agent: n.Agent, Review: n.Review})
		},
		put: func(tx *store.Tx, name string, d ralph.Discipline) error {
			d.Name = name
			return tx.PutDiscipline(d)
		},
		texts: map[string]*string{"instructions": &n.Instructions},
		set: map[string]func(d *ralph.Discipline){
			"instructions": func(d *ralph.Discipline) { d.Instructions = n.Instructions },
			"model":        func(d *ralph.Discipline) { d.Model = n.Model },
			"agent":        func(d *ralph.Discipline) { d.Agent = n.Agent },
			"review":       func(d *ralph.Discipline) { d.Review = n.Review },
			"parallel":     func(d *ralph.Discipline) { d.Parallel = n.Parallel },
		},
	}).command(a)
	cmd.Flags().StringVar(&n.Instructions, "instructions", "", "`TEXT`, @FILE, or - for standard input")
	cmd.Flags().StringVar(&n.Model, "model", "", "the `MODEL` for its tasks")
	cmd.Flags().IntVar(&n.Parallel, "parallel", 0,
		"at most `N` sessions at once work on its tasks; 0: no bound of its own")
	cmd.Flags().StringVar(&n.Review, "review", "",
		"the agent that reviews its tasks' changes, by its `NAME` in ralph.yaml; none for nobody")
	cmd.Flags().StringVar(&n.Agent, "agent", "", "the agent for its tasks, by its `NAME` in ralph.yaml")
	return cmd
}
