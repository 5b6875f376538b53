package loop

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ralph"
	"ralph/loop/check"
	"ralph/signals"
	"ralph/store"
)

// OnRed is what a run makes of a verification that fails before any work.
type OnRed string

// What it may be.
const (
	RedStop  OnRed = "stop"  // the run ends before anything is spent; a daemon waits
	RedFirst OnRed = "first" // one task works until it is green, the others wait
	RedGo    OnRed = "go"    // the run goes on
)

// redLook is how often a daemon looks whether the verification is still red, and
// redLookMax how seldom in a work tree that takes long to look at.
const (
	redLook    = 5 * time.Second
	redLookMax = time.Minute
)

// A suspense is what a run knows of a verification that is red before any work.
type suspense struct {
	green     bool  // it has been seen to be green, or it does not matter
	mending   int64 // the task that works until it is green; 0 if there is none yet
	announced string
	waits     bool          // the daemon waits for it
	look      time.Duration // how long the last look took whether it is worth another
	asked     bool          // it was run in this run: what was known before is not of before a mending
}

// ready has the verification run before the first session, and gives the task that is
// worked on then; the run may wait instead, or end.
func (r *runner) ready(ctx context.Context, task ralph.Task) (ralph.Task, error) {
	if r.red.green {
		return task, nil
	}
	if r.red.waits && !r.hasNews(ctx) {
		return task, r.waitForGreen(ctx)
	}
	var red []ralph.Check
	stopped, err := r.interruptibly(ctx, func(ctx context.Context) (err error) { red, err = r.redNow(ctx); return err })
	switch {
	case stopped:
		return task, errAgain // the round sees to it
	case err != nil:
		return task, err
	case len(red) == 0 || r.OnRed == RedGo:
		r.red.green = true
		return task, nil
	}
	said := signals.Refused(red, nil, ralph.Evidence{}, r.Rules)
	if r.OnRed == RedFirst {
		return r.readyFirst(ctx, task, red, said)
	}
	return task, r.stopRed(ctx, red, "the verification fails before any work, and nothing was begun: "+said)
}

// readyFirst has one task after the other work until the verification is green. The
// next one has its turn when the one before it is completed.
func (r *runner) readyFirst(ctx context.Context, task ralph.Task, red []ralph.Check, said string) (ralph.Task, error) {
	if r.red.mending != 0 {
		first, ok, spent, err := r.pick(ctx, r.red.mending)
		for _, id := range spent {
			r.worked[id] = true
		}
		if err != nil || ok {
			return first, err
		}
		if first.Status != ralph.Completed {
			return task, r.stopRed(ctx, red, fmt.Sprintf("the verification still fails after TASK-%d, which is %s, "+
				"and the others wait for it: %s", first.ID, first.Status, said))
		}
	}
	r.red.mending = task.ID
	return task, r.announce(ctx, red, fmt.Sprintf("TASK-%d works until it passes, the others wait", task.ID))
}

// stopRed ends the run; a daemon waits for somebody to mend what fails.
func (r *runner) stopRed(ctx context.Context, red []ralph.Check, why string) error {
	if err := r.announce(ctx, red, ""); err != nil {
		return err
	}
	if !r.Daemon {
		return &end{ralph.ExitUsage, why + ". Mend it (`ralph verify` runs it)" + r.nameTests(red) +
			", or let a task mend it, as in a project that begins empty: `ralph run --on-red first`; " +
			"--on-red go works on all tasks regardless"}
	}
	r.red.waits = true
	reason := "until the verification passes: " + why + " (`ralph verify` runs it; verify.on_red)"
	return cmp.Or(r.state(ctx, "waiting", reason, time.Time{}), errAgain)
}

// nameTests is the way out where tests were red for long and no command says which.
func (l *Loop) nameTests(red []ralph.Check) string {
	unnamed := func(c ralph.Check) bool { return c.Error == "" }
	if l.Check.Strict || !slices.ContainsFunc(red, unnamed) {
		return ""
	}
	return ", or have it name its tests, so that those which fail already are excused " +
		"(`go test -json`, or JUnit XML in verify.junit)"
}

// announce records what fails, with the end of its output, once for each way to fail.
func (r *runner) announce(ctx context.Context, red []ralph.Check, follows string) error {
	said := signals.Refused(red, nil, ralph.Evidence{}, r.Rules)
	if said+follows == r.red.announced {
		return nil
	}
	r.red.announced = said + follows
	return r.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		return tx.NoteRedSuite(r.id, string(cmp.Or(r.OnRed, RedStop)), said, follows, red)
	})
}

// hasNews reports whether there is a reason to look again at a verification that was
// red: other content or other commands, or a result by hand that is green.
func (r *runner) hasNews(ctx context.Context) bool {
	began := time.Now()
	defer func() { r.red.look = time.Since(began) }()
	if r.Commands != nil {
		configured, err := r.Commands()
		if err != nil {
			r.Log.Warn("the configuration cannot be read; the daemon goes on with what it began with", "error", err)
			return false
		}
		r.Check.Commands = configured
	}
	commands, err := r.suiteCommands(ctx)
	if err != nil {
		return true // whoever looks says what is wrong
	}
	red, err := r.verifier().KnownRed(ctx, commands)
	return err != nil || !red
}

// waitForGreen waits until it is time to look again.
func (r *runner) waitForGreen(ctx context.Context) error {
	return r.await(ctx, time.Now().Add(min(max(redLook, 20*r.red.look), redLookMax)), nil)
}

// redNow has the commands of the project and of the features that have work run on
// the work tree, and gives those that fail without an excuse. What failed at an
// earlier time is run again: what it lacked may not have been in the work tree.
// What a session has in hand is no reason: it goes on with it.
func (r *runner) redNow(ctx context.Context) (red []ralph.Check, err error) {
	commands, err := r.suiteCommands(ctx)
	if err != nil || len(commands) == 0 {
		return nil, err
	}
	if err := r.state(ctx, "running", "verifies the project before the first session", time.Time{}); err != nil {
		return nil, err
	}
	red, err = r.verifier().Red(ctx, commands, !r.red.asked, r.OnRed == RedFirst)
	if err == nil && ctx.Err() == nil {
		r.red.asked = true
	}
	return red, err
}

// suiteCommands are the project's and those of the features of tasks that are
// pending; of one task if the run is for one.
func (r *runner) suiteCommands(ctx context.Context) ([]string, error) {
	features, err := store.Read(ctx, r.Store, func(tx *store.Tx) ([]ralph.Feature, error) {
		return tx.FeaturesWithWork(r.Task)
	})
	commands := check.Once(nil, r.Check.Commands)
	for _, f := range features {
		commands = check.Once(commands, f.Verify)
	}
	return commands, err
}
