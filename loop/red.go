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

// redLook is the interval at which a daemon checks whether the verification still fails.
const redLook = 5 * time.Second

// ready runs the verification before the first session, and returns the
// task to work on. It may wait or end the run instead.
func (r *runner) ready(ctx context.Context, task ralph.Task) (ralph.Task, error) {
	if r.red.green || task.Role == ralph.RolePlan { // planning changes nothing
		return task, nil
	}
	if r.red.waits && !r.hasNews(ctx) {
		return task, r.waitForGreen(ctx)
	}
	var red []ralph.Check
	stopped, err := r.interruptibly(ctx, func(ctx context.Context) (err error) { red, err = r.redNow(ctx); return err })
	switch {
	case stopped:
		return task, errAgain // the next round handles the stop
	case err != nil:
		return task, err
	case len(red) == 0 || r.OnRed == RedGo:
		r.red.green = true
		return task, nil
	}
	said := signals.Refused(red, nil, ralph.Evidence{}, r.Rules).String()
	if r.OnRed == RedFirst {
		return r.readyFirst(ctx, task, red, said)
	}
	why := "your tests fail already"
	if slices.ContainsFunc(red, lacksProgram) {
		why = "your tests cannot run here"
	}
	return task, r.stopRed(ctx, red, why+"; nothing was spent: "+said)
}

// readyFirst lets one task at a time work until the verification passes. The next task gets its turn when the one
// before is completed.
func (r *runner) readyFirst(ctx context.Context, task ralph.Task, red []ralph.Check, said string) (ralph.Task, error) {
	if r.red.mending != 0 {
		first, ok, spent, err := r.pick(ctx, func(tx *store.Tx) (ralph.Task, bool, error) { return only(tx, r.red.mending) })
		for _, id := range spent {
			r.worked[id] = true
		}
		if err != nil || ok {
			return first, err
		}
		if first.Status != ralph.Completed {
			return task, r.stopRed(ctx, red, fmt.Sprintf("your tests still fail after TASK-%d, which %s, "+
				"and the others wait for them: %s", first.ID, first.Is(), said))
		}
	}
	r.red.mending = task.ID
	return task, r.announce(ctx, red, fmt.Sprintf("TASK-%d works until they pass, the others wait", task.ID))
}

// stopRed ends the run; a daemon waits until a person has fixed the failure.
func (r *runner) stopRed(ctx context.Context, red []ralph.Check, why string) error {
	if err := r.announce(ctx, red, ""); err != nil {
		return err
	}
	if !r.Daemon {
		return &end{ralph.ExitUsage, why + r.remedy(red)}
	}
	r.red.waits = true
	reason := "until your tests pass: " + why + " (`ralph verify` runs them; verify.on_red)"
	return cmp.Or(r.state(ctx, "waiting", reason, time.Time{}), errAgain)
}

// lacksProgram reports whether a check failed because a program is not installed.
func lacksProgram(c ralph.Check) bool { return c.Exit == check.NoProgram }

// remedy tells a person how to deal with the failing checks.
func (c course) remedy(red []ralph.Check) string {
	if i := slices.IndexFunc(red, func(c ralph.Check) bool { return c.Cause != "" }); i >= 0 {
		return ". " + red[i].Cause.Advice() + "; or `ralph run --on-red go`"
	}
	if slices.ContainsFunc(red, lacksProgram) {
		return ". Install it, or change verify in ralph.yaml"
	}
	return ". Fix them" + c.nameTests(red) + ", or `ralph run --on-red first`"
}

// nameTests suggests test names as a remedy if tests were red for long and no command names them.
func (c course) nameTests(red []ralph.Check) string {
	unnamed := func(c ralph.Check) bool { return c.Error == "" }
	if c.Check.Strict || !slices.ContainsFunc(red, unnamed) {
		return ""
	}
	return ", name the failing tests (`go test -json`, or JUnit XML in verify.junit)"
}

// announce records the failing checks, with the end of their output, once per kind of failure.
func (r *runner) announce(ctx context.Context, red []ralph.Check, consequence string) error {
	said := signals.Refused(red, nil, ralph.Evidence{}, r.Rules).String()
	if said+consequence == r.red.announced {
		return nil
	}
	r.red.announced = said + consequence
	return r.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		return tx.NoteRed(r.id, 0, ralph.BaselineRed{
			Reason: said, OnRed: string(cmp.Or(r.OnRed, RedStop)), Consequence: consequence, Checks: red,
		})
	})
}

// hasNews reports whether a red verification is worth another run: the files or the commands have changed, or it passed
// when a person ran it.
func (r *runner) hasNews(ctx context.Context) bool {
	if r.Commands != nil {
		configured, err := r.Commands()
		if err != nil {
			r.Log.Warn("cannot read the configuration; the daemon keeps the old one", "error", err)
			return false
		}
		if r.merges {
			return false // running sessions have their own baselines
		}
		now := *r.Config
		now.Check.Commands, r.Merger.Check.Commands = configured, configured
		r.Config = &now
	}
	commands, err := r.suiteCommands(ctx)
	if err != nil {
		return true // the next run of the verification will report the error
	}
	tip, err := r.Merger.Tip(ctx)
	if err != nil {
		return true
	}
	v, err := r.verifier(ctx, tip, nil) // known results need no workspace
	if err != nil {
		return true
	}
	red, err := v.KnownRed(ctx, commands)
	return err != nil || !red
}

// waitForGreen waits until the next look is due.
func (r *runner) waitForGreen(ctx context.Context) error {
	return r.await(ctx, r.Store.Now().Add(redLook), nil)
}

// redNow runs the commands of the project and of the features with open tasks, and returns the unexcused failures. It
// runs commands that failed before again, since the cause may be outside the repository.
func (r *runner) redNow(ctx context.Context) (red []ralph.Check, err error) {
	commands, err := r.suiteCommands(ctx)
	if err != nil || len(commands) == 0 {
		return nil, err
	}
	if err := r.state(ctx, "running", "verifies the project before the first session", time.Time{}); err != nil {
		return nil, err
	}
	err = r.onTip(ctx, nil, func(v *check.Verifier) (err error) {
		red, err = v.Red(ctx, commands, !r.red.asked)
		return err
	})
	if err == nil && ctx.Err() == nil {
		r.red.asked = true
	}
	return red, err
}

// suiteCommands returns the commands of the project and of the features with
// pending tasks or, if the run is for one task, of that task's feature.
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
