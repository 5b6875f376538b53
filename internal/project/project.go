// Package project builds the working parts from a project's configuration: the loop, the agent, its sandbox, its rules
// for tools.
//
// Files that configure runs and that a session changed are not used before a person has approved them. Nothing is
// started here except to try a sandbox and to read a version.
package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/exchange"
	"ralph/internal/retention"
	"ralph/internal/sandbox"
	"ralph/internal/state"
	"ralph/internal/systemd"
	"ralph/internal/term"
	"ralph/internal/worktree"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/agent/claude"
	"ralph/loop/agent/kinds"
	"ralph/loop/workspace"
	"ralph/store"
)

// A Project is a folder with a queue of tasks, and its configuration.
type Project struct {
	*state.Home
	Config      config.Loaded
	Confinement Confinement // set for a run
	Blank       bool        // there is no queue yet; set by Open
	Environ     []string    // ralph's own at its start
	Version     string      // version of ralph, reported to agents
	Log         *slog.Logger

	userFile string // the user's own configuration; "" if there can be none
}

// Open finds the project upwards from a directory and reads its configuration. Warnings are printed
// to warn.
func Open(ctx context.Context, dir string, environ []string, warn io.Writer) (*Project, error) {
	home, err := state.Find(ctx, dir, environ)
	if err != nil {
		return nil, err
	}
	home.Warn = warn
	if !home.Git {
		if _, err := os.Stat(home.Root); err != nil {
			return nil, err
		}
	}
	p := &Project{Home: home, Environ: environ, Log: newLog(warn)}
	if dir, err := os.UserConfigDir(); err == nil {
		p.userFile = filepath.Join(dir, "ralph", "config.yaml")
	}
	if p.Config, err = p.load(); err != nil {
		return p, err
	}
	home.Server = strings.ReplaceAll(p.Config.Database, "{project}", url.PathEscape(p.Name()))
	if home.Server != "" && !store.IsURL(home.Server) {
		return nil, ralph.Usage(errors.New("database is not a postgres:// URL (its value is not shown)"))
	}
	return p, nil
}

// newLog returns a log for a terminal or for systemd's journal.
func newLog(w io.Writer) *slog.Logger {
	if systemd.Journalled(w) {
		return slog.New(systemd.NewHandler(w))
	}
	return term.Log(w)
}

// load reads the configuration.
func (p *Project) load() (config.Loaded, error) {
	return config.Load(config.Sources{ProjectDir: p.Root, UserFile: p.userFile, Environ: p.Environ})
}

// Name returns the project's name, in each of its work trees.
func (p *Project) Name() string { return p.Folder() }

// Path resolves a path of the configuration relative to the project.
func (p *Project) Path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.Root, name)
}

// Getenv returns a variable of the environment that ralph was started with.
func (p *Project) Getenv(name string) string {
	for _, entry := range slices.Backward(p.Environ) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// Open opens the project's database for commands that need an existing queue or only read. If there
// is none, it opens an empty one that cannot be written to: looking creates no queue.
func (p *Project) Open(ctx context.Context) (*store.DB, error) {
	there, err := p.HasQueue()
	if err != nil {
		return nil, err
	}
	if there {
		return p.Begin(ctx)
	}
	p.Blank = true
	return store.OpenEmpty(ctx, state.ErrNoQueue)
}

// Begin opens the project's database for commands that change it, and makes an empty one if there is none.
func (p *Project) Begin(ctx context.Context) (*store.DB, error) {
	p.makeRoom(ctx)
	return p.Home.Begin(ctx)
}

// makeRoom removes files of dead sessions from a full disk, which could store nothing else.
func (p *Project) makeRoom(ctx context.Context) {
	if !p.Git || !workspace.Full(p.State) {
		return
	}
	sandbox.Sweep()
	tree, err := worktree.Open(ctx, p.Root, p.Own()...)
	if err == nil {
		pool := p.Pool(&workspace.Workspace{Dir: p.Root, Tree: tree, State: p.State})
		err = pool.MakeRoom(ctx)
	}
	if err != nil {
		p.Log.Warn("cannot remove all that sessions have filled the disk with", "error", err)
	}
}

// Active reports whether a run of the project is active.
func (p *Project) Active(ctx context.Context, db *store.DB) (bool, error) {
	return store.Read(ctx, db, (*store.Tx).AnyAlive)
}

// Control sends a request to the active run; the error wraps [ralph.ErrConflict] if there is none.
func (p *Project) Control(ctx context.Context, db *store.DB, what string) error {
	active, err := p.Active(ctx, db)
	if err != nil {
		return err
	}
	if !active {
		return ralph.Conflict("no run is active")
	}
	return db.Tx(ctx, func(tx *store.Tx) error { return tx.Control(what) })
}

// DecideClaims decides on the lapsed claims that no run watches; any reports whether there were claims.
func (p *Project) DecideClaims(ctx context.Context, db *store.DB) (any bool, err error) {
	over, err := store.Read(ctx, db, (*store.Tx).LapsedClaims)
	if err != nil || len(over) == 0 {
		return false, err
	}
	l, err := p.Loop(ctx, db)
	if err != nil {
		return any, err
	}
	return true, l.Lapse(ctx)
}

// Tidy keeps transcripts, the refs of changes and unused workspaces within their limits.
func (p *Project) Tidy(ctx context.Context, db *store.DB) error {
	var open []ralph.Session
	err := db.View(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
		open, err = tx.OpenSessions()
		return err
	})
	if err != nil {
		return err
	}
	inProgress, dirs := map[string]bool{}, []string{}
	for _, s := range open {
		inProgress[s.ID], dirs = true, append(dirs, s.Dir)
	}
	limits := retention.Limits{Size: config.Fixed.Transcripts, Age: config.Fixed.Retention}
	if err := retention.Apply(ctx, p.File("sessions"), inProgress, limits, time.Now()); err != nil || !p.Git {
		return err
	}
	tree, err := worktree.Open(ctx, p.Root, p.Own()...)
	if err != nil {
		return err
	}
	l, err := p.Merger(ctx, db, tree)
	if err == nil {
		err = l.Forget(ctx, time.Now().Add(-config.Fixed.Retention))
	}
	if err != nil {
		return err
	}
	pool := p.Pool(&workspace.Workspace{Dir: p.Root, Tree: tree, State: p.State})
	if err := pool.ForgetLost(ctx, time.Now().Add(-config.Fixed.Retention), func(id string) (time.Time, error) {
		s, err := store.Read(ctx, db, func(tx *store.Tx) (ralph.Session, error) { return tx.Session(id) })
		if errors.Is(err, ralph.ErrNotFound) {
			return time.Time{}, nil
		}
		return s.CompletedAt.Time, err
	}); err != nil {
		return err
	}
	before := time.Now().AddDate(0, 0, -config.Fixed.WorkspaceDays)
	return pool.Tidy(ctx, before, uint64(p.Config.Workspace.MinFree)<<20, dirs)
}

// OwnSparse returns the folders of the person's sparse checkout; none if it has all files, or git cannot tell.
func (p *Project) OwnSparse(ctx context.Context) []string {
	tree, err := worktree.Open(ctx, p.Root, p.Own()...)
	if err != nil {
		return nil
	}
	return tree.OwnSparse(ctx)
}

// LostWork lists the refs of work that was found and belongs to no task.
func (p *Project) LostWork(ctx context.Context) ([]string, error) {
	if !p.Git {
		return nil, nil
	}
	tree, err := worktree.Open(ctx, p.Root, p.Own()...)
	if err != nil {
		return nil, err
	}
	refs, err := p.Pool(&workspace.Workspace{Dir: p.Root, Tree: tree, State: p.State}).Lost(ctx)
	return slices.Sorted(maps.Keys(refs)), err
}

// Queue reads everything that can be exported.
func (p *Project) Queue(ctx context.Context, db *store.DB) (q exchange.Queue, err error) {
	q.Project, q.IDs = p.Name(), map[int64]string{}
	err = db.View(ctx, func(tx *store.Tx) (err error) {
		if q.Features, err = tx.Features(); err != nil {
			return err
		}
		if q.Disciplines, err = tx.Disciplines(); err != nil {
			return err
		}
		if q.Tasks, err = tx.Tasks(store.TaskFilter{}); err != nil {
			return err
		}
		for _, t := range q.Tasks {
			q.IDs[t.ID] = store.ExportKey(t)
		}
		q.Learnings, err = tx.Learnings(store.LearningFilter{})
		q.Learnings = slices.DeleteFunc(q.Learnings, func(l ralph.Learning) bool { return l.Scope == ralph.ScopeTask })
		return err
	})
	return q, err
}

// Preflight finds problems that would stop the first session, before one is opened.
func (p *Project) Preflight(ctx context.Context, l *loop.Loop) error {
	if err := p.needs(ctx, l); err != nil {
		return err
	}
	if err := Cloneable(ctx, l); err != nil {
		return err
	}
	if why := p.unguarded(); why != "" {
		return ralph.Usage(errors.New(why))
	}
	works, ok := l.Usual().(agent.Program)
	if !ok {
		return nil
	}
	if _, ok := works.(*claude.Agent); ok {
		c := p.Config.Agent
		if why := claude.Refusal(c.PermissionMode, slices.Concat(c.Command, c.ExtraArgs), p.Getenv); why != "" {
			return ralph.Usage(errors.New(why))
		}
	}
	if _, err := works.Version(ctx, p.Root); err != nil {
		return &ralph.ExitError{Status: ralph.ExitAgent, Err: fmt.Errorf("the agent cannot be used: %w", err)}
	}
	return nil
}

// Cloneable reports why there can be no workspaces for sessions.
func Cloneable(ctx context.Context, l *loop.Loop) error {
	if why := l.Here.Tree.Uncloned(ctx); why != "" {
		return ralph.Usage(fmt.Errorf("sessions work in clones of the repository, and there can be none: %s", why))
	}
	return l.Attached()
}

// unguarded reports a configured agent that asks for no permissions while there is no sandbox; ""
// if there is none.
func (p *Project) unguarded() string {
	for _, name := range slices.Sorted(maps.Keys(p.Config.Agents)) {
		a := p.Config.Agents[name]
		profile, err := kinds.ProfileOf(name, a)
		if err == nil && profile.Guard == agent.None && p.Confinement.Sandbox.Name == sandbox.None && !a.Unguarded {
			return fmt.Sprintf("agents.%[1]s asks nobody what it may do, and there is no sandbox to hold it: "+
				"set sandbox.mode to require, or agents.%[1]s.unguarded to true", name)
		}
	}
	return ""
}

// AgentCommand returns the command that starts a loop's agent.
func AgentCommand(l *loop.Loop) string {
	if a, ok := l.Usual().(agent.Program); ok {
		return strings.Join(a.Command(), " ")
	}
	return ""
}
