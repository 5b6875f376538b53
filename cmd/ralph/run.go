package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/beside"
	"ralph/internal/config"
	"ralph/internal/project"
	"ralph/internal/report"
	"ralph/internal/schedule"
	"ralph/internal/show"
	"ralph/internal/state"
	"ralph/internal/systemd"
	"ralph/internal/text"
	"ralph/internal/worktree"
	"ralph/loop"
	"ralph/store"
)

// A keyFlag overrides a key of the configuration.
type keyFlag struct{ flag, key, usage string }

// addKeys gives a command flags that override keys.
func addKeys(cmd *cobra.Command, flags []keyFlag) {
	for _, f := range flags {
		cmd.Flags().String(f.flag, "", f.usage+" ("+f.key+")")
	}
}

// setKeys overrides the keys whose flags were given.
func setKeys(cmd *cobra.Command, p *project.Project, flags []keyFlag) error {
	for _, f := range flags {
		if set := cmd.Flags().Lookup(f.flag); set.Changed {
			if err := p.Config.Set(f.key, "flag", set.Value.String()); err != nil {
				return usage(err)
			}
		}
	}
	return nil
}

// limitFlags are the flags that override a limit of the configuration, for one
// run (unattended, "Limits").
var limitFlags = []keyFlag{
	{"max-sessions", "limits.max_sessions", "end after `N` sessions"},
	{"max-tasks", "limits.max_tasks", "end after sessions on `N` tasks"},
	{"max-duration", "limits.max_duration", "end after this `TIME`, such as 8h"},
	{"max-cost", "limits.max_cost_usd", "end when this much is spent, in `USD`"},
	{
		"max-cost-per-day", "limits.max_cost_per_day_usd",
		"end when this much is spent since midnight, over all runs, in `USD`",
	},
	{"usage", "limits.usage", "wait, or end, when a usage window is used so far: `{five_hour: 80%}`"},
	{"stagnant-sessions", "limits.stagnant_sessions", "end after `N` sessions in a row that changed nothing"},
	{"attempts", "limits.attempts", "fail a task after `N` sessions"},
	{"session-timeout", "limits.session_timeout", "stop a session after this `TIME`, such as 45m"},
	{"session-idle", "limits.idle_timeout", "stop a session after this `TIME` without a sign of life"},
	{"session-turns", "limits.session_turns", "end a session after `N` turns"},
	{"session-cost", "limits.session_cost_usd", "end a session when it has spent this much, in `USD`"},
	{"metrics-addr", "metrics.addr", "serve /metrics and /healthz on `ADDRESS`, such as 127.0.0.1:9469"},
	{"on-red", "verify.on_red", "what to do when the verification fails before any work, `HOW`: stop, first or go"},
}

// formatGitHub prints for GitHub Actions.
const formatGitHub = "github"

// runOptions are the flags of `ralph run` that are no configuration.
type runOptions struct {
	task   string
	model  string
	dryRun bool
	noWait bool
	format string
	report string
	serve  bool

	beside   beside.Bystanders
	daemon   bool
	schedule string
	between  string
}

func newRun(a *app) *cobra.Command {
	var o runOptions
	cmd := newCommand("run", func(cmd *cobra.Command, _ []string) error { return runQueue(cmd, a, o) })
	addKeys(cmd, limitFlags)
	f := cmd.Flags()
	f.StringVar(&o.task, "task", "", "work on this task alone")
	f.StringVar(&o.model, "model", "", "use this model for every session")
	f.BoolVar(&o.dryRun, "dry-run", false, "only show what would be done")
	f.BoolVar(&o.noWait, "no-wait", false, "end instead of waiting for the agent (rate limits)")
	f.BoolVar(&o.daemon, "daemon", false, "wait for new tasks and answers instead of ending")
	f.StringVar(&o.schedule, "schedule", "", "be a daemon that works in batches, which begin as this `CRON` says: "+
		"'0 22 * * 1-5', @daily, or 'CRON_TZ=Europe/Berlin 0 22 * * *'")
	f.StringVar(&o.between, "between", "",
		"begin sessions only within this `WINDOW` of the day: 22:00-06:00, or '22:00-06:00 Europe/Berlin'")
	f.BoolVar(&o.serve, "serve", false, "serve the dashboard meanwhile, as ralph serve does (dashboard.addr)")
	f.StringVar(&o.format, "format", "text",
		"text, json (one event a line) or github (annotations and a summary of the step)")
	f.StringVar(&o.report, "report", "",
		"leave a report in `FILE`: JUnit XML, Markdown or JSON, by its ending (.xml, .md, .json)")
	return cmd
}

func runQueue(cmd *cobra.Command, a *app, o runOptions) error {
	ctx := cmd.Context()
	if err := oneOf("--format", o.format, "text", "json", formatGitHub); err != nil {
		return err
	}
	if err := o.checkReport(a); err != nil {
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
	if err := p.RefuseUnapproved(db); err != nil {
		return o.notBegun(ctx, a, db, err)
	}
	if why := p.WaitsForApproval(); why != "" {
		fmt.Fprintf(a.err, "ralph: %s; the approved version is used\n", why)
	}
	if err := setKeys(cmd, p, limitFlags); err != nil {
		return err
	}
	if !o.dryRun {
		if p.Held, err = p.Confine(ctx); err != nil {
			return err
		}
		for _, m := range p.Held.Missing {
			fmt.Fprintf(a.err, "ralph: %s\n", m)
		}
	}
	l, err := p.Loop(ctx, db)
	if err != nil {
		return err
	}
	if l.Place.Tree.Approximate() {
		fmt.Fprintf(a.err, "ralph: there is no git program in PATH; %s\n", worktree.WithoutGit)
	}
	l.Models.Flag, l.NoWait = o.model, o.noWait
	if o.beside, err = beside.New(p, db, version()); err != nil {
		return err
	}
	hours := "--between"
	if o.between == "" && p.Config.Between != "always" {
		o.between, hours = p.Config.Between, "between"
	}
	if err := o.setTimes(l, hours); err != nil {
		return usage(err)
	}
	if o.task != "" {
		if l.Task, err = ralph.ParseTaskID(o.task); err != nil {
			return usage(err)
		}
		if err := db.View(ctx, func(tx *store.Tx) error { return tx.CheckTask(l.Task) }); err != nil {
			return err
		}
	}
	if o.dryRun {
		return plan(ctx, a.out, l)
	}
	if err := p.Preflight(ctx, l); err != nil {
		return o.notBegun(ctx, a, db, err)
	}
	unlock, err := loop.Lock(p.State)
	if err != nil {
		return err
	}
	// Under the lock: of two runs the second is told of the first, not of its port.
	var dashboard func(context.Context) (*beside.Dashboard, error)
	if o.serve {
		dashboard = func(ctx context.Context) (*beside.Dashboard, error) { return a.openDashboard(ctx, p, db) }
	}
	if err := o.beside.Listen(ctx, dashboard); err != nil {
		return errors.Join(err, unlock())
	}
	status, err := o.reported(ctx, a, db, l)
	if gone := state.IntactAfter(db, err); gone != nil {
		err = p.Lost(ctx, db, l.Place.Tree, gone)
	} else if kerr := p.Tidy(ctx, db); kerr != nil {
		l.Log.Warn("old transcripts could not be handled", "error", kerr)
	}
	o.beside.Close()
	if err = errors.Join(err, unlock()); err != nil {
		return err
	}
	if status != ralph.ExitOK {
		return &ralph.ExitError{Status: status}
	}
	return nil
}

// setTimes says when the loop works, and whether it ends by itself.
// hours names what the window was said with.
func (o runOptions) setTimes(l *loop.Loop, hours string) (err error) {
	l.Daemon = o.daemon || o.schedule != ""
	if l.Daemon && o.task != "" {
		return errors.New("--task is for a run that ends: leave out --daemon and --schedule, or --task")
	}
	if o.schedule != "" {
		if l.Schedule, err = schedule.ParseCron(o.schedule, time.Local); err != nil {
			return fmt.Errorf("--schedule: %w", err)
		}
	}
	if o.between != "" {
		if l.Between, err = schedule.ParseBetween(o.between, time.Local); err != nil {
			return fmt.Errorf("%s: %w", hours, err)
		}
	}
	return nil
}

// reported drives the loop, and leaves the reports of what came of it.
func (o runOptions) reported(ctx context.Context, a *app, db *store.DB, l *loop.Loop) (int, error) {
	before, err := report.LastRun(ctx, db)
	if err != nil {
		return 0, err
	}
	unmute, err := o.mute(a.out)
	if err != nil {
		return 0, err
	}
	status, err := drive(ctx, a, o, l)
	err = errors.Join(err, unmute())
	after, lerr := report.LastRun(ctx, db)
	if err = errors.Join(err, lerr); err != nil && after == before {
		return status, o.notBegun(ctx, a, db, err)
	}
	return status, errors.Join(err, o.afterRun(ctx, a, db))
}

// drive runs the loop with its progress on the screen, and stops it on signals:
// the first ends it after the session in progress, the second at once.
func drive(ctx context.Context, a *app, o runOptions, l *loop.Loop) (int, error) {
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	stop := make(chan struct{})
	l.Stop = stop
	now, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	stopping := func() {}
	if l.Daemon {
		// Go ends with status 2 when it panics or systemd's watchdog aborts it, which
		// would pass for a wrong configuration, and not be started anew. This has it die
		// of the signal, after the same report.
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
		for n := 0; ; n++ {
			select {
			case <-over:
				return
			case <-interrupts:
			}
			if n == 0 {
				close(stop)
				stopping()
				if o.format == "text" {
					over := ""
					if show.Terminal(a.out) {
						over = "\r\x1b[K" // a countdown may stand there
					}
					fmt.Fprintf(a.err, "%sralph: ending after the session in progress (at most %s); once more to stop it now\n",
						over, l.Session.Grace)
				}
			} else {
				cancel()
			}
		}
	}()
	var from int64
	if err := l.Store.View(ctx, func(tx *store.Tx) (err error) { from, err = tx.LastEvent(); return err }); err != nil {
		return 0, err
	}
	progress := &progress{
		store: l.Store, out: a.out, json: o.format == "json" || a.json, after: from,
		batches: !l.Schedule.IsZero(), journal: systemd.Journalled(a.out),
		terminal: show.Terminal(a.out),
	}
	if !progress.json {
		if err := plan(ctx, a.out, l); err != nil {
			return 0, err
		}
	}
	leave := o.beside.Start(ctx, from, over)
	shown := make(chan error)
	go func() { shown <- progress.follow(over) }()
	result, err := l.Serve(now)
	close(over)
	<-signals
	err = errors.Join(err, <-shown)
	leave()
	if err != nil || progress.json {
		return result.Status, err
	}
	return result.Status, summary(context.WithoutCancel(ctx), a.out, l.Store, result)
}

// plan says what a run would do.
func plan(ctx context.Context, out io.Writer, l *loop.Loop) error {
	var w bytes.Buffer
	var queue []ralph.Task
	var unaccepted []int64
	if err := l.Store.View(ctx, func(tx *store.Tx) (err error) {
		if queue, err = tx.Tasks(store.TaskFilter{Statuses: []ralph.Status{ralph.Pending}}); err != nil {
			return err
		}
		unaccepted, err = tx.Unaccepted()
		return err
	}); err != nil {
		return err
	}
	if len(unaccepted) > 0 {
		fmt.Fprintln(&w, "!", loop.Outside(unaccepted))
	}
	fmt.Fprintf(&w, "queue: %d pending", len(queue))
	for i, t := range queue {
		if l.Task == 0 && i < 5 || t.ID == l.Task {
			fmt.Fprintf(&w, "\n  TASK-%d %s", t.ID, text.Line(t.Title, 100))
		}
	}
	if len(queue) == 0 {
		fmt.Fprint(&w, " (`ralph task add TITLE --verify COMMAND` adds a task)")
	}
	if len(queue) > 5 && l.Task == 0 {
		fmt.Fprintf(&w, "\n  and %d more", len(queue)-5)
	}
	lim := l.Limits
	fmt.Fprintf(&w, "\nlimits: %d sessions, %d tasks, %s, $%.2f, $%.2f a day; a session: %s, idle %s, %d turns, $%.2f\n",
		lim.MaxSessions, lim.MaxTasks, span(lim.MaxSeconds), lim.MaxCostUSD, lim.MaxDayCostUSD,
		span(lim.SessionSeconds), span(lim.IdleSeconds), lim.SessionTurns, lim.SessionCostUSD)
	sayPlace(ctx, &w, l)
	verification := strings.Join(l.Check.Commands, "; ")
	if verification == "" {
		verification = "none for the project (set verify in ralph.yaml)"
	}
	fmt.Fprintf(&w, "agent: %s\nverification: %s\n", project.AgentCommand(l), verification)
	_, err := out.Write(w.Bytes())
	return err
}

// looseNamed is how many uncommitted files a run names.
const looseNamed = 5

// sayPlace says where a run works, and which files there are nobody's to commit but
// the person's.
func sayPlace(ctx context.Context, w io.Writer, l *loop.Loop) {
	files, branch, err := l.Strangers(ctx, 0)
	if err != nil {
		fmt.Fprintf(w, "what is uncommitted cannot be seen: %s\n", text.Line(err.Error(), 300))
		return
	}
	if branch != "" {
		fmt.Fprintf(w, "on %s\n", text.Line(branch, 200))
	}
	if len(files) == 0 {
		return
	}
	var names []string
	for _, f := range files[:min(len(files), looseNamed)] {
		name := text.Line(f.Path, 100)
		if f.Untracked {
			name += " (untracked)"
		}
		names = append(names, name)
	}
	more := ""
	if n := len(files) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	fmt.Fprintf(w, "uncommitted, and not the agent's to commit: %s%s\n", strings.Join(names, ", "), more)
}

// span is a duration in seconds for people.
func span(seconds float64) string {
	return config.FormatDuration(time.Duration(seconds * float64(time.Second)))
}
