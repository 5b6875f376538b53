package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph/internal/project"
	"ralph/internal/text"
	"ralph/internal/worktree"
)

func newSnapshot(a *app) *cobra.Command {
	return noun("snapshot", newSnapshotList(a), newSnapshotRestore(a))
}

// tree opens the project's work tree.
func (a *app) tree(ctx context.Context) (*project.Project, *worktree.Tree, error) {
	p, err := a.project(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !p.Git {
		return nil, nil, usage(fmt.Errorf("%s is not in a git repository, so nothing was saved", p.Root))
	}
	tree, err := worktree.Open(ctx, p.Root, p.Own()...)
	return p, tree, err
}

func newSnapshotList(a *app) *cobra.Command {
	return newCommand("list", func(cmd *cobra.Command, _ []string) error {
		_, tree, err := a.tree(cmd.Context())
		if err != nil {
			return err
		}
		list, err := tree.SavedStates(cmd.Context())
		if err != nil {
			return err
		}
		for i := range list {
			files, err := tree.SavedFiles(cmd.Context(), list[i])
			if err != nil {
				return err
			}
			list[i].Files = len(files)
		}
		return a.print(list, func(w io.Writer) {
			for _, s := range list {
				fmt.Fprintf(w, "%4d  %s  %9s  %s\n", s.ID, s.Created.Local().Format("Jan 2 15:04:05"),
					text.Count(s.Files, "file"), text.Line(s.Message, 100))
			}
		})
	})
}

func newSnapshotRestore(a *app) *cobra.Command {
	return newCommand("restore ID [FILE]...", func(cmd *cobra.Command, args []string) error {
		id, err := number("snapshot", args[0])
		if err != nil {
			return err
		}
		return a.restore(cmd.Context(), id, args[1:])
	})
}

func (a *app) restore(ctx context.Context, id int64, names []string) error {
	p, tree, err := a.tree(ctx)
	if err != nil {
		return err
	}
	files, before, err := p.Restore(ctx, tree, id, a.chdir, names)
	if err != nil {
		return err
	}
	return a.print(map[string]any{"restored": files, "saved": before}, func(w io.Writer) {
		for _, f := range files {
			fmt.Fprintln(w, text.Line(f, 200))
		}
		undo := ""
		if before != 0 {
			undo = fmt.Sprintf("; what was there before is snapshot %d", before)
		}
		fmt.Fprintf(w, "%d files restored%s\n", len(files), undo)
	})
}
