package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// A tree can name another one many times, so a few kilobytes of objects can stand for more paths than any index
// holds. The paths are counted in the objects before git creates an index from them.
const (
	maxPaths   = 1_000_000 // of a session's commit, or ten times the initial number, if that is more
	pathLength = 256       // bytes of a path, on average at most
)

// errCrowded ends a count at its limit.
var errCrowded = errors.New("there are too many paths")

// A crowd counts the paths that git writes, each followed by a NUL, up to a limit.
type crowd struct{ paths, bytes, most int }

// Write counts; the error is errCrowded above the limit.
func (c *crowd) Write(b []byte) (int, error) {
	c.paths, c.bytes = c.paths+bytes.Count(b, []byte{0}), c.bytes+len(b)
	if c.over() {
		return 0, errCrowded
	}
	return len(b), nil
}

func (c *crowd) over() bool { return c.paths > c.most || c.bytes/pathLength > c.most }

// paths counts the files and folders of a commit. Over means that there are more than most.
func (t *Tree) paths(ctx context.Context, commit string, most int) (n int, over bool, err error) {
	c := &crowd{most: most}
	err = t.stream(ctx, nil, c, "ls-tree", "--full-tree", "-rtz", "--name-only", commit) // git log would queue all
	if c.over() && ctx.Err() == nil {
		err = nil // closing the pipe ended git
	}
	return c.paths, c.over(), err
}

// crowded returns a reason if the commit in a clone, or one that is merged there, has too many files and folders. It
// returns "" if git cannot count them: git reports the error later, when it reads them.
func (t *Tree) crowded(ctx context.Context) (why string, err error) {
	var tips []string
	for _, tip := range []string{t.At(ctx), t.merging()} {
		if tip != "" && tip != t.at {
			tips = append(tips, tip)
		}
	}
	t.known.mu.Lock()
	counted := slices.Equal(tips, t.known.counted)
	t.known.mu.Unlock()
	if len(tips) == 0 || t.at == "" || counted {
		return "", nil
	}
	for _, tip := range tips {
		most, over, err := maxPaths, false, error(nil)
		if _, over, err = t.paths(ctx, tip, most); over && err == nil {
			var all int
			if all, _, err = t.paths(ctx, t.at, math.MaxInt); err == nil && 10*all > most {
				most = 10 * all
				_, over, err = t.paths(ctx, tip, most)
			}
		}
		switch {
		case err != nil && (!complains(err) || ctx.Err() != nil):
			return "", err
		case over:
			return fmt.Sprintf("has a commit of more than %d files and folders", most), nil
		}
	}
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	t.known.counted = tips
	return "", nil
}
