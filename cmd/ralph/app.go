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
	"ralph/internal/config"
	"ralph/internal/exchange"
	"ralph/internal/project"
	"ralph/internal/state"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/loop"
	"ralph/mcpserver"
	"ralph/store"
)

// app is the context of every command: its streams, its environment and its global flags.
type app struct {
	in      io.Reader
	out     io.Writer
	err     io.Writer
	environ []string
	chdir   string // -C
	json    bool   // --json
}

// usage marks an error as a usage or configuration error.
func usage(err error) error { return ralph.Usage(err) }

// getenv returns a variable of the environment that the program was started with.
func (a *app) getenv(name string) string { return (&project.Project{Environ: a.environ}).Getenv(name) }

// dir returns the directory that the command works in.
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

// path resolves the name of a file relative to dir.
func (a *app) path(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	dir, err := a.dir()
	return filepath.Join(dir, name), err
}

// project finds the project of the directory and reads its configuration.
func (a *app) project(ctx context.Context) (*project.Project, error) {
	dir, err := a.dir()
	if err != nil {
		return nil, err
	}
	p, err := project.Open(ctx, dir, a.environ, a.err)
	if err == nil {
		p.Version = release
	}
	return p, err
}

// checkAgent returns an error if an agent is not configured.
func (a *app) checkAgent(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	return p.CheckAgent(name)
}

// checkReviewer returns an error if an agent cannot review.
func (a *app) checkReviewer(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	return p.CheckReviewer(name)
}

// checkAgents returns an error if a task's agents are not configured.
func (a *app) checkAgents(ctx context.Context, t ralph.Task) error {
	if err := a.checkAgent(ctx, t.Agent); err != nil {
		return err
	}
	return a.checkReviewer(ctx, t.Review)
}

// read reads from the project's database in one transaction.
func read[T any](ctx context.Context, a *app, f func(tx *store.Tx) (T, error)) (v T, err error) {
	err = a.with(ctx, func(_ *project.Project, db *store.DB) error {
		return db.View(ctx, func(tx *store.Tx) (err error) { v, err = f(tx); return err })
	})
	return v, err
}

// look is read for commands that show the inbox.
func look[T any](ctx context.Context, a *app, f func(tx *store.Tx) (T, error)) (v T, err error) {
	err = a.looking(ctx, func(_ *project.Project, db *store.DB) error {
		return db.View(ctx, func(tx *store.Tx) (err error) { v, err = f(tx); return err })
	})
	return v, err
}

// alter changes the project's database in one transaction and returns f's result.
func alter[T any](ctx context.Context, a *app, f func(tx *store.Tx) (T, error)) (v T, err error) {
	err = a.with(ctx, func(_ *project.Project, db *store.DB) error {
		return db.Tx(ctx, func(tx *store.Tx) (err error) { v, err = f(tx); return err })
	})
	return v, err
}

// add is alter for commands that may create the queue.
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
	return errors.Join(damaged(p, f(p, db)), db.Close())
}

// looking is with for commands that show the inbox: they read the current state, not that of a run's last look.
func (a *app) looking(ctx context.Context, f func(p *project.Project, db *store.DB) error) error {
	return a.with(ctx, func(p *project.Project, db *store.DB) error {
		if err := p.CaughtUp(ctx, db); err != nil { // then the inbox shows the state that a run left
			p.Log.Warn("cannot look at the branch", "error", err)
		}
		return f(p, db)
	})
}

// damaged adds to an error how to restore a damaged database.
func damaged(p *project.Project, err error) error {
	if store.Corrupt(err) {
		err = fmt.Errorf("the queue is damaged: %w; %s", err, p.HowToRestore())
	}
	return err
}

// begin is with for commands that may create the queue.
func (a *app) begin(ctx context.Context, f func(p *project.Project, db *store.DB) error) error {
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	there, err := p.HasQueue()
	if err != nil {
		return err
	}
	db, err := p.Begin(ctx)
	if err != nil {
		return err
	}
	err = errors.Join(damaged(p, f(p, db)), db.Close())
	if err != nil || there || state.Exists(p.Path(state.ConfigName)) {
		return err
	}
	_, err = fmt.Fprintf(a.err, "ralph: %s has no %s yet, so nothing checks every task: "+
		"`ralph init` finds your tests and writes it\n", p.Root, state.ConfigName)
	return err
}

// queued is with for commands that require a queue.
func (a *app) queued(ctx context.Context, f func(p *project.Project, db *store.DB) error) error {
	return a.with(ctx, func(p *project.Project, db *store.DB) error {
		if p.Blank {
			return state.ErrNoQueue
		}
		return f(p, db)
	})
}

// withLoop opens the project's database and loop for f.
func (a *app) withLoop(ctx context.Context, f func(p *project.Project, l *loop.Loop) error) error {
	return a.with(ctx, func(p *project.Project, db *store.DB) error {
		l, err := p.Loop(ctx, db)
		if err != nil {
			return err
		}
		return f(p, l)
	})
}

// chats returns the service for people's chats in the project; l is nil for read-only use.
func (a *app) chats(p *project.Project, db *store.DB, l *loop.Loop) *mcpserver.Chats {
	return &mcpserver.Chats{
		Store: db, Loop: l, Root: p.Root, State: p.State, File: p.File(mcpserver.MirrorFile),
		CheckpointAt: config.Fixed.CheckpointAt, Addr: config.Fixed.ChatAddr, Version: release,
		Person: a.person(), Environ: a.environ, Getenv: a.getenv, Warn: a.err,
		Merge: func(ctx context.Context) error { return mergeDetached(ctx, p, db) },
	}
}

// decideClaims decides on people's sessions whose task was cancelled or amended, because no run does.
func (a *app) decideClaims(ctx context.Context, p *project.Project, db *store.DB) error {
	any, err := p.DecideClaims(ctx, db)
	if err == nil && any {
		a.chats(p, db, nil).WriteMirror()
	}
	return err
}

// print writes v as JSON with --json, and as human text otherwise.
func (a *app) print(v any, human func(w io.Writer)) error { return a.put(v, human, a.screen()) }

// verbatim is print for text whose lines are not wrapped: differences, prompts, graphs.
func (a *app) verbatim(v any, human func(w io.Writer)) error { return a.put(v, human, term.Screen{}) }

func (a *app) put(v any, human func(w io.Writer), s term.Screen) error {
	var b bytes.Buffer
	if a.json {
		enc := json.NewEncoder(text.Escaping(&b))
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return err
		}
	} else {
		human(&b)
	}
	if b.Len() == 0 { // not on standard output: a script may ask whether the list is empty
		_, err := fmt.Fprintln(a.err, "nothing to list")
		return err
	}
	said := b.String()
	if !a.json {
		said = s.Fit(said)
	}
	_, err := io.WriteString(a.out, said)
	return err
}

// say prints one line of text.
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

// lines reads the non-blank lines of standard input. Errors name them by the word what.
func (a *app) lines(what string) (list []string, err error) {
	b, err := io.ReadAll(io.LimitReader(a.in, exchange.MaxFile))
	if err != nil {
		return nil, fmt.Errorf("%s from standard input: %w", what, err)
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	if len(list) == 0 {
		return nil, usage(fmt.Errorf("standard input has no %s, one a line", what))
	}
	return list, nil
}

// screen describes standard output.
func (a *app) screen() term.Screen { return term.Of(a.out, a.getenv) }

// person returns the name for people's comments and answers.
func (a *app) person() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "human"
}
