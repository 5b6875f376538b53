package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ralph/internal/files"
	"ralph/internal/worktree"
)

// A standing is the state of a workspace.
type standing struct{ Head, Content string }

func (w *Workspace) standing(ctx context.Context) (standing, error) {
	seen, err := w.Clone.git.Whole(ctx)
	return standing{seen.Head, seen.Content}, err
}

// Note records that the workspace's present state needs no saving.
func (w *Workspace) Note(ctx context.Context) error {
	now, err := w.standing(ctx)
	if err != nil {
		return err
	}
	return w.note(now)
}

// NoteAs is [Workspace.Note] for the state that was looked at: later changes are saved before the next use.
func (w *Workspace) NoteAs(ctx context.Context, at worktree.Snapshot) error {
	if at.Content == "" || w.Clone.git.Below("") != "" { // it is not of the whole work tree
		return w.Note(ctx)
	}
	return w.note(standing{at.Head, at.Content})
}

// Discard gives up the contents of the workspace: even ignored files and caches are removed before its next use. It
// reports whether other files were changed since the workspace was prepared.
func (w *Workspace) Discard(ctx context.Context) (changed bool, err error) {
	b, err := os.ReadFile(filepath.Join(w.Clone.folder, leftFile))
	var was, now standing
	if err == nil {
		err = json.Unmarshal(b, &was)
	}
	if err == nil {
		now, err = w.standing(ctx)
	}
	return now != was, errors.Join(err, w.Spoil(), w.Clone.forget(leftFile), w.Clone.forget(ownerFile))
}

func (w *Workspace) note(now standing) error {
	b, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(w.Clone.folder, leftFile), b, 0o600), w.Clone.forget(ownerFile))
}

// rescue saves work in the workspace that is newer than the last Note, either
// for the session, which is then decided without the workspace, or for people.
func (w *Workspace) rescue(ctx context.Context) error {
	c := w.Clone
	b, err := os.ReadFile(filepath.Join(c.folder, leftFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was just being prepared
	}
	var was standing
	if err != nil || json.Unmarshal(b, &was) != nil {
		return err
	}
	var now standing
	if err := w.taking(ctx, func(ctx context.Context) (err error) { now, err = w.standing(ctx); return err }); err != nil {
		if ctx.Err() == nil {
			err = w.putAway(ctx, err)
		}
		return err
	}
	if now == was || c.Base == "" {
		return nil
	}
	ref, err := c.owner()
	if err != nil {
		return err
	}
	saved := ""
	if ref != "" {
		if saved, err = c.pool.Here.Tree.Ref(ctx, ref); err != nil {
			return err
		}
	}
	if ref == "" || saved != "" { // the session's work was saved and decided before
		ref = lostRefs + c.name() + "-" + time.Now().UTC().Format(lostStamp)
	}
	if saved != "" {
		tree, err := c.pool.Here.Tree.Whole(ctx, saved)
		if err != nil {
			return err
		}
		if tree == now.Content {
			return nil // ralph was killed before it noted so
		}
	}
	if err := w.taking(ctx, func(ctx context.Context) error {
		now, err := w.standing(ctx)
		if err != nil {
			return err
		}
		made, err := c.candidate(ctx, now.Content, "Found in workspace "+c.name()+"\n")
		if err == nil {
			err = c.pool.Here.Tree.Fetch(ctx, c.git, c.Base, made.Head, ref)
		}
		return err
	}); err != nil {
		if ctx.Err() == nil {
			err = w.putAway(ctx, err)
		}
		return err
	}
	c.pool.Log.Warn("saved unsaved work from a workspace as a commit", "workspace", c.name(), "ref", ref)
	return nil
}

// taking calls do to save the workspace's contents, and once more with a new .git if git refuses the workspace's own.
func (w *Workspace) taking(ctx context.Context, do func(ctx context.Context) error) error {
	limited, cancel := worktree.Limited(ctx)
	err := do(limited)
	cancel()
	if err == nil || ctx.Err() != nil || !worktree.Refused(err) {
		return err
	}
	if rerr := w.Renew(ctx, err); rerr != nil {
		return errors.Join(err, rerr)
	}
	limited, cancel = worktree.Limited(ctx)
	defer cancel()
	return do(limited)
}

// Renew puts a new .git into the workspace, because git refuses the present one. Why is the refusal. The files stay.
func (w *Workspace) Renew(ctx context.Context, why error) error {
	w.Clone.pool.Log.Warn("put a new .git into a workspace, because git refuses the old one; the files are unchanged",
		"workspace", w.Clone.name(), "error", why)
	return w.Clone.git.Renew(ctx)
}

// putAway moves a workspace's files aside for people, because nothing can be taken from them. A git that was killed
// from outside proves nothing about them: that error is returned, and tried again.
func (w *Workspace) putAway(ctx context.Context, why error) error {
	if worktree.Killed(why) {
		return untold(why)
	}
	if os.Remove(w.Clone.git.Top()) == nil { // it is empty
		return os.MkdirAll(w.Dir, 0o700)
	}
	return w.without(ctx, func(path string) error {
		folder, err := w.Clone.aside("lost-", path)
		if err == nil {
			w.Clone.pool.Log.Warn("moved aside a workspace's files: none of them can be taken",
				"workspace", w.Clone.name(), "folder", folder, "error", why)
		}
		return err
	})
}

// scrap removes a workspace's files, including ignored ones, which git could not clean.
func (w *Workspace) scrap(ctx context.Context, why error) error {
	w.Clone.pool.Log.Warn("made a workspace anew, as git could not clean it", "workspace", w.Clone.name(), "error", why)
	if err := w.Clone.forget(setupFile); err != nil {
		return err
	}
	return w.without(ctx, w.Clone.discard)
}

// without removes the workspace's files, or the whole workspace if that fails, and makes an empty
// workspace.
func (w *Workspace) without(ctx context.Context, take func(path string) error) error {
	c := w.Clone
	err := take(c.git.Top())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if err := take(c.folder); err != nil {
			return fmt.Errorf("workspace %s can be neither used nor replaced: %w", c.name(), err)
		}
	}
	if c.git, err = c.pool.Here.Tree.Clone(ctx, c.folder); err == nil {
		w.Tree = c.git.Tree
	}
	return err
}

// stuckPrefix begins the names of entries that could not be removed.
const stuckPrefix = "stuck-"

// discard removes a file or a folder of the workspace, or moves it away if it cannot be removed.
func (c *Clone) discard(path string) error {
	err := files.RemoveAll(path)
	if err == nil {
		return nil
	}
	folder, rerr := c.aside(stuckPrefix, path)
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	c.pool.Log.Warn("cannot remove files of a workspace, and moved them aside",
		"workspace", c.name(), "folder", folder, "error", err)
	return nil
}

// aside moves a file or a folder of the workspace next to the workspaces.
func (c *Clone) aside(prefix, path string) (to string, err error) {
	to = filepath.Join(c.pool.Dir, prefix+c.name()+"-"+time.Now().UTC().Format("20060102T150405.000000"))
	return to, os.Rename(path, to)
}
