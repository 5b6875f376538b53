package check

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ralph/loop/place"
)

// Copies is a folder with copies of files as people left them, named by the digest of their content.
type Copies string

// Limits of the copies. Old copies that nobody needs are dropped.
const (
	maxCopy   = 8 << 20
	maxCopies = 128 << 20
	keptFor   = 14 * 24 * time.Hour
)

// sumOf returns the part of a digest that covers the content; "" if there is no content to copy.
func sumOf(digest string) string {
	if _, leadsTo, ok := strings.Cut(digest, "\x00"); ok {
		digest = leadsTo
	}
	_, sum, _ := strings.Cut(digest, " ")
	if len(sum) != hex.EncodedLen(sha256.Size) {
		return ""
	}
	return sum
}

// Copy returns the path of the copy with this digest; "" if there is none.
func (c Copies) Copy(digest string) string {
	path := filepath.Join(string(c), sumOf(digest))
	if sumOf(digest) == "" {
		return ""
	}
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// has reports whether the content with this digest can be put back.
func (c Copies) has(digest string) bool {
	return digest == "" || strings.HasPrefix(digest, "link ") || c.Copy(digest) != ""
}

// save copies a file with a known digest, unless there is a copy or it is
// too large. If the file has changed meanwhile, it is not copied.
func (c Copies) save(path, digest string) error {
	sum := sumOf(digest)
	if sum == "" || c.Copy(digest) != "" {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCopy {
		return nil //nolint:nilerr // nothing to copy, or too large
	}
	size, err := c.size()
	if err != nil || size+info.Size() > maxCopies {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil //nolint:nilerr // if it has to be put back, the missing copy is reported
	}
	if is := sha256.Sum256(content); hex.EncodeToString(is[:]) != sum {
		return nil
	}
	return writeNew(filepath.Join(string(c), sum), content, 0o600)
}

// Put stores content whatever the size of the folder, as people have to decide on it.
func (c Copies) Put(content []byte) error {
	if err := os.MkdirAll(string(c), 0o700); err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	return writeNew(filepath.Join(string(c), hex.EncodeToString(sum[:])), content, 0o600)
}

// size returns the total size of the copies in bytes.
func (c Copies) size() (n int64, err error) {
	if err := os.MkdirAll(string(c), 0o700); err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(string(c))
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n, err
}

// forget removes old copies whose digests are not needed.
func (c Copies) forget(needed map[string]bool) error {
	entries, err := os.ReadDir(string(c))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		info, ierr := e.Info()
		if ierr != nil || needed[e.Name()] || time.Since(info.ModTime()) < keptFor {
			continue
		}
		err = errors.Join(err, os.Remove(filepath.Join(string(c), e.Name())))
	}
	return err
}

// Restore restores the file of a folder that had the digest. It does not
// follow links that are in the way, as they may lead anywhere.
func (c Copies) Restore(dir, name, digest string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	name = filepath.FromSlash(name)
	if digest == "" {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if target, ok := place.LinkTarget(digest); ok {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return root.Symlink(target, name)
	}
	path := c.Copy(digest)
	if path == "" {
		return errors.New("there is no copy of it: it was too large or could not be read")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if is := sha256.Sum256(content); hex.EncodeToString(is[:]) != sumOf(digest) {
		return errors.New("the copy of it is damaged")
	}
	mode := fs.FileMode(0o644)
	if strings.HasPrefix(digest, "true ") {
		mode = 0o755
	}
	temp := name + ".ralph-restored"
	if err := root.WriteFile(temp, content, mode); err != nil {
		return err
	}
	if err := root.Chmod(temp, mode); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	if info, err := root.Lstat(name); err == nil && info.IsDir() {
		if err := root.Remove(name); err != nil { // it contains something that is not protected
			return errors.Join(err, root.Remove(temp))
		}
	}
	return root.Rename(temp, name)
}

// writeNew writes a file atomically.
func writeNew(path string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader(content))
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// A StuckError lists files of people's that cannot be restored.
type StuckError struct {
	What  string // what kind of files they are; "" for protected ones
	Files []string
}

func (e *StuckError) add(file string, why error) {
	e.Files = append(e.Files, fmt.Sprintf("%s (%v)", file, why))
}

// Error also says what to do.
func (e *StuckError) Error() string {
	return cmp.Or(e.What, "protected files") + " are as a session left them and cannot be put back: " +
		strings.Join(e.Files, "; ") + "; put them back, or change them: what people leave counts"
}
