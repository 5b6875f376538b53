package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"ralph/internal/config"
	"ralph/internal/worktree"
	"ralph/store"
)

// app is what every command has: where to print, and where it was started.
type app struct {
	in      io.Reader
	out     io.Writer
	err     io.Writer
	environ []string
	chdir   string // -C
	json    bool   // --json
}

// A project is a directory with a queue of tasks.
type project struct {
	root   string // where ralph.yaml is, or the top of the git work tree
	state  string // where the database and the transcripts are
	git    bool
	top    string // of the git work tree
	common string // git's own directory, which all work trees share
	config config.Loaded
	held   confinement // set for a run
	blank  bool        // it has no queue yet; set by open
	warn   io.Writer

	userFile   string // the user's own configuration; "" if there can be none
	unapproved []unapproved
	instead    map[string]string                                      // copies that are read in the place of what is not approved
	load       func(instead map[string]string) (config.Loaded, error) // reads the configuration
}

// Names of files that ralph owns.
const (
	configName   = "ralph.yaml"
	plainState   = ".ralph" // the state of a project without git
	databaseName = "ralph.db"
)

// getenv is a variable of the environment that the program was started with.
func (a *app) getenv(name string) string {
	for _, entry := range a.environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// dir is the directory that the command works from.
func (a *app) dir() (string, error) {
	dir := a.chdir
	if dir == "" {
		dir = "."
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", usage(fmt.Errorf("directory %s: %w", dir, errors.Unwrap(err)))
	}
	if !info.IsDir() {
		return "", usage(fmt.Errorf("%s is not a directory", dir))
	}
	return dir, nil
}

// project finds the project upwards from the directory and reads its configuration.
func (a *app) project(ctx context.Context) (*project, error) {
	p, err := a.locate(ctx)
	if err != nil {
		return nil, err
	}
	if !p.git {
		if _, err := os.Stat(p.root); err != nil {
			return nil, err
		}
	}
	if dir, err := os.UserConfigDir(); err == nil {
		p.userFile = filepath.Join(dir, "ralph", "config.yaml")
	}
	p.load = func(instead map[string]string) (config.Loaded, error) {
		return config.Load(config.Sources{ProjectDir: p.root, UserFile: p.userFile, Environ: a.environ, Instead: instead})
	}
	if p.config, err = p.load(nil); err != nil {
		err = p.salvage(ctx, err)
	}
	return p, err
}

// locate finds the project without reading its configuration. In a git
// repository no `ralph init` is needed; elsewhere it is what makes a project.
func (a *app) locate(ctx context.Context) (*project, error) {
	dir, err := a.dir()
	if err != nil {
		return nil, err
	}
	top, common, err := worktree.Find(ctx, dir)
	if err != nil && !errors.Is(err, worktree.ErrNoRepo) {
		return nil, err
	}
	p := &project{git: err == nil, top: top, common: common, warn: a.err}
	for d := dir; ; d = filepath.Dir(d) {
		if isRoot(d) || p.git && exists(packageState(common, top, d)) {
			p.root = d
			break
		}
		if d == top || d == filepath.Dir(d) {
			break
		}
	}
	if p.root == "" {
		if !p.git {
			return nil, usage(fmt.Errorf("no project in %s or above: there is no git repository and no %s; run `ralph init` there", dir, configName))
		}
		p.root = top
	}
	p.state = filepath.Join(p.root, plainState)
	if own := packageState(common, top, p.root); p.git && exists(own) {
		p.state = own
	} else if p.git {
		if p.state, err = chooseState(ctx, p.root, top, common); err != nil {
			return nil, err
		}
	}
	return p, checkPath(p.root, p.state)
}

// checkPath refuses paths that cannot be told to the agent, which reads JSON: its tools
// would not reach ralph.
func checkPath(paths ...string) error {
	for _, path := range paths {
		if !utf8.ValidString(path) {
			return usage(fmt.Errorf("the path %q is not UTF-8, so that it cannot be told to the agent; rename the folder", path))
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// write runs f in a transaction on the project's database.
func (a *app) write(ctx context.Context, f func(tx *store.Tx) error) error {
	return a.with(ctx, func(_ *project, db *store.DB) error { return db.Tx(ctx, f) })
}

// add is write for what a queue may begin with.
func (a *app) add(ctx context.Context, f func(tx *store.Tx) error) error {
	return a.begin(ctx, func(_ *project, db *store.DB) error { return db.Tx(ctx, f) })
}

// read runs f on one moment of the project's database.
func (a *app) read(ctx context.Context, f func(tx *store.Tx) error) error {
	return a.with(ctx, func(_ *project, db *store.DB) error { return db.View(ctx, f) })
}

// with opens the project's database for f.
func (a *app) with(ctx context.Context, f func(p *project, db *store.DB) error) error {
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	db, err := p.open(ctx)
	if err != nil {
		return err
	}
	if why := p.waitsForApproval(); why != "" {
		fmt.Fprintf(a.err, "ralph: %s; the approved version is used; %s\n", why, p.howToApprove())
	}
	return errors.Join(f(p, db), db.Close())
}

// begin is with for what a queue may begin with.
func (a *app) begin(ctx context.Context, f func(p *project, db *store.DB) error) error {
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	db, err := p.begin(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(p, db), db.Close())
}

// queued is with for those that need a queue.
func (a *app) queued(ctx context.Context, f func(p *project, db *store.DB) error) error {
	return a.with(ctx, func(p *project, db *store.DB) error {
		if p.blank {
			return errNoQueue
		}
		return f(p, db)
	})
}

// print writes v as JSON with --json, and as human text otherwise.
func (a *app) print(v any, human func(w io.Writer) error) error {
	if a.json {
		enc := json.NewEncoder(a.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	return human(a.out)
}

// person is the name under which people comment and answer.
func (a *app) person() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "human"
}
