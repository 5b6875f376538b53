package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/worktree"
	"ralph/store"
)

// A queue belongs to one folder of the repository, the project's root: other folders have other
// verification commands. A part of a repository with its own queue is a package (`ralph init
// --package`).

// packagesName is the folder for the states of packages.
const packagesName = "packages"

// within returns a folder relative to the top of its work tree, "." for the top itself. It is the
// same in every clone and linked work tree.
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

// Folder returns the name of the project's folder, for a linked work tree that of the main one.
func (h *Home) Folder() string {
	if top, dir := filepath.Split(h.Common); h.Git && dir == ".git" {
		return filepath.Base(filepath.Join(top, filepath.FromSlash(within(h.Top, h.Root))))
	}
	return filepath.Base(h.Root)
}

// packageFolder returns the state folder of a package, relative to the repository's.
func packageFolder(top, root string) string {
	rel := within(top, root)
	sum := sha256.Sum256([]byte(rel))
	return filepath.Join(packagesName, filepath.Base(root)+"-"+hex.EncodeToString(sum[:6]))
}

// hasPackage reports whether a folder is a package of the repository.
func (s seat) hasPackage(top, root string) bool {
	folder := packageFolder(top, root)
	return Exists(filepath.Join(s.base, folder))
}

// Guarded returns ralph's folder that agents must not reach; for a package it includes the states
// of the whole repository.
func (h *Home) Guarded() string { return h.base }

// Part returns the repository whose queue the project has, if the project is only a part of it; ""
// if it is the whole.
func (h *Home) Part() string {
	if h.Git && within(h.Top, h.Root) != "." {
		return h.Top
	}
	return ""
}

// belongs checks that the queue is the project's, and records its root if it is unknown. fresh
// means that the queue was just created.
func (h *Home) belongs(ctx context.Context, db *store.DB, fresh bool) error {
	if !h.Git || h.plain() {
		return nil // it is identified by its root
	}
	if h.Server != "" {
		if err := h.sharesHistory(ctx, db); err != nil {
			return err
		}
	}
	here, configured := within(h.Top, h.Root), Exists(filepath.Join(h.Root, ConfigName))
	root, err := store.Read(ctx, db, (*store.Tx).Root)
	if err != nil || root == here {
		return err
	}
	there := filepath.Join(h.Top, filepath.FromSlash(root))
	switch {
	case root == "" && !configured && !fresh:
		return nil // a database of an older design; nothing can be concluded from it
	case root == "":
	case configured && root != "." && !Exists(filepath.Join(there, ConfigName)):
		fmt.Fprintf(h.Warn, "ralph: the queue belonged to %s, which no longer has %s; it belongs to %s from now on\n",
			there, ConfigName, h.Root)
	case configured && h.Server != "":
		return ralph.Usage(fmt.Errorf("%s is not the configuration of the queue in %s, which belongs to the project in %s: "+
			"each project has a database of its own; {project} in RALPH_DATABASE, or in database in "+
			"~/.config/ralph/config.yaml, stands for the name of its folder",
			filepath.Join(h.Root, ConfigName), store.Masked(h.Server), there))
	case configured:
		return ralph.Usage(fmt.Errorf("%s is not the configuration of the queue in %s, which belongs to the project in %s: "+
			"`ralph init --package` in %s gives it a queue of its own; or remove that file",
			filepath.Join(h.Root, ConfigName), h.State, there, h.Root))
	default:
		return ralph.Usage(fmt.Errorf("the queue in %s belongs to the project in %s: work there (ralph -C %s …)",
			h.State, there, there))
	}
	return db.Tx(ctx, func(tx *store.Tx) error { return tx.SetRoot(here) })
}

// sharesHistory checks that a server's queue which this project has not used yet is that of its repository, and
// records the repository if the queue has none. It cannot compare a shallow clone, or a repository without a commit.
func (h *Home) sharesHistory(ctx context.Context, db *store.DB) error {
	used, err := os.ReadFile(h.File(onServer))
	if err == nil && strings.TrimSpace(string(used)) == store.Masked(h.Server) {
		return nil
	}
	tree, err := worktree.Open(ctx, h.Root)
	if err != nil {
		return err
	}
	here, err := tree.FirstCommits(ctx)
	if err != nil || len(here) == 0 {
		return err
	}
	known, err := store.Read(ctx, db, (*store.Tx).FirstCommits)
	if err != nil || slices.ContainsFunc(known, func(id string) bool { return slices.Contains(here, id) }) {
		return err
	}
	if len(known) > 0 {
		return ralph.Usage(fmt.Errorf("the queue in %s belongs to another repository, which shares no commit with %s: "+
			"each project has a database of its own; {project} in RALPH_DATABASE, or in database in "+
			"~/.config/ralph/config.yaml, stands for the name of its folder", store.Masked(h.Server), h.Root))
	}
	return db.Tx(ctx, func(tx *store.Tx) error { return tx.SetFirstCommits(here) })
}

// ErrProject means that there already is a project in the place for a new one.
var ErrProject = errors.New("this is a project")

// Prepare checks that a project may begin in a folder: no project is around it, and the
// repository's queue is not another folder's. With own it becomes a package, whose state folder is
// created. The configuration may exist already, as in a new clone, if the queue has not begun.
// Nothing is written before all checks are done.
func Prepare(ctx context.Context, root string, own bool, environ []string) error {
	path := filepath.Join(root, ConfigName)
	top, common, err := worktree.Find(ctx, root)
	git := err == nil
	if err != nil && !errors.Is(err, worktree.ErrNoRepo) {
		return err
	}
	before := &Home{Root: root, Git: git, Top: top, Common: common, Warn: io.Discard}
	if err := before.findRepository(ctx, environ); err != nil {
		return err
	}
	if err := before.sit(ctx, environ, own); err != nil {
		return err
	}
	if err := before.known(ctx); err != nil {
		return err
	}
	begun := before.served()
	if !begun {
		if begun, err = before.HasQueue(); err != nil {
			return err
		}
	}
	switch {
	case Exists(path) && begun:
		return ralph.Usage(fmt.Errorf("%s exists already; it was not changed: %w, "+
			"and `ralph doctor` says whether a run can work here", path, ErrProject))
	case own && git:
		queue, err := before.rootOfQueue(ctx)
		if err == nil && queue == within(top, root) {
			err = ralph.Usage(fmt.Errorf("%s has the repository's queue already, and needs none of its own: "+
				"work here as you are", root))
		}
		if err != nil {
			return err
		}
		return before.Make(ctx)
	case own:
		return nil // it is identified by its root
	}
	return before.alone(ctx)
}

// alone checks that no other project has the folder, or the repository's queue.
func (h *Home) alone(ctx context.Context) error {
	root, top, git := h.Root, h.Top, h.Git
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
	queue, err := h.rootOfQueue(ctx)
	if there := filepath.Join(top, filepath.FromSlash(queue)); err == nil && queue != "" && queue != within(top, root) &&
		(queue == "." || Exists(filepath.Join(there, ConfigName))) {
		err = ralph.Usage(fmt.Errorf("the repository's queue belongs to the project in %s: %s", there, remedy))
	}
	return err
}

// isRoot reports whether a folder is a project's root, judging by its files.
func isRoot(dir string) bool {
	return Exists(filepath.Join(dir, ConfigName)) || Exists(filepath.Join(dir, PlainName, idName))
}

// rootOfQueue returns the root of the repository's queue; "" if there is no queue or its root is
// unknown. It is unknown for a queue on a server, which [Home.Begin] checks.
func (h *Home) rootOfQueue(ctx context.Context) (root string, err error) {
	all := *h
	all.State = all.base
	if all.served() {
		return "", nil
	}
	if there, err := all.HasQueue(); err != nil || !there {
		return "", err
	}
	db, err := all.Reopen(ctx, false)
	if err != nil {
		return "", err
	}
	root, err = store.Read(ctx, db, (*store.Tx).Root)
	return root, errors.Join(err, db.Close())
}
