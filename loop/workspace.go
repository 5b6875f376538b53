package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"ralph"
	"ralph/loop/check"
	"ralph/loop/merging"
	"ralph/loop/session"
	"ralph/loop/workspace"
	"ralph/prompt"
	"ralph/store"
)

// A taker takes a workspace until it is released.
type taker func(ctx context.Context) (*workspace.Workspace, error)

// take takes the job's workspace.
func (l *job) take(ctx context.Context) (*workspace.Workspace, error) {
	return l.Pool.Take(ctx, l.number, false)
}

// enter prepares a workspace for a session; leave gives it back.
func (l *Loop) enter(ctx context.Context, task ralph.Task, take taker) (n session.Needs, leave func(), err error) {
	leave = func() {}
	was, kept, err := l.kept(ctx, task)
	if err != nil {
		return n, leave, err
	}
	tip, err := l.Merger.Base(ctx, task.ID)
	if err != nil {
		return n, leave, fmt.Errorf("find the commit to start from: %w", err)
	}
	ws, err := take(ctx)
	if err != nil {
		return n, leave, err
	}
	conflicts, err := ws.Begin(ctx, tip, kept, was.Conflicts...)
	if err != nil {
		return n, leave, unready(errors.Join(err, ws.Release()))
	}
	if kept != "" {
		if err := l.lay(ctx, ws, ws.Clone.Base, kept); err != nil {
			return n, leave, errors.Join(err, ws.Release())
		}
	}
	about := &prompt.Workspace{Target: l.Merger.Into, Kept: kept != "", Conflicts: conflicts}
	if was.State == ralph.SentBack {
		about.SentBack = was.Reason
	}
	return l.needsIn(ws, about), func() {
		if err := ws.Release(); err != nil {
			l.Log.Warn("cannot release a workspace", "error", err)
		}
	}, nil
}

// lay restores files that steer agents, as they are on the target, in a workspace that has a session's commit: its
// agent does not follow what the author of that commit wrote.
func (l *Loop) lay(ctx context.Context, ws *workspace.Workspace, target, commit string) error {
	names, err := l.Check.Guard.Steers(ctx, l.Here.Tree, target, commit)
	if err != nil {
		return err
	}
	return ws.Lay(ctx, target, names)
}

// kept returns what an earlier session of a task has left, and the commit from which the next one goes on: none if
// there is nothing, or if it conflicted so often that the task begins anew.
func (l *Loop) kept(ctx context.Context, task ralph.Task) (c ralph.Change, commit string, err error) {
	var ok bool
	if err := l.Store.View(ctx, func(tx *store.Tx) error {
		c, ok, err = tx.ChangeOf(task.ID)
		return err
	}); err != nil || !ok || c.State != ralph.Held && c.State != ralph.SentBack {
		return ralph.Change{}, "", err
	}
	if c.State == ralph.SentBack && len(c.Conflicts) > 0 && task.TimesSentBack >= l.Merger.MaxSentBack {
		return c, "", nil
	}
	commit, err = l.Merger.Obtain(ctx, c)
	return c, commit, err
}

// unready ends the run if a workspace's set-up failed: no other workspace would fare better.
func unready(err error) error {
	if _, ok := errors.AsType[*workspace.SetupError](err); ok {
		return &end{ralph.ExitUsage, err.Error()}
	}
	return err
}

// needsIn returns the needs of a session in a workspace.
func (l *Loop) needsIn(ws *workspace.Workspace, about *prompt.Workspace) session.Needs {
	n := l.needs()
	n.Workspace, n.Checks, n.Beside = ws, l.checksOf(ws), l.width() > 1
	n.Prompt, n.Reviews, n.Plans = l.firstPrompt(about), l.reviewing(ws), l.planning()
	return n
}

// needsOf returns the needs of an open session, in the workspace where it works.
func (l *Loop) needsOf(ctx context.Context, row ralph.Session) (n session.Needs, err error) {
	n = l.needs()
	ws, err := l.Pool.Of(ctx, row.Dir, ralph.Change{SessionID: row.ID}.Ref())
	if err != nil {
		return n, err
	}
	handedOver := false
	// Another machine may have the same name, and another clone on this one has it.
	elsewhere := l.Store.OtherMachine(row) || l.Store.Shared() && !l.Here.Has(row.Dir)
	if ws == nil && row.Role != ralph.RoleReview && elsewhere {
		if ws, err = l.handedOver(ctx, row); err != nil {
			return n, err
		}
		handedOver = ws != nil
	}
	if ws != nil {
		n = l.needsIn(ws, nil)
		n.HandedOver = handedOver
	}
	if works, err := l.named(row.TaskID, row.Agent); err == nil {
		n.Agent = works // else it is no longer configured, and another agent reads what it left
	}
	return n, nil
}

// verifier returns a verifier of a commit, in the workspace where that is checked out; nil if only what is known
// counts.
func (l *Loop) verifier(ctx context.Context, commit string, at *workspace.Workspace) (*check.Verifier, error) {
	tree, err := l.Here.Tree.Whole(ctx, commit)
	return &check.Verifier{
		Rules: l.Check, Store: l.Store, Workspace: at, Key: l.Pool.Apart(tree), State: l.Here.State,
		Busy: func(d time.Duration) { l.beat(stepTime + d) }, Slow: l.slow,
	}, err
}

// onTip runs do on the last merged commit, in a check workspace.
func (l *Loop) onTip(ctx context.Context, take taker, do func(v *check.Verifier) error) (err error) {
	tip, err := l.Merger.Tip(ctx)
	if err != nil {
		return err
	}
	v, err := l.verifier(ctx, tip, nil)
	if err != nil {
		return err
	}
	if v.Workspace, err = take(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Workspace.Release()) }()
	if err := v.Workspace.At(ctx, tip); err != nil {
		return unready(err)
	}
	if err := do(v); err != nil {
		return err
	}
	merged, err := store.Read(ctx, l.Store, (*store.Tx).Merged)
	if err != nil || len(merged) > 0 {
		return err
	}
	return v.Workspace.KeepWarm()
}

// baseline gets the verification's results for the state on which a session of a task begins. Mostly that is what
// merged last, whose results are known.
func (l *Loop) baseline(ctx context.Context, task ralph.Task, at *workspace.Workspace) error {
	if at.Clone != nil {
		v, err := l.verifier(ctx, at.Clone.Base, nil)
		if err == nil {
			err = v.Baseline(ctx, task)
		}
		if !errors.Is(err, check.ErrUnknown) {
			return err
		}
	}
	return l.onTip(ctx, l.checksOf(at), func(v *check.Verifier) error { return v.Baseline(ctx, task) })
}

// takeCheck takes a workspace for verification. Each session has one, and so has the merge queue.
func (l *Loop) takeCheck(ctx context.Context) (*workspace.Workspace, error) {
	return l.Pool.TakeFree(ctx, l.width()+1)
}

// checksOf takes the workspaces in which the work of a workspace is checked. A worker's workspace has
// one of its own, so that no number of workers keeps a run from checking.
func (l *Loop) checksOf(at *workspace.Workspace) taker {
	if at.Clone == nil || at.Clone.Number < workspace.FirstWorker {
		return l.takeCheck
	}
	return func(ctx context.Context) (*workspace.Workspace, error) {
		return l.Pool.Take(ctx, at.Clone.Number, true)
	}
}

// merge merges the queued changes into the target branch. If several sessions
// work at once, it does so in a goroutine, whose result is applied later.
func (r *runner) merge(ctx context.Context) error {
	if r.merges {
		return nil
	}
	some := r.width() == 1
	if !some {
		list, err := store.Read(ctx, r.Store, (*store.Tx).QueuedChanges)
		if err != nil {
			return err
		}
		some = len(list) > 0 || r.Merger.Line.News()
	}
	if r.width() == 1 || !some {
		var err error
		r.waits, err = r.mergeNow(ctx, r.takeCheck, mergeWait, r.id, false)
		return err
	}
	if rests, err := r.mergeRests(ctx); err != nil || rests {
		return err
	}
	// What happens from here on, it may not see any more.
	began, err := r.lastEvent(ctx)
	if err != nil {
		return err
	}
	r.merges = true
	jobsCtx := r.jobsCtx
	go func() {
		work, release := r.obeying(jobsCtx, r.Session.Grace)
		waits, err := r.mergeNow(work, r.takeCheck, mergeWait, r.id, true)
		if stopped := work.Err() != nil && jobsCtx.Err() == nil; stopped {
			err = nil // the next run merges it
		}
		release()
		r.over <- func(context.Context) error {
			r.merges, r.waits, r.rested, r.tried = false, waits, began, r.Store.Now()
			return err
		}
	}()
	return nil
}

// mergeSoon has the scheduler merge what can be merged, unless it has something else to apply, after which it does.
func (r *runner) mergeSoon() {
	select {
	case r.over <- func(ctx context.Context) error { return r.merge(context.WithoutCancel(ctx)) }:
	default:
	}
}

// lookElsewhere is how often a run looks whether another machine merges still, which may have been lost.
const lookElsewhere = 5 * time.Second

// waitsForElsewhere reports whether another machine, which may be lost at any time, does what the merge queue waits
// for.
func (r *runner) waitsForElsewhere(ctx context.Context) (bool, error) {
	if !r.waits.Elsewhere {
		return false, nil
	}
	return store.Read(ctx, r.Store, func(tx *store.Tx) (bool, error) {
		_, ok, err := tx.RunElsewhere()
		return ok, err
	})
}

// worksElsewhere returns a session of another run, which may be lost at any time, or leave its task for others.
func (r *runner) worksElsewhere(ctx context.Context) (s ralph.Session, ok bool, err error) {
	if !r.Store.Shared() || r.Task != 0 || r.NoWait {
		return s, false, nil
	}
	err = r.Store.View(ctx, func(tx *store.Tx) error { s, ok, err = tx.WorksElsewhere(r.id); return err })
	return s, ok, err
}

// waitElsewhere waits for what another machine does. When it looks again is no news, which would have others look.
func (r *runner) waitElsewhere(ctx context.Context, why string) error {
	if err := r.state(ctx, "waiting", why, time.Time{}); err != nil {
		return err
	}
	r.sleep(ctx, r.Store.Now().Add(lookElsewhere))
	return errAgain
}

// mergeRests reports whether the merge queue waits and nothing has happened since.
func (r *runner) mergeRests(ctx context.Context) (bool, error) {
	if r.waits.Why == "" || r.waits.Elsewhere && r.Store.Now().Sub(r.tried) >= lookElsewhere {
		return false, nil
	}
	last, err := r.lastEvent(ctx)
	if err != nil || last != r.rested {
		return false, err
	}
	q, err := store.Read(ctx, r.Store, (*store.Tx).MergeQueue)
	return q.WaitUntil.IsZero() || q.WaitUntil.After(r.Store.Now()), err
}

// mergeNow merges what can be merged, and returns what the rest waits for. Runs and workers do that one after
// the other. What fails pauses the queue, unless it is the database or a full disk. Run and early are those of
// [merging.Merger].
func (l *Loop) mergeNow(
	ctx context.Context, take taker, wait time.Duration, run int64, early bool,
) (waits merging.Wait, err error) {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	lock := flock.New(filepath.Join(l.Here.State, "merge.lock"))
	if _, err := lock.TryLockContext(limited, mergeLook); err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			return merging.Wait{Why: "another process is merging"}, nil
		}
		return waits, fmt.Errorf("lock of the merge queue: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	dir, err := check.Folder(l.Here.State)
	if err != nil {
		return waits, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	merger := l.Merger.In(&session.Apart{Take: take, Check: l.Check, Round: check.Round{
		Session: "merging-" + l.Here.State, Log: filepath.Join(dir, "verify.log"),
	}})
	merger.Run, merger.Early = run, early
	if waits, err = merger.Merge(ctx); err != nil && ctx.Err() == nil && l.Store.Intact() == nil {
		l.Log.Warn("merging failed; trying once more", "error", err)
		waits, err = merger.Merge(ctx)
	}
	if err == nil || ctx.Err() != nil || l.Store.Intact() != nil || l.Here.Tree.Intact() != nil || store.Failed(err) {
		return waits, err // what is queued is merged with the next run, without anybody's having to resume the queue
	}
	// No session is to blame, and none is lost: their work waits in the queue until a person has looked.
	reason := err.Error()
	if perr := l.Store.Tx(ctx, func(tx *store.Tx) error { return tx.PauseMerging(reason) }); perr != nil {
		return waits, errors.Join(err, perr)
	}
	return merging.Wait{Why: "merging is paused: " + reason}, nil
}

// mergeLeft merges what a worker's server left in the queue when it was killed. If another
// process is merging, that one merges it.
func (l *Loop) mergeLeft(ctx context.Context) {
	list, err := store.Read(ctx, l.Store, (*store.Tx).QueuedChanges)
	if err == nil && len(list) > 0 {
		_, err = l.mergeForWorker(ctx, l.takeCheck, mergeLook)
	}
	if err != nil && ctx.Err() == nil {
		l.Log.Warn("cannot merge done work now; it stays queued", "error", err)
	}
}

// mergeForWorker is mergeNow, unless what is queued is to be merged into another branch.
func (l *Loop) mergeForWorker(ctx context.Context, take taker, wait time.Duration) (why string, err error) {
	if err := l.Attached(); err != nil {
		return "", err
	}
	if err := l.Store.View(ctx, l.sameTarget); err != nil {
		return "", err
	}
	waits, err := l.mergeNow(ctx, take, wait, 0, false)
	return waits.Why, err
}

// Attached refuses to merge while no branch is checked out and merge.into names none. The error is a usage error.
func (l *Loop) Attached() error {
	if l.Merger.Into != "" {
		return nil
	}
	return ralph.Usage(errors.New("HEAD is detached: check a branch out into which work is to be merged, or name it in " +
		"merge.into"))
}

// sameTarget refuses a worker whose work is to be merged into another branch than that of the run or the
// sessions in progress, or of the changes that wait: there is one queue, which merges into one branch.
func (l *Loop) sameTarget(tx *store.Tx) error {
	q, err := tx.MergeQueue()
	if err != nil || q.Target == "" || q.Target == l.Merger.Into {
		return err
	}
	run, ok, err := tx.LastRun()
	if err != nil {
		return err
	}
	waiting, err := tx.QueuedChanges()
	if err != nil {
		return err
	}
	open, err := tx.OpenSessions()
	works := slices.ContainsFunc(open, func(s ralph.Session) bool { return s.Origin != ralph.FromHuman })
	if err != nil || (!ok || !run.EndedAt.IsZero()) && len(waiting) == 0 && !works {
		return err
	}
	return fmt.Errorf("done work is being merged into %s, and this server was started to merge into %s: "+
		"start it again, with the same branch checked out or in merge.into", q.Target, l.Merger.Into)
}

// How long to wait while another process merges, which is shorter than stepTime, and how often to look.
const (
	mergeWait = 4 * time.Minute
	mergeLook = 20 * time.Millisecond
)
