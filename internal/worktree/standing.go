package worktree

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ralph"
	"ralph/internal/files"
)

// Aside returns the parts of a session's work that are not in head: its branches, each with the number of commits that
// head and base lack, and the messages of its stashes. It leaves out the branch but.
func (c *Clone) Aside(ctx context.Context, base, head, but string) (list []ralph.Aside, stashes []string, err error) {
	refs, err := c.Refs(ctx, "refs/")
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		branch, is := strings.CutPrefix(name, "refs/heads/")
		if !is || branch == but || refs[name] == head || refs[name] == base {
			continue
		}
		out, err := c.run(ctx, nil, "rev-list", "--count", refs[name], "^"+base, "^"+head)
		if err != nil {
			return nil, nil, err
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(out)))
		if err != nil {
			return nil, nil, err
		}
		if n > 0 {
			list = append(list, ralph.Aside{Branch: branch, Commits: n})
		}
	}
	if refs["refs/stash"] == "" {
		return list, nil, nil
	}
	out, err := c.run(ctx, nil, "log", "--walk-reflogs", "--no-show-signature", "--format=%s", "refs/stash")
	stashes = strings.Split(strings.TrimSpace(string(out)), "\n")
	return list, stashes, err
}

// maxSecretRead is the maximum number of bytes of a file that are searched for secrets.
const maxSecretRead = 64 << 10

// SecretFile reports whether a file, relative to the root, looks like a secret; see [Secret].
func (t *Tree) SecretFile(name string) bool {
	return Secret(name, func() []byte {
		f, err := files.Open(filepath.Join(t.root, filepath.FromSlash(name)))
		if err != nil {
			return nil
		}
		defer f.Close()
		b := make([]byte, maxSecretRead)
		n, err := f.Read(b)
		if err != nil {
			return nil
		}
		return b[:n]
	})
}
