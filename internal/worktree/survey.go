package worktree

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"ralph"
)

// Sessions and commands may leave anything in a clone. So ralph walks through a clone once before git reads it (walk).
// A rule on the result (survey.refused, overweight) names the paths that git must not take.

// Limits for the contents of a clone. They far exceed the needs of work on a repository, and are small enough for git
// to end within [lookLimit].
const (
	maxEntries = 3_000_000   // files and folders on the walk
	maxDepth   = 128         // nested folders
	maxPath    = 2048        // bytes of a path in the clone; git's limit is 4096
	maxFiles   = 100_000     // new and changed files
	walkLimit  = time.Minute // of the walk
	// lookLimit is the time limit of a whole look, including all of its git commands. A large work tree
	// takes a minute.
	lookLimit = 5 * time.Minute
)

// maxBytes bounds the size of all new and changed files together, and that of .git.
var maxBytes int64 = 1 << 30

// mend tells the agent how to fix a path that is not taken.
const mend = ": remove it, or have git ignore it"

// A weight is a file with its size.
type weight struct {
	path string // from the top
	size int64
}

// A survey is the result of a walk through a clone.
type survey struct {
	odd   []ralph.Untaken // entries outside .git that are neither file, folder nor link; they were removed
	deep  []string        // folders that were too deep to enter
	files int             // regular files outside of .git
	bytes int64           // their size together
	git   string          // why .git cannot be used; "" if it can
	ended ralph.Untaken   // the place where the walk ended early; empty if it saw everything
}

// suspects returns the paths that need a look at git's ignore rules.
func (s survey) suspects() (paths []string) {
	for _, o := range s.odd {
		paths = append(paths, o.Path)
	}
	return append(paths, s.deep...)
}

// endless names a path beyond the limits; "" for none.
func (s survey) endless() string {
	if len(s.deep) > 0 {
		return s.deep[0]
	}
	return s.ended.Path
}

// heavy reports whether the files may be too much for git.
func (s survey) heavy() bool { return s.files > maxFiles || s.bytes > maxBytes }

// refused returns the untaken paths, apart from the weight. It does not see paths that git ignores.
func (s survey) refused(ignored map[string]bool) (list []ralph.Untaken) {
	for _, o := range s.odd {
		if !ignored[o.Path] {
			list = append(list, o)
		}
	}
	for _, dir := range s.deep {
		if !ignored[dir] {
			why := fmt.Sprintf("is deeper than %d folders", maxDepth)
			if len(dir) > maxPath {
				why = fmt.Sprintf("has a path of more than %d bytes", maxPath)
			}
			list = append(list, ralph.Untaken{Path: dir, Why: why + mend})
		}
	}
	if s.ended.Path != "" {
		list = append(list, s.ended)
	}
	return list
}

// overweight returns the paths to leave out, so that the rest stays within the limits: folders with too many files, and
// the largest files.
func overweight(files []weight) (list []ralph.Untaken) {
	for len(files) > maxFiles {
		dir := crowded(files)
		var in int
		files = slices.DeleteFunc(files, func(f weight) bool {
			is := dir == "." || strings.HasPrefix(f.path, dir+"/")
			if is {
				in++
			}
			return is
		})
		list = append(list, ralph.Untaken{
			Path: dir,
			Why:  fmt.Sprintf("has %d new or changed files, and %d are the most in one change"+mend, in, maxFiles),
		})
	}
	var sum int64
	for _, f := range files {
		sum += f.size
	}
	slices.SortFunc(files, func(a, b weight) int {
		return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.path, b.path))
	})
	for _, f := range files {
		if sum <= maxBytes {
			break
		}
		sum -= f.size
		list = append(list, ralph.Untaken{
			Path: f.path, Why: fmt.Sprintf("has %s, and %s are the most in one change"+mend, size(f.size), size(maxBytes)),
		})
	}
	return list
}

// crowded returns the deepest folder that has most of the files; "." if that is the top.
func crowded(files []weight) string {
	count := map[string]int{}
	for _, f := range files {
		for dir := path.Dir(f.path); dir != "."; dir = path.Dir(dir) {
			count[dir]++
		}
	}
	at := "."
	for dir, n := range count {
		if 2*n > len(files) && (at == "." || strings.HasPrefix(dir, at+"/")) {
			at = dir
		}
	}
	return at
}

// size formats a number of bytes.
func size(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
