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

	storage *filesystem.Storage // the repository as go-git has it, with these packs
	packs   string
}

// isID tells whether a text has the form of an object's id.
func isID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
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
