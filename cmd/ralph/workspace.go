package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"ralph"

	"github.com/spf13/cobra"

	"ralph/internal/project"
	"ralph/internal/text"
	"ralph/internal/worktree"
	"ralph/loop/workspace"
)

func newWorkspace(a *app) *cobra.Command {
	return noun("workspace",
		newCommand("list", func(cmd *cobra.Command, _ []string) error { return a.listWorkspaces(cmd.Context()) }),
		newCommand("remove WORKSPACE", func(cmd *cobra.Command, args []string) error {
			return a.changeWorkspace(cmd.Context(), args[0], "removed", (*workspace.Pool).Remove)
		}),
	)
}

// pool returns the project's workspaces.
func (a *app) pool(ctx context.Context) (*workspace.Pool, error) {
	p, tree, err := a.tree(ctx)
	if err != nil {
		return nil, err
	}
	return p.Pool(&workspace.Workspace{Dir: p.Root, Tree: tree, State: p.State}), nil
}

func (a *app) listWorkspaces(ctx context.Context) error {
	pool, err := a.pool(ctx)
	if err != nil {
		return err
	}
	list, err := pool.List(ctx)
	if err != nil {
		return err
	}
	return a.print(append([]workspace.Listed{}, list...), func(w io.Writer) {
		tabulate(a, w, list, []string{"NAME", "STATE", "BASE", "USED", "FOLDER"}, func(l workspace.Listed) []string {
			state := "free"
			if l.Busy {
				state = "in use"
			}
			return []string{l.Name, state, ralph.ShortID(l.Base), text.When(l.Used, time.Now()), text.Line(l.Dir, 300)}
		})
	})
}

func (a *app) changeWorkspace(
	ctx context.Context, name, what string, change func(*workspace.Pool, context.Context, string) error,
) error {
	pool, err := a.pool(ctx)
	if err != nil {
		return err
	}
	if err := change(pool, ctx, name); err != nil {
		if errors.Is(err, workspace.ErrNotFound) || errors.Is(err, workspace.ErrTaken) {
			err = usage(err)
		}
		return err
	}
	return a.print(map[string]string{"workspace": name}, func(w io.Writer) {
		fmt.Fprintf(w, "workspace %s: %s\n", name, what)
	})
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
