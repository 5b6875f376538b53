package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Files beside a workspace's work tree, or in a ground, that tell the sandbox about the person's folder.
const (
	ignoredFile = "ignored" // the paths in it that git ignored when the workspace was prepared
	linkedFile  = "linked"  // the links that set-up made: their targets, by the paths of the links
)

// Ignored returns the paths in the person's folder that git ignored when the workspace in a folder was prepared. It is
// false if that is unknown.
func Ignored(folder string) (paths []string, known bool) {
	err := readJSON(filepath.Join(folder, ignoredFile), &paths)
	return paths, err == nil
}

// Linked returns the targets of the links that set-up made in the workspace in a folder, or in its ground. Each link of
// a chain has its own.
func Linked(folder string) (targets []string) {
	for _, dir := range []string{folder, filepath.Join(folder, Ground)} {
		var links map[string]string
		if err := readJSON(filepath.Join(dir, linkedFile), &links); err != nil {
			continue // there are none; unknown files are not shown
		}
		for _, to := range links {
			for range maxLinks {
				targets = append(targets, to)
				next, err := os.Readlink(to)
				if err != nil {
					break
				}
				to = resolved(filepath.Dir(to), next)
			}
		}
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

// maxLinks is the greatest length of a chain of links, as in the kernel.
const maxLinks = 40

// noteIgnored records the paths that git ignores in the person's folder. If git cannot tell, it records nothing.
func (c *Clone) noteIgnored(ctx context.Context) error {
	if err := c.forget(ignoredFile); err != nil {
		return err
	}
	paths, err := c.pool.Here.Tree.Ignored(ctx)
	if err != nil {
		return ctx.Err() //nolint:nilerr // the sandbox then hides the folder as a whole
	}
	return writeJSON(filepath.Join(c.folder, ignoredFile), paths)
}

// coarse is the maximum lag of the kernel's file times behind the clock.
const coarse = 20 * time.Millisecond

// noteLinks records in a folder the links that set-up made in dir since a moment, and those recorded before that are
// unchanged. Commands see dir as the folder as.
func (w *Workspace) noteLinks(in, dir, as string, given given, since time.Time) error {
	file, links, before := filepath.Join(in, linkedFile), map[string]string{}, map[string]string{}
	if err := readJSON(file, &before); err != nil && !errors.Is(err, fs.ErrNotExist) {
		before = nil // a crash left half of it
	}
	for _, name := range given { // copied with the person's links
		if to, err := os.Readlink(w.Here().Path(name)); err == nil && filepath.IsAbs(to) {
			links[w.Path(name)] = filepath.Clean(to)
		}
	}
	since = since.Add(-coarse)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink == 0 {
			if e != nil && e.IsDir() && e.Name() == ".git" {
				return fs.SkipDir
			}
			return err
		}
		to, err := os.Readlink(path)
		if err != nil {
			return err
		}
		var stat unix.Stat_t
		if err := unix.Lstat(path, &stat); err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		at := filepath.Join(as, rel)
		to = resolved(filepath.Dir(at), to)
		if !within(to, as) && (before[at] == to || time.Unix(stat.Ctim.Unix()).After(since)) {
			links[at] = to
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return writeJSON(file, links)
}

// resolved returns the path that a link in a folder leads to.
func resolved(dir, to string) string {
	if filepath.IsAbs(to) {
		return filepath.Clean(to)
	}
	return filepath.Join(dir, to)
}

// within reports whether a path is a folder or in it.
func within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

func readJSON(file string, to any) error {
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, to)
	}
	return err
}

func writeJSON(file string, from any) error {
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}
