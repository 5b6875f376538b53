// Command ralph works through a queue of tasks with a coding agent while nobody
// watches. See `ralph help`.
//
// Each file is a command, named as one types it. It holds no rules: those are in
// the packages that it wires together.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/proc"
	"ralph/internal/systemd"
	"ralph/loop"
)

func main() { os.Exit(run()) }

// run is main with a status instead of an exit, for test scripts.
func run() int {
	// The supervisor of a session is this same program; it must start fast and
	// needs nothing of what follows.
	if len(os.Args) > 1 && os.Args[1] == proc.SuperviseArg {
		return proc.Supervise()
	}
	a := &app{out: os.Stdout, err: os.Stderr, in: os.Stdin, environ: os.Environ()}
	err := newRoot(a).ExecuteContext(context.Background())
	return complain(a, err)
}

// complain prints an error in one line and returns the exit status (unattended,
// "Ending a run"). It is the only place where errors become statuses.
func complain(a *app, err error) int {
	if err == nil {
		return ralph.ExitOK
	}
	name := "ralph:"
	if systemd.Journalled(a.err) {
		name = systemd.Prefix(slog.LevelError) + name
	}
	var status *ralph.ExitError
	if errors.As(err, &status) {
		if status.Err != nil {
			fmt.Fprintln(a.err, name, once(status.Err))
		}
		return status.Status
	}
	fmt.Fprintln(a.err, name, once(err))
	var field *ralph.FieldError
	var bad *config.Error
	switch {
	case errors.As(err, &field), errors.As(err, &bad),
		errors.Is(err, ralph.ErrNotFound), errors.Is(err, ralph.ErrConflict),
		errors.Is(err, ralph.ErrInvariant), errors.Is(err, loop.ErrLocked):
		return ralph.ExitUsage
	}
	return ralph.ExitFailure
}

// once is what errors that were joined say, each once: what ails the database, say, is
// found by all that read it.
func once(err error) string {
	var said []string
	for _, words := range messages(err) {
		if !slices.Contains(said, words) {
			said = append(said, words)
		}
	}
	return strings.Join(said, "\n")
}

// messages are what the errors say that were joined into one.
func messages(err error) (list []string) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []string{err.Error()}
	}
	for _, e := range joined.Unwrap() {
		list = append(list, messages(e)...)
	}
	if strings.Join(list, "\n") != err.Error() {
		return []string{err.Error()} // it words what it wraps itself
	}
	return list
}
