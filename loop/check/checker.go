package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ralph"
	"ralph/loop/workspace"
)

// A Checker verifies commits in check workspaces, in which nobody works.
type Checker struct {
	Rules
	Pool  *workspace.Pool
	Of    *workspace.Workspace // workspace of the checked work; nil for the merge queue's
	Width int                  // how many sessions may work at once
	Round Round
	Over  string // a folder whose files are laid over the commit's while its commands run; "" for none
}

// Verify runs commands on a commit. If the workspace's set-up fails, that counts as a failed command.
func (c *Checker) Verify(ctx context.Context, commit string, commands []string) (list []Outcome, err error) {
	at, err := c.Pool.TakeCheck(ctx, c.Of, c.Width)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, at.Release()) }()
	var setup *workspace.SetupError
	if err := at.At(ctx, commit); errors.As(err, &setup) {
		failed := ralph.Check{Command: setup.Command, Exit: 1, Tail: setup.Said, Error: "the set-up fails with it"}
		return []Outcome{{Check: failed}}, nil
	} else if err != nil {
		return nil, err
	}
	var fixed []string
	if c.Over != "" {
		names, undo, err := laid(c.Over, at.Dir)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("verify.hidden_files: %w", err), undo())
		}
		defer func() { err = errors.Join(err, undo()) }()
		fixed = names
	}
	before := at.Digests(c.Protect)
	round := c.Round
	round.fixed, round.at = fixed, at
	round.Dir, round.Made, round.Env = at.Dir, at.Made(), at.Environ()
	if round.copied, err = at.Copied(); err != nil {
		return nil, err
	}
	var wrote [][]string
	round.Between = func() {
		now := at.Digests(c.Protect)
		names := differs(before, now)
		wrote, before = append(wrote, names[:min(len(names), MaxWrote)]), now
	}
	list, err = c.Run(ctx, round, commands)
	for i := range list {
		list[i].Wrote = wrote[i]
	}
	return list, err
}

// errFilled stops commands that fill the disk.
var errFilled = errors.New("was stopped: its files grew beyond workspace.max_size, or filled the disk")

// lookTime is the interval at which a check workspace is examined.
const lookTime = time.Second

// watched stops commands once their workspace takes too much of the disk. ended ends the watch, and reports whether
// it stopped them.
func watched(ctx context.Context, at *workspace.Workspace) (within context.Context, ended func() bool) {
	within, stop := context.WithCancelCause(ctx)
	gauge, over := at.Gauge(), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(lookTime)
		defer tick.Stop()
		for within.Err() == nil {
			select {
			case <-within.Done():
			case <-tick.C:
				if gauge.Over() {
					stop(errFilled)
				}
			}
		}
	}()
	return within, func() bool {
		stop(nil)
		<-over
		return errors.Is(context.Cause(within), errFilled)
	}
}

// differs returns the names with different digests.
func differs(before, now map[string]string) []string {
	all := maps.Clone(before)
	maps.Copy(all, now)
	maps.DeleteFunc(all, func(path, _ string) bool { return before[path] == now[path] })
	return slices.Sorted(maps.Keys(all))
}

// laid copies the folder from over the folder to, and returns the names of its files. undo removes them: the next
// commit checked out there restores the files below.
func laid(from, to string) (names []string, undo func() error, err error) {
	undo = func() (err error) {
		for _, name := range slices.Backward(names) {
			err = errors.Join(err, os.Remove(filepath.Join(to, name)))
		}
		return err
	}
	root, err := os.OpenRoot(to) // a link in the candidate leads nowhere else
	if err != nil {
		return nil, undo, err
	}
	defer root.Close() //nolint:errcheck // it was only written through
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil || d.IsDir() {
			return errors.Join(err, root.MkdirAll(name, 0o700))
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := root.RemoveAll(name); err != nil {
			return err
		}
		names = append(names, name)
		return root.WriteFile(name, text, info.Mode().Perm())
	})
	return names, undo, err
}
