// Package retention limits the disk space of transcripts: it first compresses them, then deletes
// the oldest (unattended, "Crash safety"). The database is never touched.
package retention

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Limits bound the transcripts that are kept.
type Limits struct {
	Size int64         // bytes of all transcripts
	Age  time.Duration // since the last write of a session
}

// Compressed is the extension of a compressed file.
const Compressed = ".gz"

// restful is the age before which a session's files are not compressed.
const restful = 24 * time.Hour

// small is the size below which compressing is not worth it, in bytes.
const small = 4 << 10

// A Session is the folder of one session's files.
type Session struct {
	Name  string // name of the folder, which is the session's id
	Last  time.Time
	Files []File
}

// A File is one of a session's files.
type File struct {
	Name string
	Size int64
}

// A Cleanup lists the files to compress and to delete.
type Cleanup struct {
	Compress []string // files, as "session/file"
	Drop     []string // sessions, oldest first
}

// Decide plans a cleanup. It deletes sessions that are too old and compresses the files of unused ones. If nothing is
// left to compress, it deletes the oldest until the rest fits. The effect of compression is not estimated: it counts
// the next time.
func Decide(sessions []Session, l Limits, now time.Time) (c Cleanup) {
	list := slices.SortedFunc(slices.Values(sessions), func(a, b Session) int { return a.Last.Compare(b.Last) })
	var total int64
	compressible := false
	for _, s := range list {
		for _, f := range s.Files {
			total += f.Size
			compressible = compressible || s.compressible(f, now)
		}
	}
	for _, s := range list {
		// Compressing comes before deleting for size.
		if now.Sub(s.Last) > l.Age || total > l.Size && !compressible {
			c.Drop = append(c.Drop, s.Name)
			for _, f := range s.Files {
				total -= f.Size
			}
			continue
		}
		for _, f := range s.Files {
			if s.compressible(f, now) {
				c.Compress = append(c.Compress, s.Name+"/"+f.Name)
			}
		}
	}
	return c
}

func (s Session) compressible(f File, now time.Time) bool {
	return now.Sub(s.Last) > restful && f.Size > small && !strings.HasSuffix(f.Name, Compressed)
}

// Apply keeps the folder of all sessions within the limits. It leaves sessions in progress alone.
// It continues after a file that fails, and names it.
func Apply(ctx context.Context, dir string, inProgress map[string]bool, l Limits, now time.Time) error {
	// The size after compression decides how many to delete.
	for range 2 {
		sessions, err := sessionsIn(dir, inProgress)
		if err != nil {
			return err
		}
		if err := Decide(sessions, l, now).run(ctx, dir); err != nil {
			return err
		}
	}
	return nil
}

func (c Cleanup) run(ctx context.Context, dir string) error {
	var errs []error
	for _, name := range c.Drop {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
	}
	for _, name := range c.Compress {
		if ctx.Err() != nil {
			break
		}
		errs = append(errs, compress(filepath.Join(dir, filepath.FromSlash(name))))
	}
	return errors.Join(errs...)
}

// sessionsIn lists the folders of the sessions.
func sessionsIn(dir string, inProgress map[string]bool) ([]Session, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Session
	for _, e := range entries {
		if !e.IsDir() || inProgress[e.Name()] {
			continue
		}
		files, err := os.ReadDir(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		s := Session{Name: e.Name()}
		for _, f := range files {
			info, err := f.Info()
			if err != nil || !info.Mode().IsRegular() {
				continue // it has just been removed, or is not ours
			}
			s.Files = append(s.Files, File{f.Name(), info.Size()})
			if info.ModTime().After(s.Last) {
				s.Last = info.ModTime()
			}
		}
		if len(s.Files) > 0 {
			list = append(list, s)
		}
	}
	return list, nil
}

// compress replaces a file by its compressed form, with the same modification time.
func compress(path string) (err error) {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	part := path + Compressed + ".part"
	out, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(out)
	_, err = io.Copy(z, in)
	if err = errors.Join(err, z.Close(), out.Sync(), out.Close()); err != nil {
		return errors.Join(fmt.Errorf("compress %s: %w", path, err), os.Remove(part))
	}
	if err := os.Chtimes(part, info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	if err := os.Rename(part, path+Compressed); err != nil {
		return err
	}
	return os.Remove(path)
}

// Open opens a session's file, compressed or not. The error is [fs.ErrNotExist] if neither exists.
func Open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if f, err = os.Open(path + Compressed); err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", f.Name(), err), f.Close())
	}
	return &unzipped{z, f}, nil
}

type unzipped struct {
	*gzip.Reader
	file *os.File
}

func (u *unzipped) Close() error { return errors.Join(u.Reader.Close(), u.file.Close()) }
