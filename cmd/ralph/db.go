package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/state"
	"ralph/internal/text"
	"ralph/store"
)

func newDB(a *app) *cobra.Command {
	return noun("db",
		newDBCheck(a), newDBBackup(a), newDBRestore(a), newDBURL(a), newDBMove(a))
}

// checked is the result of `ralph db check`.
type checked struct {
	Database string            `json:"database"`
	Damage   string            `json:"damage"` // damage of the file itself; "" for none
	Problems []store.Violation `json:"problems"`
}

func newDBCheck(a *app) *cobra.Command {
	return newCommand("check", func(cmd *cobra.Command, _ []string) error {
		v := checked{Problems: []store.Violation{}}
		var advice string
		err := a.queued(cmd.Context(), func(p *project.Project, db *store.DB) error {
			v.Database = db.Path()
			if err := db.Check(cmd.Context()); err != nil {
				v.Damage, advice = err.Error(), p.HowToRestore()
				return nil
			}
			problems, err := db.Examine(cmd.Context())
			v.Problems = append(v.Problems, problems...)
			return err
		})
		if err != nil {
			return err
		}
		err = a.print(v, func(w io.Writer) { sayChecked(w, v, advice) })
		if err == nil && (v.Damage != "" || len(v.Problems) > 0) {
			return &ralph.ExitError{Status: ralph.ExitFailure}
		}
		return err
	})
}

// sayChecked prints the problems and their rows. It recommends a backup only if the file itself is damaged, and says
// that later changes would be lost.
func sayChecked(w io.Writer, v checked, advice string) {
	for _, p := range v.Problems {
		fmt.Fprintf(w, "%d %s: %s\n", len(p.Rows), p.What, strings.Join(p.Rows, ", "))
		if p.Mend != "" {
			fmt.Fprintf(w, "  → %s\n", p.Mend)
		}
	}
	switch {
	case v.Damage != "" && store.IsURL(v.Database):
		fmt.Fprintf(w, "the database is not sound: %s\n", v.Damage)
	case v.Damage != "":
		fmt.Fprintf(w, "the file is damaged: %s\n→ %s\n", v.Damage, advice)
	case len(v.Problems) > 0:
		fmt.Fprintln(w, "the database itself is sound:", v.Database)
	default:
		fmt.Fprintln(w, "ok:", v.Database)
	}
}

func newDBBackup(a *app) *cobra.Command {
	return newCommand("backup FILE", func(cmd *cobra.Command, args []string) error {
		file, err := a.path(args[0])
		if err != nil {
			return err
		}
		if state.Exists(file) {
			return usage(fmt.Errorf("%s exists already; name a new file", file))
		}
		err = a.queued(cmd.Context(), func(_ *project.Project, db *store.DB) error {
			return db.Backup(cmd.Context(), file)
		})
		if err != nil {
			return err
		}
		return a.say(map[string]string{"backup": file}, "copied to %s", file)
	})
}

func newDBRestore(a *app) *cobra.Command {
	return newCommand("restore FILE", func(cmd *cobra.Command, args []string) (err error) {
		file, err := a.path(args[0])
		if err != nil {
			return err
		}
		if !state.Exists(file) {
			return usage(fmt.Errorf("%s does not exist", file))
		}
		p, err := a.project(cmd.Context())
		if err != nil {
			return err
		}
		if p.Server != "" {
			return usage(errors.New("the queue is on a server: bring a copy back there, with pg_restore"))
		}
		unlock, err := alone(cmd.Context(), p)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unlock()) }()
		stamp := time.Now().UTC().Format("20060102T150405.000")
		r, err := store.Restore(cmd.Context(), file, p.File(state.Database), stamp)
		if err != nil {
			return err
		}
		if err := p.Restored(); err != nil {
			return err
		}
		said := ""
		if r.Kept != "" {
			said = "; the old file is kept as " + r.Kept
		}
		if r.Lacks > 0 {
			said += ", with " + text.Count(int(r.Lacks), "change") + " that this copy lacks"
		}
		return a.say(map[string]any{"restored": file, "replaced": r.Kept, "lacks": r.Lacks}, "restored from %s%s", file, said)
	})
}

// alone prevents runs.
func alone(ctx context.Context, p *project.Project) (unlock func() error, err error) {
	if err := p.Make(ctx); err != nil {
		return nil, err
	}
	return state.Lock(p.State)
}

func newDBURL(a *app) *cobra.Command {
	return newCommand("url", func(cmd *cobra.Command, _ []string) error {
		p, err := a.project(cmd.Context())
		if err != nil {
			return err
		}
		name := p.File(state.Database)
		if p.Server != "" {
			name = store.Masked(p.Server)
		}
		return a.say(map[string]string{"database": name}, "%s", name)
	})
}

// toFile is the argument of `db move` for the file in the state folder.
const toFile = "file"

func newDBMove(a *app) *cobra.Command {
	return newCommand("move postgres://…|file", func(cmd *cobra.Command, args []string) (err error) {
		p, err := a.project(cmd.Context())
		if err != nil {
			return err
		}
		server, back := args[0], args[0] == toFile
		if back {
			server = p.Server
		}
		if !store.IsURL(server) {
			return usage(errors.New(
				"name the postgres:// URL to move the queue to, or `file` to move it back from the configured database"))
		}
		unlock, err := alone(cmd.Context(), p)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unlock()) }()
		there, err := store.Open(cmd.Context(), server, store.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, there.Close()) }()
		var moved []store.Moved
		if back {
			moved, err = moveBack(cmd.Context(), p, there)
		} else {
			here := *p.Home
			here.Server = ""
			moved, err = moveThere(cmd.Context(), &here, there)
		}
		if err != nil {
			return err
		}
		rows := 0
		for _, m := range moved {
			rows += int(m.Rows)
		}
		next := "set database in ~/.config/ralph/config.yaml, or RALPH_DATABASE; the file stays as it was"
		if back {
			next = "remove database from your configuration"
		}
		return a.say(map[string]any{"tables": moved}, "%s of %s are the same there; %s",
			text.Count(rows, "row"), text.Count(len(moved), "table"), next)
	})
}

// moveThere copies the queue of a state folder to a server.
func moveThere(ctx context.Context, home *state.Home, there *store.DB) (moved []store.Moved, err error) {
	exists, err := home.HasQueue()
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, usage(errors.New("there is no queue in a file to be moved"))
	}
	db, err := home.Reopen(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return store.Move(ctx, db, there)
}

// moveBack makes a server's queue the queue of the state folder. It keeps the old file, as `db restore` does.
func moveBack(ctx context.Context, p *project.Project, there *store.DB) (moved []store.Moved, err error) {
	dir := p.File("moving")
	if err := os.RemoveAll(dir); err != nil { // from a killed move
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, state.Database)
	db, err := store.Open(ctx, file, store.Options{})
	if err != nil {
		return nil, err
	}
	moved, err = store.Move(ctx, there, db)
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	stamp := time.Now().UTC().Format("20060102T150405.000")
	if _, err := store.Restore(ctx, file, p.File(state.Database), stamp); err != nil {
		return nil, err
	}
	return moved, p.Restored()
}
