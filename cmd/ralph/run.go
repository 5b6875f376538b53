package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/retention"
	"ralph/internal/schedule"
	"ralph/internal/systemd"
	"ralph/internal/text"
	"ralph/loop"
	"ralph/loop/agent/claude"
	"ralph/store"
)

// toolPrefix stands before the tools that signal, as the model sees them.
const toolPrefix = claude.ToolPrefix + "ralph_signal_"

// stateTool is how the model sees the tool by which it reports its phases.
const stateTool = claude.ToolPrefix + "update_session_state"

// A limitFlag overrides a key of the configuration.
type limitFlag struct{ flag, key, usage string }

// limitFlags are the flags that override a limit of the configuration, for one
// run (unattended, "Limits").
var limitFlags = []limitFlag{
	{"max-sessions", "limits.max_sessions", "end after `N` sessions"},
	{"max-tasks", "limits.max_tasks", "end after sessions on `N` tasks"},
	{"max-duration", "limits.max_duration", "end after this `TIME`, such as 8h"},
	{"max-cost", "limits.max_cost_usd", "end when this much is spent, in `USD`"},
	{"max-cost-per-day", "limits.max_cost_per_day_usd", "end when this much is spent since midnight, over all runs, in `USD`"},
	{"usage", "limits.usage", "wait, or end, when a usage window is used so far: `{five_hour: 80%}`"},
	{"stagnant-sessions", "limits.stagnant_sessions", "end after `N` sessions in a row that changed nothing"},
	{"attempts", "limits.attempts", "fail a task after `N` sessions"},
	{"session-timeout", "limits.session_timeout", "stop a session after this `TIME`, such as 45m"},
	{"session-idle", "limits.idle_timeout", "stop a session after this `TIME` without a sign of life"},
	{"session-turns", "limits.session_turns", "end a session after `N` turns"},
	{"session-cost", "limits.session_cost_usd", "end a session when it has spent this much, in `USD`"},
}

// always is the value of between that leaves no hour out.
const always = "always"

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

	beside   bystanders
	daemon   bool
	schedule string
	between  string
}

func newRun(a *app) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Work through the queue",
		Long: `Work through the queue until nothing is left that can be worked on, a limit is
reached, the agent cannot be used, or it is stopped. The project's own commands run
once before the first session; what is red by then ends the run before anything is
spent, unless it names its failing tests or --on-red says otherwise. Ctrl-C once ends after the
session in progress (which is given shutdown_grace), twice at once.

A daemon waits for new tasks and answers instead of ending. With --schedule it
works in batches: each begins when the schedule says, is a run of its own with its
limits, and ends when nothing is left to do. With --between sessions begin only
within that window of the day; one in progress at its end goes on to its own.
Times are those of this machine unless a zone is named. The limits of a run do not
count the time for which it waited like this; in a daemon without a schedule they
are those of each day, and at a limit it waits for midnight.

Exit statuses: 0 everything is done; 1 ralph itself failed; 2 usage or
configuration error; 3 a task failed; 4 what is left waits for people; 5 a limit
of the run was reached; 6 the agent cannot be used; 130 stopped.`,
		Example: "  ralph run --max-cost 5 --max-duration 8h\n  ralph run --task 12 --model opus\n  ralph run --dry-run\n" +
			"  ralph run --between 22:00-06:00\n  ralph run --schedule '0 22 * * 1-5' --max-cost 20",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set := map[string]string{}
			for _, l := range append(limitFlags[:len(limitFlags):len(limitFlags)], limitFlag{"metrics-addr", "metrics.addr", ""}, limitFlag{"on-red", "verify.on_red", ""}) {
				if f := cmd.Flags().Lookup(l.flag); f.Changed {
					set[l.key] = f.Value.String()
				}
			}
			return runQueue(cmd.Context(), a, o, set)
		},
	}
	f := cmd.Flags()
	for _, l := range limitFlags {
		f.String(l.flag, "", l.usage+" ("+l.key+")")
	}
	f.String("metrics-addr", "", "serve /metrics and /healthz on `ADDRESS`, such as 127.0.0.1:9469")
	f.String("on-red", "", "what to do when the verification fails before any work: stop, first or go (`HOW`; verify.on_red)")
	f.StringVar(&o.task, "task", "", "work on this task alone")
	f.StringVar(&o.model, "model", "", "use this model for every session")
	f.BoolVar(&o.dryRun, "dry-run", false, "only show what would be done")
	f.BoolVar(&o.noWait, "no-wait", false, "end instead of waiting for the agent (rate limits)")
	f.BoolVar(&o.daemon, "daemon", false, "wait for new tasks and answers instead of ending")
	f.StringVar(&o.schedule, "schedule", "", "be a daemon that works in batches, which begin as this `CRON` says: '0 22 * * 1-5', @daily, or 'CRON_TZ=Europe/Berlin 0 22 * * *'")
	f.StringVar(&o.between, "between", "", "begin sessions only within this `WINDOW` of the day: 22:00-06:00, or '22:00-06:00 Europe/Berlin'")
	f.BoolVar(&o.serve, "serve", false, "serve the dashboard meanwhile, as ralph serve does (dashboard.addr)")
	f.StringVar(&o.format, "format", "text", "text, json (one event a line) or github (annotations and a summary of the step)")
	f.StringVar(&o.report, "report", "", "leave a report in `FILE`: JUnit XML, Markdown or JSON, by its ending (.xml, .md, .json)")
	return cmd
}

func runQueue(ctx context.Context, a *app, o runOptions, set map[string]string) error {
	if o.format != "text" && o.format != "json" && o.format != formatGitHub {
		return usage(fieldError("--format", o.format, "text", "json", formatGitHub))
	}
	if err := o.checkReport(a); err != nil {
		return err
	}
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	open := p.open
	if !o.dryRun {
		open = p.begin
	}
	db, err := open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := p.refuseUnapproved(db); err != nil {
		return o.notBegun(ctx, a, db, err)
	}
	if why := p.waitsForApproval(); why != "" {
		fmt.Fprintf(a.err, "ralph: %s; the approved version is used\n", why)
	}
	for key, value := range set {
		if err := p.config.Set(key, "flag", value); err != nil {
			return usage(err)
		}
	}
	if !o.dryRun {
		if p.held, err = confine(ctx, a, p); err != nil {
			return err
		}
		for _, m := range p.held.missing {
			fmt.Fprintf(a.err, "ralph: %s\n", m)
		}
	}
	l, err := newLoop(ctx, a, p, db)
	if err != nil {
		return err
	}
	l.Models.Flag, l.NoWait = o.model, o.noWait
	if o.beside, err = newBystanders(a, p, db); err != nil {
		return err
	}
	hours := "--between"
	if o.between == "" && p.config.Between != always {
		o.between, hours = p.config.Between, "between"
	}
	if err := o.setTimes(l, hours); err != nil {
		return usage(err)
	}
	if o.task != "" {
		if l.Task, err = ralph.ParseTaskID(o.task); err != nil {
			return usage(err)
		}
		if err := db.View(ctx, func(tx *store.Tx) error { _, err := tx.Task(l.Task); return err }); err != nil {
			return err
		}
	}
	if o.dryRun {
		return plan(ctx, a.out, l)
	}
	if err := preflight(ctx, a, p, l); err != nil {
		return o.notBegun(ctx, a, db, err)
	}
	unlock, err := loop.Lock(p.state)
	if err != nil {
		return err
	}
	// Under the lock: of two runs the second is told of the first, not of its port.
	if err := o.beside.listen(ctx, a, o.serve); err != nil {
		return errors.Join(err, unlock())
	}
	status, err := o.reported(ctx, a, db, l)
	if gone := intactAfter(db, err); gone != nil {
		err = p.lost(ctx, db, l.Place.Tree, gone)
	} else if kerr := keepWithin(ctx, p, db); kerr != nil {
		l.Log.Warn("old transcripts could not be handled", "error", kerr)
	}
	o.beside.close()
	if err = errors.Join(err, unlock()); err != nil {
		return err
	}
	if status != ralph.ExitOK {
		return &statusError{status: status}
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

// keepWithin keeps the transcripts within the budget of retention.
func keepWithin(ctx context.Context, p *project, db *store.DB) error {
	var open []ralph.Session
	if err := db.View(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
		open, err = tx.OpenSessions()
		return err
	}); err != nil {
		return err
	}
	inProgress := map[string]bool{}
	for _, s := range open {
		inProgress[s.ID] = true
	}
	r := p.config.Retention
	return retention.Apply(ctx, filepath.Join(p.state, "sessions"), inProgress, retention.Limits{Size: int64(r.SizeMiB) << 20, Age: r.Age}, time.Now())
}

// preflight finds what would stop the first session, before one is opened.
func preflight(ctx context.Context, a *app, p *project, l *loop.Loop) error {
	agent, ok := l.Agent.(*claude.Agent)
	if !ok {
		return nil
	}
	skips := p.config.Agent.PermissionMode == "bypassPermissions" || slices.Contains(slices.Concat(p.config.Agent.Command, p.config.Agent.ExtraArgs), "--dangerously-skip-permissions")
	if os.Geteuid() == 0 && skips && a.getenv("IS_SANDBOX") == "" {
		return usage(errors.New("claude refuses to skip permissions as root (agent.permission_mode: bypassPermissions, or --dangerously-skip-permissions in agent.extra_args): " +
			"run ralph as another user, or let the agent ask ralph (agent.permission_mode: default)"))
	}
	if _, err := agent.Version(ctx, p.root); err != nil {
		return &statusError{ralph.ExitAgent, fmt.Errorf("the agent cannot be used: %w", err)}
	}
	return nil
}

// reported drives the loop, and leaves the reports of what came of it.
func (o runOptions) reported(ctx context.Context, a *app, db *store.DB, l *loop.Loop) (int, error) {
	before, err := lastRun(ctx, db)
	if err != nil {
		return 0, err
	}
	unmute, err := o.mute(a.out)
	if err != nil {
		return 0, err
	}
	status, err := drive(ctx, a, o, l)
	err = errors.Join(err, unmute())
	after, lerr := lastRun(ctx, db)
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
					if onTerminal(a.out) {
						over = "\r\x1b[K" // a countdown may stand there
					}
					fmt.Fprintf(a.err, "%sralph: ending after the session in progress (at most %s); once more to stop it now\n", over, l.Session.Grace)
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
		terminal: onTerminal(a.out),
	}
	if !progress.json {
		if err := plan(ctx, a.out, l); err != nil {
			return 0, err
		}
	}
	leave := o.beside.start(ctx, from, over)
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

// onTerminal reports whether what is printed is seen as it comes.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// newLog is the log of a run: lines for a terminal, or for systemd's journal.
func newLog(a *app) *slog.Logger {
	if systemd.Journalled(a.err) {
		return slog.New(systemd.NewHandler(a.err))
	}
	return slog.New(slog.NewTextHandler(a.err, nil))
}

// protocol is what systemd tells a service alone.
var protocol = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM"}

// plan says what a run would do.
func plan(ctx context.Context, w io.Writer, l *loop.Loop) error {
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
		fmt.Fprintln(w, "!", loop.Outside(unaccepted))
	}
	fmt.Fprintf(w, "queue: %d pending", len(queue))
	for i, t := range queue {
		if l.Task != 0 && t.ID != l.Task {
			continue
		}
		if i < 5 || t.ID == l.Task {
			fmt.Fprintf(w, "\n  TASK-%d %s", t.ID, oneLine(t.Title, 100))
		}
	}
	if len(queue) == 0 {
		fmt.Fprint(w, " (`ralph task add TITLE --verify COMMAND` adds a task)")
	}
	if len(queue) > 5 && l.Task == 0 {
		fmt.Fprintf(w, "\n  and %d more", len(queue)-5)
	}
	lim := l.Limits
	fmt.Fprintf(w, "\nlimits: %d sessions, %d tasks, %s, $%.2f, $%.2f a day; a session: %s, idle %s, %d turns, $%.2f\n", lim.MaxSessions, lim.MaxTasks,
		span(lim.MaxSeconds), lim.MaxCostUSD, lim.MaxDayCostUSD, span(lim.SessionSeconds), span(lim.IdleSeconds), lim.SessionTurns, lim.SessionCostUSD)
	if err := sayPlace(ctx, w, l); err != nil {
		return err
	}
	agent := "agent: " + strings.Join(agentCommand(l), " ")
	if len(l.Check.Commands) == 0 {
		_, err := fmt.Fprintf(w, "%s\nverification: none for the project (set verify in ralph.yaml)\n", agent)
		return err
	}
	_, err := fmt.Fprintf(w, "%s\nverification: %s\n", agent, strings.Join(l.Check.Commands, "; "))
	return err
}

// looseNamed is how many uncommitted files a run names.
const looseNamed = 5

// sayPlace says where a run works, and which files there are nobody's to commit but
// the person's.
func sayPlace(ctx context.Context, w io.Writer, l *loop.Loop) error {
	files, branch, err := l.Strangers(ctx, 0)
	if err != nil {
		_, err := fmt.Fprintf(w, "what is uncommitted cannot be seen: %s\n", oneLine(err.Error(), 300))
		return err
	}
	if branch != "" {
		fmt.Fprintf(w, "on %s\n", oneLine(branch, 200))
	}
	if len(files) == 0 {
		return nil
	}
	var names []string
	for _, f := range files[:min(len(files), looseNamed)] {
		name := oneLine(f.Path, 100)
		if f.Untracked {
			name += " (untracked)"
		}
		names = append(names, name)
	}
	more := ""
	if n := len(files) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	_, err = fmt.Fprintf(w, "uncommitted, and not the agent's to commit: %s%s\n", strings.Join(names, ", "), more)
	return err
}

func agentCommand(l *loop.Loop) []string {
	if agent, ok := l.Agent.(*claude.Agent); ok {
		return agent.Command()
	}
	return nil
}

// span is a duration in seconds for people.
func span(seconds float64) string {
	return config.FormatDuration(time.Duration(seconds * float64(time.Second)))
}

// dollars is an amount for people.
func dollars(usd float64) string { return text.Money(usd) }
