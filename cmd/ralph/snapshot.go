package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/text"
	"ralph/internal/worktree"
	"ralph/loop"
)

func newSnapshot(a *app) *cobra.Command {
	cmd := noun("snapshot", "Bring back files that were not committed", newSnapshotList(a), newSnapshotRestore(a))
	cmd.Long = `Before each session ralph saves what is not committed, untracked files and small
ignored ones included (git.snapshot). Whatever an agent does with git, it can be
brought back.`
	return cmd
}

// tree is the project's work tree.
func (a *app) tree(ctx context.Context) (*project, *worktree.Tree, error) {
	p, err := a.project(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !p.git {
		return nil, nil, usage(fmt.Errorf("%s is in no git repository, so nothing was saved", p.root))
	}
	tree, err := worktree.Open(ctx, p.root, plainState)
	return p, tree, err
}

func newSnapshotList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List what was saved, newest first", Long: "List what was saved, newest first, with the files that were not committed then.",
		Example: "  ralph snapshot list", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
			return a.print(list, func(w io.Writer) error {
				for _, s := range list {
					if _, err := fmt.Fprintf(w, "%4d  %s  %9s  %s\n", s.ID, s.Created.Local().Format("Jan 2 15:04:05"), text.Count(s.Files, "file"), oneLine(s.Message, 100)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func newSnapshotRestore(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "restore ID [FILE]...", Short: "Write saved files back",
		Long: `Write the files of a snapshot that were not committed then back into the work
tree, all of them or those that are named. The index and the branch stay as they
are. What stands in their place is saved first, as a snapshot of its own.`,
		Example: "  ralph snapshot restore 3\n  ralph snapshot restore 3 notes.txt", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.restore(cmd.Context(), args[0], args[1:]) },
	}
}

func (a *app) restore(ctx context.Context, number string, names []string) error {
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || id <= 0 {
		return usage(&ralph.FieldError{Field: fmt.Sprintf("snapshot %q", number), Problem: "is not a number; see `ralph snapshot list`"})
	}
	p, tree, err := a.tree(ctx)
	if err != nil {
		return err
	}
	// A session would take the files for its own work.
	if active, err := loop.Active(p.state); err != nil || active {
		if err == nil {
			err = usage(fmt.Errorf("a run is active in this project: `ralph pause` does not end its session; stop it with `ralph stop` first"))
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
	if files, err = chosen(files, names, a.chdir, p.root, tree); err != nil {
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
	return a.print(map[string]any{"restored": files, "saved": before.ID}, func(w io.Writer) error {
		for _, f := range files {
			fmt.Fprintln(w, oneLine(f, 200))
		}
		undo := ""
		if ok {
			undo = fmt.Sprintf("; what was there before is snapshot %d", before.ID)
		}
		_, err := fmt.Fprintf(w, "%d files restored%s\n", len(files), undo)
		return err
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
		rel, err := filepath.Rel(follow(root), filepath.Join(follow(here), name))
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
