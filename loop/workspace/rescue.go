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

func (p *Workspace) standing(ctx context.Context) (standing, error) {
	look, err := p.Clone.git.Whole(ctx)
	return standing{look.Head, look.Content}, err
}

// Note records that the workspace's present state needs no saving.
func (p *Workspace) Note(ctx context.Context) error {
	now, err := p.standing(ctx)
	if err != nil {
		return err
	}
	return p.note(now)
}

// NoteAs is [Workspace.Note] for the state that was looked at: what has changed since is saved before the next use.
func (p *Workspace) NoteAs(ctx context.Context, at worktree.Snapshot) error {
	if at.Content == "" || p.Clone.git.Below("") != "" { // it is not of the whole work tree
		return p.Note(ctx)
	}
	return p.note(standing{at.Head, at.Content})
}

// Discard makes nothing of what is in the workspace, of which even the ignored files are removed before its next use.
// It reports whether anything else was changed since the workspace was prepared.
func (p *Workspace) Discard(ctx context.Context) (changed bool, err error) {
	b, err := os.ReadFile(filepath.Join(p.Clone.folder, leftFile))
	var was, now standing
	if err == nil {
		err = json.Unmarshal(b, &was)
	}
	if err == nil {
		now, err = p.standing(ctx)
	}
	return now != was, errors.Join(err, p.Spoil(), p.Clone.forget(leftFile), p.Clone.forget(ownerFile))
}

func (p *Workspace) note(now standing) error {
	b, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(p.Clone.folder, leftFile), b, 0o600), p.Clone.forget(ownerFile))
}

// rescue saves work in the workspace that is newer than the last Note, either
// for the session, which is then decided without the workspace, or for people.
func (p *Workspace) rescue(ctx context.Context) error {
	s := p.Clone
	b, err := os.ReadFile(filepath.Join(s.folder, leftFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was just being prepared
	}
	var was standing
	if err != nil || json.Unmarshal(b, &was) != nil {
		return err
	}
	var now standing
	if err := p.taking(ctx, func(ctx context.Context) (err error) { now, err = p.standing(ctx); return err }); err != nil {
		if ctx.Err() == nil {
			err = p.putAway(ctx, err)
		}
		return err
	}
	if now == was || s.Base == "" {
		return nil
	}
	ref, err := s.owner()
	if err != nil {
		return err
	}
	saved := ""
	if ref != "" {
		if saved, err = s.pool.Here.Tree.Ref(ctx, ref); err != nil {
			return err
		}
	}
	if ref == "" || saved != "" { // the session's work was saved and decided before
		ref = lostRefs + s.name() + "-" + time.Now().UTC().Format(lostStamp)
	}
	if saved != "" {
		tree, err := s.pool.Here.Tree.Whole(ctx, saved)
		if err != nil {
			return err
		}
		if tree == now.Content {
			return nil // ralph was killed before it noted so
		}
	}
	if err := p.taking(ctx, func(ctx context.Context) error {
		now, err := p.standing(ctx)
		if err != nil {
			return err
		}
		made, err := s.candidate(ctx, now.Content, "Found in workspace "+s.name()+"\n")
		if err == nil {
			err = s.pool.Here.Tree.Fetch(ctx, s.git, s.Base, made.Head, ref)
		}
		return err
	}); err != nil {
		if ctx.Err() == nil {
			err = p.putAway(ctx, err)
		}
		return err
	}
	s.pool.Log.Warn("saved unsaved work from a workspace as a commit", "workspace", s.name(), "ref", ref)
	return nil
}

// taking has do take what is in the workspace, once more with a .git of ralph's if git refuses what is in the
// workspace's.
func (p *Workspace) taking(ctx context.Context, do func(ctx context.Context) error) error {
	limited, cancel := worktree.Limited(ctx)
	err := do(limited)
	cancel()
	if err == nil || ctx.Err() != nil || !worktree.Refused(err) {
		return err
	}
	if rerr := p.Renew(ctx, err); rerr != nil {
		return errors.Join(err, rerr)
	}
	limited, cancel = worktree.Limited(ctx)
	defer cancel()
	return do(limited)
}

// Renew puts a new .git into the workspace, as git refuses something in the present one. Why says what. The files
// stay.
func (p *Workspace) Renew(ctx context.Context, why error) error {
	p.Clone.pool.Log.Warn("put a new .git into a workspace, as git refuses what was in it; the files are as they were",
		"workspace", p.Clone.name(), "error", why)
	return p.Clone.git.Renew(ctx)
}

// putAway moves a workspace's files aside for people, as nothing can be taken from them. A git that was killed from
// outside says nothing of them: that is returned, to be tried again.
func (p *Workspace) putAway(ctx context.Context, why error) error {
	if worktree.Killed(why) {
		return untold(why)
	}
	if os.Remove(p.Clone.git.Top()) == nil { // it is empty
		return os.MkdirAll(p.Dir, 0o700)
	}
	return p.without(ctx, func(path string) error {
		folder, err := p.Clone.aside("lost-", path)
		if err == nil {
			p.Clone.pool.Log.Warn("moved aside a workspace's files, of which nothing can be taken",
				"workspace", p.Clone.name(), "folder", folder, "error", why)
		}
		return err
	})
}

// scrap removes a workspace's files, which git could not clean, ignored ones included.
func (p *Workspace) scrap(ctx context.Context, why error) error {
	p.Clone.pool.Log.Warn("made a workspace anew, as git could not clean it", "workspace", p.Clone.name(), "error", why)
	if err := p.Clone.forget(setupFile); err != nil {
		return err
	}
	return p.without(ctx, p.Clone.discard)
}

// without has the workspace's files taken away, or all of the workspace if that fails, and makes an empty workspace.
func (p *Workspace) without(ctx context.Context, take func(path string) error) error {
	s := p.Clone
	err := take(s.git.Top())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if err := take(s.folder); err != nil {
			return fmt.Errorf("workspace %s can be neither used nor replaced: %w", s.name(), err)
		}
	}
	if s.git, err = s.pool.Here.Tree.Clone(ctx, s.folder); err == nil {
		p.Tree = s.git.Tree
	}
	return err
}

// stuckPrefix begins the names of what could not be removed.
const stuckPrefix = "stuck-"

// discard removes a file or a folder of the workspace, or moves it away if it cannot be removed.
func (s *Clone) discard(path string) error {
	err := files.RemoveAll(path)
	if err == nil {
		return nil
	}
	folder, rerr := s.aside(stuckPrefix, path)
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	s.pool.Log.Warn("cannot remove files of a workspace, and moved them aside",
		"workspace", s.name(), "folder", folder, "error", err)
	return nil
}

// aside moves a file or a folder of the workspace next to the workspaces.
func (s *Clone) aside(prefix, path string) (to string, err error) {
	to = filepath.Join(s.pool.Dir, prefix+s.name()+"-"+time.Now().UTC().Format("20060102T150405.000000"))
	return to, os.Rename(path, to)
}
