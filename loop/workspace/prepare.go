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
	"regexp"
	"slices"

	"ralph/internal/worktree"
)

// Begin prepares the workspace for a session: at the base, with the commit that
// an earlier session of the task left merged onto it, if kept is not "".
// Marked are files of that commit in which ralph had put conflict marks.
// Conflicts are the files that have such marks now.
func (p *Workspace) Begin(ctx context.Context, base, kept string, marked ...string) (conflicts []string, err error) {
	start, lay := base, ""
	if kept != "" {
		if start, lay, conflicts, err = p.Clone.merged(ctx, base, kept); err != nil {
			return nil, fmt.Errorf("merge what an earlier session of the task left: %w", err)
		}
		for _, name := range p.Clone.marks(ctx, kept, marked) {
			if !slices.Contains(conflicts, name) {
				conflicts = append(conflicts, name)
			}
		}
	}
	return conflicts, errors.Join(p.fresh(ctx, base, start, lay), p.Clone.mark(conflicts))
}

// Merge merges a commit of the target into the workspace, in which a session has made the candidate, and returns the
// files that conflict: they have conflict marks. The next candidate has both as parents.
func (p *Workspace) Merge(ctx context.Context, tip string, made worktree.Candidate) (conflicts []string, err error) {
	m, err := p.Clone.pool.Here.Tree.MergeTree(ctx, tip, made.Head)
	if err != nil {
		return nil, err
	}
	return m.Conflicts, errors.Join(p.Clone.mark(m.Conflicts), p.Clone.git.Merge(ctx, tip, made.Tree, m.Tree))
}

// mark records the files of the workspace, from its top, in which ralph has put conflict marks.
func (s *Clone) mark(names []string) error {
	if len(names) == 0 {
		return nil
	}
	b, err := json.Marshal(names)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.folder, marksFile), b, 0o600)
}

// Marks returns those of the files in which ralph has put conflict marks that a candidate still has with one.
func (p *Workspace) Marks(ctx context.Context, head string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(p.Clone.folder, marksFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	if err == nil {
		err = json.Unmarshal(b, &names)
	}
	return p.Clone.marks(ctx, head, names), err
}

// conflictMark matches the begin and the end of a conflict as git merge-tree marks it, with a commit's id.
var conflictMark = regexp.MustCompile(`(?m)^(<{7}|>{7}) ([0-9a-f]{40}|[0-9a-f]{64})(:|\r?$)`)

func (s *Clone) marks(ctx context.Context, commit string, names []string) (marked []string) {
	for _, name := range names {
		if conflictMark.Match(s.pool.Here.Tree.Content(ctx, commit, name)) {
			marked = append(marked, name)
		}
	}
	return marked
}

// merged returns the commit from which a session continues the kept work,
// and the tree to lay over it if they conflict.
func (s *Clone) merged(ctx context.Context, base, kept string) (start, lay string, conflicts []string, err error) {
	tree := s.pool.Here.Tree
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
	message := "Merge what an earlier session left\n"
	start, err = tree.CommitTree(ctx, m.Tree, []string{base, kept}, message, s.user)
	return start, "", nil, err
}

// fresh prepares the workspace.
func (p *Workspace) fresh(ctx context.Context, base, commit, lay string) (err error) {
	defer func() {
		var exit *exec.ExitError
		var setup *SetupError
		if errors.As(err, &exit) && !errors.As(err, &setup) {
			err = &GitError{err} // it may pass
		}
	}()
	s := p.Clone
	given, err := s.pool.given(ctx)
	if err != nil {
		return err
	}
	if err := p.checkOut(ctx, base, commit, lay, given); err != nil {
		return err
	}
	if err := p.latest(ctx); err != nil {
		return err
	}
	as, err := p.equip(ctx, given)
	if err != nil {
		return err
	}
	if as && lay == "" { // its state is known without a scan
		tree, err := s.pool.Here.Tree.Whole(ctx, commit)
		if err != nil {
			return err
		}
		return p.note(standing{commit, tree})
	}
	return p.Note(ctx)
}

// checkOut checks out a commit in the workspace, with the files of the tree lay over it unless that is "". Base is
// the commit that work in it is to be merged into.
func (p *Workspace) checkOut(ctx context.Context, base, commit, lay string, given given) error {
	s := p.Clone
	if !s.Checks { // nobody works there: what is left in it is from commands
		if err := p.rescue(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(s.forget(leftFile), s.forget(laidFile), s.forget(marksFile), s.forget(ownerFile)); err != nil {
		return err
	}
	if err := s.pool.Here.Tree.SetRef(ctx, s.baseRef(), base); err != nil {
		return err
	}
	if commit != base {
		if err := s.pool.Here.Tree.SetRef(ctx, startRefs+s.name(), commit); err != nil {
			return err
		}
	}
	s.Base = base
	spoiled := exists(filepath.Join(s.folder, spoiledFile)) || s.Checks && s.pool.Layers // nothing is of use there
	if spoiled {
		if err := s.forget(setupFile); err != nil {
			return err
		}
	}
	err := s.git.Fresh(ctx, commit, given.patterns(), s.user, spoiled)
	if err != nil && ctx.Err() == nil {
		if err = p.scrap(ctx, err); err == nil {
			err = s.git.Fresh(ctx, commit, given.patterns(), s.user, true)
		}
	}
	if err != nil {
		return fmt.Errorf("workspace %s: %w", s.name(), err)
	}
	if err := s.forget(spoiledFile); err != nil {
		return err
	}
	if !s.Checks { // no agent works there
		if err := s.git.Drop(ctx, s.pool.Steering); err != nil {
			return fmt.Errorf("workspace %s: %w", s.name(), err)
		}
	}
	if lay != "" {
		if err := s.git.Lay(ctx, lay); err != nil {
			return fmt.Errorf("workspace %s: %w", s.name(), err)
		}
	}
	temp := filepath.Join(s.folder, "tmp")
	if err := s.discard(temp); err != nil {
		return err
	}
	return os.MkdirAll(temp, 0o700)
}

// Files of a workspace next to its work tree.
const (
	leftFile    = "left"    // the state in which nothing in it needed saving
	setupFile   = "setup"   // a digest of the set-up's input
	spoiledFile = "spoiled" // its ignored files are left from a refused change
	laidFile    = "laid"    // files that differ on purpose from the session's first commit
	marksFile   = "marks"   // files in which ralph has put conflict marks
	ownerFile   = "owner"   // the ref for the work in it, until that was inspected
)

// forget removes one of these files.
func (s *Clone) forget(name string) error {
	err := os.Remove(filepath.Join(s.folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Spoil has the workspace's ignored files removed before its next use.
func (p *Workspace) Spoil() error {
	return os.WriteFile(filepath.Join(p.Clone.folder, spoiledFile), nil, 0o600)
}

// laid lists files of a workspace that were replaced on purpose when its session began.
type laid struct {
	Commit string            // the session's first commit
	Files  map[string]string // digests by name, after the replacement
}

// Lay gives files of the workspace the content that a commit has, without those being changes of the session: unless
// somebody changes them, a candidate contains them as they were.
func (p *Workspace) Lay(ctx context.Context, commit string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	l := laid{p.Clone.git.Head(ctx), map[string]string{}}
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, name := range names {
		v, err := p.Clone.pool.Here.Tree.Version(ctx, commit, name)
		if err == nil {
			err = v.Write(root, name)
		}
		if err == nil {
			l.Files[name], err = Digest(p.Path(name))
		}
		if err != nil {
			return fmt.Errorf("put %s back as it is on the branch: %w", name, err)
		}
	}
	b, err := json.Marshal(l)
	if err == nil {
		err = os.WriteFile(filepath.Join(p.Clone.folder, laidFile), b, 0o600)
	}
	return errors.Join(err, p.Note(ctx))
}

// lifted returns the tree of the whole repository with the laid files as the commit has them.
func (p *Workspace) lifted(ctx context.Context, tree string) (string, error) {
	var l laid
	b, err := os.ReadFile(filepath.Join(p.Clone.folder, laidFile))
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
		now, err := Digest(p.Path(name))
		return err != nil || now != digest
	})
	if len(l.Files) == 0 {
		return tree, nil
	}
	clone := p.Clone.git
	var files []worktree.Exchange
	for name := range l.Files {
		files = append(files, worktree.Exchange{Path: clone.Below(name)})
	}
	return clone.Exchanged(ctx, tree, l.Commit, files, clone.Scratch())
}
