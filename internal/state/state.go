// Package state finds a project and its state: the project's root, the folder of its queue, whether the queue exists,
// is lost or belongs to another project, and whether this process belongs to one of its sessions.
//
// Looking never creates a queue, and an unreadable file is never taken for absent.
package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"ralph"
	"ralph/internal/worktree"
	"ralph/store"
)

// Names of files that ralph owns.
const (
	ConfigName = "ralph.yaml"
	PlainName  = ".ralph" // ralph's folder in a project without git
	Database   = "ralph.db"
)

// A Home is the location of a project and its state.
type Home struct {
	Root   string // folder of ralph.yaml, or the top of the git work tree
	State  string // folder of the database and the transcripts
	Git    bool
	Top    string    // top of the git work tree
	Common string    // git directory that all work trees share
	Server string    // the URL of the queue's database; "" if it is a file in State
	Warn   io.Writer // receives a message when the queue becomes another folder's

	seat
	repository *seat  // of the git repository around it; nil without one, or before it is known
	beside     bool   // it began without git, and is in a repository that has or may have a queue of its own
	former     string // its folder without git, if it becomes its repository's from now on; otherwise ""
}

// File returns the path of a file in the state folder.
func (h *Home) File(name string) string { return filepath.Join(h.State, name) }

// Session returns the folder of a session's files.
func (h *Home) Session(id string) string { return filepath.Join(h.State, "sessions", id) }

// Find finds the project upwards from a directory, without reading its configuration. A git
// repository needs no `ralph init`; elsewhere, that creates a project. It is an error if project
// and state do not belong together.
func Find(ctx context.Context, dir string, environ []string) (*Home, error) {
	h, err := Locate(ctx, dir, environ)
	if err == nil {
		err = h.known(ctx)
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Locate is Find without checking that project and state belong together.
func Locate(ctx context.Context, dir string, environ []string) (*Home, error) {
	top, common, err := worktree.Find(ctx, dir)
	if err != nil && !errors.Is(err, worktree.ErrNoRepo) {
		return nil, err
	}
	h := &Home{Git: err == nil, Top: top, Common: common, Warn: io.Discard}
	if err := h.findRepository(ctx, environ); err != nil {
		return nil, err
	}
	for d := dir; h.Root == ""; d = filepath.Dir(d) {
		if isRoot(d) || h.Git && h.repository.hasPackage(top, d) {
			h.Root = d
		}
		if d == top || d == filepath.Dir(d) {
			break
		}
	}
	if h.Root == "" && h.Git {
		h.Root = top
	}
	if h.Root == "" {
		if h.Root, err = lostAbove(dir, environ); err != nil {
			return nil, err
		}
	}
	if h.Root == "" {
		return nil, ralph.Usage(fmt.Errorf("no project in %s or above: there is no git repository and no %s; "+
			"run `ralph init` there", dir, ConfigName))
	}
	return h, h.sit(ctx, environ, false)
}

// findRepository determines the seat of the git repository, if there is one.
func (h *Home) findRepository(ctx context.Context, environ []string) error {
	if !h.Git {
		return nil
	}
	s, err := newSeat(ctx, environ, h.Common)
	h.repository = &s
	return err
}

// lostAbove returns the nearest folder, upwards from one, that was a project with a queue; "" if there is none.
func lostAbove(dir string, environ []string) (string, error) {
	home, err := stateHome(environ)
	if err != nil || variable(environ, DirVariable) != "" {
		return "", err
	}
	for d := resolved(dir); ; d = filepath.Dir(d) {
		if id, err := (seat{home: home}).claims(d, filepath.Join(d, ".git")); err != nil || id != "" {
			return d, err
		}
		if d == filepath.Dir(d) {
			return "", nil
		}
	}
}

// sit determines the location of the project's state; with own, of a package's state.
func (h *Home) sit(ctx context.Context, environ []string, own bool) error {
	own = h.Git && (own || h.repository.hasPackage(h.Top, h.Root))
	began, err := readFile(filepath.Join(h.Root, PlainName, idName)) // a project without git
	if err != nil {
		return err
	}
	began = strings.TrimSpace(began)
	switch {
	case !h.Git, !own && began != "" && within(h.Top, h.Root) != ".":
		h.beside = h.Git
		if h.seat, err = newSeat(ctx, environ, h.Root); err != nil {
			return err
		}
	case !own && began != "" && began != h.repository.id && !h.repository.unmarked:
		return fmt.Errorf("there are two queues for %s, that of %s and that of the repository (%s), and it is unclear which "+
			"one is meant: `rm %s`, or `git config --local --unset ralph.id`",
			h.Root, began, h.repository.id, filepath.Join(h.Root, PlainName, idName))
	case !own && began != "" && validID(began) && h.repository.unmarked: // it is the repository's from now on
		h.seat = *h.repository
		h.id, h.unmarked, h.former = began, false, resolved(h.Root)
		if !h.outright() {
			h.base = filepath.Join(h.home, began)
		}
	default:
		h.seat = *h.repository
	}
	h.State = h.base
	if own {
		h.State = filepath.Join(h.base, packageFolder(h.Top, h.Root))
	}
	if err := CheckPath(h.Root, h.State); err != nil {
		return err
	}
	for _, dir := range []string{h.Root, h.Top} {
		if dir != "" && h.outright() && filepath.IsLocal(within(dir, resolved(h.base))) {
			return ralph.Usage(fmt.Errorf("%s names %s, which is in the project, where its state is in reach of agents "+
				"and of git: name a folder elsewhere", DirVariable, h.base))
		}
	}
	return nil
}

// plain reports whether the project's queue is not that of a git repository.
func (h *Home) plain() bool { return !h.Git || h.beside }

// Begun returns the state folder of all queues of the repository if it exists, else "".
func (h *Home) Begun() string {
	if Exists(h.record()) {
		return h.base
	}
	return ""
}

// Own lists ralph's own paths in the project, relative to its root.
func (h *Home) Own() []string {
	own := []string{PlainName}
	if rel := within(h.Root, resolved(filepath.Dir(h.base))); filepath.IsLocal(rel) && !h.outright() {
		own = append(own, rel) // the project is the home folder
	}
	return own
}

// CheckPath refuses, as usage errors, paths that JSON cannot represent: an agent's tools would not reach ralph.
func CheckPath(paths ...string) error {
	for _, path := range paths {
		if !utf8.ValidString(path) {
			return ralph.Usage(fmt.Errorf("the path %q is not UTF-8, so that it cannot be told to the agent; "+
				"rename the folder", path))
		}
	}
	return nil
}

// Exists reports whether a path exists.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Files and folders beside the database.
const (
	// Gone is the file that a run leaves in the state folder when it has lost its database: any
	// database found there later is not to be used.
	Gone      = "database-lost"
	onServer  = "database-on-server" // names the server that has the queue, without the password
	backups   = "backups"
	beginning = "beginning" // exists from the making of the folder until its database is complete
)

// traces are files that show that a state folder without a database had one.
var traces = []string{Gone, lockName, "sessions", backups, Database + "-wal"}

// present reports whether a path exists. It returns an error if that is unknown.
func present(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot tell whether the queue exists: %w", err)
	}
	return true, nil
}

// tracesIn returns those of the files that exist in a state folder.
func tracesIn(state string, names []string) (found []string, err error) {
	for _, name := range names {
		there, err := present(filepath.Join(state, name))
		if err != nil {
			return nil, err
		}
		if there {
			found = append(found, name)
		}
	}
	return found, nil
}

// served reports whether the project's queue is on a server, as was noted when it began.
func (h *Home) served() bool { return Exists(h.File(onServer)) }

// HasQueue reports whether the project has a database. A state folder that has lost its database is an
// error, not a new project.
func (h *Home) HasQueue() (bool, error) {
	if h.Server != "" {
		return true, nil
	}
	if at, err := os.ReadFile(h.File(onServer)); err == nil {
		return false, ralph.Usage(fmt.Errorf("the queue of this project is in a PostgreSQL, %s, and no database is "+
			"configured: set RALPH_DATABASE, or database in ~/.config/ralph/config.yaml; if it is not there any more, remove %s",
			strings.TrimSpace(string(at)), h.File(onServer)))
	}
	f, err := h.folder()
	if err != nil {
		return false, err
	}
	size, err := sizeOf(h.File(Database))
	if err != nil {
		return false, err
	}
	if size > 0 && f.Note == "" {
		return true, nil // its contents are checked when it is opened
	}
	f.Found.Size = size
	f.Found.Mark, f.Found.MarkErr = store.ReadMark(h.File(Database))
	return false, h.judge(f)
}

// Reopen opens the database of the state folder after a check of the folder; see [Folder.Standing]. With asIs it is not
// migrated.
func (h *Home) Reopen(ctx context.Context, asIs bool) (db *store.DB, err error) {
	defer func() {
		if err == nil {
			db.NoRoom = func() string { return Full(h.State) }
		}
	}()
	if h.Server != "" {
		return store.Open(ctx, h.Server, store.Options{MustExist: asIs})
	}
	f, err := h.folder()
	if err != nil {
		return nil, err
	}
	db, err = store.Open(ctx, h.File(Database), store.Options{MustExist: asIs, Judge: func(found store.Found) error {
		f.Found = found
		return h.judge(f)
	}})
	if store.Corrupt(err) { // in parts that the check did not read
		err = fmt.Errorf("the queue is damaged: %w; %s", err, h.HowToRestore())
	}
	return db, err
}

// judge returns an error with the remedy unless a queue may be used, or begun, in the folder.
func (h *Home) judge(f Folder) error {
	standing, why := f.Standing()
	switch standing {
	case New, Sound:
		return nil
	case Damaged:
		return fmt.Errorf("the queue is damaged: %s: %s; %s", h.File(Database), why, h.HowToRestore())
	default:
		return fmt.Errorf("the queue is lost: %s: %s: this is not a new project; %s; to begin a new queue, move %s away",
			h.File(Database), why, h.HowToRestore(), h.State)
	}
}

// newestBackup returns the newest usable copy that ralph has made; "" if there is none.
func (h *Home) newestBackup(usable func(path string) bool) (path string, at time.Time, err error) {
	dir := h.File(backups)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", at, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && filepath.Ext(e.Name()) == ".db" && !strings.HasPrefix(e.Name(), "replaced-") &&
			info.Mode().IsRegular() && info.Size() > 0 && info.ModTime().After(at) &&
			usable(filepath.Join(dir, e.Name())) {
			path, at = filepath.Join(dir, e.Name()), info.ModTime()
		}
	}
	return path, at, nil
}

// HowToRestore explains how to restore the database from the newest copy, and names the losses.
func (h *Home) HowToRestore() string {
	newest, at, err := h.newestBackup(func(path string) bool { return store.Sound(context.Background(), path) == nil })
	if err != nil {
		return "the copies cannot be listed: " + err.Error()
	}
	advice := "ralph has made no copy of it; " +
		"if you have one, bring it back with `ralph db restore FILE`, which keeps the present file"
	if newest != "" {
		advice = fmt.Sprintf("bring the newest copy back, of %s, with `ralph db restore %s`, "+
			"which lacks everything since then, and keeps the present file",
			at.Local().Format("Jan 2 2006 15:04:05"), newest)
	}
	if size, err := sizeOf(h.File(Database)); err == nil && size > 0 {
		advice += fmt.Sprintf("; or, if the file that is there is the right one, go on with it: `ralph db restore %s`",
			h.File(Database))
	}
	return advice
}

// ErrNoQueue means that a project has no database yet.
var ErrNoQueue = ralph.Usage(errors.New("there is no queue here yet; `ralph init` or `ralph task add` begins one"))

// Begin opens the project's database, and creates it if there is none.
func (h *Home) Begin(ctx context.Context) (*store.DB, error) {
	there, err := h.HasQueue()
	if err == nil {
		err = h.Make(ctx)
	}
	if err != nil {
		return nil, err
	}
	db, err := h.Reopen(ctx, false)
	if err == nil {
		err = h.complete()
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w: ralph keeps its state there and must be able to write it", err)
	}
	if err != nil {
		return nil, err
	}
	if err = h.belongs(ctx, db, !there); err == nil && h.Server != "" {
		err = os.WriteFile(h.File(onServer), []byte(store.Masked(h.Server)+"\n"), 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// After looks for damage after a run has ended. If the run ended with an error, it keeps
// looking for a while: a removal may be in progress.
func After(err error, look func() error) error {
	const looks, every = 10, 100 * time.Millisecond
	for range looks {
		if found := look(); found != nil || err == nil {
			return found
		}
		time.Sleep(every)
	}
	return look()
}

// Lost handles a run whose database was removed: it saves the content of the database, which is
// still open, and leaves a note for later commands.
func (h *Home) Lost(ctx context.Context, db *store.DB, gone error) error {
	dir := h.File(backups)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return errors.Join(gone, err)
	}
	now := time.Now()
	text := fmt.Sprintf("a run ended on %s: %s\n", now.Format(time.DateTime), gone)
	err := os.WriteFile(h.File(Gone), []byte(text), 0o600)
	saved := filepath.Join(dir, "rescued-"+now.UTC().Format("20060102T150405.000")+".db")
	if rerr := db.Backup(context.WithoutCancel(ctx), saved); rerr != nil {
		err = errors.Join(err, fmt.Errorf("what the database held could not be saved: %w", rerr), os.RemoveAll(saved))
	}
	return errors.Join(fmt.Errorf("%w; %s", gone, h.HowToRestore()), err)
}
