package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"ralph"
	"ralph/internal/bystander"
	"ralph/internal/follow"
	"ralph/internal/project"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/loop"
	"ralph/store"
)

// take prepares the run's only task: it adds the task, or uses an open task with the same words, or queues an ended one
// again. It returns a message if it did more than that.
func (o *runOptions) take(ctx context.Context, a *app, l *loop.Loop) (said string, err error) {
	return said, l.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		switch {
		case o.title != "":
			l.Task, said, err = o.adding(tx)
		case o.task != 0:
			said, err = again(tx, o.task, a.person())
		}
		return err
	})
}

// adding adds the run's only task, unless there is an open one with the same words.
func (o *runOptions) adding(tx *store.Tx) (task int64, said string, err error) {
	add := o.add
	if o.plan != nil {
		if add.Feature, err = o.plan.name(tx); err == nil {
			task, err = tx.AddTask(add, "human")
		}
		o.plan.task, o.plan.feature = task, add.Feature
		return task, "", err
	}
	t, found, err := tx.Same(add)
	if err != nil {
		return 0, "", err
	}
	if found {
		return t.ID, fmt.Sprintf("TASK-%d has this title and %s: working on it", t.ID, t.Is()), startable(tx, t)
	}
	task, err = tx.AddTask(add, "human")
	return task, "", err
}

// again puts a failed or cancelled task back into the queue. It returns an error if no session can work on the task.
func again(tx *store.Tx, id int64, person string) (said string, err error) {
	t, err := tx.Task(id)
	switch {
	case err != nil:
		return "", err
	case t.Status == ralph.Completed:
		return "", ralph.Conflict("TASK-%d is merged: `ralph undo %d` takes that back, `ralph retry %d --again` does it "+
			"once more", id, id, id)
	case t.Status == ralph.Failed || t.Status == ralph.Cancelled || t.Status == ralph.Rejected:
		return fmt.Sprintf("TASK-%d was %s, and is back in the queue", id, t.Word()), tx.Retry(id, "retried by "+person)
	}
	return "", startable(tx, t)
}

// startable returns an error if a task waits for anything but a session or a merge.
func startable(tx *store.Tx, t ralph.Task) error {
	switch {
	case t.Status == ralph.Proposed:
		return ralph.Conflict("TASK-%d is a suggestion: `ralph approve TASK-%d` puts it into the queue", t.ID, t.ID)
	case t.NeedsPerson():
		return ralph.Conflict("TASK-%d needs you first: `ralph inbox` (%s)", t.ID, text.Line(t.StatusReason, 200))
	case t.Status == ralph.Blocked:
		return ralph.Conflict("TASK-%d %s; `ralph task unblock %d` drops its reasons to wait",
			t.ID, text.Line(t.StatusReason, 200), t.ID)
	}
	return nil
}

// noteNotBegun adds to the inbox that a run could not begin, and notifies people, unless a person sees it on a
// terminal. If that cannot be stored, the reason is only printed.
func (a *app) noteNotBegun(ctx context.Context, p *project.Project, db *store.DB, why error) {
	if term.Is(a.err) {
		return
	}
	var from int64
	err := db.Tx(ctx, func(tx *store.Tx) (err error) {
		if from, err = tx.LastEvent(); err != nil {
			return err
		}
		return tx.SetTrouble(store.Trouble{
			Kind: store.TroubleRun, What: "A run could not begin: " + text.Line(why.Error(), 500), Command: "ralph doctor",
		})
	})
	if err != nil {
		return
	}
	n, err := bystander.Notifier(p, db)
	if err == nil {
		over := make(chan struct{})
		close(over)
		n.From, n.Over = from, over
		err = n.Run(ctx)
	}
	if err != nil {
		p.Log.Warn("nobody is notified", "error", err)
	}
}

// handOver leaves a task to the run in progress, and follows the task with --wait.
func (o *runOptions) handOver(ctx context.Context, a *app, l *loop.Loop, said string) error {
	t, err := store.Read(ctx, l.Store, func(tx *store.Tx) (ralph.Task, error) { return tx.Task(l.Task) })
	if err != nil {
		return err
	}
	switch {
	case t.Status == ralph.InProgress:
		said = fmt.Sprintf("TASK-%d is being worked on; `ralph log -f %d` follows it", t.ID, t.ID)
	case said != "":
		said += "; the run in progress takes it"
	default:
		said = fmt.Sprintf("queued as TASK-%d; the run in progress takes it", t.ID)
	}
	if err := a.say(map[string]any{"task_id": t.ID}, "%s", said); err != nil || !o.wait {
		return err
	}
	return a.waitFor(ctx, l.Store, t.ID)
}

// waitFor follows a task until it ends or needs a person. The exit status depends on the result.
func (a *app) waitFor(ctx context.Context, db *store.DB, id int64) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var t ralph.Task
	from, err := store.Read(ctx, db, (*store.Tx).LastEvent)
	if err != nil {
		return err
	}
	events := follow.Events{
		Store: db, Out: a.out, JSON: a.json, Task: id, After: from,
		Over: func(ctx context.Context) (over bool, err error) {
			t, err = store.Read(ctx, db, func(tx *store.Tx) (ralph.Task, error) { return tx.Task(id) })
			return t.Status.Ended() || t.NeedsPerson(), err
		},
	}
	if err := events.Follow(ctx); err != nil {
		return err
	}
	switch {
	case t.Status == ralph.Completed:
		return nil
	case t.Status.Ended():
		return &ralph.ExitError{Status: ralph.ExitFailed}
	case t.NeedsPerson():
		return &ralph.ExitError{Status: ralph.ExitWaiting}
	}
	return &ralph.ExitError{Status: ralph.ExitStopped, Err: errors.New("the task goes on without being followed")}
}
