package worktree

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ralph"
	"ralph/internal/text"
)

// ask answers with go-git, with the snapshots in a scratch folder unless that is "", or with native
// git if go-git cannot.
func ask[T any](t *Tree, scratch string, ours func(*objects) (T, error), native func() (T, error)) (v T, err error) {
	o, err := t.objects(scratch)
	if err == nil {
		t.known.reading.Lock()
		v, err = ours(o)
		t.known.reading.Unlock()
	}
	if err == nil || !t.native {
		return v, err
	}
	return native()
}

// lent is ask about objects. Those that a clone is asked about are mostly the repository's, or those of
// snapshots, which need no git.
func lent[T any](t *Tree, scratch string, ours func(*objects) (T, error), native func() (T, error)) (T, error) {
	if t.lender != nil {
		v, err := ask(t.lender, scratch, ours, func() (none T, err error) { return none, errNative })
		if err == nil {
			return v, nil
		}
	}
	return ask(t, scratch, ours, native)
}

// refState holds the refs of a repository and their logs.
type refState struct {
	refs    map[string]string
	heads   []string // HEAD of each work tree
	logs    []string // commits in the logs; nil if unknown
	stashes []string // newest first
}

// digest returns a digest of all refs and logs; "" if the logs are unknown.
func (s refState) digest() string {
	if s.logs == nil {
		return ""
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q", s.heads, s.logs, s.stashes)
	for _, name := range slices.Sorted(maps.Keys(s.refs)) {
		fmt.Fprintf(sum, "%q %s\n", name, s.refs[name])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// readRefs reads the refs, and the logs if native git is not needed for them.
func (t *Tree) readRefs(ctx context.Context) (refState, error) {
	if t.theirs != "" {
		if s, err := t.refsOfTheirs(); err == nil {
			return s, nil
		}
	}
	return ask(t, "", t.refsOf, func() (refState, error) { return t.nativeRefs(ctx) })
}

func (t *Tree) nativeRefs(ctx context.Context) (s refState, err error) {
	out, err := t.run(ctx, nil, "for-each-ref", "--format=%(refname) %(objectname)")
	if err != nil {
		return s, err
	}
	s.refs = map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, id, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			s.refs[name] = id
		}
	}
	if top := s.refs["refs/stash"]; top != "" {
		out, err = t.run(ctx, nil, "rev-list", "--walk-reflogs", "refs/stash")
		if s.stashes = strings.Fields(string(out)); err != nil || len(s.stashes) == 0 { // without a log there is only one
			s.stashes = []string{top}
		}
	}
	return s, nil
}

// Bounds for reading logs.
const (
	maxLogFiles = 2000 // and folders
	maxLogBytes = 16 << 20
)

// refs returns what all refs point to.
func (o *objects) refs() (map[string]string, error) {
	refs := map[string]string{}
	list, err := o.IterReferences()
	if err != nil {
		return refs, err
	}
	defer list.Close()
	return refs, list.ForEach(func(r *plumbing.Reference) error {
		name := string(r.Name())
		for hops := 0; r.Type() == plumbing.SymbolicReference && hops < 5; hops++ {
			if r, err = o.Reference(r.Target()); err != nil {
				return nil //nolint:nilerr // a dangling ref, such as HEAD before the first commit
			}
		}
		if strings.HasPrefix(name, "refs/") && !r.Hash().IsZero() {
			refs[name] = r.Hash().String()
		}
		return nil
	})
}

// refsOf is readRefs with go-git, which does not support logs.
func (t *Tree) refsOf(o *objects) (s refState, err error) {
	if s.refs, err = o.refs(); err != nil {
		return s, err
	}
	logs := newLogs()
	dirs := []string{t.common}
	others, err := os.ReadDir(filepath.Join(t.common, "worktrees"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	for _, other := range others {
		dirs = append(dirs, filepath.Join(t.common, "worktrees", other.Name()))
	}
	for _, dir := range dirs {
		read := func(name string, most int64) ([]byte, error) { return readSmall(filepath.Join(dir, name), most) }
		if err := logs.add(os.DirFS(dir), read); err != nil {
			return s, err
		}
	}
	return logs.into(s), nil
}

// refsOfTheirs is readRefs for the .git of a clone. As that is not trusted, go-git does not see it: it would
// follow links and wait for pipes. What is not as git usually writes it is left to native git.
func (t *Tree) refsOfTheirs() (s refState, err error) {
	for _, dir := range []string{t.theirs, filepath.Join(t.theirs, "refs")} {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			return s, cmp.Or(err, errNative)
		}
	}
	root, err := os.OpenRoot(t.theirs)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	read := func(name string, most int64) ([]byte, error) {
		f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, err
		}
		return readOpen(f, most)
	}
	logs := newLogs()
	if err := logs.add(root.FS(), read); err != nil {
		return s, err
	}
	s.refs = map[string]string{}
	add := func(name, id string) error {
		if !isID(id) || strings.Trim(id, "0") == "" || plumbing.ReferenceName(name).Validate() != nil {
			return errNative
		}
		if s.refs[name] == "" { // one that is also packed was packed earlier
			s.refs[name] = id
		}
		return nil
	}
	// Git may pack them meanwhile: the files are read first.
	if err := walkFiles(root.FS(), "refs", func(name string) error {
		if strings.HasSuffix(name, ".lock") {
			return nil
		}
		text, err := read(name, maxHead)
		if err != nil {
			return err
		}
		return add(name, strings.TrimSpace(string(text)))
	}); err != nil {
		return s, err
	}
	packed, err := read("packed-refs", maxLogBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	for line := range strings.Lines(string(packed)) {
		if line[0] == '#' || line[0] == '^' { // a comment, or what a tag points to
			continue
		}
		id, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if err := add(name, id); err != nil {
			return s, err
		}
	}
	return logs.into(s), nil
}

// walkFiles calls do for the files in a folder and those below it; there may be none.
func walkFiles(in fs.FS, folder string, do func(name string) error) error {
	seen := 0
	return fs.WalkDir(in, folder, func(name string, entry fs.DirEntry, err error) error {
		if seen++; seen > maxLogFiles {
			return errNative
		}
		if errors.Is(err, fs.ErrNotExist) || err == nil && entry.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		return do(name)
	})
}

// logs are what logs of refs contain.
type logs struct {
	heads, ids, stashes []string
	seen                map[string]bool
	size                int64
}

func newLogs() *logs { return &logs{ids: []string{}, seen: map[string]bool{}} }

// add reads the HEAD of a git directory and its logs.
func (l *logs) add(dir fs.FS, read func(name string, most int64) ([]byte, error)) error {
	if head, err := read("HEAD", maxHead); err == nil {
		if id := strings.TrimSpace(string(head)); isID(id) {
			l.heads = append(l.heads, id)
		}
	}
	return walkFiles(dir, "logs", func(name string) error {
		text, err := read(name, maxLogBytes-l.size)
		if err != nil {
			return err
		}
		l.size += int64(len(text))
		for line := range strings.Lines(string(text)) {
			f := strings.SplitN(line, " ", 3)
			if len(f) < 3 || !isID(f[1]) {
				continue
			}
			if name == "logs/refs/stash" {
				l.stashes = append(l.stashes, f[1])
			}
			for _, id := range f[:2] {
				if !l.seen[id] && strings.Trim(id, "0") != "" {
					l.seen[id] = true
					l.ids = append(l.ids, id)
				}
			}
		}
		return nil
	})
}

// into adds the logs to the refs that they are of.
func (l *logs) into(s refState) refState {
	slices.Reverse(l.stashes) // the newest is the last in its log
	s.heads, s.logs, s.stashes = l.heads, l.ids, l.stashes
	if top := s.refs["refs/stash"]; top != "" && len(s.stashes) == 0 {
		s.stashes = []string{top}
	}
	return s
}

// maxLogged is how many commits that only logs know are taken from the logs as they are; beyond it,
// git removes those that a ref can reach.
const maxLogged = 500

// logged returns the commits that the logs know and no ref points to.
func (t *Tree) logged(ctx context.Context, s refState) ([]string, error) {
	if s.logs != nil && len(s.logs) <= maxLogged+len(s.refs) {
		refs := slices.Collect(maps.Values(s.refs))
		if list := without(s.logs, refs); len(list) <= maxLogged || !t.native {
			return list, nil
		}
	}
	out, err := t.run(ctx, nil, "rev-list", "--reflog", "--not", "--all")
	return strings.Fields(string(out)), err
}

// head returns HEAD's commit and branch; "" where there is none.
func (t *Tree) head(ctx context.Context) (commit, branch string) {
	type head struct{ commit, branch string }
	if at, err := t.copyHead(); err != nil || isID(at) {
		return at, ""
	}
	h, err := ask(t, "", func(o *objects) (h head, err error) {
		r, err := o.Reference(plumbing.HEAD)
		if err == nil && r.Type() == plumbing.SymbolicReference {
			h.branch = string(r.Target())
			r, err = o.Reference(r.Target())
			if errors.Is(err, plumbing.ErrReferenceNotFound) {
				return h, nil
			}
		}
		if err != nil || r.Type() == plumbing.SymbolicReference {
			return h, cmp.Or(err, errNative)
		}
		h.commit = r.Hash().String()
		return h, o.HasEncodedObject(r.Hash())
	}, func() (h head, _ error) {
		if out, err := t.run(ctx, nil, "rev-parse", "--verify", "--quiet", "HEAD"); err == nil {
			h.commit = strings.TrimSpace(string(out))
		}
		if out, err := t.run(ctx, nil, "symbolic-ref", "--quiet", "HEAD"); err == nil {
			h.branch = strings.TrimSpace(string(out))
		}
		return h, nil
	})
	if err != nil {
		return "", ""
	}
	return h.commit, h.branch
}

// Committed returns the tree of the project in a commit, the empty tree if commit is ""; "" without
// git.
func (t *Tree) Committed(ctx context.Context, commit string) (string, error) {
	if t.git == "" {
		return "", nil
	}
	return t.treeOf(ctx, commit, t.prefix)
}

// treeOf returns the tree of a commit, or of a folder in it; the empty tree if commit is "".
func (t *Tree) treeOf(ctx context.Context, commit, folder string) (string, error) {
	if commit == "" {
		return emptyTree, nil
	}
	return lent(t, "", func(o *objects) (string, error) { return o.treeID(commit, folder) }, func() (string, error) {
		if folder == "" {
			return t.id(ctx, commit+"^{tree}")
		}
		id, err := t.id(ctx, commit+":"+folder)
		if complains(err) && ctx.Err() == nil {
			return emptyTree, nil // the folder is in no commit yet
		}
		return id, err
	})
}

// differ returns the names of the files that differ between two trees.
func (t *Tree) differ(ctx context.Context, scratch, from, to string) ([]string, error) {
	if from == to {
		return nil, nil
	}
	return lent(t, scratch, func(o *objects) (names []string, err error) {
		list, err := o.deltas(ctx, plumbing.NewHash(from), plumbing.NewHash(to), "")
		for _, d := range list {
			names = append(names, d.path)
		}
		return names, err
	}, func() ([]string, error) {
		out, err := t.run(ctx, t.environment(scratch),
			"diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", from, to)
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), err
	})
}

// present splits commit ids into those that exist and those that are gone.
func (t *Tree) present(ctx context.Context, ids []string) (there, gone []string, err error) {
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(s string) bool { return s == "" })
	if len(ids) == 0 {
		return nil, nil, nil
	}
	kinds, err := lent(t, "", func(o *objects) (map[string]string, error) {
		kinds := map[string]string{}
		if t.native && len(ids) > maxTips {
			return nil, errNative
		}
		for _, id := range ids {
			found, err := o.EncodedObject(plumbing.AnyObject, plumbing.NewHash(id))
			switch {
			case errors.Is(err, plumbing.ErrObjectNotFound) && !t.native: // else native git is asked
				kinds[id] = "missing"
			case err != nil:
				return nil, err
			default:
				kinds[id] = found.Type().String()
			}
		}
		return kinds, nil
	}, func() (map[string]string, error) {
		kinds := map[string]string{}
		out, err := t.runInput(ctx, asMade, strings.Join(ids, "\n")+"\n",
			"cat-file", "--batch-check=%(objectname) %(objecttype)")
		for line := range strings.Lines(string(out)) {
			id, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
			kinds[id] = kind
		}
		return kinds, err
	})
	for _, id := range ids {
		switch kinds[id] {
		case "missing":
			gone = append(gone, id)
		case "commit", "tag":
			there = append(there, id)
		}
	}
	return there, gone, err
}

// reach selects commits relative to given ones.
type reach int

const (
	all   reach = iota // and all their ancestors
	first              // and their ancestors by first parents
	only               // only themselves
)

// reached returns the selected commits with go-git.
func (o *objects) reached(ctx context.Context, from, not []string, how reach) (list []*object.Commit, err error) {
	if how != only {
		return o.walk(ctx, from, not, how == first)
	}
	for _, id := range from {
		c, err := o.commit(plumbing.NewHash(id))
		if err != nil {
			return nil, err
		}
		if c != nil {
			list = append(list, c)
		}
	}
	return list, nil
}

// native returns the options of git log for the selection.
func (how reach) native() []string {
	return map[reach][]string{all: nil, first: {"--first-parent"}, only: {"--no-walk=unsorted"}}[how]
}

// log returns the commits reachable from some and not from others, newest first, at most maxLost.
func (t *Tree) log(ctx context.Context, from, not []string, how reach) ([]ralph.Commit, error) {
	if len(from) == 0 {
		return nil, nil
	}
	return ask(t, "", func(o *objects) (list []ralph.Commit, err error) {
		commits, err := o.reached(ctx, from, not, how)
		for _, c := range commits[:min(len(commits), maxLost)] {
			if c.Encoding != "" && c.Encoding != "UTF-8" {
				return nil, errNative
			}
			subject, _, _ := strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n\n")
			subject = strings.ReplaceAll(strings.TrimSpace(subject), "\n", " ")
			list = append(list, ralph.Commit{
				ID: c.Hash.String(), Author: text.Clip(c.Author.Name, 60), Subject: text.Clip(subject, 60),
			})
		}
		return list, err
	}, func() (list []ralph.Commit, err error) {
		// %x1f cannot occur in a name or a subject, since git removes control characters.
		args := slices.Concat([]string{
			"log", "--no-show-signature", "--no-decorate", "--no-patch", "--max-count=" + strconv.Itoa(maxLost),
			"--format=%H%x1f%an%x1f%s", "--stdin",
		}, how.native())
		out, err := t.runInput(ctx, asMade, revisions(from, not), args...)
		for line := range strings.Lines(string(out)) {
			if f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\x1f", 3); len(f) == 3 {
				list = append(list, ralph.Commit{ID: f[0], Author: text.Clip(f[1], 60), Subject: text.Clip(f[2], 60)})
			}
		}
		return list, err
	})
}

// revisions formats commits to start from and to stop at for git's standard input.
func revisions(from, not []string) string {
	var b strings.Builder
	for _, id := range slices.DeleteFunc(slices.Clone(from), func(id string) bool { return id == "" }) {
		fmt.Fprintln(&b, id)
	}
	for _, id := range not {
		if id != "" {
			fmt.Fprintln(&b, "^"+id)
		}
	}
	return b.String()
}

// committed returns the files that commits changed against their first parents.
func (t *Tree) committed(ctx context.Context, from, not []string, how reach) ([]string, error) {
	if len(from) == 0 {
		return nil, nil
	}
	return ask(t, "", func(o *objects) (names []string, err error) {
		commits, err := o.reached(ctx, from, not, how)
		for _, c := range commits {
			touched, err := o.touched(ctx, c, t.prefix)
			if err != nil {
				return nil, err
			}
			names = append(names, touched...)
		}
		return names, err
	}, func() ([]string, error) {
		args := slices.Concat([]string{
			"-c", "log.showRoot=true", "log", "--no-show-signature", "--format=", "--name-only", "-z", "--no-renames",
			"--no-ext-diff", "--no-textconv", "--diff-merges=first-parent", "--relative", "--stdin",
		}, how.native())
		out, err := t.runInput(ctx, asMade, revisions(from, not), args...)
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 || r == '\n' }), err
	})
}

// touched returns the files in a folder that a commit changed against its first parent, relative to
// the folder.
func (o *objects) touched(ctx context.Context, c *object.Commit, folder string) (names []string, err error) {
	before := emptyTree
	if len(c.ParentHashes) > 0 {
		if before, err = o.treeID(c.ParentHashes[0].String(), folder); err != nil {
			return nil, err
		}
	}
	after, err := o.treeID(c.Hash.String(), folder)
	if err != nil {
		return nil, err
	}
	list, err := o.deltas(ctx, plumbing.NewHash(before), plumbing.NewHash(after), "")
	for _, d := range list {
		names = append(names, d.path)
	}
	return names, err
}

// commits returns the commits that are reachable now, also from the logs of refs, and were not
// before. Commits that ralph saved are excluded.
func (t *Tree) commits(ctx context.Context, before Snapshot) ([]string, error) {
	now, err := t.readRefs(ctx)
	if err != nil || before.Marks != "" && before.Marks == now.digest() {
		return []string{}, err
	}
	known := slices.Concat([]string{before.Head}, before.Logged, slices.Collect(maps.Values(before.Refs)))
	tips := slices.Concat(now.heads, now.logs)
	for name, id := range now.refs {
		if !strings.HasPrefix(name, ownRefs) {
			tips = append(tips, id)
		}
	}
	list, err := ask(t, "", func(o *objects) (ids []string, err error) {
		if now.logs == nil {
			return nil, errNative
		}
		there := func(ids []string) []string {
			return slices.DeleteFunc(ids, func(id string) bool { return o.HasEncodedObject(plumbing.NewHash(id)) != nil })
		}
		slices.Sort(tips)
		commits, err := o.walk(ctx, there(without(slices.Compact(tips), known)), there(slices.Clone(known)), false)
		for _, c := range commits {
			ids = append(ids, c.Hash.String())
		}
		return ids, err
	}, func() ([]string, error) {
		there, _, err := t.present(ctx, known)
		if err != nil {
			return nil, err
		}
		args := append([]string{"rev-list", "--reflog", "--exclude=" + ownRefs + "*", "--all", "--not"}, there...)
		out, err := t.run(ctx, nil, args...)
		return strings.Fields(string(out)), err
	})
	if err != nil {
		return nil, fmt.Errorf("commits of the session: %w", err)
	}
	return append([]string{}, list...), nil
}
