package worktree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// A memory is what git has said of things that are read here, whole, each time
// before it is believed again: what a file is now decides, never when it was changed
// last. So it is right however often and by whomever they are changed in between; it
// only saves asking git the same question twice.
type memory struct {
	mu sync.Mutex

	config    string // digest of the configuration that the overrides are from
	overrides []string

	modules map[string]*Tree // repositories within, by path from the top

	index   string // digest of an index, and the tree that git made of it
	content string

	head string // a commit, and its tree; both never change
	tree string

	between string // two trees, and the files that differ between them
	files   []string

	marks   string // digest of the refs and their logs, and what they hold
	refs    map[string]string
	logged  []string
	stashes []string
}

// headFile is the text of HEAD where it is as git writes it, and then all that is to
// know: a branch, or a commit. ok is false where git has to be asked.
func (t *Tree) headFile() (commit, branch string, ok bool) {
	if exists(filepath.Join(t.common, "reftable")) {
		return "", "", false
	}
	path := filepath.Join(t.git, "HEAD")
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return "", "", false
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", false
	}
	line := strings.TrimSuffix(string(text), "\n")
	if name, symbolic := strings.CutPrefix(line, "ref: "); symbolic {
		if !strings.HasPrefix(name, "refs/heads/") || !fs.ValidPath(name) {
			return "", "", false
		}
		commit, ok := t.branchFile(name)
		return commit, name, ok
	}
	return line, "", isID(line)
}

// branchFile is the commit of a branch, "" if it has none yet.
func (t *Tree) branchFile(name string) (commit string, ok bool) {
	text, err := os.ReadFile(filepath.Join(t.common, filepath.FromSlash(name)))
	if err == nil {
		commit = strings.TrimSuffix(string(text), "\n")
		return commit, isID(commit)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	packed, err := os.ReadFile(filepath.Join(t.common, "packed-refs"))
	if err != nil {
		return "", errors.Is(err, fs.ErrNotExist)
	}
	for line := range bytes.Lines(packed) {
		if id, ref, found := strings.Cut(strings.TrimSuffix(string(line), "\n"), " "); found && ref == name {
			return id, isID(id)
		}
	}
	return "", true
}

// isID tells whether a text has the form of an object's id.
func isID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// head is where HEAD stands; both are "" where there is none.
func (t *Tree) head(ctx context.Context) (commit, branch string) {
	if commit, branch, ok := t.headFile(); ok {
		return commit, branch
	}
	if out, err := t.run(ctx, nil, "rev-parse", "--verify", "--quiet", "HEAD"); err == nil {
		commit = strings.TrimSpace(string(out))
	}
	if out, err := t.run(ctx, nil, "symbolic-ref", "--quiet", "HEAD"); err == nil {
		branch = strings.TrimSpace(string(out))
	}
	return commit, branch
}

// treeOf is the tree of a commit; that of no commit is empty.
func (t *Tree) treeOf(ctx context.Context, commit string) (string, error) {
	if commit == "" {
		return emptyTree, nil
	}
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	if commit == t.known.head {
		return t.known.tree, nil
	}
	tree, err := t.id(ctx, nil, commit+"^{tree}")
	if err == nil {
		t.known.head, t.known.tree = commit, tree
	}
	return tree, err
}

// Committed is a digest of what a commit has of the project, or of that nothing is
// committed; "" without git.
func (t *Tree) Committed(ctx context.Context, commit string) (string, error) {
	if t.git == "" {
		return "", nil
	}
	if t.prefix == "" || commit == "" {
		return t.treeOf(ctx, commit)
	}
	tree, err := t.id(ctx, nil, commit+":"+t.prefix)
	var exit *exitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return emptyTree, nil // the folder is in no commit yet
	}
	return tree, err
}

// configFiles are those that git reads in this repository. An administrator's may be
// elsewhere; it is not the agent's to write.
func (t *Tree) configFiles() []string {
	files := []string{"/etc/gitconfig", filepath.Join(t.common, "config"), filepath.Join(t.git, "config.worktree")}
	if home, err := os.UserHomeDir(); err == nil {
		files = append(files, filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config", "git", "config"))
	}
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		files = append(files, filepath.Join(dir, "git", "config"))
	}
	return files
}

// configDigest is a digest of the configuration; "" if it cannot be told from these
// files alone, because one includes another or cannot be read.
func (t *Tree) configDigest() string {
	sum := sha256.New()
	for _, name := range t.configFiles() {
		text, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) || bytes.Contains(bytes.ToLower(text), []byte("include")) {
			return ""
		}
		fmt.Fprintf(sum, "%q %t %d\n%s", name, err == nil, len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Bounds of what is read to see whether refs have moved.
const (
	maxMarkFiles = 2000
	maxMarkBytes = 16 << 20
)

// errUnmarked says that git has to be asked.
var errUnmarked = errors.New("the refs cannot be told from their files alone")

// refMarks is a digest of all refs and their logs, of all work trees of the
// repository; "" if there are too many of them, or none that could be read here.
func (t *Tree) refMarks() string {
	if exists(filepath.Join(t.common, "reftable")) {
		return ""
	}
	m := marks{sum: sha256.New(), files: maxMarkFiles, bytes: maxMarkBytes}
	err := m.tree(t.common)
	others, listErr := os.ReadDir(filepath.Join(t.common, "worktrees"))
	if err != nil || listErr != nil && !errors.Is(listErr, fs.ErrNotExist) {
		return ""
	}
	for _, other := range others {
		if m.tree(filepath.Join(t.common, "worktrees", other.Name())) != nil {
			return ""
		}
	}
	return hex.EncodeToString(m.sum.Sum(nil))
}

// marks takes a digest of files, of so many at most.
type marks struct {
	sum   hash.Hash
	files int
	bytes int
}

// tree takes in the refs and logs of one git directory.
func (m *marks) tree(dir string) error {
	for _, name := range []string{"HEAD", "packed-refs", "refs", "logs"} {
		err := filepath.WalkDir(filepath.Join(dir, name), func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && entry.IsDir() {
				return nil
			}
			if err != nil {
				return err
			}
			return m.file(path)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *marks) file(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if m.files--; m.files < 0 || info.Size() > int64(m.bytes) || !info.Mode().IsRegular() {
		return errUnmarked
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	m.bytes -= len(text)
	_, err = fmt.Fprintf(m.sum, "%q %d\n%s", path, len(text), text)
	return err
}
