package worktree

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/storage/filesystem"
)

// A memory caches git's answers by digests of all their inputs. These inputs are read in full each time, and
// modification times are never trusted. So it stays correct under any change of them, and only saves a second question
// to git.
type memory struct {
	mu sync.Mutex

	modules map[string]*Tree // nested repositories, by path from the top

	counted []string // commits that do not have too many paths

	index   string // digest of an index; content is its tree
	content string

	merges map[[2]string]Merge // by the ids of two commits

	storage *filesystem.Storage // go-git's storage, valid for these packs
	packs   string
	reading sync.Mutex // held while go-git reads: its storage is not safe for concurrent use
}

// An answers caches git's answers about a configuration. A repository and its clones share it.
type answers struct {
	mu   sync.Mutex
	said map[string][]byte // by the configuration's digest and the question
}

// maxAnswers bounds the cache: each change of a configuration adds to it.
const maxAnswers = 1000

// answer returns the cached answer to a question, or asks. An answer to "" is not cached.
func (a *answers) answer(question string, ask func() ([]byte, error)) ([]byte, error) {
	a.mu.Lock()
	said, ok := a.said[question]
	a.mu.Unlock()
	if ok {
		return said, nil
	}
	said, err := ask()
	if err == nil && question != "" {
		a.mu.Lock()
		if len(a.said) >= maxAnswers {
			clear(a.said)
		}
		a.said[question] = said
		a.mu.Unlock()
	}
	return said, err
}

// isID reports whether a text has the form of an object id.
func isID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// configFiles lists the configuration files that git reads for this repository. A system-wide file may be elsewhere,
// but agents cannot write it.
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

// configDigest returns a digest of the configuration, the same in all clones with the same configuration; ""
// if a file includes another one or cannot be read.
func (t *Tree) configDigest() string {
	sum := sha256.New()
	for _, name := range t.configFiles() {
		text, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) || bytes.Contains(bytes.ToLower(text), []byte("include")) {
			return ""
		}
		fmt.Fprintf(sum, "%t %d\n%s", err == nil, len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
