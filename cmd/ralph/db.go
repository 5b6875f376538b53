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
	"ralph/internal/project"
	"ralph/internal/state"
	"ralph/loop"
	"ralph/store"
)

func newDB(a *app) *cobra.Command {
	return noun("db", newDBCheck(a), newDBBackup(a), newDBRestore(a), newDBVacuum(a), newDBMove(a))
}

// checked is what `ralph db check` found.
type checked struct {
	Database string          `json:"database"`
	Damage   string          `json:"damage"` // what is wrong with the file itself; "" if it is sound
	Problems []store.Problem `json:"problems"`
}

func newDBCheck(a *app) *cobra.Command {
	return newCommand("check", func(cmd *cobra.Command, _ []string) error {
		v := checked{Problems: []store.Problem{}}
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

// sayChecked says what is wrong with which rows. A copy is named only where the file
// itself is damaged, with what would be lost: everything since.
func sayChecked(w io.Writer, v checked, advice string) {
	for _, p := range v.Problems {
		fmt.Fprintf(w, "%d %s: %s\n", len(p.Rows), p.What, strings.Join(p.Rows, ", "))
		if p.Mend != "" {
			fmt.Fprintf(w, "  → %s\n", p.Mend)
		}
	}
	switch {
	case v.Damage != "":
		fmt.Fprintf(w, "the file is damaged: %s\n→ %s\n", v.Damage, advice)
	case len(v.Problems) > 0:
		fmt.Fprintln(w, "the file itself is sound:", v.Database)
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
		unlock, err := alone(p)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unlock()) }()
		stamp := time.Now().UTC().Format("20060102T150405.000")
		kept, err := store.Restore(cmd.Context(), file, p.File(state.Database), stamp)
		if err != nil {
			return err
		}
		if err := os.Remove(p.File(state.Gone)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		said := ""
		if kept != "" {
			said = "; what was there is kept as " + kept
		}
		return a.say(map[string]string{"restored": file, "replaced": kept}, "restored from %s%s", file, said)
	})
}

// alone keeps every run away meanwhile.
func alone(p *project.Project) (unlock func() error, err error) {
	if err := os.MkdirAll(p.State, 0o700); err != nil {
		return nil, err
	}
	return loop.Lock(p.State)
}

func newDBVacuum(a *app) *cobra.Command {
	return newCommand("vacuum", func(cmd *cobra.Command, _ []string) error {
		var freed int64
		err := a.queued(cmd.Context(), func(_ *project.Project, db *store.DB) (err error) {
			freed, err = db.Vacuum(cmd.Context())
			return err
		})
		if err != nil {
			return err
		}
		return a.say(map[string]int64{"freed_bytes": freed}, "%d KiB freed", freed>>10)
	})
}

func newDBMove(a *app) *cobra.Command {
	return newCommand("move", func(cmd *cobra.Command, _ []string) error { return a.moveState(cmd.Context()) })
}

func (a *app) moveState(ctx context.Context) error {
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	plain := filepath.Join(p.Root, state.PlainName)
	switch {
	case !p.Git:
		return usage(fmt.Errorf("%s is in no git repository; run `git init` first", p.Root))
	case p.State != plain:
		return usage(fmt.Errorf("the state is in %s already", p.State))
	}
	target := filepath.Join(p.Common, "ralph")
	if state.Exists(filepath.Join(target, state.Database)) {
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
	return a.say(map[string]string{"from": plain, "to": target}, "moved %s to %s", plain, target)
}
