package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ralph/internal/files"
	"ralph/internal/lazy"
)

// sparseSettings has the settings of the git directory of a sparse work tree.
const sparseSettings = "[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n"

// sparseFile is the file with the patterns of a sparse work tree, in its git directory.
const sparseFile = "info/sparse-checkout"

// special matches the characters that git's patterns must escape.
var special = lazy.Regexp(`[\\*?[]`)

// cone returns git's patterns for a sparse work tree with folders, in cone mode, which includes the files beside and
// above the folders; "" for no folders.
func cone(folders []string) string {
	if len(folders) == 0 {
		return ""
	}
	whole, parents := map[string]bool{}, map[string]bool{}
	for _, folder := range folders {
		folder = path.Clean(folder)
		whole[folder] = true
		for up := path.Dir(folder); up != "."; up = path.Dir(up) {
			parents[up] = true
		}
	}
	within := func(folder string) bool {
		for up := path.Dir(folder); up != "."; up = path.Dir(up) {
			if whole[up] {
				return true
			}
		}
		return false
	}
	var lines []string
	for folder := range parents {
		if !whole[folder] && !within(folder) {
			name := special().ReplaceAllString(folder, `\$0`)
			lines = append(lines, "/"+name+"/\n!/"+name+"/*/\n")
		}
	}
	for folder := range whole {
		if !within(folder) {
			lines = append(lines, "/"+special().ReplaceAllString(folder, `\$0`)+"/\n")
		}
	}
	slices.Sort(lines)
	return "/*\n!/*/\n" + strings.Join(lines, "")
}

// sparse returns the patterns of the clone's sparse work tree; "" if the work tree has all files.
func (t *Tree) sparse() string {
	if t.lender == nil || len(t.lender.Sparse) == 0 {
		return ""
	}
	var folders []string
	for _, folder := range t.lender.Sparse {
		folders = append(folders, path.Join(t.prefix, folder))
	}
	return cone(folders)
}

// spread removes ralph's own index of a clone, and its files, if the set of folders in the work
// tree changes.
func (t *Tree) spread() error {
	was, err := os.ReadFile(filepath.Join(t.git, sparseFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if string(was) == t.sparse() {
		return nil
	}
	err = os.Remove(filepath.Join(t.git, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there are no files yet
	}
	return errors.Join(err, files.RemoveAll(t.Top()), os.MkdirAll(t.root, 0o700))
}

// absent returns the files of an index that its sparse work tree leaves out.
func (t *Tree) absent(index []byte) map[string]bool {
	names := map[string]bool{}
	for e := range t.entries(index) {
		if e.skipped() {
			names[string(e.name)] = true
		}
	}
	return names
}

// mark sets or clears, by an option of update-index, an index's marks for files that the work tree leaves out.
func (t *Tree) mark(ctx context.Context, index, option string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := t.runInput(ctx, []string{"GIT_INDEX_FILE=" + index}, strings.Join(names, "\x00"),
		"-C", t.Top(), "update-index", option, "-z", "--stdin")
	return err
}

// A leftOut has the files of a session's index that are not in its work tree.
type leftOut struct {
	files   map[string]bool
	folders []string // with a final slash: one entry stands for all their files
}

func (l leftOut) has(name string) bool {
	return l.files[name] || slices.ContainsFunc(l.folders, func(f string) bool { return strings.HasPrefix(name, f) })
}

// leftOut returns the files that the parts of a session's index leave out of its work tree.
func (t *Tree) leftOut(their [][]byte) (l leftOut) {
	l.files = map[string]bool{}
	for _, part := range their {
		for e := range t.entries(part) {
			switch name := string(e.name); {
			case !e.skipped():
			case strings.HasSuffix(name, "/"):
				l.folders = append(l.folders, name)
			default:
				l.files[name] = true
			}
		}
	}
	return l
}

// keepLeftOut marks files in one of ralph's own indexes that a session has left out of its work tree by `git
// sparse-checkout set`: the session has not removed them.
func (t *Tree) keepLeftOut(ctx context.Context, index string) error {
	their, err := t.theirIndex()
	if err != nil {
		return err
	}
	l := t.leftOut(their)
	if len(l.files)+len(l.folders) == 0 {
		return nil
	}
	own, err := os.ReadFile(index)
	if err != nil {
		return err
	}
	var names []string
	for e := range t.entries(own) {
		if name := string(e.name); !e.skipped() && l.has(name) && !exists(filepath.Join(t.Top(), filepath.FromSlash(name))) {
			names = append(names, name)
		}
	}
	return t.mark(ctx, index, "--skip-worktree", names)
}

// removed returns the files that ralph's work tree leaves out and that a session has removed from its index. The
// session had them in its work tree, because it changed its set of folders.
func (t *Tree) removed(absent map[string]bool, their [][]byte) (names []string, err error) {
	if len(absent) == 0 || len(their) == 0 {
		return nil, nil
	}
	patterns, err := readSmall(filepath.Join(t.theirs, sparseFile), maxIndex)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	same := string(patterns) == t.sparse()
	for _, file := range []string{"config", "config.worktree"} {
		text, err := readSmall(filepath.Join(t.theirs, file), maxIndex)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		same = same && !notSparse().Match(text)
	}
	if same {
		return nil, nil
	}
	l, has := t.leftOut(their), map[string]bool{}
	for _, part := range their {
		for e := range t.entries(part) {
			has[string(e.name)] = true
		}
	}
	for name := range absent {
		if len(has) > 0 && !has[name] && !l.has(name) && !exists(filepath.Join(t.Top(), filepath.FromSlash(name))) {
			names = append(names, name)
		}
	}
	return names, nil
}

// notSparse matches the setting of `git sparse-checkout disable`.
var notSparse = lazy.Regexp(`(?i)\bsparseCheckout\s*=\s*false`)

// OwnSparse returns the folders of a person's sparse checkout, from the root of the project; none if it is not sparse,
// or not in cone mode.
func (t *Tree) OwnSparse(ctx context.Context) []string {
	out, err := t.run(ctx, nil, "sparse-checkout", "list")
	list, _ := t.configured(ctx, regexp.MustCompile(`^core\.sparsecheckoutcone$`))
	if err != nil || len(list) > 0 && list[len(list)-1].value == "false" {
		return nil
	}
	var folders []string
	for line := range strings.Lines(string(out)) {
		folder, within := strings.CutPrefix(strings.TrimSuffix(line, "\n"), t.rootPrefix())
		if within && folder != "" && !strings.HasPrefix(folder, "\"") {
			folders = append(folders, folder)
		}
	}
	return folders
}
