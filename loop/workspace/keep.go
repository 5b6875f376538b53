package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph/internal/files"
)

// A Listed is a workspace as `ralph workspace list` shows it.
type Listed struct {
	Name string    `json:"name"`
	Dir  string    `json:"dir"`
	Base string    `json:"base"`
	Used time.Time `json:"used"`
	Busy bool      `json:"busy"` // a session or a check is running in it
}

// List returns the existing workspaces.
func (p *Pool) List(ctx context.Context) (list []Listed, err error) {
	entries, err := os.ReadDir(p.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if _, _, ok := parseName(e.Name()); !ok || !e.IsDir() {
			continue
		}
		l := Listed{Name: e.Name(), Dir: filepath.Join(p.Dir, e.Name(), "tree", filepath.FromSlash(p.Here.Tree.Below("")))}
		if l.Base, err = p.Here.Tree.Ref(ctx, baseRefs+l.Name); err != nil {
			return nil, err
		}
		for _, at := range []string{leftFile, "tree"} {
			if info, err := os.Stat(filepath.Join(p.Dir, e.Name(), at)); err == nil {
				l.Used = info.ModTime()
				break
			}
		}
		lock, err := p.lock(ctx, l.Name, 0)
		if l.Busy = errors.Is(err, ErrTaken); err == nil {
			err = lock.Unlock()
		}
		if err != nil && !l.Busy {
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}

// parseName parses the name of a workspace.
func parseName(name string) (number int, checks, ok bool) {
	digits, checks := strings.CutPrefix(name, CheckPrefix)
	number, err := strconv.Atoi(digits)
	return number, checks, err == nil && number > 0 && name == nameOf(number, checks)
}

// ErrNotFound means that a workspace does not exist.
var ErrNotFound = errors.New("there is no such workspace; `ralph workspace list` names them")

// named takes an existing workspace.
func (p *Pool) named(ctx context.Context, name string, wait time.Duration) (*Workspace, error) {
	none := fmt.Errorf("workspace %q: %w", name, ErrNotFound)
	number, checks, ok := parseName(name)
	if !ok || !exists(filepath.Join(p.Dir, name)) {
		return nil, none
	}
	lock, err := p.lock(ctx, name, wait)
	if err != nil {
		return nil, err
	}
	if !exists(filepath.Join(p.Dir, name)) { // the holder of the lock has removed it
		return nil, errors.Join(none, lock.Unlock())
	}
	return p.taken(ctx, number, checks, lock)
}

// Remove removes a workspace. Unsaved work in it is saved first.
func (p *Pool) Remove(ctx context.Context, name string) (err error) {
	w, err := p.named(ctx, name, lockWait)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Release()) }() // the lock file stays, as others may be waiting on it
	if err := w.rescue(ctx); err != nil {
		return err
	}
	if err := w.Clone.forget(leftFile); err != nil { // files from a later kill are nobody's work
		return err
	}
	if err := w.Clone.discard(w.Clone.folder); err != nil {
		return fmt.Errorf("workspace %s: %w", name, err)
	}
	return errors.Join(p.Here.Tree.SetRef(ctx, startRefs+name, ""), p.Here.Tree.SetRef(ctx, baseRefs+name, ""))
}

// Tidy removes the workspaces that were not used since the given time or, if the disk has less than minFree bytes left,
// all unused ones. It keeps the folders in open: their sessions still need them for their verdict.
func (p *Pool) Tidy(ctx context.Context, since time.Time, minFree uint64, open []string) error {
	stuck, err := filepath.Glob(filepath.Join(p.Dir, stuckPrefix+"*"))
	for _, folder := range stuck {
		if err := files.RemoveAll(folder); err != nil {
			p.Log.Warn("cannot remove what a workspace was made anew without; remove it by hand", "folder", folder, "error", err)
		}
	}
	if err != nil {
		return err
	}
	list, err := p.List(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	free, err := freeBytes(p.Dir)
	short := err == nil && free < minFree
	for _, l := range list {
		if l.Busy || !short && l.Used.After(since) || slices.Contains(open, l.Dir) {
			continue
		}
		err := p.Remove(ctx, l.Name)
		if errors.Is(err, ErrTaken) || errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		p.Log.Info("removed a workspace", "workspace", l.Name, "used", l.Used, "free_bytes", free)
	}
	return nil
}

// Lost returns the refs of work without an owner, and their commits.
func (p *Pool) Lost(ctx context.Context) (map[string]string, error) {
	return p.Here.Tree.Refs(ctx, lostRefs)
}

// lostStamp is when work was found in a workspace, at the end of its ref's name.
const lostStamp = "20060102T150405.000"

// lostSince returns when the work of a ref was found; the zero Time if unknown. ended tells when a session has
// ended.
func lostSince(ref string, ended func(session string) (time.Time, error)) (time.Time, error) {
	name := strings.TrimPrefix(ref, lostRefs)
	if session, _, of := strings.Cut(name, "/"); of {
		return ended(session)
	}
	if at, err := time.Parse(lostStamp, name[strings.LastIndexByte(name, '-')+1:]); err == nil {
		return at, nil
	}
	return time.Time{}, nil
}

// ForgetLost drops records from before a moment.
func (p *Pool) ForgetLost(
	ctx context.Context, before time.Time, ended func(session string) (time.Time, error),
) error {
	refs, err := p.Lost(ctx)
	for ref := range refs {
		var at time.Time
		if err == nil {
			at, err = lostSince(ref, ended)
		}
		if err == nil && !at.IsZero() && at.Before(before) {
			err = p.Here.Tree.SetRef(ctx, ref, "")
		}
	}
	return err
}
