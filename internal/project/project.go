// Package project makes what works out of a project's configuration: the loop, the
// agent, what confines it, the rules by which it may use tools.
//
// What a session left of the files that configure runs is not used before a person has
// approved it. Nothing is started here but what a sandbox and a version are tried with.
package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/exchange"
	"ralph/internal/retention"
	"ralph/internal/state"
	"ralph/internal/systemd"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/agent/claude"
	"ralph/store"
)

// A Project is a folder with a queue of tasks, and its configuration.
type Project struct {
	*state.Home
	Config  config.Loaded
	Held    Confinement // set for a run, by Confine
	Blank   bool        // it has no queue yet; set by Open
	Environ []string    // that ralph was started with
	Log     *slog.Logger

	userFile   string // the user's own configuration; "" if there can be none
	unapproved []unapproved
	instead    map[string]string // copies that are read in the place of what is not approved
}

// Open finds the project upwards from a directory and reads its configuration. What
// people have to know of it is said to warn.
func Open(ctx context.Context, dir string, environ []string, warn io.Writer) (*Project, error) {
	home, err := state.Find(ctx, dir)
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
	if p.Config, err = p.load(nil); err != nil {
		err = p.salvage(ctx, err)
	}
	return p, err
}

// newLog writes lines for a terminal, or for systemd's journal.
func newLog(w io.Writer) *slog.Logger {
	if systemd.Journalled(w) {
		return slog.New(systemd.NewHandler(w))
	}
	return slog.New(slog.NewTextHandler(w, nil))
}

// load reads the configuration, with copies in the place of some of its files.
func (p *Project) load(instead map[string]string) (config.Loaded, error) {
	return config.Load(config.Sources{
		ProjectDir: p.Root, UserFile: p.userFile, Environ: p.Environ, Instead: instead,
	})
}

// Name is what the project is called.
func (p *Project) Name() string { return filepath.Base(p.Root) }

// Path is a file that the configuration names, relative to the project.
func (p *Project) Path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.Root, name)
}

// Getenv is a variable of the environment that ralph was started with.
func (p *Project) Getenv(name string) string {
	for _, entry := range slices.Backward(p.Environ) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// Begin opens the project's database, and makes it where there is none.
func (p *Project) Begin(ctx context.Context) (*store.DB, error) {
	db, err := p.Home.Begin(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.judge(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// Open opens the project's database for those who only want to know what is in it,
// or change that. Where there is none it is an empty one to which nothing can be
// written: looking makes no queue.
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

// Active reports whether a run has the project now.
func (p *Project) Active() (bool, error) { return loop.Active(p.State) }

// Control asks something of the run that is active; the error wraps
// [ralph.ErrConflict] if there is none.
func (p *Project) Control(ctx context.Context, db *store.DB, what string) error {
	active, err := p.Active()
	if err != nil {
		return err
	}
	if !active {
		return fmt.Errorf("no run is active: %w", ralph.ErrConflict)
	}
	return db.Tx(ctx, func(tx *store.Tx) error { return tx.Control(what) })
}

// SettleClaims ends the claims that are over and that nobody else watches over; any
// tells whether there were some.
func (p *Project) SettleClaims(ctx context.Context, db *store.DB) (any bool, err error) {
	var over []ralph.Session
	err = db.View(ctx, func(tx *store.Tx) (err error) { over, err = tx.LapsedClaims(); return err })
	if err != nil || len(over) == 0 {
		return false, err
	}
	l, err := p.Loop(ctx, db)
	if err != nil {
		return true, err
	}
	return true, l.Lapse(ctx)
}

// Tidy keeps the transcripts within the budget of retention.
func (p *Project) Tidy(ctx context.Context, db *store.DB) error {
	var open []ralph.Session
	err := db.View(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
		open, err = tx.OpenSessions()
		return err
	})
	if err != nil {
		return err
	}
	inProgress := map[string]bool{}
	for _, s := range open {
		inProgress[s.ID] = true
	}
	r := p.Config.Retention
	limits := retention.Limits{Size: int64(r.SizeMiB) << 20, Age: r.Age}
	return retention.Apply(ctx, p.File("sessions"), inProgress, limits, time.Now())
}

// Queue reads all that can be exported.
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

// Preflight finds what would stop the first session, before one is opened.
func (p *Project) Preflight(ctx context.Context, l *loop.Loop) error {
	works, ok := l.Agent.(agent.Program)
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

// AgentCommand is how a loop's agent is started.
func AgentCommand(l *loop.Loop) string {
	if a, ok := l.Agent.(agent.Program); ok {
		return strings.Join(a.Command(), " ")
	}
	return ""
}
