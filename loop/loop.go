// Package loop works through the queue. It picks a task, has an agent work on it
// in a session, checks the agent's claims, applies the decision of
// signals.Decide, and goes on until nothing is left to do or a limit is reached.
//
// It knows agents only through an interface, decides nothing about tasks itself, and keeps
// all state that matters in the database: after a kill at any moment, the next Run decides on
// what was left open and goes on. When Run returns, no process of a session is left.
package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os/exec"
	"slices"
	"time"

	"ralph"
	"ralph/internal/machine"
	"ralph/internal/schedule"
	"ralph/internal/text"
	"ralph/loop/agent"
	"ralph/loop/check"
	"ralph/loop/merging"
	"ralph/loop/session"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// A Loop works through the queue of one project. Set its fields before Run
// and do not change them afterwards.
type Loop struct {
	Store  *store.DB
	Agent  agent.Agent // the default agent
	Agents Agents      // the other agents

	// Channel sets [session.Needs.Channel].
	Channel func(a agent.Assignment, folder string) (c agent.Channel, shut func() error, err error)

	Servers bool // agents have the project's own servers of tools (MCP), too

	Here *workspace.Workspace
	Log  *slog.Logger

	Pool   *workspace.Pool // where sessions work, apart from people, who have Here
	Merger *merging.Merger // merges the results into the target branch

	Limits  ralph.Limits
	Sandbox string // what confines agents and checks, in words
	Rules   signals.Rules
	Backoff Backoff
	Check   check.Rules

	Prompts Prompts
	Models  Models
	// Reviewers look at what sessions make before it is merged, in this order (docs/review.md).
	Reviewers []signals.Reviewer
	Session   session.Limits // except for the limits that Limits sets

	Parallel int // number of sessions at once, in workspaces; 0 is 1

	Task   int64           // work on this task only; 0 for the whole queue
	NoWait bool            // end the run instead of waiting for the agent
	Stop   <-chan struct{} // closed when no further session may begin

	Daemon   bool             // wait for new tasks and answers instead of ending
	Schedule schedule.Cron    // when batches begin; see Serve
	Between  schedule.Between // the window in which sessions may begin
	Heart    Heart            // nil if nobody monitors the run

	OnRed    OnRed                    // what to do if the verification fails before any work; "" is RedStop
	Commands func() ([]string, error) // returns the project's commands as configured now; nil if they never change

	begins time.Time            // when the batch begins; set by Serve
	slow   func(command string) // is told the command that runs outside of a session; nil for nobody
	// Attended says that a person answers the questions of sessions that plan while they wait, and Said is told what
	// these say; nil for nobody.
	Attended bool
	Said     func(words string)

	claiming func() // a hook for tests, called between reading a task and claiming it
}

// Models say which model a session uses.
type Models struct {
	Flag       string // from `--model`; overrides every other
	Config     string // from the configuration; the default
	Escalation string // used once two sessions of a task were stuck; "" switches this off
}

// choose applies the order of decision 20: the flag, the task, escalation
// if it is due, the discipline, the configuration.
func (m Models) choose(t ralph.Task, d ralph.Discipline) string {
	if t.StuckCount < 2 {
		m.Escalation = ""
	}
	return cmp.Or(m.Flag, t.Model, m.Escalation, d.Model, m.Config)
}

// needs returns the needs of a session that works in Here.
func (l *Loop) needs() session.Needs {
	limits := l.Session
	limits.Time, limits.Idle = seconds(l.Limits.SessionSeconds), seconds(l.Limits.IdleSeconds)
	limits.Turns, limits.Tokens = l.Limits.SessionTurns, l.Limits.SessionTokens
	return session.Needs{
		Store: l.Store, Workspace: l.Here, Check: l.Check, Log: l.Log, Stop: l.Stop, Channel: l.Channel,
		Asked: session.Asked{Agent: l.Agent, Prompt: l.firstPrompt(nil), Who: l.who, Servers: l.Servers},
		Rules: l.Rules, Limits: limits,
		Busy:    func(d time.Duration) { l.beat(stepTime + d) },
		Merging: session.Merging{Merger: l.Merger, Checks: l.takeCheck},
	}
}

// Verify calls [check.Verifier.Verify] on the tip, see onTip.
func (l *Loop) Verify(
	ctx context.Context, task int64, show func(c ralph.Check, output io.ReadSeeker) error,
) (checks []ralph.Check, red bool, err error) {
	err = l.onTip(ctx, l.takeCheck, func(v *check.Verifier) (err error) {
		checks, red, err = v.Verify(ctx, task, show)
		return err
	})
	return checks, red, err
}

// A Result says how a run ended.
type Result struct {
	RunID   int64
	Status  int      // exit status
	Reasons []string // every reason that applies, the deciding one first
}

// An end is a reason to end a run, with its exit status. A round returns it as its error.
type end struct {
	status int
	reason string
}

// Error returns the reason.
func (e *end) Error() string { return e.reason }

// errAgain starts the next round, after a wait or because something has changed.
var errAgain = errors.New("the round begins again")

// Run works until no task is left that it could work on, a limit is reached,
// the agent cannot be used, or it is stopped. If ctx ends, it stops the
// session in progress at once. It leaves no goroutine and no process behind.
//
// The error reports a failure of ralph itself. The database then stays as
// it is, and the next run reconciles it.
//
// A run that was taken for lost, as after its machine was asleep, begins again as a new one.
func (l *Loop) Run(ctx context.Context) (Result, error) {
	for {
		result, err := l.run(ctx)
		if !beginsAgain(err, l.Store.Shared()) || ctx.Err() != nil || closed(l.Stop) {
			return result, err
		}
		l.Log.Warn("begins again as a new run", "run", result.RunID, "error", err)
		l.awaitStore(ctx)
	}
}

// beginsAgain reports whether a run that has ended with an error begins anew: it was taken for lost, or may have been,
// as the database's server was away for longer than a lease lasts.
func beginsAgain(err error, shared bool) bool {
	return errors.Is(err, ErrTakenForLost) || shared && store.Passes(err) && !store.NoRoom(err)
}

// awaitStore waits until the database can be reached.
func (l *Loop) awaitStore(ctx context.Context) {
	for ctx.Err() == nil && !closed(l.Stop) {
		if err := l.Store.View(ctx, func(*store.Tx) error { return nil }); !store.Passes(err) {
			return // what else is wrong with it the next run says
		}
		select {
		case <-ctx.Done():
		case <-l.Stop:
		case <-time.After(step):
		}
	}
}

func (l *Loop) run(ctx context.Context) (Result, error) {
	if err := l.recover(ctx); err != nil {
		return Result{Status: ralph.ExitFailure}, fmt.Errorf("recover what an earlier run left: %w", err)
	}
	process, leave := machine.Join()
	defer leave()
	var run ralph.Run
	accounts := l.Agents.accounts()
	err := l.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		for name, account := range accounts {
			if err := tx.WorksWith(name, account); err != nil {
				return err
			}
		}
		if err := l.alone(tx); err != nil {
			return err
		}
		run, err = tx.StartRun(process, l.Limits, l.Sandbox)
		return err
	})
	if err != nil {
		return Result{Status: ralph.ExitFailure}, err
	}
	r := newRunner(l, run.ID)
	r.slow = r.verifying
	ctx, release := l.keepAlive(ctx, run.ID)
	ends, err := r.work(ctx)
	release()
	if errors.Is(context.Cause(ctx), ErrTakenForLost) || beginsAgain(err, l.Store.Shared()) {
		return Result{RunID: run.ID, Status: ralph.ExitFailure}, errors.Join(ErrTakenForLost, err)
	}
	if err != nil {
		ends = []end{{ralph.ExitFailure, err.Error()}}
	}
	result := Result{RunID: run.ID}
	statuses := make([]int, len(ends))
	for i, e := range ends {
		statuses[i] = e.status
	}
	result.Status = ralph.ExitStatus(statuses...)
	for _, e := range ends {
		if e.status == result.Status {
			result.Reasons = append([]string{e.reason}, result.Reasons...)
		} else {
			result.Reasons = append(result.Reasons, e.reason)
		}
	}
	if errors.Is(err, store.ErrGone) {
		return result, err // there is nothing left to record it in
	}
	// Record the end of the run even if ctx has ended, and that of those whose machines were lost without leaving work.
	closing := l.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		if err := tx.EndRun(run.ID, result.Status, result.Reasons[0]); err != nil {
			return err
		}
		return tx.EndLostRuns()
	})
	return result, errors.Join(err, closing)
}

// A runner schedules one run. Only its goroutine checks, waits, picks and
// counts. Sessions and merges run in goroutines of their own, which send
// it their results. Whatever must survive the run is in the database.
type runner struct {
	course
	jobsCtx context.Context                  // that of those goroutines
	jobs    map[int]*job                     // those in progress, by number
	over    chan func(context.Context) error // receives a function per result, which applies it to the run
	ended   []func(context.Context) error    // received, but not yet applied
	pulse   *pulse
	merges  bool                 // a merge is in progress
	failed  map[string]time.Time // by agent: when it was last found unable to work

	started  time.Time
	day      time.Time      // the day that the limits count for, if they are daily
	worked   map[int64]bool // tasks that had a session in this run
	counted  map[int64]bool // tasks that count against the limit of tasks
	stagnant []int64        // the tasks whose sessions since the last change of anything changed nothing
	repeats  int            // how often in a row the last agent error occurred
	last     lastEnding
	waits    merging.Wait    // what the merge queue waits for
	rested   int64           // the newest event before the last merge
	tried    time.Time       // when that ended
	looked   int64           // the newest event when a waiting run last looked for changes to merge
	seen     int64           // the newest event when a daemon last looked for work
	changed  <-chan struct{} // closed at the first change after the run's last look

	doing      doing         // what is recorded of the run
	lost       int           // lost sessions in a row, of any task
	held       string        // why no new task may begin; "" if one may
	passes     []int64       // tasks passed over in favour of the last pick
	passed     map[int64]int // how often each task was passed over
	missedTask int64         // the last pick, if it could not be claimed; 0 if it could
	red        suspense

	untold     int // git failures in a row before a session
	gitNext    time.Time
	gitReason  string
	remoteNext time.Time // when a remote is asked again that could not be reached before a session
}

// work runs rounds until one of them ends the run.
func (r *runner) work(ctx context.Context) ([]end, error) {
	jobsCtx, cancel := context.WithCancel(ctx)
	r.jobsCtx = jobsCtx
	if r.width() > 1 {
		r.Merger.Line.Tell(r.mergeSoon)
		defer r.Merger.Line.Tell(nil)
	}
	defer cancel()
	for {
		err := r.round(ctx)
		var e *end
		switch {
		case err == nil, errors.Is(err, errAgain), r.awaitGit(err):
		case errors.As(err, &e):
			on, first, err := r.ending(ctx, e)
			if err != nil {
				cancel()
				_, more := r.finish(ctx, cancel)
				return nil, errors.Join(err, more)
			}
			if on {
				continue
			}
			ends, err := r.finish(ctx, cancel)
			if err != nil {
				return nil, err
			}
			if e, err = r.nothingLeft(ctx, e); err != nil {
				return nil, err
			}
			rest, err := r.leftOver(ctx)
			if e.status == ralph.ExitOK && len(rest) > 0 {
				return rest, err
			}
			return slices.Concat([]end{*e}, first, ends, rest), err
		default:
			cancel()
			_, more := r.finish(ctx, cancel)
			return nil, errors.Join(err, more)
		}
	}
}

// round waits, or picks a task and begins a session on it.
func (r *runner) round(ctx context.Context) error {
	if err := r.heed(ctx, len(r.jobs) >= r.width()); err != nil {
		return err
	}
	r.beat(stepTime)
	if err := r.Here.Tree.Intact(); err != nil {
		return fmt.Errorf("%w; restore it, or find out what happened to it, before the next run", err)
	}
	ofAny := func(ctx context.Context) error { return r.waitForDay(ctx, 0) }
	var seen outlook
	look := func(ctx context.Context) (err error) {
		seen, err = r.look(ctx)
		return cmp.Or(err, r.limit(seen.spending))
	}
	for _, step := range []func(context.Context) error{r.stopped, r.merge, look, ofAny, r.waitForGit} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if len(r.jobs) >= r.width() { // a merge has ended, and no session
		return errAgain
	}
	if len(seen.lapsed)+len(seen.lost)+seen.held > 0 {
		if err := r.tidy(ctx, seen); err != nil {
			return err
		}
		now, err := r.look(ctx)
		if err != nil {
			return err
		}
		if len(now.lost) < len(seen.lost) {
			return errAgain // what they had handed over may have been queued
		}
		seen = now
	}
	if why := r.room(seen.spending); why != "" {
		return r.besides(ctx, why)
	}
	task, its, ok, err := r.next(ctx)
	if err != nil {
		return err
	}
	if err := r.waitForOpening(ctx, ok); err != nil {
		return err
	}
	if !ok && r.busy() {
		return r.besides(ctx, cmp.Or(r.held, "no other task can start now"))
	}
	if !ok {
		if err := r.waitForLost(ctx); err != nil {
			return err
		}
		if err := r.waitForWork(ctx); err != nil {
			return err
		}
		if waits, err := r.waitsForElsewhere(ctx); err != nil || waits {
			return cmp.Or(err, r.waitElsewhere(ctx, r.waits.Why))
		}
		if r.waits.Why != "" {
			return &end{ralph.ExitWaiting, "done work is not merged: " + r.waits.Why}
		}
		if r.held != "" {
			return &end{ralph.ExitWaiting, r.held}
		}
		if seen.away {
			return &end{ralph.ExitWaiting, "the remote cannot be reached, and may have what a lost machine handed over"}
		}
		if s, ok, err := r.worksElsewhere(ctx); err != nil || ok {
			return cmp.Or(err, r.waitElsewhere(ctx, fmt.Sprintf("for TASK-%d, on which %s works", s.TaskID, s.Machine)))
		}
		failed, err := store.Read(ctx, r.Store, func(tx *store.Tx) (int, error) {
			return tx.CountTasks(store.TaskFilter{Statuses: []ralph.Status{ralph.Failed}})
		})
		if err != nil {
			return err
		}
		why := nothingToDo
		if failed > 0 {
			why += fmt.Sprintf("; %s failed in earlier runs", text.Count(failed, "task"))
		}
		return &end{ralph.ExitOK, why}
	}
	if err := r.waitForDay(ctx, task.ID); err != nil {
		return err
	}
	if err := r.waitForAgent(ctx, its); err != nil {
		return err
	}
	if !r.red.green && task.Role != ralph.RolePlan && r.works() {
		return r.besides(ctx, "the verification has to pass first")
	}
	if err := r.waitForRemote(ctx); err != nil {
		return err
	}
	if task, err = r.ready(ctx, task); err != nil {
		return cmp.Or(r.awaitRemote(ctx, err), errAgain)
	}
	if why := r.tasksReached(task.ID); why != "" {
		if r.busy() {
			return r.besides(ctx, why)
		}
		return &end{ralph.ExitLimit, why}
	}
	return r.begin(ctx, task)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// An outlook is what a run looks at before it picks a task, all of one moment.
type outlook struct {
	spending store.Spending
	lapsed   []ralph.Session // claims that were not renewed in time
	lost     []ralph.Session // what lost runs have left
	away     bool            // that may be at the remote, which cannot be reached
	held     int             // how many tasks wait because their prompts were too long
}

// look reads the outlook.
func (r *runner) look(ctx context.Context) (o outlook, err error) {
	err = r.Store.View(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
		if o.spending, err = tx.Spending(r.id, from(r.since(), r.Store.Now()), worth); err != nil {
			return err
		}
		if o.lapsed, err = tx.LapsedClaims(); err != nil {
			return err
		}
		if o.lost, err = tx.LostSessions(false); err != nil {
			return err
		}
		if o.away, err = tx.RemoteAway(); err != nil {
			return err
		}
		held, err := tx.HeldForPrompt()
		o.held = len(held)
		return err
	})
	o.away = o.away && len(o.lost) > 0
	return o, err
}

// tidy decides on what others have left, and lets go of tasks whose prompts fit again.
func (r *runner) tidy(ctx context.Context, seen outlook) error {
	if err := r.lapse(ctx, seen.lapsed); err != nil {
		return fmt.Errorf("decide on expired claims: %w", err)
	}
	if len(seen.lost) > 0 && !seen.away {
		if err := r.TakeOver(ctx); err != nil {
			return fmt.Errorf("decide on what lost runs left: %w", err)
		}
	}
	return r.release(ctx)
}

// next returns the task to work on, and the agent whose turn it is; ok is false if there is none now.
func (r *runner) next(ctx context.Context) (task ralph.Task, its turn, ok bool, err error) {
	task, ok, spent, err := r.pick(ctx, func(tx *store.Tx) (task ralph.Task, ok bool, err error) {
		if r.Task == 0 {
			task, ok, err = r.choose(tx)
		} else {
			task, ok, err = only(tx, r.Task)
		}
		if err == nil && ok {
			its, err = r.turnOf(tx, task)
		}
		return task, ok, err
	})
	for _, id := range spent {
		r.worked[id], r.counted[id] = true, true
	}
	return task, its, ok, err
}

// Next returns the task that the loop itself would claim next. It decides on lapsed claims, and merges
// what they have left, first.
func (l *Loop) Next(ctx context.Context) (task ralph.Task, ok bool, err error) {
	if err := l.Lapse(ctx); err != nil {
		return task, false, err
	}
	l.mergeLeft(ctx)
	if err := l.release(ctx); err != nil {
		return task, false, err
	}
	task, ok, _, err = l.pick(ctx, (*store.Tx).Next)
	return task, ok, err
}

// only returns a task; ok is false if no session can begin on it now.
func only(tx *store.Tx, id int64) (task ralph.Task, ok bool, err error) {
	task, err = tx.Task(id)
	return task, task.Status == ralph.Pending && !task.NotBefore.After(tx.Now().Time), err
}

// pick returns the task that next finds.
// A task whose turn has come but whose attempts are used up fails; its id is in spent.
func (l *Loop) pick(
	ctx context.Context, next func(*store.Tx) (ralph.Task, bool, error),
) (task ralph.Task, ok bool, spent []int64, err error) {
	for {
		err = l.Store.View(ctx, func(tx *store.Tx) (err error) {
			task, ok, err = next(tx)
			return err
		})
		if err != nil || !ok || task.Attempts < l.Limits.Attempts {
			return task, ok, spent, err
		}
		// The limit was lowered, or used up while the task waited for a person.
		err = l.Store.Tx(ctx, func(tx *store.Tx) error {
			why := fmt.Sprintf("all of its %d attempts are used up", l.Limits.Attempts)
			return tx.Move(task.ID, ralph.Failed, ralph.Loop, why)
		})
		if err != nil && !errors.Is(err, ralph.ErrConflict) { // another process may have been faster
			return task, false, spent, err
		}
		spent = append(spent, task.ID)
	}
}

// unusable ends the run if the agent's program could not be run at all.
func unusable(cause error) error {
	if errors.Is(cause, exec.ErrNotFound) || errors.Is(cause, fs.ErrNotExist) || errors.Is(cause, fs.ErrPermission) {
		return &end{ralph.ExitAgent, cause.Error()}
	}
	return cause
}

// stopped ends the run if somebody asked for that, and waits while it is paused.
func (r *runner) stopped(ctx context.Context) error {
	if ctx.Err() != nil || closed(r.Stop) {
		return &end{ralph.ExitStopped, "stopped by a signal"}
	}
	r.changed = r.Store.Changed()
	control, err := r.control(ctx)
	if err != nil {
		return err
	}
	switch control {
	case ralph.ControlStop, ralph.ControlStopNow:
		return &end{ralph.ExitStopped, "stopped by `ralph stop`"}
	case ralph.ControlDrain:
		return &end{
			ralph.ExitStopped,
			"this machine is drained; `ralph machine drain " + machine.Name() + " --undo` allows it again",
		}
	case ralph.ControlPause:
		if err := r.state(ctx, "paused", "paused by `ralph pause`", time.Time{}); err != nil {
			return err
		}
		seen, err := r.look(ctx)
		if err := cmp.Or(err, r.limit(seen.spending)); err != nil {
			return err
		}
		r.sleep(ctx, r.Store.Now().Add(lookAgain))
		return errAgain
	}
	return nil
}

// control returns the request of `ralph stop|pause|resume`.
func (c course) control(ctx context.Context) (string, error) {
	return store.Read(context.WithoutCancel(ctx), c.Store, func(tx *store.Tx) (string, error) {
		return tx.RunControl(c.id)
	})
}

// doing is what is recorded of what a run does. Nobody else records it.
type doing struct {
	state, reason string
	until         ralph.Time
}

// state records what the run is doing, if that is new.
func (r *runner) state(ctx context.Context, state, reason string, until time.Time) error {
	is := doing{state, reason, ralph.At(until)}
	if r.doing == is {
		return nil
	}
	when := ""
	if !until.IsZero() {
		when = until.Local().Format("Jan 2 15:04:05")
	}
	r.says(ralph.Doing(state, reason, when))
	r.doing = doing{}
	err := r.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		return tx.SetRunState(r.id, state, reason, until)
	})
	if err == nil {
		r.doing = is
	}
	return err
}

// verifying records the command that the run waits for before a session.
func (r *runner) verifying(command string) {
	why := fmt.Sprintf("verifying before the first session, since %s: %s", time.Now().Format("15:04:05"), command)
	r.says(why)
	r.doing = doing{}
	err := r.Store.Tx(context.Background(), func(tx *store.Tx) error { return tx.NoteVerifying(r.id, command, why) })
	if err != nil {
		r.Log.Warn("cannot record the command that is running", "error", err)
	}
}

// step is the longest sleep between two looks at the clock, which may jump.
const step = time.Second

// sleep returns at the given time, on a change since the run last looked, on a result
// from another goroutine, on a request to stop, or when the run's own time is over.
func (r *runner) sleep(ctx context.Context, until time.Time) {
	end := r.started.Add(seconds(r.Limits.MaxSeconds))
	ends := !r.ofDays() && end.After(time.Now())
	lasts := func() time.Duration {
		left := until.Sub(r.Store.Now())
		if ends {
			left = min(left, time.Until(end))
		}
		return left
	}
	for left := lasts(); left > 0 && len(r.ended) == 0; left = lasts() {
		r.beat(stepTime)
		timer := time.NewTimer(min(left, step))
		select {
		case <-timer.C:
			continue
		case judge := <-r.over:
			r.ended = append(r.ended, judge)
		case <-r.changed:
		case <-ctx.Done():
		case <-r.Stop:
		}
		timer.Stop()
		return
	}
}

// wait records what the run waits for and until when, and sleeps. A change ends the
// sleep early, as people may have asked for something and other tasks may have come.
func (r *runner) wait(ctx context.Context, reason string, until time.Time) error {
	if err := r.state(ctx, "waiting", reason, until); err != nil {
		return err
	}
	r.sleep(ctx, until)
	return errAgain
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
