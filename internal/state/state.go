// Package state says where a project is and where its state is kept: which folder is its
// root, which one holds the queue, whether that is there, lost or another project's,
// and whether this process belongs to a session of it.
//
// Looking makes no queue, and what cannot be looked at is never taken for absent.
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
	PlainName  = ".ralph" // the state of a project without git
	Database   = "ralph.db"
)

// A Home is where a project is, and where its state is kept.
type Home struct {
	Root   string // where ralph.yaml is, or the top of the git work tree
	State  string // where the database and the transcripts are
	Git    bool
	Top    string    // of the git work tree
	Common string    // git's own directory, which all work trees share
	Warn   io.Writer // is told when the queue becomes another folder's
}

// File is a file of the state.
func (h *Home) File(name string) string { return filepath.Join(h.State, name) }

// Session is where the files of a session are.
func (h *Home) Session(id string) string { return filepath.Join(h.State, "sessions", id) }

// Find finds the project upwards from a directory, without reading its configuration.
// In a git repository no `ralph init` is needed; elsewhere it is what makes a project.
func Find(ctx context.Context, dir string) (*Home, error) {
	top, common, err := worktree.Find(ctx, dir)
	if err != nil && !errors.Is(err, worktree.ErrNoRepo) {
		return nil, err
	}
	h := &Home{Git: err == nil, Top: top, Common: common, Warn: io.Discard}
	for d := dir; ; d = filepath.Dir(d) {
		if isRoot(d) || h.Git && Exists(packageState(common, top, d)) {
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
	h.State = filepath.Join(h.Root, PlainName)
	if own := packageState(common, top, h.Root); h.Git && Exists(own) {
		h.State = own
	} else if h.Git {
		if h.State, err = chooseState(ctx, h.Root, top, common); err != nil {
			return nil, err
		}
	}
	return h, checkPath(h.Root, h.State)
}

// checkPath refuses paths that cannot be told to the agent, which reads JSON: its tools
// would not reach ralph.
func checkPath(paths ...string) error {
	for _, path := range paths {
		if !utf8.ValidString(path) {
			return ralph.Usage(fmt.Errorf("the path %q is not UTF-8, so that it cannot be told to the agent; "+
				"rename the folder", path))
		}
	}
	return nil
}

// Exists tells whether something is there.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Gone is the file that a run leaves in the state folder when it has lost its
// database: whatever stands there then is no queue to work on.
const Gone = "database-lost"

// traces are what shows that a state folder without a database had one.
var traces = []string{Gone, "run.lock", "sessions", "backups", Database + "-wal"}

// present tells whether something is there. What cannot be looked at is an error.
func present(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("it cannot be told whether the queue is there: %w", err)
	}
	return true, nil
}

// tracesIn are the traces in a state folder.
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

// chooseState is the folder of the state of a project in a git repository: the git
// directory's, or .ralph if the project began without git (decision 5). Where both
// hold a queue neither wins.
func chooseState(ctx context.Context, root, top, common string) (string, error) {
	plain, inGit := filepath.Join(root, PlainName), filepath.Join(common, "ralph")
	plainDB, err := present(filepath.Join(plain, Database))
	if err != nil {
		return "", err
	}
	gitTraces, err := tracesIn(inGit, append([]string{Database}, traces...))
	if err != nil {
		return "", err
	}
	if len(gitTraces) == 0 {
		// The other folder may be another program's: of it, ralph's own files count.
		lost, err := tracesIn(plain, []string{Gone, "run.lock"})
		if err != nil {
			return "", err
		}
		if plainDB || len(lost) > 0 {
			return plain, nil
		}
		return inGit, nil
	}
	if !plainDB {
		return inGit, nil
	}
	plainTasks, plainErr := countTasks(ctx, plain)
	gitTasks, gitErr := countTasks(ctx, inGit)
	if root != top && plainErr == nil && plainTasks > 0 {
		return plain, nil // a project of its own, beside the one of the whole repository
	}
	advice := "move the folder away that is not this project's, such as with `mv " + plain + " " + plain + ".old`"
	if plainErr == nil && plainTasks == 0 && (gitErr != nil || gitTasks > 0) {
		advice = plain + " holds no task and is a left-over: move it away with `mv " + plain + " " + plain + ".old`"
	} else if gitErr == nil && gitTasks == 0 && plainTasks > 0 {
		advice = inGit + " holds no task: move it away with `mv " + inGit + " " + inGit + ".old`, " +
			"and then the other one there with `ralph db move`"
	}
	return "", fmt.Errorf("there are two queues for %s, and it cannot be told which is meant: %s (%s) and %s (%s); %s",
		root, plain, tasksIn(plainTasks, plainErr), inGit, tasksIn(gitTasks, gitErr), advice)
}

// countTasks counts what a database holds, without changing it.
func countTasks(ctx context.Context, state string) (n int, err error) {
	path := filepath.Join(state, Database)
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		return 0, nil
	}
	db, err := store.Open(ctx, path, store.Options{MustExist: true})
	if err != nil {
		return 0, err
	}
	err = db.View(ctx, func(tx *store.Tx) error {
		tasks, err := tx.Tasks(store.TaskFilter{})
		n = len(tasks)
		return err
	})
	return n, errors.Join(err, db.Close())
}

func tasksIn(n int, err error) string {
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	return fmt.Sprintf("%d tasks", n)
}

// HasQueue tells whether the project has a database. A state folder that had one, and
// has none now, is an error, and no new project.
func (h *Home) HasQueue() (bool, error) {
	path := h.File(Database)
	if text, err := os.ReadFile(h.File(Gone)); err == nil {
		return false, fmt.Errorf("%s; %s; where all is as it should be, remove %s",
			strings.TrimSpace(string(text)), h.HowToRestore(), h.File(Gone))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("it cannot be told whether the queue is there: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("it cannot be told whether the queue is there: %w", err)
	}
	if err == nil && info.Size() > 0 {
		return true, nil
	}
	left, terr := tracesIn(h.State, traces)
	if terr != nil || len(left) == 0 {
		return false, terr
	}
	what := "is gone"
	if err == nil {
		what = "is empty"
	}
	return false, fmt.Errorf("the database %s %s, but what it belongs to is there (%s): this is no new project; "+
		"%s; to begin a new queue, move %s away",
		path, what, strings.Join(left, ", "), h.HowToRestore(), h.State)
}

// HowToRestore says how the database is brought back, naming the newest copy, and what
// that costs.
func (h *Home) HowToRestore() string {
	dir := h.File("backups")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "the copies cannot be listed: " + err.Error()
	}
	newest, at := "", time.Time{}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && filepath.Ext(e.Name()) == ".db" &&
			info.Mode().IsRegular() && info.Size() > 0 && info.ModTime().After(at) {
			newest, at = filepath.Join(dir, e.Name()), info.ModTime()
		}
	}
	if newest == "" {
		return "ralph has made no copy of it; " +
			"if you have one, bring it back with `ralph db restore FILE`, which keeps what is there now"
	}
	return fmt.Sprintf("bring the newest copy back, of %s, with `ralph db restore %s`, "+
		"which lacks all that happened since and keeps what is there now",
		at.Local().Format("Jan 2 2006 15:04:05"), newest)
}

// ErrNoQueue says that a project has no database yet.
var ErrNoQueue = ralph.Usage(errors.New("there is no queue here yet; `ralph init` or `ralph task add` begins one"))

// Begin opens the project's database, and makes it where there is none.
func (h *Home) Begin(ctx context.Context) (*store.DB, error) {
	there, err := h.HasQueue()
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, h.File(Database), store.Options{})
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w: ralph keeps its state there and must be able to write it", err)
	}
	if err != nil {
		return nil, err
	}
	if err := h.belongs(ctx, db, !there); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// IntactAfter is db.Intact when a run has ended. An error may be the beginning of a
// repository's removal, which comes to the database last: that gets a moment to show.
func IntactAfter(db *store.DB, err error) error {
	if err == nil {
		return db.Intact()
	}
	return soon(db.Intact)
}

// soon is what a look finds within a second, in which a removal that has begun goes on.
func soon(look func() error) error {
	const looks, every = 10, 100 * time.Millisecond
	for range looks {
		if found := look(); found != nil {
			return found
		}
		time.Sleep(every)
	}
	return look()
}

// Lost is err, or what there is to say of a run whose database was taken away under it.
// What that held is saved, as long as it is open, and later commands are told.
func (h *Home) Lost(ctx context.Context, db *store.DB, tree *worktree.Tree, err error) error {
	gone := db.Intact()
	if gone == nil {
		return err
	}
	// The database may be the first that goes of a repository, which what is saved must not share.
	if repository := soon(tree.Intact); repository != nil {
		gone = fmt.Errorf("%w, and with it %w", repository, gone)
	}
	if !Exists(filepath.Dir(h.State)) { // a git directory is not for ralph to make
		h.State = filepath.Join(h.Root, PlainName)
	}
	backups := h.File("backups")
	if err := os.MkdirAll(backups, 0o700); err != nil {
		return errors.Join(gone, err)
	}
	now := time.Now()
	text := fmt.Sprintf("a run ended on %s: %s\n", now.Format(time.DateTime), gone)
	err = os.WriteFile(h.File(Gone), []byte(text), 0o600)
	saved := filepath.Join(backups, "rescued-"+now.UTC().Format("20060102T150405.000")+".db")
	if rerr := db.Backup(context.WithoutCancel(ctx), saved); rerr != nil {
		err = errors.Join(err, fmt.Errorf("what the database held could not be saved: %w", rerr), os.RemoveAll(saved))
	}
	return errors.Join(fmt.Errorf("%w; %s", gone, h.HowToRestore()), err)
}
