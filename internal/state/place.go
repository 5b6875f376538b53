package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ralph"
	"ralph/internal/worktree"
	"ralph/store"
)

// A queue belongs to one folder of the repository, its project's root: what is worked
// and judged elsewhere is judged by other commands. A part of a repository that is to
// have a queue of its own is a package (`ralph init --package`).

// packagesName is the folder of packages' states, in ralph's own.
const packagesName = "packages"

// within is a folder relative to the top of its work tree, "." for the top itself. It
// is the same in every clone and in every linked work tree.
func within(top, root string) string {
	for _, path := range []*string{&top, &root} {
		if real, err := filepath.EvalSymlinks(*path); err == nil {
			*path = real
		}
	}
	rel, err := filepath.Rel(top, root)
	if err != nil {
		return root
	}
	return filepath.ToSlash(rel)
}

// packageState is where a package in a folder has its state.
func packageState(common, top, root string) string {
	rel := within(top, root)
	sum := sha256.Sum256([]byte(rel))
	return filepath.Join(common, "ralph", packagesName, filepath.Base(root)+"-"+hex.EncodeToString(sum[:6]))
}

// Guarded is the folder of ralph's that agents are kept out of: with a package's state
// that of all others in the repository.
func (h *Home) Guarded() string {
	if h.Git && filepath.Dir(h.State) == filepath.Join(h.Common, "ralph", packagesName) {
		return filepath.Join(h.Common, "ralph")
	}
	return h.State
}

// Part is the repository whose queue is the project's, although the project is only a
// part of it; "" if it is the whole.
func (h *Home) Part() string {
	if h.Git && within(h.Top, h.Root) != "." {
		return h.Top
	}
	return ""
}

// belongs makes sure that the queue is of the project, and notes of a queue that it
// was not known of which it is. fresh is one that has just been made.
func (h *Home) belongs(ctx context.Context, db *store.DB, fresh bool) error {
	if !h.Git || h.State == filepath.Join(h.Root, PlainName) {
		return nil // its state is in its root
	}
	here, configured := within(h.Top, h.Root), Exists(filepath.Join(h.Root, ConfigName))
	var root string
	err := db.View(ctx, func(tx *store.Tx) (err error) { root, err = tx.Root(); return err })
	if err != nil || root == here {
		return err
	}
	there := filepath.Join(h.Top, filepath.FromSlash(root))
	switch {
	case root == "" && !configured && !fresh:
		return nil // a queue of before: a look from elsewhere says nothing
	case root == "":
	case configured && root != "." && !Exists(filepath.Join(there, ConfigName)):
		fmt.Fprintf(h.Warn, "ralph: the queue was that of %s, which has no %s any more; it is that of %s from now on\n",
			there, ConfigName, h.Root)
	case configured:
		return ralph.Usage(fmt.Errorf("%s is not the configuration of the queue in %s, which is that of the project in %s: "+
			"`ralph init --package` in %s gives it a queue of its own; or remove that file",
			filepath.Join(h.Root, ConfigName), h.State, there, h.Root))
	default:
		return ralph.Usage(fmt.Errorf("the queue in %s is that of the project in %s: work there (ralph -C %s …)",
			h.State, there, there))
	}
	return db.Tx(ctx, func(tx *store.Tx) error { return tx.SetRoot(here) })
}

// Prepare makes sure that a project may begin in a folder: there is none around it,
// and the repository's queue is not another folder's. With own it is to be a package,
// whose state folder is made. The folder's configuration may be there already, as in
// a new clone, if only its queue has not begun. Nothing is written before all of that
// is known.
func Prepare(ctx context.Context, root string, own bool) error {
	path := filepath.Join(root, ConfigName)
	top, common, err := worktree.Find(ctx, root)
	git := err == nil
	if err != nil && !errors.Is(err, worktree.ErrNoRepo) {
		return err
	}
	state := packageState(common, top, root)
	before := Home{Root: root, State: filepath.Join(root, PlainName)}
	if git && own {
		before.State = state
	} else if git {
		if before.State, err = chooseState(ctx, root, top, common); err != nil {
			return err
		}
	}
	if err := checkPath(root, before.State); err != nil {
		return err
	}
	begun, err := before.HasQueue()
	if err != nil {
		return err
	}
	switch {
	case Exists(path) && begun:
		return ralph.Usage(fmt.Errorf("%s exists already; it was not changed. "+
			"This is a project: `ralph doctor` says whether a run can work here", path))
	case own && git:
		queue, err := rootOfQueue(ctx, common)
		if err == nil && queue == within(top, root) {
			err = ralph.Usage(fmt.Errorf("%s has the repository's queue already, and needs none of its own: "+
				"work here as you are", root))
		}
		if err != nil {
			return err
		}
		return os.MkdirAll(state, 0o700)
	case own:
		return nil // its state is in it
	}
	const remedy = "use that one (ralph task add --feature tells parts of it apart), " +
		"or give this folder a queue and a configuration of its own: ralph init --package"
	for d := filepath.Dir(root); ; d = filepath.Dir(d) {
		if within(top, root) != "." && isRoot(d) || !git && isRoot(d) {
			return ralph.Usage(fmt.Errorf("%s is part of the project in %s: %s", root, d, remedy))
		}
		if d == filepath.Dir(d) || git && within(top, d) == "." {
			break
		}
	}
	if !git {
		return nil
	}
	queue, err := rootOfQueue(ctx, common)
	if there := filepath.Join(top, filepath.FromSlash(queue)); err == nil && queue != "" && queue != within(top, root) &&
		(queue == "." || Exists(filepath.Join(there, ConfigName))) {
		err = ralph.Usage(fmt.Errorf("the repository's queue is that of the project in %s: %s", there, remedy))
	}
	return err
}

// isRoot reports whether a folder is a project's root by what is in it.
func isRoot(dir string) bool {
	return Exists(filepath.Join(dir, ConfigName)) || Exists(filepath.Join(dir, PlainName, Database)) ||
		Exists(filepath.Join(dir, PlainName, Gone))
}

// rootOfQueue is the root of the repository's queue, "" if there is no such queue or
// it is not known.
func rootOfQueue(ctx context.Context, common string) (root string, err error) {
	path := filepath.Join(common, "ralph", Database)
	if !Exists(path) {
		return "", nil
	}
	db, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		return "", err
	}
	err = db.View(ctx, func(tx *store.Tx) (err error) { root, err = tx.Root(); return err })
	return root, errors.Join(err, db.Close())
}
