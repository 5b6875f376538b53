package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"ralph/internal/lazy"
	"ralph/internal/worktree"
)

// Begin prepares the workspace for a session: at the base, with the commit from an
// earlier session of the task merged onto it, unless kept is "". Marked are files of that
// commit in which ralph had put conflict marks. Conflicts are the files that have such
// marks now.
func (w *Workspace) Begin(ctx context.Context, base, kept string, marked ...string) (conflicts []string, err error) {
	start, lay := base, ""
	if kept != "" {
		if start, lay, conflicts, err = w.Clone.merged(ctx, base, kept); err != nil {
			return nil, fmt.Errorf("merge the work of an earlier session of the task: %w", err)
		}
		for _, name := range w.Clone.marks(ctx, kept, marked) {
			if !slices.Contains(conflicts, name) {
				conflicts = append(conflicts, name)
			}
		}
	}
	return conflicts, errors.Join(w.fresh(ctx, base, start, lay), w.Clone.mark(conflicts))
}

// Merge merges a commit of the target into the workspace of a session's candidate, and returns the files that
// conflict: they have conflict marks. The next candidate has both as parents.
func (w *Workspace) Merge(ctx context.Context, tip string, made worktree.Candidate) (conflicts []string, err error) {
	m, err := w.Clone.pool.Here.Tree.MergeTree(ctx, tip, made.Head)
	if err != nil {
		return nil, err
	}
	return m.Conflicts, errors.Join(w.Clone.mark(m.Conflicts), w.Clone.git.Merge(ctx, tip, made.Tree, m.Tree))
}

// mark records the files of the workspace, from its top, in which ralph has put conflict marks.
func (c *Clone) mark(names []string) error {
	if len(names) == 0 {
		return nil
	}
	b, err := json.Marshal(names)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.folder, marksFile), b, 0o600)
}

// Marks returns the files in which ralph put conflict marks and a candidate still has one.
func (w *Workspace) Marks(ctx context.Context, head string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(w.Clone.folder, marksFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	if err == nil {
		err = json.Unmarshal(b, &names)
	}
	return w.Clone.marks(ctx, head, names), err
}

// conflictMark matches the begin and the end of a conflict as git merge-tree marks it, with a commit's id.
var conflictMark = lazy.Regexp(`(?m)^(<{7}|>{7}) ([0-9a-f]{40}|[0-9a-f]{64})(:|\r?$)`)

func (c *Clone) marks(ctx context.Context, commit string, names []string) (marked []string) {
	for _, name := range names {
		if conflictMark().Match(c.pool.Here.Tree.Content(ctx, commit, name)) {
			marked = append(marked, name)
		}
	}
	return marked
}

// merged returns the commit from which a session continues the kept work,
// and the tree to lay over it if they conflict.
func (c *Clone) merged(ctx context.Context, base, kept string) (start, lay string, conflicts []string, err error) {
	tree := c.pool.Here.Tree
	if upon, err := tree.Ancestor(ctx, base, kept); err != nil || upon {
		return kept, "", nil, err
	}
	if merged, err := tree.Ancestor(ctx, kept, base); err != nil || merged {
		return base, "", nil, err
	}
	m, err := tree.MergeTree(ctx, base, kept)
	if err != nil {
		return "", "", nil, err
	}
	if len(m.Conflicts) > 0 {
		return base, m.Tree, m.Conflicts, nil
	}
	message := "Merge the work of an earlier session\n"
	start, err = tree.CommitTree(ctx, m.Tree, []string{base, kept}, message, c.user)
	return start, "", nil, err
}

// fresh prepares the workspace.
func (w *Workspace) fresh(ctx context.Context, base, commit, lay string) (err error) {
	defer func() {
		var exit *exec.ExitError
		var setup *SetupError
		if errors.As(err, &exit) && !errors.As(err, &setup) {
			err = &GitError{err} // it may pass
		}
	}()
	c := w.Clone
	given, err := c.pool.given(ctx)
	if err != nil {
		return err
	}
	if err := w.checkOut(ctx, base, commit, lay, given); err != nil {
		return err
	}
	if err := errors.Join(w.latest(ctx), c.noteIgnored(ctx)); err != nil {
		return err
	}
	as, err := w.equip(ctx, given)
	if err != nil {
		return err
	}
	if as && lay == "" { // its state is known without a scan
		tree, err := c.pool.Here.Tree.Whole(ctx, commit)
		if err != nil {
			return err
		}
		return w.note(standing{commit, tree})
	}
	return w.Note(ctx)
}

// checkOut checks out a commit in the workspace, and then the files of the tree lay unless that is "". Base is the
// commit that work in it will be merged into.
func (w *Workspace) checkOut(ctx context.Context, base, commit, lay string, given given) error {
	c := w.Clone
	if !c.Checks { // nobody works there: commands left these files
		if err := w.rescue(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(c.forget(leftFile), c.forget(laidFile), c.forget(marksFile), c.forget(ownerFile)); err != nil {
		return err
	}
	if err := c.pool.Here.Tree.SetRef(ctx, c.baseRef(), base); err != nil {
		return err
	}
	if commit != base {
		if err := c.pool.Here.Tree.SetRef(ctx, startRefs+c.name(), commit); err != nil {
			return err
		}
	}
	c.Base = base
	spoiled := exists(filepath.Join(c.folder, spoiledFile)) || c.Checks && c.pool.Layers // nothing there is usable
	if spoiled {
		if err := errors.Join(c.forget(setupFile), c.discard(c.caches())); err != nil {
			return err
		}
	}
	err := c.git.Fresh(ctx, commit, given.patterns(), c.user, spoiled)
	if err != nil && ctx.Err() == nil {
		if err = w.scrap(ctx, err); err == nil {
			err = c.git.Fresh(ctx, commit, given.patterns(), c.user, true)
		}
	}
	if err != nil {
		return fmt.Errorf("workspace %s: %w", c.name(), err)
	}
	if err := c.forget(spoiledFile); err != nil {
		return err
	}
	if !c.Checks { // no agent works there
		if err := c.git.Drop(ctx, c.pool.Steering); err != nil {
			return fmt.Errorf("workspace %s: %w", c.name(), err)
		}
	}
	if lay != "" {
		if err := c.git.Lay(ctx, lay); err != nil {
			return fmt.Errorf("workspace %s: %w", c.name(), err)
		}
	}
	temp := filepath.Join(c.folder, "tmp")
	if err := c.discard(temp); err != nil {
		return err
	}
	return os.MkdirAll(temp, 0o700)
}

// Files of a workspace next to its work tree.
const (
	leftFile    = "left"    // the state in which the workspace had nothing to save
	setupFile   = "setup"   // a digest of the set-up's input
	spoiledFile = "spoiled" // its ignored files and caches must not be used
	laidFile    = "laid"    // files that differ on purpose from the session's first commit
	marksFile   = "marks"   // files in which ralph has put conflict marks
	ownerFile   = "owner"   // the ref for the work in it, until that was inspected
)

// forget removes one of these files.
func (c *Clone) forget(name string) error {
	err := os.Remove(filepath.Join(c.folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Spoil has the workspace's ignored files and caches removed before its next use.
func (w *Workspace) Spoil() error {
	return os.WriteFile(filepath.Join(w.Clone.folder, spoiledFile), nil, 0o600)
}

// caches returns the folder of the workspace's own caches.
func (c *Clone) caches() string { return filepath.Join(c.folder, "caches") }

// laid lists files of a workspace that were replaced on purpose when its session began.
type laid struct {
	Commit string            // the session's first commit
	Files  map[string]string // digests by name, after the replacement
}

// Lay gives files of the workspace the content from a commit, without counting them as changes of the session:
// unless somebody edits them, a candidate contains their former content.
func (w *Workspace) Lay(ctx context.Context, commit string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	l := laid{w.Clone.git.At(ctx), map[string]string{}}
	root, err := os.OpenRoot(w.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, name := range names {
		v, err := w.Clone.pool.Here.Tree.Version(ctx, commit, name)
		if err == nil {
			err = v.Write(root, name)
		}
		if err == nil {
			l.Files[name], err = Digest(w.Path(name))
		}
		if err != nil {
			return fmt.Errorf("put %s back as it is on the branch: %w", name, err)
		}
	}
	b, err := json.Marshal(l)
	if err == nil {
		err = os.WriteFile(filepath.Join(w.Clone.folder, laidFile), b, 0o600)
	}
	return errors.Join(err, w.Note(ctx))
}

// lifted returns the tree of the whole repository with the laid files as the commit has them.
func (w *Workspace) lifted(ctx context.Context, tree string) (string, error) {
	var l laid
	b, err := os.ReadFile(filepath.Join(w.Clone.folder, laidFile))
	if errors.Is(err, fs.ErrNotExist) {
		return tree, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err != nil {
		return "", err
	}
	maps.DeleteFunc(l.Files, func(name, digest string) bool {
		now, err := Digest(w.Path(name))
		return err != nil || now != digest
	})
	if len(l.Files) == 0 {
		return tree, nil
	}
	clone := w.Clone.git
	var files []worktree.Exchange
	for name := range l.Files {
		files = append(files, worktree.Exchange{Path: clone.Below(name)})
	}
	return clone.Exchanged(ctx, tree, l.Commit, files, clone.Scratch())
}
