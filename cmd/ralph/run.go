package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/bystander"
	"ralph/internal/config"
	"ralph/internal/follow"
	"ralph/internal/proc"
	"ralph/internal/project"
	"ralph/internal/report"
	"ralph/internal/schedule"
	"ralph/internal/state"
	"ralph/internal/systemd"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/loop"
	"ralph/store"
)

// A keyFlag is a flag that overrides a key of the configuration.
type keyFlag struct{ flag, key, usage string }

// addKeys adds flags that override keys.
func addKeys(cmd *cobra.Command, flags []keyFlag) {
	for _, f := range flags {
		cmd.Flags().String(f.flag, "", f.usage+" ("+f.key+")")
	}
}

// setKeys overrides the keys whose flags were given.
func setKeys(cmd *cobra.Command, p *project.Project, flags []keyFlag) error {
	for _, f := range flags {
		if set := cmd.Flags().Lookup(f.flag); set != nil && set.Changed {
			if err := p.Config.Set(f.key, "flag", set.Value.String()); err != nil {
				if wrong := (*config.Error)(nil); errors.As(err, &wrong) {
					err = fmt.Errorf("--%s %s", f.flag, wrong.Problem) // with the flag's name instead of the key
				}
				return usage(err)
			}
		}
	}
	return nil
}

// limitFlags override limits of the configuration for one run (unattended, "Limits").
var limitFlags = []keyFlag{
	{"parallel", "parallel", "have `N` sessions work at once, each in a workspace of its own"},
	{"max-sessions", "limits.max_sessions", "end after `N` sessions"},
	{"max-tasks", "limits.max_tasks", "end after sessions on `N` tasks"},
	{"max-duration", "limits.max_duration", "end after this `TIME`, such as 8h"},
	{"max-cost", "limits.max_cost_usd", "end when this much is spent, in `USD`"},
	{
		"max-cost-per-day", "limits.max_cost_per_day_usd",
		"end when this much is spent since midnight, over all runs, in `USD`",
	},
	{"usage", "limits.usage", "wait, or end, when a usage window is used so far: `{five_hour: 80%}`"},
	{"stagnant-sessions", "limits.stagnant_sessions", "end after the sessions of `N` tasks in a row changed nothing"},
	{"attempts", "limits.attempts", "fail a task after `N` sessions"},
	{"session-timeout", "limits.session_timeout", "stop a session after this `TIME`, such as 45m"},
	{"session-idle", "limits.idle_timeout", "stop a session after this `TIME` without a sign of life"},
	{"session-turns", "limits.session_turns", "end a session after `N` turns"},
	{"session-cost", "limits.session_cost_usd", "end a session when it has spent this much, in `USD`"},
	{"on-red", "verify.on_red", "reaction if your tests fail already, `HOW`: stop, first or go"},
}

// formatGitHub is the output format for GitHub Actions.
const formatGitHub = "github"

// runOptions are the flags of `ralph run` that are not keys of the configuration.
type runOptions struct {
	task   int64 // the only task to work on; 0 for none
	wait   bool  // follow the task if a run in progress takes it
	model  string
	title  string   // title of a task to add
	plan   *planRun // state of a plan's task; nil if it is not a plan
	add    ralph.Task
	agent  string
	dryRun bool
	noWait bool
	format string
	report string
	serve  bool

	bystanders bystander.Bystanders
	pulls      bool
	daemon     bool
	schedule   string
	between    string
}

func newRun(a *app) *cobra.Command {
	var o runOptions
	cmd := newCommand("run [TITLE|TASK]", func(cmd *cobra.Command, args []string) error {
		o.title = append(args, "")[0]
		if task, err := ralph.ParseTaskID(o.title); err == nil {
			o.task, o.title = task, ""
		}
		if err := o.checkTitle(cmd, a); err != nil {
			return err
		}
		return runQueue(cmd, a, o)
	})
	addKeys(cmd, limitFlags)
	f := cmd.Flags()
	f.StringArrayVar(&o.add.Verify, "verify", nil, "with TITLE: a shell `COMMAND` that must pass (repeatable)")
	f.StringVarP(&o.add.Description, "description", "d", "", "with TITLE: `TEXT`, @FILE, or - for standard input")
	f.BoolVar(&o.wait, "wait", false, "with TITLE or TASK, while a run is in progress: follow the task until it ends")
	f.StringVar(&o.agent, "agent", "", "use this agent for every session, by its `NAME` in ralph.yaml")
	f.StringVar(&o.model, "model", "", "use this `MODEL` for every session")
	f.BoolVar(&o.dryRun, "dry-run", false, "only show the plan")
	f.BoolVar(&o.pulls, "pr", false, "push checked work on its own branch and open a pull request (merge.mode)")
	f.BoolVar(&o.noWait, "no-wait", false, "end instead of waiting for the agent (rate limits)")
	f.BoolVar(&o.daemon, "daemon", false, "wait for new tasks and answers instead of ending")
	f.StringVar(&o.schedule, "schedule", "", "be a daemon that works in batches at the times of `CRON`: "+
		"'0 22 * * 1-5', @daily, or 'CRON_TZ=Europe/Berlin 0 22 * * *'")
	f.StringVar(&o.between, "between", "",
		"begin sessions only within this `WINDOW` of the day: 22:00-06:00, or '22:00-06:00 Europe/Berlin'")
	f.BoolVar(&o.serve, "serve", false, "serve the dashboard meanwhile, as ralph serve does (dashboard.addr)")
	f.StringVar(&o.format, "format", "text",
		"`FORMAT`: text, json (one event a line) or github (annotations and a summary of the step)")
	f.StringVar(&o.report, "report", "",
		"write a report to `FILE`: JUnit XML, Markdown or JSON, by its ending (.xml, .md, .json)")
	return cmd
}

// checkTitle checks that a task can be added, or worked on alone.
func (o *runOptions) checkTitle(cmd *cobra.Command, a *app) (err error) {
	given := cmd.Flags().Changed
	if o.title == "" {
		if given("verify") || given("description") {
			return usage(errors.New("--verify and -d are for a task that is added: ralph run \"TITLE\" --verify COMMAND"))
		}
		if o.wait && o.task == 0 {
			return usage(errors.New("--wait follows one task: ralph run \"TITLE\" --wait, or ralph run TASK --wait"))
		}
		if len(cmd.Flags().Args()) > 0 && o.task == 0 {
			return ralph.CheckTitle("title", o.title)
		}
	}
	for _, name := range []string{"daemon", "schedule"} {
		if given(name) && (o.title != "" || o.task != 0) {
			return usage(fmt.Errorf("a run of one task ends: leave out --%s, or add the task with `ralph add`", name))
		}
	}
	if o.title == "" {
		return nil
	}
	if given("dry-run") {
		return usage(errors.New("a TITLE adds a task: leave out --dry-run, or add it with `ralph add`"))
	}
	o.add.Title, o.add.Priority = o.title, ralph.DefaultPriority
	if err := ralph.CheckTitle("title", o.title); err != nil {
		return err
	}
	o.add.Description, err = a.text("description", o.add.Description)
	return err
}

func runQueue(cmd *cobra.Command, a *app, o runOptions) error {
	ctx := cmd.Context()
	if err := oneOf("--format", o.format, "text", "json", formatGitHub); err != nil {
		return err
	}
	leaving, err := o.leaving(a)
	if err = errors.Join(err, proc.Close()); err != nil {
		return err
	}
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	open := p.Open
	if !o.dryRun {
		open = p.Begin
	}
	db, err := open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	l, err := o.loop(cmd, a, p, db)
	if err != nil {
		if !o.dryRun {
			a.noteNotBegun(ctx, p, db, err)
		}
		return err
	}
	if o.dryRun {
		if err := l.Attached(); err != nil {
			return err
		}
		if a.json {
			v, err := follow.ReadPlan(ctx, l)
			return cmp.Or(err, a.print(v, nil))
		}
		return follow.WritePlan(ctx, a.out, a.screen(), l, true)
	}
	if err := p.Preflight(ctx, l); err != nil {
		a.noteNotBegun(ctx, p, db, err)
		return leaving.NotBegun(ctx, db, err)
	}
	unlock, err := state.Lock(p.State)
	if errors.Is(err, state.ErrLocked) && o.add.Role == ralph.RolePlan {
		return o.queuePlan(ctx, a, l)
	}
	locked := errors.Is(err, state.ErrLocked)
	if err != nil && (!locked || o.title == "" && o.task == 0) {
		return err
	}
	said, err := o.take(ctx, a, l)
	switch {
	case err != nil && !locked:
		return errors.Join(err, unlock())
	case err != nil:
		return err
	case locked:
		return o.handOver(ctx, a, l, said)
	}
	if said != "" {
		fmt.Fprintln(a.err, "ralph:", said)
	}
	if err := o.bystanders.LookFirst(ctx); err != nil {
		fmt.Fprintln(a.err, "ralph: the forge is not up to date, and the run goes on without it:", err)
	}
	return o.work(ctx, a, p, l, leaving, unlock)
}

// loop creates the loop of a run from its flags.
func (o *runOptions) loop(
	cmd *cobra.Command, a *app, p *project.Project, db *store.DB,
) (l *loop.Loop, err error) {
	ctx := cmd.Context()
	if err := setKeys(cmd, p, limitFlags); err != nil {
		return nil, err
	}
	if o.pulls {
		if err := p.Config.Set("merge.mode", "flag", "pr"); err != nil {
			return nil, err
		}
	}
	if !o.dryRun {
		db.Outlast()
		if p.Confinement, err = p.Confine(ctx); err != nil {
			return nil, err
		}
	}
	if err := p.CheckAgent(o.agent); err != nil {
		return nil, err
	}
	l, err = p.Loop(ctx, db)
	if err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("model") && len(strings.Fields(o.model)) != 1 {
		return nil, usage(fmt.Errorf("--model %q must be the name of a model", o.model))
	}
	if cmd.Flags().Changed("agent") && o.agent == "" {
		return nil, usage(errors.New("--agent needs the name of an agent, such as claude"))
	}
	l.Models.Flag, l.Agents.Flag, l.NoWait = o.model, o.agent, o.noWait
	if o.bystanders, err = bystander.New(p, db); err != nil {
		return nil, err
	}
	if p.Forges() && !o.dryRun {
		if o.bystanders.Forge, err = p.Syncer(ctx, db, l.Merger); err != nil {
			// The run continues without it, unless it needs pull requests.
			if l.Merger.Pulls {
				return nil, err
			}
			fmt.Fprintln(a.err, "ralph: no issue is read and nothing is posted:", err)
		}
	}
	if err := o.setTimes(l); err != nil {
		return nil, usage(err)
	}
	if l.Task = o.task; l.Task != 0 {
		err = db.View(ctx, func(tx *store.Tx) error { return tx.CheckTask(l.Task) })
	}
	return l, err
}

// queuePlan leaves the planning task to the run in progress.
func (o *runOptions) queuePlan(ctx context.Context, a *app, l *loop.Loop) error {
	if _, err := o.take(ctx, a, l); err != nil {
		return err
	}
	o.plan.queued = true
	then := "shows it"
	if o.plan.yes {
		then += " and `ralph plan approve` approves it, which --yes does not do here,"
	}
	return a.say(map[string]any{"task_id": l.Task, "feature": o.plan.feature},
		"TASK-%d added: the run in progress plans if it works through the queue, else the next `ralph run`; "+
			"`ralph plan show %s` %s then", l.Task, o.plan.feature, then)
}

// work runs the loop under the lock of the state folder.
func (o *runOptions) work(
	ctx context.Context, a *app, p *project.Project, l *loop.Loop, leaving report.Leaving, unlock func() error,
) error {
	db := l.Store
	if err := p.Backup(ctx, db); err != nil {
		fmt.Fprintf(a.err, "ralph: there is no copy of the queue as this run finds it: %v\n", err)
	}
	// It listens under the lock: a second run should fail because of the first, not because of its
	// port.
	var dashboard func(context.Context) (*bystander.Dashboard, error)
	if o.serve {
		dashboard = func(ctx context.Context) (*bystander.Dashboard, error) {
			return a.openDashboard(ctx, p, db, bystander.Options{})
		}
	}
	if err := o.bystanders.Listen(ctx, dashboard); err != nil {
		return errors.Join(err, unlock())
	}
	out := &follow.Lasting{Writer: a.out, Lost: func(err error) {
		fmt.Fprintf(a.err, "ralph: not everything is shown: %v; the run goes on, and `ralph report` has its results\n", err)
	}}
	status, err := leaving.Of(ctx, db, out, func() (int, error) { return drive(ctx, a, *o, l, out) })
	err = p.AfterRun(ctx, db, l, err)
	o.bystanders.Close()
	if err = errors.Join(err, unlock()); err != nil {
		return err
	}
	if status != ralph.ExitOK {
		return &ralph.ExitError{Status: status}
	}
	return nil
}

// setTimes sets when the loop works, and whether the run ends by itself.
func (o runOptions) setTimes(l *loop.Loop) (err error) {
	l.Daemon = o.daemon || o.schedule != ""
	if o.schedule != "" {
		if l.Schedule, err = schedule.ParseCron(o.schedule, time.Local); err != nil {
			return fmt.Errorf("--schedule: %w", err)
		}
	}
	if o.between != "" {
		if l.Between, err = schedule.ParseBetween(o.between, time.Local); err != nil {
			return fmt.Errorf("--between: %w", err)
		}
	}
	return nil
}

// heed calls end at the first interrupt and now at each further one, until over is closed.
func heed(interrupts <-chan os.Signal, over <-chan struct{}, now, end func()) {
	for n := 0; ; n++ {
		select {
		case <-over:
			return
		case s := <-interrupts:
			switch {
			case n == 0:
				end()
			case s != syscall.SIGHUP: // a closed terminal sends it twice, once by the kernel and once by the shell
				now()
			}
		}
	}
}

// drive runs the loop, prints its progress, and stops it on signals: the first signal ends it after
// the session in progress, the second at once.
func drive(ctx context.Context, a *app, o runOptions, l *loop.Loop, out io.Writer) (int, error) {
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // under nohup, for example
		signal.Notify(interrupts, syscall.SIGHUP)
	}
	defer signal.Stop(interrupts)
	// The channel is never read. Registering it makes a write to a closed pipe return an error instead of killing the
	// run.
	closed := make(chan os.Signal, 1)
	signal.Notify(closed, syscall.SIGPIPE)
	defer signal.Stop(closed)
	stop := make(chan struct{})
	l.Stop = stop
	if l.Task != 0 {
		l.Parallel = 1
	}
	now, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	stopping := func() {}
	if l.Daemon {
		// After a panic or an abort by systemd's watchdog, Go exits with status 2, which looks like
		// a wrong configuration and prevents a restart. With "crash" the process prints the same
		// report and dies of a signal.
		debug.SetTraceback("crash")
		systemd, err := systemd.New(l.Log)
		if err != nil {
			return 0, usage(err)
		}
		alive, end := context.WithCancel(ctx)
		watched := make(chan struct{})
		go func() { defer close(watched); systemd.Run(alive) }()
		defer func() { end(); <-watched }()
		l.Heart, stopping = systemd, systemd.Stopping
		systemd.Ready()
	}
	signals := make(chan struct{})
	go func() {
		defer close(signals)
		heed(interrupts, over, cancel, func() {
			close(stop)
			stopping()
			if o.format != "text" {
				return
			}
			line := ""
			if term.Is(a.out) {
				line = "\r\x1b[K" // a countdown may be shown there
			}
			fmt.Fprintf(a.err, "%sralph: ending after the session in progress (at most %s); once more to stop it now\n",
				line, l.Session.Grace)
		})
	}()
	from, err := store.Read(ctx, l.Store, (*store.Tx).LastEvent)
	if err != nil {
		return 0, err
	}
	progress := &follow.Progress{
		Store: l.Store, Out: out, JSON: o.format == "json" || a.json, After: from,
		Batches: !l.Schedule.IsZero(), Journal: systemd.Journalled(a.out),
		Screen: a.screen(),
	}
	if !progress.JSON {
		if err := follow.WritePlan(ctx, out, a.screen(), l, false); err != nil {
			return 0, err
		}
	}
	var talk sync.WaitGroup
	if o.add.Role == ralph.RolePlan && !progress.JSON {
		l.Listen = func(words string) { fmt.Fprintf(out, "\n%s\n\n", text.Visible(strings.TrimSpace(words))) }
		if l.Attended = term.Is(a.in); l.Attended {
			talk.Go(func() { a.converse(ctx, l.Store, l.Task, over) })
		}
	}
	leave := o.bystanders.Start(ctx, from, over)
	shown := make(chan error)
	go func() { shown <- progress.Follow(over) }()
	result, err := l.Serve(now)
	close(over)
	talk.Wait()
	<-signals
	err = errors.Join(err, <-shown)
	leave()
	if err != nil || progress.JSON {
		return result.Status, err
	}
	return result.Status, follow.WriteEnd(context.WithoutCancel(ctx), out, a.screen(), l.Store, result)
}
