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

// Red runs commands on the work tree and returns those that fail without an
// excuse. If anew is set, earlier failures are not reused: what the command
// lacked may not be in the work tree. Failures that belong to a session's
// unfinished work are left out, as that session goes on, unless all is set.
func (v *Verifier) Red(ctx context.Context, commands []string, anew, all bool) (red []ralph.Check, err error) {
	list, made, err := v.suite(ctx, commands, anew)
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	if err := v.Store.Tx(ctx, func(tx *store.Tx) error { return v.addMade(tx, made) }); err != nil {
		return nil, err
	}
	for _, s := range list {
		inHand := s.before.Check.Passed || s.before.Tests != nil && v.excusable(s.before)
		if c := Judge(s.now, []Outcome{s.now}, commands, v.Strict); !c.Passed && (all || !inHand) {
			red = append(red, c)
		}
	}
	return red, nil
}

// KnownRed reports whether each of the commands has run on the present
// state of the work tree, and one of them failed without an excuse.
func (v *Verifier) KnownRed(ctx context.Context, commands []string) (red bool, err error) {
	dir, err := Folder(v.Place.State)
	if err != nil {
		return false, err
	}
	now, err := v.Place.Now(ctx, dir)
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return false, err
	}
	err = v.Store.View(ctx, func(tx *store.Tx) error {
		for _, command := range commands {
			var known Outcome
			ok, err := tx.Verification(now.Content, command, &known)
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

// excusable reports whether a command's result before any work does not stand in the way of a done.
func (v *Verifier) excusable(o Outcome) bool {
	return Judge(o, []Outcome{o}, []string{o.Check.Command}, v.Strict).Passed
}

// Verify runs by hand what a done is checked by: for a task, or for task 0 only the project's
// commands. It shows each command after it has run, with its whole output. Red says that a
// failure keeps a run from starting: one that is not only of named tests, which are excused.
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
	dir, err := Folder(v.Place.State)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var m making
	var all []Outcome
	if m.found, err = v.Place.Now(ctx, dir); err != nil {
		return nil, false, err
	}
	for i, command := range c.All() {
		round := v.baselineRound(dir)
		round.Log = filepath.Join(dir, fmt.Sprintf("verify-%d.log", i))
		results, err := v.Run(ctx, round, []string{command})
		if err != nil {
			return checks, false, err
		}
		check := Judge(results[0], before, c.Shared, v.Strict)
		checks, all = append(checks, check), append(all, results...)
		red = red || !check.Passed && !v.excusable(results[0])
		if ctx.Err() == nil {
			if err := v.PutResults(ctx, m.found.Content, results); err != nil {
				return checks, false, err
			}
		}
		if err := showLog(check, round.Log, show); err != nil || ctx.Err() != nil {
			return checks, false, err
		}
	}
	if m.made, err = v.Place.Now(ctx, dir); err != nil {
		return checks, false, err
	}
	if m.made != m.found {
		if err := v.PutResults(ctx, m.made.Content, all); err != nil {
			return checks, false, err
		}
	}
	return checks, red, v.Store.Tx(ctx, func(tx *store.Tx) error { return v.addMade(tx, m) })
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
