package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/testresult"
	"ralph/internal/words"
	"ralph/store"
)

func newVerify(a *app) *cobra.Command {
	verbose := false
	cmd := &cobra.Command{
		Use:   "verify [TASK]",
		Short: "Run by hand what a done is checked by",
		Long: `Run the commands that check every done, or all of a task's, in the environment,
the sandbox and the time limits in which a session's done is checked. Failures that
a task's baseline excuses by name count as passed. Nothing is decided.

Exit statuses: 0 all passed; 2 there is nothing to run; 3 a command failed; 130 stopped.`,
		Example: "  ralph verify\n  ralph verify 12 -v",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var task int64
			if len(args) > 0 {
				id, err := ralph.ParseTaskID(args[0])
				if err != nil {
					return err
				}
				task = id
			}
			return a.with(cmd.Context(), func(p *project, db *store.DB) error {
				checks, _, err := a.verify(cmd.Context(), p, db, task, func(c ralph.Check, output io.ReadSeeker) error {
					switch {
					case a.json:
						return nil
					case verbose:
						return sayOutput(a.out, c, output)
					}
					_, err := fmt.Fprintln(a.out, words.Check(c, words.TailLines))
					return err
				})
				if err != nil {
					return err
				}
				if len(checks) == 0 {
					return usage(fmt.Errorf("there is nothing to run: set verify in %s, or give the task commands of its own (ralph task edit ID --verify COMMAND)", configName))
				}
				if a.json {
					err = a.print(checks, nil)
				}
				if !green(checks) {
					return &statusError{status: ralph.ExitFailed}
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print the whole output of each command")
	return cmd
}

// maxReadable bounds what is made readable of a command's output, in bytes.
const maxReadable = 8 << 20

// sayOutput prints all that a command printed, and how it did.
func sayOutput(w io.Writer, c ralph.Check, output io.ReadSeeker) error {
	text, ok, err := testresult.Readable(output, maxReadable)
	if err != nil {
		return err
	}
	if ok {
		_, err = io.WriteString(w, printable(text))
	} else if _, err = output.Seek(0, io.SeekStart); err == nil {
		lines := bufio.NewReader(output)
		for err == nil {
			var line string
			line, err = lines.ReadString('\n')
			if _, werr := io.WriteString(w, printable(line)); werr != nil {
				return werr
			}
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = fmt.Fprintln(w, words.Check(c, 0))
	return err
}

// verify runs the commands of a task, or with 0 those of the project, as a session's
// done is checked; an interrupt stops it with everything that it started. Holds tells
// whether a failure keeps a run from beginning.
func (a *app) verify(ctx context.Context, p *project, db *store.DB, task int64, show func(c ralph.Check, output io.ReadSeeker) error) (checks []ralph.Check, holds bool, err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if p.blank {
		// What the commands say is kept for later runs, which nobody has begun yet.
		if db, err = store.OpenEmpty(ctx, nil); err != nil {
			return nil, false, err
		}
		defer db.Close()
		elsewhere := *p
		elsewhere.state = filepath.Dir(db.Path())
		p = &elsewhere
	}
	if p.held, err = confine(ctx, a, p); err != nil {
		return nil, false, err
	}
	l, err := newLoop(ctx, a, p, db)
	if err != nil {
		return nil, false, err
	}
	checks, holds, err = l.Verify(ctx, task, show)
	if ctx.Err() != nil {
		return checks, holds, &statusError{ralph.ExitStopped, fmt.Errorf("the verification was stopped: %w", context.Cause(ctx))}
	}
	return checks, holds, err
}

// green reports whether all checks passed.
func green(checks []ralph.Check) bool {
	for _, c := range checks {
		if !c.Passed {
			return false
		}
	}
	return true
}
