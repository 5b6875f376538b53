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
	"ralph/loop/place"
	"ralph/loop/session"
	"ralph/prompt"
	"ralph/store"
)

// A taker takes a slot until it is released.
type taker func(ctx context.Context) (*place.Place, error)

// An advance is a slot that is being checked out before its lane begins. It is taken once.
type advance struct {
	done chan struct{}
	slot *place.Place
	err  error
}

// take waits for the slot. The second time there is none.
func (a *advance) take() (slot *place.Place, err error) {
	<-a.done
	slot, err = a.slot, a.err
	a.slot, a.err = nil, nil
	return slot, err
}

// giveBack releases the slot unless it was taken. There may be none.
func (a *advance) giveBack() error {
	if a == nil {
		return nil
	}
	slot, err := a.take()
	if slot != nil {
		err = slot.Release()
	}
	return err
}

// advance checks out slots while the verification runs before the first session, which takes a while
// in a large project. No command of a person's runs meanwhile: the verification might fail of the load.
func (r *runner) advance(ctx context.Context) error {
	if r.advances != nil {
		return nil
	}
	tasks, err := store.Read(ctx, r.Store, func(tx *store.Tx) (int, error) {
		return tx.CountTasks(store.TaskFilter{Statuses: []ralph.Status{ralph.Pending}})
	})
	if err != nil {
		return err
	}
	tip, err := r.Lander.Tip(ctx)
	if err != nil {
		return err
	}
	r.advances = map[int]*advance{}
	for i := range min(r.width(), tasks) {
		a := &advance{done: make(chan struct{})}
		r.advances[i+1] = a
		go func() {
			defer close(a.done)
			slot, err := r.Slots.Take(r.beside, i+1, false)
			if err == nil {
				err = slot.Prepare(r.beside, tip)
			}
			if err != nil && slot != nil {
				slot, err = nil, errors.Join(err, slot.Release())
			}
			a.slot, a.err = slot, err
		}()
	}
	return nil
}

// giveBack releases the slots that no lane has taken: who settles a lost session may need them.
func (r *runner) giveBack() {
	for number, a := range r.advances {
		if err := a.giveBack(); err != nil && r.beside.Err() == nil {
			r.Log.Warn("cannot prepare a slot", "slot", number, "error", err)
		}
	}
	clear(r.advances)
}

// take takes the lane's slot.
func (l *lane) take(ctx context.Context) (*place.Place, error) {
	if l.advance != nil {
		return l.advance.take()
	}
	return l.Slots.Take(ctx, l.number, false)
}

// enter prepares a slot for a session; leave gives it back.
func (l *Loop) enter(ctx context.Context, task ralph.Task, take taker) (n session.Needs, leave func(), err error) {
	leave = func() {}
	was, kept, err := l.kept(ctx, task)
	if err != nil {
		return n, leave, err
	}
	tip, err := l.Lander.Base(ctx, task.ID)
	if err != nil {
		return n, leave, fmt.Errorf("find the commit to start from: %w", err)
	}
	slot, err := take(ctx)
	if err != nil {
		return n, leave, err
	}
	conflicts, err := slot.Begin(ctx, tip, kept, was.Conflicts...)
	if err != nil {
		return n, leave, unready(errors.Join(err, slot.Release()))
	}
	if err := l.lay(ctx, slot, kept); err != nil {
		return n, leave, errors.Join(err, slot.Release())
	}
	about := &prompt.Slot{Target: l.Lander.Into, Kept: kept != "", Conflicts: conflicts}
	if was.State == ralph.Bounced {
		about.Bounced = was.Reason
	}
	return l.needsIn(slot, about), func() {
		if err := slot.Release(); err != nil {
			l.Log.Warn("cannot release a slot", "error", err)
		}
	}, nil
}

// lay has no session obey what an earlier one of its task wrote: where kept work changes files that steer agents,
// the slot gets them as they are on the target.
func (l *Loop) lay(ctx context.Context, slot *place.Place, kept string) error {
	if kept == "" {
		return nil
	}
	names, err := l.Check.Guard.Steers(ctx, l.Place.Tree, slot.Slot.Base, kept)
	if err != nil {
		return err
	}
	return slot.Lay(ctx, slot.Slot.Base, names)
}

// kept returns what an earlier session of a task has left, and the commit from which the next one goes on: none if there
// is nothing, or if it conflicted so often that the task begins anew.
func (l *Loop) kept(ctx context.Context, task ralph.Task) (c ralph.Change, commit string, err error) {
	var ok bool
	if err := l.Store.View(ctx, func(tx *store.Tx) error {
		c, ok, err = tx.ChangeOf(task.ID)
		return err
	}); err != nil || !ok || c.State != ralph.Held && c.State != ralph.Bounced {
		return ralph.Change{}, "", err
	}
	if c.State == ralph.Bounced && len(c.Conflicts) > 0 && task.Bounces >= l.Lander.Bounces {
		return c, "", nil
	}
	commit, err = l.Place.Tree.Ref(ctx, c.Ref())
	return c, commit, err
}

// unready ends the run if a slot's set-up failed: no other slot would fare better.
func unready(err error) error {
	var setup *place.SetupError
	if errors.As(err, &setup) {
		return &end{ralph.ExitUsage, err.Error()}
	}
	return err
}

// needsIn returns the needs of a session in a slot.
func (l *Loop) needsIn(slot *place.Place, about *prompt.Slot) session.Needs {
	n := l.needs()
	n.Place, n.Checks, n.Beside = slot, l.checksOf(slot), l.width() > 1
	n.Prompt = l.firstPrompt(about)
	return n
}

// needsOf returns the needs of an open session, in the place where it works.
func (l *Loop) needsOf(ctx context.Context, row ralph.Session) (n session.Needs, err error) {
	n = l.needs()
	slot, err := l.Slots.Of(ctx, row.Dir, ralph.Change{SessionID: row.ID}.Ref())
	if err != nil {
		return n, err
	}
	if slot != nil {
		n = l.needsIn(slot, nil)
	}
	if works, err := l.named(row.TaskID, row.Agent); err == nil {
		n.Agent = works // else it is no longer configured, and another agent reads what it left
	}
	return n, nil
}

// verifier returns a verifier of a commit, in the place where that is checked out; nil if only what is known counts.
func (l *Loop) verifier(ctx context.Context, commit string, at *place.Place) (*check.Verifier, error) {
	tree, err := l.Place.Tree.Whole(ctx, commit)
	return &check.Verifier{
		Rules: l.Check, Store: l.Store, Place: at, Key: l.Slots.Apart(tree), State: l.Place.State,
		Busy: func(d time.Duration) { l.beat(stepTime + d) }, Slow: l.slow,
	}, err
}

// onTip runs do on the last landed commit, in a slot for checks.
func (l *Loop) onTip(ctx context.Context, take taker, do func(v *check.Verifier) error) (err error) {
	tip, err := l.Lander.Tip(ctx)
	if err != nil {
		return err
	}
	v, err := l.verifier(ctx, tip, nil)
	if err != nil {
		return err
	}
	if v.Place, err = take(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Place.Release()) }()
	if err := v.Place.At(ctx, tip); err != nil {
		return unready(err)
	}
	if err := do(v); err != nil {
		return err
	}
	landed, err := store.Read(ctx, l.Store, (*store.Tx).Landed)
	if err != nil || len(landed) > 0 {
		return err
	}
	return v.Place.KeepWarm()
}

// baseline gets the verification's results for the state on which a session of a task begins. Mostly that is what
// landed last, whose results are known.
func (l *Loop) baseline(ctx context.Context, task ralph.Task, at *place.Place) error {
	if at.Slot != nil {
		v, err := l.verifier(ctx, at.Slot.Base, nil)
		if err == nil {
			err = v.Baseline(ctx, task)
		}
		if !errors.Is(err, check.ErrUnknown) {
			return err
		}
	}
	return l.onTip(ctx, l.checksOf(at), func(v *check.Verifier) error { return v.Baseline(ctx, task) })
}

// takeCheck takes a slot for verification. Each lane has one, and so has the merge queue.
func (l *Loop) takeCheck(ctx context.Context) (*place.Place, error) {
	return l.Slots.TakeFree(ctx, l.width()+1)
}

// checksOf takes the slots in which the work of a place is checked. A worker's slot has
// one of its own, so that no number of workers keeps a run from checking.
func (l *Loop) checksOf(at *place.Place) taker {
	if at.Slot == nil || at.Slot.Number < place.FirstWorker {
		return l.takeCheck
	}
	return func(ctx context.Context) (*place.Place, error) { return l.Slots.Take(ctx, at.Slot.Number, true) }
}

// land merges the queued changes into the target branch. If several sessions
// work at once, it does so in a goroutine, whose result is applied later.
func (r *runner) land(ctx context.Context) error {
	if r.merges {
		return nil
	}
	some := r.width() == 1
	if !some {
		list, err := store.Read(ctx, r.Store, (*store.Tx).QueuedChanges)
		if err != nil {
			return err
		}
		some = len(list) > 0 || r.Lander.Line.News()
	}
	if r.width() == 1 || !some {
		var err error
		r.waits, err = r.landNow(ctx, r.takeCheck, landingWait, false)
		return err
	}
	if rests, err := r.landingRests(ctx); err != nil || rests {
		return err
	}
	// What happens from here on, it may not see any more.
	began, err := r.lastEvent(ctx)
	if err != nil {
		return err
	}
	r.merges = true
	beside := r.beside
	go func() {
		work, release := r.obeying(beside, r.Session.Grace)
		why, err := r.landNow(work, r.takeCheck, landingWait, true)
		if stopped := work.Err() != nil && beside.Err() == nil; stopped {
			err = nil // the next run lands it
		}
		release()
		r.over <- func(context.Context) error {
			r.merges, r.waits, r.rested = false, why, began
			return err
		}
	}()
	return nil
}

// lands has the scheduler land what can be landed, unless it has something else to apply, after which it does.
func (r *runner) lands() {
	select {
	case r.over <- func(ctx context.Context) error { return r.land(context.WithoutCancel(ctx)) }:
	default:
	}
}

// landingRests reports whether the merge queue waits and nothing has happened since.
func (r *runner) landingRests(ctx context.Context) (bool, error) {
	if r.waits == "" {
		return false, nil
	}
	last, err := r.lastEvent(ctx)
	if err != nil || last != r.rested {
		return false, err
	}
	q, err := store.Read(ctx, r.Store, (*store.Tx).MergeQueue)
	return q.WaitUntil.IsZero() || q.WaitUntil.After(time.Now()), err
}

// landNow lands what can be landed, and returns what the rest waits for. Runs and workers do that one after
// the other. What fails pauses the queue, unless it is the database or a full disk. Early is [landing.Lander.Early].
func (l *Loop) landNow(ctx context.Context, take taker, wait time.Duration, early bool) (why string, err error) {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	lock := flock.New(filepath.Join(l.Place.State, "merge.lock"))
	if _, err := lock.TryLockContext(limited, landingLook); err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			return "another process is merging", nil
		}
		return "", fmt.Errorf("lock of the merge queue: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	dir, err := check.Folder(l.Place.State)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	lander := *l.Lander
	lander.Early = early
	lander.Place = &session.Apart{Take: take, Check: l.Check, Round: check.Round{
		Session: "landing-" + l.Place.State, Log: filepath.Join(dir, "verify.log"),
	}}
	if why, err = lander.Land(ctx); err != nil && ctx.Err() == nil && l.Store.Intact() == nil {
		l.Log.Warn("merging failed; trying once more", "error", err)
		why, err = lander.Land(ctx)
	}
	if err == nil || ctx.Err() != nil || l.Store.Intact() != nil || l.Place.Tree.Intact() != nil || store.Failed(err) {
		return why, err // what is queued lands with the next run, without anybody's having to resume the queue
	}
	// No session is to blame, and none is lost: their work waits in the queue until a person has looked.
	reason := err.Error()
	if perr := l.Store.Tx(ctx, func(tx *store.Tx) error { return tx.PauseMerging(reason) }); perr != nil {
		return "", errors.Join(err, perr)
	}
	return "merging is paused: " + reason, nil
}

// landLeft lands what a worker's server left in the queue when it was killed. If another
// process is merging, that one lands it.
func (l *Loop) landLeft(ctx context.Context) {
	list, err := store.Read(ctx, l.Store, (*store.Tx).QueuedChanges)
	if err == nil && len(list) > 0 {
		_, err = l.landForWorker(ctx, l.takeCheck, landingLook)
	}
	if err != nil && ctx.Err() == nil {
		l.Log.Warn("cannot merge done work now; it stays queued", "error", err)
	}
}

// landForWorker is landNow, unless what is queued is to land on another branch.
func (l *Loop) landForWorker(ctx context.Context, take taker, wait time.Duration) (why string, err error) {
	if err := l.Store.View(ctx, l.sameTarget); err != nil {
		return "", err
	}
	return l.landNow(ctx, take, wait, false)
}

// sameTarget refuses a worker whose work is to land on another branch than that of the run or the
// sessions in progress, or of the changes that wait: there is one queue, which lands on one branch.
func (l *Loop) sameTarget(tx *store.Tx) error {
	q, err := tx.MergeQueue()
	if err != nil || q.Target == "" || q.Target == l.Lander.Into {
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
		"start it again, with the same branch checked out or in merge.into", q.Target, l.Lander.Into)
}

// How long to wait while another process lands, which is shorter than stepTime, and how often to look.
const (
	landingWait = 4 * time.Minute
	landingLook = 20 * time.Millisecond
)
