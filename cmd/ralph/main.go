// Command ralph works through a queue of tasks with a coding agent while nobody watches. See `ralph
// help`.
//
// Each file has the command of its name. The rules are in the packages that the commands use.
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
	"ralph/internal/advice"
	"ralph/internal/config"
	"ralph/internal/state"
	"ralph/internal/systemd"
	"ralph/internal/term"
)

func main() { os.Exit(run()) }

// run is main with a status instead of an exit, for test scripts.
func run() int {
	a := &app{out: os.Stdout, err: os.Stderr, in: os.Stdin, environ: os.Environ()}
	err := newRoot(a).ExecuteContext(context.Background())
	return complain(a, err)
}

// complain prints an error in one line and returns the exit status (unattended, "Ending a run"). It is the only place
// where errors become exit statuses.
func complain(a *app, err error) int {
	if err == nil {
		return ralph.ExitOK
	}
	name := "ralph:"
	if systemd.Journalled(a.err) {
		name = systemd.Prefix(slog.LevelError) + name
	}
	screen := term.Of(a.err, a.getenv)
	say := func(err error) { fmt.Fprintln(a.err, screen.Fit(name+" "+once(err))) }
	if status, ok := errors.AsType[*ralph.ExitError](err); ok {
		if status.Err != nil {
			say(status.Err)
		}
		return status.Status
	}
	say(err)
	var field *ralph.FieldError
	var bad *config.Error
	switch {
	case errors.As(err, &field), errors.As(err, &bad),
		errors.Is(err, ralph.ErrNotFound), errors.Is(err, ralph.ErrConflict),
		errors.Is(err, ralph.ErrInvariant), errors.Is(err, state.ErrLocked):
		return ralph.ExitUsage
	}
	return ralph.ExitFailure
}

// once returns the messages of joined errors, each once, since for example all readers of the database report its
// problem.
func once(err error) string {
	var said []string
	for _, e := range parts(err) {
		if words := advice.Explain(e); !slices.Contains(said, words) {
			said = append(said, words)
		}
	}
	return strings.Join(said, "\n")
}

// parts returns the errors joined in one.
func parts(err error) (list []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		list = append(list, parts(e)...)
	}
	if errors.Join(list...).Error() != err.Error() {
		return []error{err} // its message has those of the wrapped errors
	}
	return list
}
