package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/proc"
	"ralph/internal/project"
	"ralph/internal/show"
	"ralph/internal/text"
	"ralph/internal/words"
	"ralph/loop"
	"ralph/store"
)

func newMerge(a *app) *cobra.Command {
	all, now := false, false
	cmd := newCommand("merge [ID]", func(cmd *cobra.Command, args []string) error {
		switch {
		case now && (all || len(args) > 0):
			return usage(errors.New("--now merges all that is queued: leave the rest out"))
		case now:
			return a.mergeQueued(cmd.Context(), 0)
		case len(args) > 0:
			return onTask(a.showChanges)(cmd, args)
		}
		return showOf(cmd.Context(), a, read, func(tx *store.Tx) (show.MergesView, error) {
			return show.ReadMerges(tx, all)
		}, show.Merges)
	})
	cmd.Flags().BoolVar(&all, "all", false, "show all changes, newest first")
	cmd.Flags().BoolVar(&now, "now", false, "merge the queue, without starting a run")
	return cmd
}

// mergeQueued merges the queue like a run, and prints the result. If a run is in progress, it says that the run will
// merge. task is the task whose change a person has just queued; 0 for none.
func (a *app) mergeQueued(ctx context.Context, task int64) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	out := a.out
	if a.json { // the command has printed its JSON
		out = io.Discard
	}
	return a.with(ctx, func(p *project.Project, db *store.DB) error {
		next, err := mergesNext(ctx, p, db, task == 0)
		switch {
		case err != nil:
			return err
		case next == nothingQueued && task == 0:
			_, err = fmt.Fprintln(out, "nothing waits to be merged")
			return err
		case next == nothingQueued:
			return nil
		case next == theRunMerges:
			_, err = fmt.Fprintln(out, "the run in progress merges it next")
			return err
		}
		l, err := mergeLoop(ctx, p, db)
		if err != nil {
			return err
		}
		after, err := store.Read(ctx, db, (*store.Tx).LastEvent)
		if err != nil {
			return err
		}
		if task == 0 { // a person asks for it: an unreachable remote is tried again at once
			if err := db.Tx(ctx, (*store.Tx).ReachedRemote); err != nil {
				return err
			}
		}
		waits, err := l.MergeQueued(ctx)
		told, terr := tellSince(ctx, db, out, after)
		err = errors.Join(err, terr)
		if err == nil && l.Merger.Pulls {
			if ferr := p.OpenPulls(ctx, db, l.Merger); ferr != nil {
				fmt.Fprintln(a.err, "ralph: the next run opens the pull request:", ferr)
			}
		}
		if err == nil && waits != "" {
			fmt.Fprintf(out, "not merged yet: %s\n", text.VisibleLine(waits))
			err = &ralph.ExitError{Status: ralph.ExitWaiting}
		}
		if err == nil && task == 0 {
			return isBehind(ctx, db, out, told)
		}
		if err != nil || task == 0 {
			return err
		}
		t, err := store.Read(ctx, db, func(tx *store.Tx) (ralph.Task, error) { return tx.Task(task) })
		if err == nil && t.Status != ralph.Completed && t.Status != ralph.Merging { // sent back
			err = &ralph.ExitError{Status: ralph.ExitFailed}
		}
		return err
	})
}

// A mergeStep names the process that merges the queue.
type mergeStep int

const (
	nothingQueued mergeStep = iota
	theRunMerges
	mergeHere
)

// mergeLoop returns a loop that merges as the last run did. Checks run in the sandbox.
func mergeLoop(ctx context.Context, p *project.Project, db *store.DB) (l *loop.Loop, err error) {
	if p.Confinement, err = p.Confine(ctx); err != nil {
		return nil, err
	}
	if err := p.KeepMode(ctx, db); err != nil {
		return nil, err
	}
	return p.Loop(ctx, db)
}

// tellSince prints the events since one, and reports whether there was anything to print.
func tellSince(ctx context.Context, db *store.DB, out io.Writer, after int64) (told bool, err error) {
	for e, err := range db.EventsAfter(context.WithoutCancel(ctx), after) {
		if err != nil {
			return told, err
		}
		if said := words.Short(e, time.Now()); said != "" {
			fmt.Fprintln(out, said)
			told = true
		}
	}
	return told, nil
}

// isBehind returns an [ralph.ExitError] if merged work is not on the person's branch yet, and says why unless events
// have told it.
func isBehind(ctx context.Context, db *store.DB, out io.Writer, told bool) error {
	q, err := store.Read(ctx, db, (*store.Tx).MergeQueue)
	if err != nil || q.Behind == "" {
		return err
	}
	if !told {
		fmt.Fprintf(out, "passed, not on %s yet: %s: `%s`\n",
			text.VisibleLine(q.Target), text.VisibleLine(q.Behind), text.VisibleLine(q.Command))
	}
	return &ralph.ExitError{Status: ralph.ExitWaiting}
}

// mergesNext returns the process that will merge the queue. With behind, merged work that is not on the person's branch
// yet counts as queued.
func mergesNext(ctx context.Context, p *project.Project, db *store.DB, behind bool) (mergeStep, error) {
	queued, err := store.Read(ctx, db, (*store.Tx).QueuedChanges)
	if err != nil {
		return nothingQueued, err
	}
	q, err := store.Read(ctx, db, (*store.Tx).MergeQueue)
	if err != nil || len(queued) == 0 && (!behind || q.Behind == "") {
		return nothingQueued, err
	}
	if active, err := p.Active(ctx, db); err != nil || active {
		return theRunMerges, err
	}
	return mergeHere, nil
}

// mergeLog is the file with the output of the last merge that a dashboard or chat began.
const mergeLog = "merge.log"

// mergeDetached starts `ralph merge --now` as a separate process if a change is queued and no run is in progress.
func mergeDetached(ctx context.Context, p *project.Project, db *store.DB) error {
	if next, err := mergesNext(ctx, p, db, false); err != nil || next != mergeHere {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.File(mergeLog), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	if _, err := proc.Detach([]string{self, "-C", p.Root, "merge", "--now"}, p.Environ, p.Root, log); err != nil {
		return fmt.Errorf("ralph merge --now: %w", err)
	}
	return nil
}

// showChanges prints the state of a task's changes.
func (a *app) showChanges(ctx context.Context, id int64) error {
	return showOf(ctx, a, read, func(tx *store.Tx) ([]ralph.Change, error) {
		if err := tx.CheckTask(id); err != nil {
			return nil, err
		}
		return tx.Changes(id, 0)
	}, func(w io.Writer, list []ralph.Change) {
		for _, c := range list {
			fmt.Fprintf(w, "change %d of TASK-%d: %s\n", c.ID, c.TaskID, c.State)
			for _, l := range [][2]string{
				{"why", c.Reason},
				{"conflicts", strings.Join(c.Conflicts, ", ")},
				{"merged as", c.To},
				{"commit", c.Head},
				{"kept as", c.Ref()},
				{"made on", c.Base},
				{"session", c.SessionID},
			} {
				if l[1] != "" && (l[0] != "merged as" || c.State == ralph.Merged) {
					fmt.Fprintf(w, "  %-10s %s\n", l[0], text.VisibleLine(l[1]))
				}
			}
		}
	})
}

// changeMerging pauses or resumes merging, and prints the queue.
func (a *app) changeMerging(ctx context.Context, change func(tx *store.Tx) error) error {
	return showOf(ctx, a, alter, func(tx *store.Tx) (show.MergesView, error) {
		if err := change(tx); err != nil {
			return show.MergesView{}, err
		}
		return show.ReadMerges(tx, false)
	}, show.Merges)
}
