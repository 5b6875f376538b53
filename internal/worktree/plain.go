package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// digest returns a digest of all paths, modes and contents of a project without git. Links are not
// followed; unreadable files are recorded as such.
func (t *Tree) digest(ctx context.Context) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(t.root, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		rel, relErr := filepath.Rel(t.root, path)
		if relErr != nil {
			return relErr
		}
		if slices.Contains(t.exclude, filepath.ToSlash(rel)) || entry != nil && entry.IsDir() && entry.Name() == ".git" {
			return skip(entry)
		}
		if err != nil {
			_, err = fmt.Fprintf(sum, "%q unreadable\n", rel)
			return err
		}
		return add(sum, path, rel, entry)
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

func skip(entry fs.DirEntry) error {
	if entry != nil && entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// add adds one entry of the tree to the digest.
func add(sum io.Writer, path, rel string, entry fs.DirEntry) error {
	if _, err := fmt.Fprintf(sum, "%q %s\n", rel, entry.Type()); err != nil {
		return err
	}
	switch {
	case entry.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			target = "unreadable"
		}
		_, err = fmt.Fprintf(sum, "%q\n", target)
		return err
	case !entry.Type().IsRegular():
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		_, err = fmt.Fprintln(sum, "unreadable")
		return err
	}
	// A file that shrinks or vanishes while it is read counts as changed.
	n, err := io.Copy(sum, f)
	if _, werr := fmt.Fprintf(sum, "\n%d %t\n", n, err == nil); werr != nil {
		return errors.Join(werr, f.Close())
	}
	return f.Close()
}
