package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// leastBound is the smallest default of workspace.max_size, in bytes.
const leastBound = 5 << 30

// Bound returns the maximum number of bytes that a session may take of a folder's disk: size, or if that is 0 a tenth
// of the disk, but at least 5 GiB.
func Bound(dir string, size int64) int64 {
	var s unix.Statfs_t
	if size == 0 && unix.Statfs(dir, &s) == nil {
		size = int64(s.Blocks) * int64(s.Bsize) / 10 //nolint:gosec,unconvert // no disk is that large
	}
	if size == 0 {
		return leastBound
	}
	return size
}

// A Gauge tells when a workspace takes too much of the disk. It walks through the workspace only if the loss of free
// space makes that possible.
type Gauge struct {
	w           *Workspace
	first, size int64 // at the first walk, and at the last one
	free        int64 // then
	walked      bool
}

// Gauge returns a new gauge of the workspace. It measures the workspace now if it could fill the disk before reaching
// its maximum. Otherwise the first walk can wait.
func (w *Workspace) Gauge() *Gauge {
	g := &Gauge{w: w}
	if w.Clone != nil {
		if free, reserve := room(w.Clone.folder); free-reserve <= w.Clone.pool.MaxSize {
			g.Over()
		}
	}
	return g
}

// Over reports whether the workspace and the temporary files of its commands take more than [Pool.MaxSize], or have
// filled the disk.
func (g *Gauge) Over() bool {
	c := g.w.Clone
	if c == nil || c.pool.MaxSize == 0 {
		return false
	}
	left, reserve := room(c.folder)
	temp, _ := room(os.TempDir())
	free := left + temp
	more := max((c.pool.MaxSize-g.size)/2, c.pool.MaxSize/100)
	if g.walked && left > reserve && g.free-free < more {
		return g.size > c.pool.MaxSize
	}
	dirs := []string{c.folder}
	if c.pool.Temps != nil {
		dirs = append(dirs, c.pool.Temps(c.name())...)
	}
	g.size, g.free = taken(dirs), free
	if !g.walked {
		g.first, g.walked = g.size, true
	}
	return g.size > c.pool.MaxSize || left <= reserve && g.size-g.first > reserve
}

// room returns the number of free bytes on a folder's disk, and the number that must stay free: a twentieth, at most
// 1 GiB. An unknown disk has plenty.
func room(dir string) (free, reserve int64) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return math.MaxInt32, 0
	}
	size := int64(s.Bsize) //nolint:unconvert // the types differ between systems
	//nolint:gosec // no disk is that large
	return int64(s.Bavail) * size, min(int64(s.Blocks)*size/20, 1<<30)
}

// Full reports whether a folder's disk has less free space than must stay free.
func Full(dir string) bool {
	free, reserve := room(dir)
	return free <= reserve
}

// Shed frees the disk that a session has filled: it removes temporary files, and the largest files that git does not
// track, until there is room. Ignored files are removed before the next use.
func (w *Workspace) Shed(ctx context.Context) error {
	if w.Clone == nil {
		return nil
	}
	err := errors.Join(w.shedTemps(), w.Spoil())
	_, reserve := room(w.Clone.folder)
	return errors.Join(err, w.shedFiles(ctx, reserve))
}

// shedTemps removes the temporary files, and a check's writes.
func (w *Workspace) shedTemps() error {
	c := w.Clone
	temp := filepath.Join(c.folder, "tmp")
	packs, err := filepath.Glob(filepath.Join(c.git.Scratch(), "objects", "pack", "tmp_*")) // of a git that was killed
	for _, pack := range packs {
		err = errors.Join(err, os.Remove(pack))
	}
	return errors.Join(err, c.discard(temp), os.MkdirAll(temp, 0o700), c.discard(c.dropped()))
}

const (
	leastShed = 1 << 20  // bytes of the smallest file that is removed to make room
	leastRoom = 32 << 20 // minimum number of bytes for storing anything
)

// shedFiles removes the largest files that git does not track until more than least bytes are free.
func (w *Workspace) shedFiles(ctx context.Context, least int64) error {
	c := w.Clone
	if free, _ := room(c.folder); free > least {
		return nil
	}
	tracked, err := c.git.Tracked(ctx)
	if err != nil {
		return err
	}
	type large struct {
		path string
		size int64
	}
	var list []large
	for _, top := range []string{c.git.Top(), c.caches()} {
		_ = filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			var s unix.Stat_t
			if err != nil || !e.Type().IsRegular() || unix.Lstat(path, &s) != nil || s.Blocks*512 < leastShed {
				return nil //nolint:nilerr // unreadable entries stay
			}
			if rel, err := filepath.Rel(c.git.Top(), path); err == nil && !tracked[filepath.ToSlash(rel)] {
				list = append(list, large{path, s.Blocks * 512})
			}
			return nil
		})
	}
	slices.SortFunc(list, func(a, b large) int { return cmp.Compare(b.size, a.size) })
	for _, f := range list {
		if free, _ := room(c.folder); free > least {
			break
		}
		c.pool.Log.Warn("removed a file of a session, as the disk is full",
			"workspace", c.name(), "file", f.path, "bytes", f.size)
		err = errors.Join(err, os.Remove(f.path))
	}
	return err
}

// MakeRoom frees a full disk from unused workspaces: it removes temporary files, checks' writes, and then the largest
// files that git does not track.
func (p *Pool) MakeRoom(ctx context.Context) (err error) {
	entries, rerr := os.ReadDir(p.Dir)
	if rerr != nil {
		return nil //nolint:nilerr // there are no workspaces
	}
	_, reserve := room(p.Dir)
	for _, shed := range []struct {
		least int64
		what  func(*Workspace) error
	}{
		{reserve, (*Workspace).shedTemps},
		{min(reserve, leastRoom), func(w *Workspace) error { return w.shedFiles(ctx, min(reserve, leastRoom)) }},
	} {
		for _, e := range entries {
			if free, _ := room(p.Dir); free > shed.least {
				break
			}
			w, terr := p.named(ctx, e.Name(), 0)
			if terr != nil {
				continue // in use, or no workspace
			}
			err = errors.Join(err, shed.what(w), w.Release())
		}
	}
	return err
}

// entrySize is the least size of an entry of a folder, in bytes: disks also run out of entries.
const entrySize = 4096

// taken returns the number of bytes that folders take. Files that vanish during the walk, and
// unreadable folders, count as nothing.
func taken(dirs []string) (size int64) {
	seen := map[uint64]bool{}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			var s unix.Stat_t
			if err != nil || unix.Lstat(path, &s) != nil || s.Nlink > 1 && s.Mode&unix.S_IFMT == unix.S_IFREG && seen[s.Ino] {
				return nil //nolint:nilerr // see above
			}
			if s.Nlink > 1 {
				seen[s.Ino] = true
			}
			size += max(s.Blocks*512, entrySize)
			return nil
		})
	}
	return size
}
