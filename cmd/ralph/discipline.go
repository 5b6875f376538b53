package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

// A named describes a kind of thing with a name: a feature or a discipline.
type named[T any] struct {
	noun  string
	show  func(tx *store.Tx, name string) (T, error)
	put   func(tx *store.Tx, name string, v T) error
	texts map[string]*string  // flags that may be @FILE or -
	set   map[string]func(*T) // setters by flag
}

// putting makes the command that adds or edits one; the caller adds the flags.
func putting[T any](a *app, s *named[T], edit bool) *cobra.Command {
	verb, done := "add", "added"
	change := add[T]
	if edit {
		verb, done = "edit", "changed"
		change = alter[T]
	}
	return newCommand(verb+" NAME", func(cmd *cobra.Command, args []string) (err error) {
		for flag, t := range s.texts {
			if *t, err = a.text(flag, *t); err != nil {
				return err
			}
		}
		return showOf(cmd.Context(), a, change, func(tx *store.Tx) (v T, err error) {
			if edit {
				if v, err = s.show(tx, args[0]); err != nil {
					return v, err
				}
			}
			for flag, set := range s.set {
				if cmd.Flags().Changed(flag) {
					set(&v)
				}
			}
			if err := s.put(tx, args[0], v); err != nil {
				return v, err
			}
			return s.show(tx, args[0])
		}, func(w io.Writer, _ T) { fmt.Fprintf(w, "%s %s %s\n", s.noun, text.Line(args[0], 100), done) })
	})
}

// removing makes the command that removes one by name.
func removing(a *app, remove func(tx *store.Tx, name string) error) *cobra.Command {
	return newCommand("remove NAME", func(cmd *cobra.Command, args []string) error {
		_, err := alter(cmd.Context(), a, func(tx *store.Tx) (any, error) { return nil, remove(tx, args[0]) })
		return err
	})
}

func newDiscipline(a *app) *cobra.Command {
	put := func(edit bool) *cobra.Command {
		var n ralph.Discipline
		cmd := putting(a, &named[ralph.Discipline]{
			noun: "discipline", show: (*store.Tx).Discipline,
			put: func(tx *store.Tx, name string, d ralph.Discipline) error {
				d.Name = name
				return tx.PutDiscipline(d)
			},
			texts: map[string]*string{"instructions": &n.Instructions},
			set: map[string]func(d *ralph.Discipline){
				"instructions": func(d *ralph.Discipline) { d.Instructions = n.Instructions },
				"model":        func(d *ralph.Discipline) { d.Model = n.Model },
				"agent":        func(d *ralph.Discipline) { d.Agent = n.Agent },
				"parallel":     func(d *ralph.Discipline) { d.Parallel = n.Parallel },
			},
		}, edit)
		cmd.Flags().StringVar(&n.Instructions, "instructions", "", "`TEXT`, @FILE, or - for standard input")
		cmd.Flags().StringVar(&n.Model, "model", "", "the `MODEL` for its tasks")
		cmd.Flags().IntVar(&n.Parallel, "parallel", 0,
			"at most `N` sessions at once work on its tasks; 0 is no bound of its own")
		cmd.Flags().StringVar(&n.Agent, "agent", "", "the agent for its tasks, by its `NAME` in ralph.yaml")
		return cmd
	}
	list := listing(a, "list", (*store.Tx).Disciplines,
		func(w io.Writer, d ralph.Discipline) {
			fmt.Fprintf(w, "%-20s %-10s %s\n", text.Line(d.Name, 100), text.Line(d.Model, 100), text.Line(d.Instructions, 80))
		})
	show := newCommand("show NAME", func(cmd *cobra.Command, args []string) error {
		d, err := read(cmd.Context(), a, func(tx *store.Tx) (ralph.Discipline, error) { return tx.Discipline(args[0]) })
		if err != nil {
			return err
		}
		return a.say(d, "%s  %s\n%s", text.Line(d.Name, 100), text.Line(d.Model, 100), text.Visible(d.Instructions))
	})
	remove := removing(a, (*store.Tx).RemoveDiscipline)
	return noun("discipline", put(false), put(true), list, show, remove)
}
