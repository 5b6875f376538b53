package report

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"ralph"
	"ralph/store"
)

// A Leaving names the destinations of a run's report, besides the screen; the zero value has
// none.
type Leaving struct {
	File    string    // its ending chooses the format; "" for none
	Actions bool      // annotations and the summary of the step, for GitHub Actions
	Out     io.Writer // for the annotations
	Summary string    // the file of the step's summary; "" for none
	Err     io.Writer // gets a message about a report that could not be written
}

// Of runs drive, which executes a run, and writes its reports. If a report cannot be written, Err gets a message;
// status and error stay the same. During the run Of prevents GitHub Actions from interpreting agents' output as
// commands.
func (l Leaving) Of(ctx context.Context, db *store.DB, out io.Writer, drive func() (int, error)) (int, error) {
	before, err := LastRun(ctx, db)
	if err != nil {
		return 0, err
	}
	token := rand.Text()
	if l.Actions {
		if err := Mute(out, token); err != nil {
			return 0, err
		}
	}
	status, err := drive()
	if l.Actions {
		err = errors.Join(err, Unmute(out, token))
	}
	after, lerr := LastRun(ctx, db)
	if err = errors.Join(err, lerr); err != nil && after == before {
		return status, l.NotBegun(ctx, db, err)
	}
	if l.nowhere() {
		return status, err
	}
	r, rerr := store.Read(context.WithoutCancel(ctx), db, func(tx *store.Tx) (Report, error) { return OfRun(tx, after) })
	if rerr == nil {
		rerr = l.leave(r)
	}
	if rerr != nil { // the run has ended as it has
		fmt.Fprintf(l.Err, "ralph: %v; the run is over, and `ralph report` has its results\n", rerr)
	}
	return status, err
}

// NotBegun writes the reports of a run that could not begin, and returns why. Without them, an
// earlier run's file would pass for this one's.
func (l Leaving) NotBegun(ctx context.Context, db *store.DB, why error) error {
	if l.nowhere() {
		return why
	}
	status := ralph.ExitFailure
	if s, ok := errors.AsType[*ralph.ExitError](why); ok {
		status = s.Status
	}
	r, err := store.Read(context.WithoutCancel(ctx), db, func(tx *store.Tx) (Report, error) {
		r := New(nil, nil, nil, nil)
		r.Since, r.Until = tx.Now(), tx.Now()
		return WithWaiting(tx, r)
	})
	r.ExitStatus, r.Reason = &status, why.Error()
	if err == nil {
		err = l.leave(r)
	}
	if err == nil {
		return why
	}
	return &ralph.ExitError{Status: status, Err: errors.Join(why, err)}
}

func (l Leaving) nowhere() bool { return l.File == "" && !l.Actions }

// leave writes the file, and for GitHub Actions the annotations and the step's summary.
func (l Leaving) leave(r Report) error {
	var errs []error
	if l.File != "" {
		errs = append(errs, r.WriteFile(l.File, FormatOf(l.File)))
	}
	if l.Actions {
		errs = append(errs, r.Annotate(l.Out), r.AppendSummary(l.Summary))
	}
	return errors.Join(errs...)
}
