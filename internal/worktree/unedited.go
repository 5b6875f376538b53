package worktree

import (
	"context"
	"crypto/sha1" //nolint:gosec // git names objects so
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ralph/internal/files"
)

// regular are git's modes of files.
var regular = []string{"100644", "100755"}

// keepUnedited gives each file in the index that env names its blob in a commit, if the work tree has the same bytes.
// Git applies attributes and settings when it adds a file, and would change line endings, or run a filter, in files
// that nobody has edited.
func (t *Tree) keepUnedited(ctx context.Context, env []string, commit string) error {
	out, err := t.run(ctx, env, "-C", t.Top(),
		"diff-index", "--cached", "-z", "--raw", "--no-abbrev", "--no-renames", "--diff-filter=M", commit)
	if err != nil {
		return err
	}
	var entries strings.Builder
	changes, err := parseRaw(out)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if !slices.Contains(regular, c.modes[0]) || !slices.Contains(regular, c.modes[1]) {
			continue
		}
		is, err := t.isBlob(c.path, c.was)
		if err != nil {
			return err
		}
		if is {
			fmt.Fprintf(&entries, "%s %s\t%s\x00", c.modes[1], c.was, c.path)
		}
	}
	if entries.Len() == 0 {
		return nil
	}
	_, err = t.runInput(ctx, env, entries.String(), "-C", t.Top(), "update-index", "-z", "--index-info")
	return err
}

// isBlob reports whether a file, by its path from the top, has exactly the bytes of a blob.
func (t *Tree) isBlob(name, id string) (bool, error) {
	info, err := t.lstat(name)
	if err != nil || info == nil || !info.Mode().IsRegular() {
		return false, err
	}
	f, err := files.Open(filepath.Join(t.Top(), filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, files.ErrIrregular) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	var sum hash.Hash = sha1.New() //nolint:gosec // git names objects so
	if t.longIDs {
		sum = sha256.New()
	}
	fmt.Fprintf(sum, "blob %d\x00", info.Size())
	_, err = io.Copy(sum, io.LimitReader(f, info.Size()+1))
	return hex.EncodeToString(sum.Sum(nil)) == id, errors.Join(err, f.Close())
}

// refreshUnedited makes git notice that files equal those of the checked out commit, although git would convert them:
// it reads them again in a git directory without attributes. Any reports whether such files exist.
func (t *Tree) refreshUnedited(ctx context.Context, head string, files []string) (any bool, err error) {
	was, err := t.inCommit(ctx, head, files)
	if err != nil {
		return false, err
	}
	newest := time.Time{}
	for _, name := range files {
		_, id, _ := strings.Cut(was[name], " ")
		is, err := t.isBlob(name, id)
		if err != nil {
			return false, err
		}
		if info, err := t.lstat(name); is && err == nil && info != nil {
			any = true
			if info.ModTime().After(newest) {
				newest = info.ModTime()
			}
		}
	}
	if !any {
		return false, nil
	}
	// Git does not trust files written in the same second as its index.
	select {
	case <-time.After(min(time.Until(newest.Truncate(time.Second).Add(time.Second)), time.Second)):
	case <-ctx.Done():
		return false, ctx.Err()
	}
	dir, err := os.MkdirTemp("", "ralph-refresh-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	format := "sha1"
	if t.longIDs {
		format = "sha256"
	}
	err = os.MkdirAll(filepath.Join(dir, "refs"), 0o700)
	for name, content := range map[string]string{
		"HEAD":            "ref: refs/heads/none\n",
		"config":          "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectformat = " + format + "\n",
		"info/attributes": "* -text -filter -ident -working-tree-encoding\n",
	} {
		path := filepath.Join(dir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600))
	}
	if err != nil {
		return false, err
	}
	_, err = runWithin(ctx, gitLimit, t.Top(), []string{
		"GIT_DIR=" + dir, "GIT_WORK_TREE=" + t.Top(), "GIT_INDEX_FILE=" + filepath.Join(t.git, "index"),
		"GIT_OBJECT_DIRECTORY=" + filepath.Join(t.common, "objects"),
	}, "", "update-index", "-q", "--force-write-index", "--refresh")
	if complains(err) && ctx.Err() == nil {
		err = nil // there are edits too
	}
	return true, err
}
