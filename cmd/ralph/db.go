package main

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

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/worktree"
	"ralph/loop"
	"ralph/store"
)

func newDB(a *app) *cobra.Command {
	cmd := noun("db", "Check, copy and mend the database", newDBCheck(a), newDBBackup(a), newDBRestore(a), newDBVacuum(a), newDBMove(a))
	cmd.Long = "Check, copy and mend the database. A copy is also made before every migration, in\nthe folder backups beside it."
	return cmd
}

func newDBCheck(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Verify the database", Long: "Verify the database: its pages, its references, and what ralph itself holds true\nof it. Exit status 1 if something is wrong.",
		Example: "  ralph db check", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := checked{Problems: []store.Problem{}}
			var advice string
			err := a.queued(cmd.Context(), func(p *project, db *store.DB) error {
				v.Database = db.Path()
				if err := db.Check(cmd.Context()); err != nil {
					v.Damage, advice = err.Error(), p.howToRestore()
					return nil
				}
				problems, err := db.Examine(cmd.Context())
				v.Problems = append(v.Problems, problems...)
				return err
			})
			if err != nil {
				return err
			}
			err = a.print(v, func(w io.Writer) error { return sayChecked(w, v, advice) })
			if err == nil && (v.Damage != "" || len(v.Problems) > 0) {
				return &statusError{status: ralph.ExitFailure}
			}
			return err
		},
	}
}

// checked is what `ralph db check` found.
type checked struct {
	Database string          `json:"database"`
	Damage   string          `json:"damage"` // what is wrong with the file itself; "" if it is sound
	Problems []store.Problem `json:"problems"`
}

// sayChecked says what is wrong with which rows. A copy is named only where the file
// itself is damaged, with what would be lost: everything since.
func sayChecked(w io.Writer, v checked, advice string) error {
	for _, p := range v.Problems {
		fmt.Fprintf(w, "%d %s: %s\n", len(p.Rows), p.What, strings.Join(p.Rows, ", "))
		if p.Mend != "" {
			fmt.Fprintf(w, "  → %s\n", p.Mend)
		}
	}
	switch {
	case v.Damage != "":
		fmt.Fprintf(w, "the file is damaged: %s\n", v.Damage)
		_, err := fmt.Fprintln(w, "→", advice)
		return err
	case len(v.Problems) > 0:
		_, err := fmt.Fprintln(w, "the file itself is sound:", v.Database)
		return err
	}
	_, err := fmt.Fprintln(w, "ok:", v.Database)
	return err
}

func newDBBackup(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Copy the database, also while a run writes to it", Example: "  ralph db backup ~/ralph-$(date +%F).db", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := a.path(args[0])
			if err != nil {
				return err
			}
			if exists(file) {
				return usage(fmt.Errorf("%s exists already; name a new file", file))
			}
			if err := a.queued(cmd.Context(), func(_ *project, db *store.DB) error { return db.Backup(cmd.Context(), file) }); err != nil {
				return err
			}
			return a.print(map[string]string{"backup": file}, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, "copied to", file)
				return err
			})
		},
	}
}

// path is a file that was named, from where the command works.
func (a *app) path(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	dir, err := a.dir()
	return filepath.Join(dir, name), err
}

func newDBRestore(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "restore FILE", Short: "Put a copy in the place of the database",
		Long:    "Put a copy in the place of the database. The copy is checked first, and what it\nreplaces is kept beside it. No run may be active.",
		Example: "  ralph db restore ~/ralph-2026-11-20.db", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			file, err := a.path(args[0])
			if err != nil {
				return err
			}
			if !exists(file) {
				return usage(fmt.Errorf("%s does not exist", file))
			}
			p, err := a.project(cmd.Context())
			if err != nil {
				return err
			}
			unlock, err := alone(p)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, unlock()) }()
			kept, err := store.Restore(cmd.Context(), file, filepath.Join(p.state, databaseName), time.Now().UTC().Format("20060102T150405.000"))
			if err != nil {
				return err
			}
			if err := os.Remove(filepath.Join(p.state, goneName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return a.print(map[string]string{"restored": file, "replaced": kept}, func(w io.Writer) error {
				if kept != "" {
					kept = "; what was there is kept as " + kept
				}
				_, err := fmt.Fprintf(w, "restored from %s%s\n", file, kept)
				return err
			})
		},
	}
}

// alone keeps every run away meanwhile.
func alone(p *project) (unlock func() error, err error) {
	if err := os.MkdirAll(p.state, 0o700); err != nil {
		return nil, err
	}
	unlock, err = loop.Lock(p.state)
	if errors.Is(err, loop.ErrLocked) {
		err = usage(err)
	}
	return unlock, err
}

func newDBVacuum(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "vacuum", Short: "Give back the room of what was deleted", Example: "  ralph db vacuum", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var freed int64
			err := a.queued(cmd.Context(), func(_ *project, db *store.DB) (err error) {
				freed, err = db.Vacuum(cmd.Context())
				return err
			})
			if err != nil {
				return err
			}
			return a.print(map[string]int64{"freed_bytes": freed}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%d KiB freed\n", freed>>10)
				return err
			})
		},
	}
}

func newDBMove(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "move", Short: "Move the state into the git directory",
		Long:    "Move the state of a project that began without git from .ralph/ into the git\ndirectory, where no `git clean` reaches it. No run may be active.",
		Example: "  git init\n  ralph db move", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.moveState(cmd.Context()) },
	}
}

func (a *app) moveState(ctx context.Context) error {
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	plain := filepath.Join(p.root, plainState)
	_, common, err := worktree.Find(ctx, p.root)
	switch {
	case errors.Is(err, worktree.ErrNoRepo):
		return usage(fmt.Errorf("%s is in no git repository; run `git init` first", p.root))
	case err != nil:
		return err
	case p.state != plain:
		return usage(fmt.Errorf("the state is in %s already", p.state))
	}
	target := filepath.Join(common, "ralph")
	if exists(filepath.Join(target, databaseName)) {
		return usage(fmt.Errorf("%s has a database already; move one of the two away", target))
	}
	unlock, err := alone(p)
	if err != nil {
		return err
	}
	// The lock moves along with its folder.
	err = os.Rename(plain, target)
	if err = errors.Join(err, unlock()); err != nil {
		return err
	}
	return a.print(map[string]string{"from": plain, "to": target}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "moved %s to %s\n", plain, target)
		return err
	})
}
