// Package state finds a project and its state: the project's root, the folder of its queue, whether
// the queue exists, is lost or belongs to another project, and whether this process belongs to one
// of its sessions.
//
// Looking never creates a queue, and what cannot be read is never taken for absent.
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
	Top    string    // of the git work tree
	Common string    // git directory that all work trees share
	Server string    // the URL of the queue's database; "" if it is a file in State
	Warn   io.Writer // receives a message when the queue becomes another folder's

	seat
	lost string // the state of a repository that was here; see lostAt
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
		err = h.known()
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
	for d := dir; ; d = filepath.Dir(d) {
		begun, err := h.beginsAt(d, environ)
		if err != nil {
			return nil, err
		}
		if begun {
			h.Root = d
			break
		}
		if d == top || d == filepath.Dir(d) {
			break
		}
	}
	if h.Root == "" {
		if !h.Git {
			return nil, ralph.Usage(fmt.Errorf("no project in %s or above: there is no git repository and no %s; "+
				"run `ralph init` there", dir, ConfigName))
		}
		h.Root = top
	}
	return h, h.sit(ctx, environ, false)
}

// beginsAt reports whether a folder is the root of a project.
func (h *Home) beginsAt(dir string, environ []string) (bool, error) {
	if isRoot(dir) {
		return true, nil
	}
	if h.Git {
		s, err := gitSeat(environ, h.Common)
		return err == nil && s.hasPackage(h.Top, dir), err
	}
	s, err := plainSeat(environ, dir)
	if err != nil {
		return false, err
	}
	if lost, err := lostAt(environ, dir); err != nil || lost != "" {
		return true, err
	}
	if s.outright {
		return false, nil
	}
	return hasQueue(s.base)
}

// sit determines the seat of the project's state; with own that of a package.
func (h *Home) sit(ctx context.Context, environ []string, own bool) error {
	plain, err := plainSeat(environ, h.Root)
	if err != nil {
		return err
	}
	h.seat = plain
	if h.lost, err = h.lostRepository(environ); err != nil {
		return err
	}
	if h.Git {
		repository, err := gitSeat(environ, h.Common)
		if err != nil {
			return err
		}
		if own = own || repository.hasPackage(h.Top, h.Root); !own {
			repository, err = chooseSeat(ctx, h, plain, repository)
		}
		if err != nil {
			return err
		}
		h.seat = repository
	}
	h.State = h.base
	if h.Git && own {
		h.State = filepath.Join(h.base, packageFolder(h.Top, h.Root))
	}
	if err := CheckPath(h.Root, h.State); err != nil {
		return err
	}
	for _, dir := range []string{h.Root, h.Top} {
		if dir != "" && h.outright && filepath.IsLocal(within(dir, resolved(h.base))) {
			return ralph.Usage(fmt.Errorf("%s names %s, which is in the project, where its state is in reach of agents "+
				"and of git: name a folder elsewhere", DirVariable, h.base))
		}
	}
	return nil
}

// lostRepository returns the state of a repository that contained the project and is gone; "" if
// none is known.
func (h *Home) lostRepository(environ []string) (lost string, err error) {
	if h.Git {
		if resolved(h.Common) == resolved(filepath.Join(h.Top, ".git")) {
			return "", nil
		}
		return lostAt(environ, h.Top)
	}
	for d := h.Root; ; d = filepath.Dir(d) {
		if lost, err = lostAt(environ, d); err != nil || lost != "" || d == filepath.Dir(d) {
			return lost, err
		}
	}
}

// plain reports whether the project began without git.
func (h *Home) plain() bool { return filepath.Base(h.desk) == PlainName }

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
	if rel := within(h.Root, resolved(filepath.Dir(h.base))); filepath.IsLocal(rel) && !h.outright {
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

// chooseSeat returns the seat of a project in a git repository: the repository's, or the project's
// own if it began without git. If both hold a queue, it returns an error.
func chooseSeat(ctx context.Context, h *Home, plain, repository seat) (seat, error) {
	first, err := plain.begun()
	if err != nil || !first {
		return repository, err
	}
	second, err := repository.begun()
	if err != nil || !second {
		return plain, err
	}
	plainTasks, plainErr := countTasks(ctx, plain)
	gitTasks, gitErr := countTasks(ctx, repository)
	if h.Root != h.Top && plainErr == nil && plainTasks > 0 {
		all := *h
		all.seat = repository
		if queue, err := all.rootOfQueue(ctx); err != nil || queue != within(h.Top, h.Root) {
			return plain, err // a separate project beside the repository's
		}
	}
	move := func(s seat) string { return "`mv " + s.desk + " " + s.desk + ".old`" }
	away := func(s seat) string { return "move it away with " + move(s) }
	advice := "move the folder away that is not this project's, such as with " + move(plain)
	if plainErr == nil && plainTasks == 0 && (gitErr != nil || gitTasks > 0) {
		advice = plain.desk + " holds no task and is a left-over: " + away(plain)
	} else if gitErr == nil && gitTasks == 0 && plainTasks > 0 {
		advice = repository.desk + " holds no task: " + away(repository) + ", and then take the other one along with " + adopt
	}
	return repository, fmt.Errorf("there are two queues for %s, and it is unclear which one is meant: that of %s (%s) "+
		"and that of %s (%s); %s",
		h.Root, plain.desk, tasksIn(plainTasks, plainErr), repository.desk, tasksIn(gitTasks, gitErr), advice)
}

// countTasks counts the tasks in a database without changing it.
func countTasks(ctx context.Context, s seat) (n int, err error) {
	path := filepath.Join(s.base, Database)
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return 0, nil
	}
	db, err := store.Open(ctx, path, store.Options{MustExist: true})
	if err != nil {
		return 0, err
	}
	n, err = store.Read(ctx, db, func(tx *store.Tx) (int, error) { return tx.CountTasks(store.TaskFilter{}) })
	return n, errors.Join(err, db.Close())
}

func tasksIn(n int, err error) string {
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	return fmt.Sprintf("%d tasks", n)
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
		return true, nil // what is in it is looked at when it is opened
	}
	f.Found.Size = size
	f.Found.Mark, f.Found.MarkErr = store.ReadMark(h.File(Database))
	return false, h.judge(f)
}

// Reopen opens the database of the state folder after a look at what lies there; see
// [Folder.Standing]. With asIs it is not migrated.
func (h *Home) Reopen(ctx context.Context, asIs bool) (*store.DB, error) {
	if h.Server != "" {
		return store.Open(ctx, h.Server, store.Options{MustExist: asIs})
	}
	f, err := h.folder()
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, h.File(Database), store.Options{MustExist: asIs, Judge: func(found store.Found) error {
		f.Found = found
		return h.judge(f)
	}})
	if store.Corrupt(err) { // in what the look did not need
		err = fmt.Errorf("the queue is damaged: %w; %s", err, h.HowToRestore())
	}
	return db, err
}

// judge returns an error that says what to do unless a queue may be used, or begun, in the folder.
func (h *Home) judge(f Folder) error {
	standing, why := f.Standing()
	switch standing {
	case New, Sound:
		return nil
	case Damaged:
		return fmt.Errorf("the queue is damaged: %s: %s; %s", h.File(Database), why, h.HowToRestore())
	default:
		return fmt.Errorf("the queue is lost: %s: %s: this is no new project; %s; to begin a new queue, move %s away",
			h.File(Database), why, h.HowToRestore(), h.State)
	}
}

// newestBackup returns the newest of the copies that ralph has made and that can be used; "" if there is none.
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

// HowToRestore says how to restore the database from the newest copy, and what is lost by that.
func (h *Home) HowToRestore() string {
	newest, at, err := h.newestBackup(func(path string) bool { return store.Sound(context.Background(), path) == nil })
	if err != nil {
		return "the copies cannot be listed: " + err.Error()
	}
	advice := "ralph has made no copy of it; " +
		"if you have one, bring it back with `ralph db restore FILE`, which keeps what is there now"
	if newest != "" {
		advice = fmt.Sprintf("bring the newest copy back, of %s, with `ralph db restore %s`, "+
			"which lacks all that happened since and keeps what is there now",
			at.Local().Format("Jan 2 2006 15:04:05"), newest)
	}
	if size, err := sizeOf(h.File(Database)); err == nil && size > 0 {
		advice += fmt.Sprintf("; or, if the file that is there is the right one, go on with it: `ralph db restore %s`",
			h.File(Database))
	}
	return advice
}

// ErrNoQueue says that a project has no database yet.
var ErrNoQueue = ralph.Usage(errors.New("there is no queue here yet; `ralph init` or `ralph task add` begins one"))

// Begin opens the project's database, and creates it if there is none.
func (h *Home) Begin(ctx context.Context) (*store.DB, error) {
	there, err := h.HasQueue()
	if err == nil {
		err = h.Make()
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

// After looks for damage after a run has ended. If the run ended with an error, it looks for a
// while: a removal may be in progress.
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
