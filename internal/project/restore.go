package project

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"ralph"
	"ralph/internal/permission"
	"ralph/internal/worktree"
)

// Restore writes files of a snapshot back, all or those named relative to dir, and returns them. It
// first saves the files that it replaces; before is the number of that snapshot, 0 if there was
// nothing to save.
func (p *Project) Restore(ctx context.Context, tree *worktree.Tree, id int64, dir string, names []string) (
	files []string, before int64, err error,
) {
	// A session would mistake the files for its own work.
	if active, err := p.Active(); err != nil {
		return nil, 0, err
	} else if active {
		return nil, 0, ralph.Usage(errors.New("a run is active in this project: `ralph pause` does not end its session; " +
			"stop it with `ralph stop` first"))
	}
	saved, err := tree.Saved(ctx, id)
	if err != nil {
		return nil, 0, ralph.Usage(err)
	}
	if files, err = tree.SavedFiles(ctx, saved); err != nil {
		return nil, 0, err
	}
	if files, err = chosen(files, names, dir, p.Root, tree); err != nil {
		return nil, 0, ralph.Usage(err)
	}
	scratch, err := os.MkdirTemp("", "ralph-restore-*")
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(scratch)
	now, err := tree.Snapshot(ctx, scratch)
	if err != nil {
		return nil, 0, err
	}
	ignored, err := tree.Ignored(ctx)
	if err != nil {
		return nil, 0, err
	}
	current, ok, err := tree.Save(ctx, now, ignored, scratch, fmt.Sprintf("before snapshot %d was restored", id))
	if err != nil {
		return nil, 0, err
	}
	for _, name := range current.Omitted {
		if slices.Contains(files, tree.Below(name)) {
			return nil, 0, ralph.Usage(fmt.Errorf("%s is too large to be saved before it is replaced: move it away first", name))
		}
	}
	if ok {
		before = current.ID
	}
	return files, before, tree.Restore(ctx, saved, files)
}

// chosen returns the saved files that were named, relative to the working directory; all if none
// was named. A name may be a folder.
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
		rel, err := filepath.Rel(permission.ResolveLinks(root), filepath.Join(permission.ResolveLinks(here), name))
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
