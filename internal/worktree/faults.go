package worktree

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"ralph"
	"ralph/internal/lazy"
)

// faults are the files of a clone whose contents git has refused: a .gitmodules that names a program, a .gitattributes
// of 100 MB. Git refuses them only when it copies their objects. The next snapshot leaves these files out, by name.
type faults struct {
	mu sync.Mutex
	by map[string]fault // by path from the top
}

// A fault is a file, or a folder in the place of one, that git refuses.
type fault struct {
	id  string // of its content; "" for a folder
	why string // git's words
}

// blamed matches git's words about a refused file.
var blamed = lazy.Regexp(`object ([0-9a-f]{40,64}): (git(?:modules|attributes)\w*: .*?)` +
	`(?: (?:error|warning|fatal): |$)`)

// blame records the files of a commit that git has refused. said is git's message.
func (c *Clone) blame(ctx context.Context, commit, said string) error {
	why := map[string]string{} // by object
	for _, m := range blamed().FindAllStringSubmatch(said, -1) {
		why[m[1]] = m[2]
	}
	if len(why) == 0 {
		return nil
	}
	out, err := c.run(ctx, nil, "ls-tree", "--full-tree", "-rtz", commit)
	if err != nil {
		return err
	}
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	for entry := range strings.SplitSeq(string(out), "\x00") {
		about, name, _ := strings.Cut(entry, "\t")
		f := strings.Fields(about)
		if len(f) != 3 || why[f[2]] == "" {
			continue
		}
		found := fault{f[2], why[f[2]]}
		if f[1] == "tree" {
			found.id = ""
		}
		c.faults.by[name] = found
	}
	return nil
}

// faulty returns the files of a clone that still have a refused content.
func (t *Tree) faulty(ctx context.Context, env []string) (list []ralph.Untaken, err error) {
	t.faults.mu.Lock()
	defer t.faults.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(t.faults.by)) {
		f := t.faults.by[name]
		info, err := t.lstat(name)
		if err != nil {
			return nil, err
		}
		is := info != nil && info.IsDir() && f.id == ""
		if info != nil && info.Mode().IsRegular() {
			id, err := t.run(ctx, env, "-C", t.Top(), "hash-object", "--", name)
			if err != nil && (!complains(err) || ctx.Err() != nil) {
				return nil, err
			}
			is = f.id != "" && strings.TrimSpace(string(id)) == f.id
		}
		if is {
			list = append(list, ralph.Untaken{Path: name, Why: "is not taken by git (" + f.why + "): mend or remove it"})
		}
	}
	return list, nil
}
