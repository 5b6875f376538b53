package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph/internal/project"
	"ralph/internal/text"
	"ralph/internal/worktree"
	"ralph/loop/place"
)

func newPlace(a *app) *cobra.Command {
	return noun("place",
		newCommand("list", func(cmd *cobra.Command, _ []string) error { return a.listPlaces(cmd.Context()) }),
		newCommand("open SLOT", func(cmd *cobra.Command, args []string) error { return a.openPlace(cmd.Context(), args[0]) }),
		newCommand("reset SLOT", func(cmd *cobra.Command, args []string) error {
			return a.changePlace(cmd.Context(), args[0], "made anew before its next use", (*place.Slots).Reset)
		}),
		newCommand("remove SLOT", func(cmd *cobra.Command, args []string) error {
			return a.changePlace(cmd.Context(), args[0], "removed", (*place.Slots).Remove)
		}),
	)
}

// slots returns the project's slots.
func (a *app) slots(ctx context.Context) (*place.Slots, error) {
	p, tree, err := a.tree(ctx)
	if err != nil {
		return nil, err
	}
	if p.Confinement, err = p.Confine(ctx); err != nil { // for place.teardown
		return nil, err
	}
	return p.Slots(&place.Place{Dir: p.Root, Tree: tree, State: p.State}), nil
}

func (a *app) listPlaces(ctx context.Context) error {
	slots, err := a.slots(ctx)
	if err != nil {
		return err
	}
	list, err := slots.List(ctx)
	if err != nil {
		return err
	}
	return a.print(append([]place.Listed{}, list...), func(w io.Writer) {
		for _, l := range list {
			state := "free"
			if l.Busy {
				state = "in use"
			}
			fmt.Fprintf(w, "%-8s %-6s  %.10s  %s  %s\n", l.Name, state, l.Base, l.Used.Local().Format("Jan 2 15:04:05"),
				text.Line(l.Dir, 300))
		}
	})
}

func (a *app) openPlace(ctx context.Context, name string) error {
	slots, err := a.slots(ctx)
	if err != nil {
		return err
	}
	list, err := slots.List(ctx)
	if err != nil {
		return err
	}
	for _, l := range list {
		if l.Name == name {
			return a.print(l, func(w io.Writer) { fmt.Fprintln(w, l.Dir) })
		}
	}
	return usage(fmt.Errorf("slot %q: %w", name, place.ErrNoSlot))
}

func (a *app) changePlace(
	ctx context.Context, name, what string, change func(*place.Slots, context.Context, string) error,
) error {
	slots, err := a.slots(ctx)
	if err != nil {
		return err
	}
	if err := change(slots, ctx, name); err != nil {
		if errors.Is(err, place.ErrNoSlot) || errors.Is(err, place.ErrTaken) {
			err = usage(err)
		}
		return err
	}
	return a.print(map[string]string{"slot": name}, func(w io.Writer) { fmt.Fprintf(w, "slot %s: %s\n", name, what) })
}

// tree opens the project's work tree.
func (a *app) tree(ctx context.Context) (*project.Project, *worktree.Tree, error) {
	p, err := a.project(ctx)
	if err != nil {
		return nil, nil, err
	}
	tree, err := worktree.Open(ctx, p.Root, p.Own()...)
	return p, tree, err
}
