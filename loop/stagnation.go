package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"ralph/internal/worktree"
	"ralph/store"
)

// hashes are what a session can leave behind, one digest per part, so that ralph
// can say what did not change (pipeline, "Stagnation").
type hashes struct {
	Definitions string `json:"definitions"` // of the session's task and its feature, less people's edits
	Files       string `json:"files"`       // those that the configuration lists
	Head        string `json:"head"`
	WorkTree    string `json:"work_tree"` // content, uncommitted and untracked included, ignored left out
}

// parts says which of the digests differ.
type parts struct{ definitions, files, head, workTree bool }

func (h hashes) differ(from hashes) parts {
	return parts{h.Definitions != from.Definitions, h.Files != from.Files, h.Head != from.Head, h.WorkTree != from.WorkTree}
}

func (p parts) or(q parts) parts {
	return parts{p.definitions || q.definitions, p.files || q.files, p.head || q.head, p.workTree || q.workTree}
}

func (p parts) any() bool { return p != parts{} }

// missing names the parts that did not change, for people.
func (p parts) missing() []string {
	names := []string{}
	for _, part := range []struct {
		changed bool
		name    string
	}{{p.definitions, "definitions"}, {p.files, "files"}, {p.head, "head"}, {p.workTree, "work_tree"}} {
		if !part.changed {
			names = append(names, part.name)
		}
	}
	return names
}

// hash takes the digests of a task's session at this moment.
func (l *Loop) hash(tx *store.Tx, task int64, snapshot worktree.Snapshot) (h hashes, err error) {
	h.Head, h.WorkTree = snapshot.Head, snapshot.Digest()
	if h.Definitions, err = tx.Definitions(task); err != nil {
		return h, err
	}
	h.Files, err = digestFiles(l.Dir, l.StagnationFiles)
	return h, err
}

// digestFiles is one digest of the contents of files below a folder; one that is
// not there counts as such.
func digestFiles(dir string, names []string) (string, error) {
	sum := sha256.New()
	for _, name := range names {
		f, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%q\n", name)
		_, err = io.Copy(sum, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
