package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ralph"
	"ralph/loop/check"
	"ralph/loop/place"
	"ralph/loop/session"
	"ralph/prompt"
	"ralph/store"
)

// enter prepares a slot for a session, if sessions work in slots; leave gives it back.
func (l *lane) enter(ctx context.Context, task ralph.Task) (n session.Needs, leave func(), err error) {
	n, leave = l.needs(), func() {}
	if !l.Apart {
		return n, leave, nil
	}
	kept, bounced, err := l.kept(ctx, task.ID)
	if err != nil {
		return n, leave, err
	}
	tip, err := l.Lander.Base(ctx, task.ID)
	if err != nil {
		return n, leave, fmt.Errorf("find the commit to start from: %w", err)
	}
	slot, err := l.Slots.Take(ctx, l.number, false)
	if err != nil {
		return n, leave, err
	}
	conflicts, err := slot.Begin(ctx, tip, kept)
	if err != nil {
		return n, leave, unready(errors.Join(err, slot.Release()))
	}
	n = l.needsIn(slot, nil)
	if err := n.Check.Lay(ctx, l.Place.Tree, kept); err != nil {
		return n, leave, notGreeted(errors.Join(err, slot.Release()))
	}
	about := &prompt.Slot{Target: l.Lander.Into, Kept: kept != "", Conflicts: conflicts, Bounced: bounced}
	n.Prompt = l.firstPrompt(about)
	return n, func() {
		if err := slot.Release(); err != nil {
			l.Log.Warn("cannot release a slot", "error", err)
		}
	}, nil
}

// kept returns the commit that an earlier session of a task left in a
// slot, "" for none, and why it bounced from the merge queue, if it did.
func (l *Loop) kept(ctx context.Context, task int64) (commit, bounced string, err error) {
	var c ralph.Change
	var ok bool
	if err := l.Store.View(ctx, func(tx *store.Tx) error {
		c, ok, err = tx.ChangeOf(task)
		return err
	}); err != nil || !ok || c.State != ralph.Held && c.State != ralph.Bounced {
		return "", "", err
	}
	if c.State == ralph.Bounced {
		bounced = c.Reason
	}
	commit, err = l.Place.Tree.Ref(ctx, c.Ref())
	return commit, bounced, err
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
	n.Place, n.Check = slot, l.verifierIn(slot)
	n.Lander, n.Checks, n.Beside = l.Lander, l.takeCheck, l.width() > 1
	n.Prompt = l.firstPrompt(about)
	return n
}

// needsOf returns the needs of an open session, in the place where it works.
func (l *Loop) needsOf(ctx context.Context, row ralph.Session) (n session.Needs, err error) {
	n = l.needs()
	if l.Slots != nil {
		slot, err := l.Slots.Of(ctx, row.Dir, ralph.Change{SessionID: row.ID}.Ref())
		if err != nil {
			return n, err
		}
		if n.Lander = l.Lander; slot != nil {
			n = l.needsIn(slot, nil)
		}
	}
	if works, err := l.named(row.TaskID, row.Agent); err == nil {
		n.Agent = works // else it is no longer configured, and another agent reads what it left
	}
	return n, nil
}

// onTip runs do on the project as people have it, or in slots on the last landed commit.
func (l *Loop) onTip(ctx context.Context, do func(v *check.Verifier) error) (err error) {
	if !l.Apart {
		return do(l.verifier())
	}
	tip, err := l.Lander.Tip(ctx)
	if err != nil {
		return err
	}
	at, err := l.takeCheck(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Release()) }()
	if err := at.At(ctx, tip); err != nil {
		return unready(err)
	}
	return do(l.verifierIn(at))
}

// baseline gets the verification's results for the state on which a session of a task begins. In
// slots that is mostly what landed last, whose results are known.
func (l *Loop) baseline(ctx context.Context, task ralph.Task, at *place.Place) error {
	if l.Apart {
		tree, err := l.Place.Tree.Committed(ctx, at.Slot.Base)
		if err != nil {
			return err
		}
		v := l.verifier()
		v.At = &store.State{Content: place.Apart(tree), Committed: tree}
		if err := v.Baseline(ctx, task); !errors.Is(err, check.ErrUnknown) {
			return err
		}
	}
	return l.onTip(ctx, func(v *check.Verifier) error { return v.Baseline(ctx, task) })
}

// takeCheck takes a slot for verification. Each lane has one, and so has the merge queue.
func (l *Loop) takeCheck(ctx context.Context) (*place.Place, error) {
	return l.Slots.TakeFree(ctx, l.width()+1)
}

// land merges the queued changes into the target branch. If several sessions
// work at once, it does so in a goroutine, whose result is applied later.
func (r *runner) land(ctx context.Context) error {
	if r.Lander == nil || r.merges {
		return nil
	}
	some := r.Apart && r.width() == 1 // else only if an earlier run left some
	if !some {
		list, err := store.Read(ctx, r.Store, (*store.Tx).QueuedChanges)
		if err != nil || len(list) == 0 && !r.Apart {
			return err
		}
		some = len(list) > 0
	}
	if r.width() == 1 || !some {
		var err error
		r.waits, err = r.landNow(ctx)
		return err
	}
	if rests, err := r.landingRests(ctx); err != nil || rests {
		return err
	}
	r.merges = true
	beside := r.beside
	go func() {
		work, release := r.obeying(beside, r.Session.Grace)
		why, err := r.landNow(work)
		if stopped := work.Err() != nil && beside.Err() == nil; stopped {
			err = nil // the next run lands it
		}
		release()
		r.over <- func(ctx context.Context) error {
			r.merges, r.waits = false, why
			if err == nil {
				r.rested, err = r.lastEvent(ctx)
			}
			return err
		}
	}()
	return nil
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

// landNow lands what can be landed, and returns what the rest waits for.
func (c course) landNow(ctx context.Context) (why string, err error) {
	dir, err := check.Folder(c.Place.State)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	lander := *c.Lander
	lander.Place = &session.Apart{Take: c.takeCheck, Check: c.Check, Log: c.Log, Round: check.Round{
		Session: "landing-" + c.Place.State, Log: filepath.Join(dir, "verify.log"),
	}}
	return lander.Land(ctx)
}
