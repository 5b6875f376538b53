package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ralph"
	"ralph/store"
)

// Red runs commands and returns the unexcused failures. If anew is set, earlier failures are not reused: the cause may
// have been outside the repository.
func (v *Verifier) Red(ctx context.Context, commands []string, anew bool) (red []ralph.Check, err error) {
	list, err := v.suite(ctx, Commands{Shared: commands}, anew)
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	for _, r := range list {
		if c := Compare(r, []Outcome{r}, Commands{Shared: commands}, v.Strict); !c.Passed {
			red = append(red, c)
		}
	}
	return red, nil
}

// KnownRed reports whether each of the commands has run on the commit, and one of them failed without an excuse.
func (v *Verifier) KnownRed(ctx context.Context, commands []string) (red bool, err error) {
	err = v.Store.View(ctx, func(tx *store.Tx) error {
		for _, command := range commands {
			var known Outcome
			ok, err := tx.Verification(v.Key, command, &known)
			if err != nil || !ok {
				red = false
				return err
			}
			red = red || !v.excusable(known)
		}
		return nil
	})
	return red, err
}

// excusable reports whether a command's result before any work permits a done.
func (v *Verifier) excusable(o Outcome) bool {
	return Compare(o, []Outcome{o}, Commands{Shared: []string{o.Check.Command}}, v.Strict).Passed
}

// Verify runs the checks of a done by hand: a task's, or for task 0 only the project's commands. It shows each
// command with its complete output after the run. Red reports a failure that prevents the start of a run: one that is
// not only of named tests, which are excused.
func (v *Verifier) Verify(
	ctx context.Context, task int64, show func(c ralph.Check, output io.ReadSeeker) error,
) (checks []ralph.Check, red bool, err error) {
	c := Commands{Shared: Once(nil, v.Commands)}
	var before []Outcome
	if task != 0 {
		if err := v.Store.View(ctx, func(tx *store.Tx) error {
			t, err := tx.Task(task)
			if err != nil {
				return err
			}
			if c, err = v.Of(tx, t); err != nil {
				return err
			}
			_, err = tx.Baseline(task, &before)
			return err
		}); err != nil {
			return nil, false, err
		}
	}
	dir, err := Folder(v.State)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for i, command := range c.All() {
		round, err := v.round(dir)
		if err != nil {
			return checks, false, err
		}
		round.Log = filepath.Join(dir, fmt.Sprintf("verify-%d.log", i))
		results, err := v.Run(ctx, round, []string{command})
		if err != nil {
			return checks, false, err
		}
		check := Compare(results[0], before, c, v.Strict)
		checks = append(checks, check)
		red = red || !check.Passed && !v.excusable(results[0])
		if ctx.Err() == nil {
			if err := v.put(ctx, results); err != nil {
				return checks, false, err
			}
		}
		if err := showLog(check, round.Log, show); err != nil || ctx.Err() != nil {
			return checks, false, err
		}
	}
	return checks, red, nil
}

// showLog shows a check with its whole output.
func showLog(c ralph.Check, path string, show func(c ralph.Check, output io.ReadSeeker) error) (err error) {
	log, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return show(c, log)
}
