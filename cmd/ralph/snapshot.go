package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/permission"
	"ralph/internal/project"
	"ralph/internal/state"
	"ralph/internal/text"
	"ralph/internal/worktree"
)

func newSnapshot(a *app) *cobra.Command {
	return noun("snapshot", newSnapshotList(a), newSnapshotRestore(a))
}

// tree is the project's work tree.
func (a *app) tree(ctx context.Context) (*project.Project, *worktree.Tree, error) {
	p, err := a.project(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !p.Git {
		return nil, nil, usage(fmt.Errorf("%s is in no git repository, so nothing was saved", p.Root))
	}
	tree, err := worktree.Open(ctx, p.Root, state.PlainName)
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
					text.Count(s.Files, "file"), oneLine(s.Message, 100))
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
	// A session would take the files for its own work.
	if active, err := p.Active(); err != nil || active {
		if err == nil {
			err = usage(errors.New("a run is active in this project: `ralph pause` does not end its session; " +
				"stop it with `ralph stop` first"))
		}
		return err
	}
	saved, err := tree.Saved(ctx, id)
	if err != nil {
		return usage(err)
	}
	files, err := tree.SavedFiles(ctx, saved)
	if err != nil {
		return err
	}
	if files, err = chosen(files, names, a.chdir, p.Root, tree); err != nil {
		return usage(err)
	}
	scratch, err := os.MkdirTemp("", "ralph-restore-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	now, err := tree.Snapshot(ctx, scratch)
	if err != nil {
		return err
	}
	ignored, err := tree.Ignored(ctx)
	if err != nil {
		return err
	}
	before, ok, err := tree.Save(ctx, now, ignored, scratch, fmt.Sprintf("before snapshot %d was restored", id))
	if err != nil {
		return err
	}
	if err := tree.Restore(ctx, saved, files); err != nil {
		return err
	}
	return a.print(map[string]any{"restored": files, "saved": before.ID}, func(w io.Writer) {
		for _, f := range files {
			fmt.Fprintln(w, oneLine(f, 200))
		}
		undo := ""
		if ok {
			undo = fmt.Sprintf("; what was there before is snapshot %d", before.ID)
		}
		fmt.Fprintf(w, "%d files restored%s\n", len(files), undo)
	})
}

// chosen are the saved files that were named, relative to where the command
// works; all if none was named. A name may be a folder.
func chosen(files, names []string, dir, root string, tree *worktree.Tree) ([]string, error) {
	if len(names) == 0 {
		return files, nil
	}
	here, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, name := range names {
		rel, err := filepath.Rel(permission.Follow(root), filepath.Join(permission.Follow(here), name))
		if err != nil {
			return nil, err
		}
		rel = path.Clean(tree.Below(filepath.ToSlash(rel)))
		n := len(list)
		for _, f := range files {
			if (f == rel || len(f) > len(rel) && f[:len(rel)+1] == rel+"/") && !slices.Contains(list, f) {
				list = append(list, f)
			}
		}
		if len(list) == n {
			return nil, &ralph.FieldError{Field: fmt.Sprintf("file %q", name), Problem: "is not in the snapshot"}
		}
	}
	return list, nil
}
