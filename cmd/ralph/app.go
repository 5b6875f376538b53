package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/show"
	"ralph/internal/state"
	"ralph/loop"
	"ralph/mcpserver"
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

// usage marks an error as one of usage or configuration.
func usage(err error) error { return ralph.Usage(err) }

// getenv is a variable of the environment that the program was started with.
func (a *app) getenv(name string) string { return (&project.Project{Environ: a.environ}).Getenv(name) }

// dir is the directory that the command works from.
func (a *app) dir() (string, error) {
	dir, err := filepath.Abs(a.chdir)
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

// path is a file that was named, from where the command works.
func (a *app) path(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	dir, err := a.dir()
	return filepath.Join(dir, name), err
}

// project finds the project upwards from the directory and reads its configuration.
func (a *app) project(ctx context.Context) (*project.Project, error) {
	dir, err := a.dir()
	if err != nil {
		return nil, err
	}
	return project.Open(ctx, dir, a.environ, a.err)
}

// read reads something at one moment of the project's database.
func read[T any](ctx context.Context, a *app, f func(tx *store.Tx) (T, error)) (v T, err error) {
	err = a.with(ctx, func(_ *project.Project, db *store.DB) error {
		return db.View(ctx, func(tx *store.Tx) (err error) { v, err = f(tx); return err })
	})
	return v, err
}

// alter changes the project's database, and reads what became of it.
func alter[T any](ctx context.Context, a *app, f func(tx *store.Tx) (T, error)) (v T, err error) {
	err = a.with(ctx, func(_ *project.Project, db *store.DB) error {
		return db.Tx(ctx, func(tx *store.Tx) (err error) { v, err = f(tx); return err })
	})
	return v, err
}

// add is alter for what a queue may begin with.
func add[T any](ctx context.Context, a *app, f func(tx *store.Tx) (T, error)) (v T, err error) {
	err = a.begin(ctx, func(_ *project.Project, db *store.DB) error {
		return db.Tx(ctx, func(tx *store.Tx) (err error) { v, err = f(tx); return err })
	})
	return v, err
}

// with opens the project's database for f.
func (a *app) with(ctx context.Context, f func(p *project.Project, db *store.DB) error) error {
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	db, err := p.Open(ctx)
	if err != nil {
		return err
	}
	if why := p.WaitsForApproval(); why != "" {
		fmt.Fprintf(a.err, "ralph: %s; the approved version is used; %s\n", why, p.HowToApprove())
	}
	return errors.Join(f(p, db), db.Close())
}

// begin is with for what a queue may begin with.
func (a *app) begin(ctx context.Context, f func(p *project.Project, db *store.DB) error) error {
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	db, err := p.Begin(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(p, db), db.Close())
}

// queued is with for those that need a queue.
func (a *app) queued(ctx context.Context, f func(p *project.Project, db *store.DB) error) error {
	return a.with(ctx, func(p *project.Project, db *store.DB) error {
		if p.Blank {
			return state.ErrNoQueue
		}
		return f(p, db)
	})
}

// withLoop opens the project for what takes more than its database.
func (a *app) withLoop(ctx context.Context, f func(p *project.Project, l *loop.Loop) error) error {
	return a.with(ctx, func(p *project.Project, db *store.DB) error {
		l, err := p.Loop(ctx, db)
		if err != nil {
			return err
		}
		return f(p, l)
	})
}

// chats are the chats of people in the project; l is nil for those that only look.
func (a *app) chats(p *project.Project, db *store.DB, l *loop.Loop) *mcpserver.Chats {
	c := p.Config
	file := c.MCP.SessionFile
	if !filepath.IsAbs(file) {
		file = p.File(file)
	}
	return &mcpserver.Chats{
		Store: db, Loop: l, Root: p.Root, State: p.State, File: file, CheckpointAt: c.Session.CheckpointAt,
		Enabled: c.MCP.Enabled, Addr: c.MCP.Addr, Version: version(), Environ: a.environ, Getenv: a.getenv, Warn: a.err,
	}
}

// settleClaims ends what people have claimed and what was called off or amended:
// nobody else watches over it.
func (a *app) settleClaims(ctx context.Context, p *project.Project, db *store.DB) error {
	any, err := p.SettleClaims(ctx, db)
	if err == nil && any {
		a.chats(p, db, nil).WriteMirror()
	}
	return err
}

// print writes v as JSON with --json, and as human text otherwise.
func (a *app) print(v any, human func(w io.Writer)) error {
	var b bytes.Buffer
	if a.json {
		enc := json.NewEncoder(&b)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return err
		}
	} else {
		human(&b)
	}
	_, err := a.out.Write(b.Bytes())
	return err
}

// say is print for what is said in a line.
func (a *app) say(v any, format string, args ...any) error {
	return a.print(v, func(w io.Writer) { fmt.Fprintln(w, fmt.Sprintf(format, args...)) })
}

// text reads a text argument: itself, @FILE, or - for standard input.
func (a *app) text(field, arg string) (string, error) {
	switch {
	case arg == "-":
		b, err := io.ReadAll(io.LimitReader(a.in, ralph.MaxText+1))
		return string(b), err
	case strings.HasPrefix(arg, "@"):
		f, err := os.Open(arg[1:])
		if err != nil {
			return "", usage(fmt.Errorf("%s: %w", field, err))
		}
		b, err := io.ReadAll(io.LimitReader(f, ralph.MaxText+1))
		return string(b), errors.Join(err, f.Close())
	}
	return arg, nil
}

// screen looks at standard output.
func (a *app) screen() show.Screen { return show.ScreenOf(a.out, a.getenv) }

// person is the name under which people comment and answer.
func (a *app) person() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "human"
}
