package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/text"
	"ralph/internal/words"
	"ralph/loop"
	"ralph/signals"
	"ralph/store"
)

// An undone task is the output of `ralph undo --json`.
type undone struct {
	TaskID    int64        `json:"task_id"`
	Status    ralph.Status `json:"-"`
	State     string       `json:"status"`
	Reason    string       `json:"status_reason"`
	Conflicts []string     `json:"conflicts"` // files changed by later commits; empty if it is undone
	Agent     int64        `json:"agent"`     // the task for an agent that undoes it; 0 if none was added
	Commit    string       `json:"commit"`    // the undoing or restoring commit; "" if there is none yet
	Reverses  []string     `json:"reverses"`  // the commits that Commit reverses, the newest first
	Files     int          `json:"files"`     // number of files that Commit changes

	said string // the merged changes, in a line
	back string // if this brings its work back: why that was gone
}

func newUndo(a *app) *cobra.Command {
	var u loop.Undoing
	cmd := newCommand("undo TASK...", func(cmd *cobra.Command, args []string) error {
		ids, err := parseTasks(args)
		if err != nil {
			return err
		}
		if u.Why, err = a.text("--reason", u.Why); err != nil {
			return err
		}
		if err := ralph.CheckText("--reason", u.Why, false); err != nil {
			return err
		}
		u.By = a.person()
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return a.with(ctx, func(p *project.Project, db *store.DB) error {
			l, err := mergeLoop(ctx, p, db)
			if err != nil {
				return err
			}
			return a.undo(ctx, l, ids, u)
		})
	})
	cmd.Flags().StringVar(&u.Why, "reason", "", "why, for a later try: `TEXT`, @FILE, or - for standard input")
	cmd.Flags().BoolVar(&u.Agent, "agent", false,
		"where later commits stand in the way, add a task for an agent to undo it")
	return cmd
}

// undo undoes tasks one after the other, and merges the result. It begins with the change that was merged last, since
// later changes may build on earlier ones. If it cannot undo one of them, it undoes none.
func (a *app) undo(ctx context.Context, l *loop.Loop, ids []int64, u loop.Undoing) error {
	newest := map[int64]int64{} // by task: its latest change
	back := map[int64]string{}  // by task whose work comes back: why it is gone
	if err := l.Store.View(ctx, func(tx *store.Tx) error {
		for _, id := range ids {
			merged, to, err := tx.Undoable(id)
			if err != nil {
				return err
			}
			if newest[id] = merged[0].ID; to != ralph.Completed {
				continue
			}
			t, err := tx.Task(id)
			if err != nil {
				return err
			}
			back[id] = t.StatusReason
		}
		for _, id := range ids {
			if why, undone := back[id]; undone && (u.Why != "" || len(back) < len(ids)) {
				return ralph.Conflict("TASK-%d is undone already (%s); `ralph undo %[1]d` alone brings its work back", id, why)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	slices.SortFunc(ids, func(x, y int64) int { return cmp.Compare(newest[y], newest[x]) })
	var list []undone
	waits := ""
	var failed error
	for _, id := range ids {
		u.To = ralph.Cancelled
		if _, undone := back[id]; undone {
			u.To = ralph.Completed
		}
		v, why, err := undoOne(ctx, l, id, u)
		if failed = err; err != nil {
			break
		}
		v.back = back[id]
		list, waits = append(list, v), cmp.Or(why, waits)
	}
	if failed == nil || len(list) > 0 {
		if err := a.print(list, func(w io.Writer) {
			for _, v := range list {
				v.say(w, waits)
			}
		}); err != nil {
			return errors.Join(failed, err)
		}
	}
	if failed != nil {
		return failed
	}
	for _, v := range list {
		switch {
		case v.Status == ralph.Merging:
			return &ralph.ExitError{Status: ralph.ExitWaiting}
		case v.Commit == "" && v.Agent == 0 && v.said == "":
			return &ralph.ExitError{Status: ralph.ExitFailed}
		}
	}
	return nil
}

// undoOne undoes a task and merges the reverse. waits is the reason why a queued change waits.
func undoOne(ctx context.Context, l *loop.Loop, id int64, u loop.Undoing) (v undone, waits string, err error) {
	v = undone{TaskID: id, Conflicts: []string{}, Reverses: []string{}}
	after, err := store.Read(ctx, l.Store, (*store.Tx).LastEvent)
	if err != nil {
		return v, "", err
	}
	conflicts, err := l.Undo(ctx, id, u)
	if err != nil {
		return v, "", err
	}
	v.Conflicts = append(v.Conflicts, conflicts...)
	switch {
	case len(conflicts) == 0: // each reverse builds on the one before
		waits, err = l.MergeQueued(ctx)
	case u.Agent:
		v.Agent, err = l.UndoByAgent(ctx, id, conflicts, u)
	}
	if err != nil {
		return v, "", err
	}
	return v, waits, v.read(ctx, l.Store, after)
}

// read reads the task's state since an event.
func (v *undone) read(ctx context.Context, db *store.DB, after int64) error {
	if err := db.View(ctx, func(tx *store.Tx) error {
		t, err := tx.Task(v.TaskID)
		v.Status, v.State, v.Reason = t.Status, t.State, t.StatusReason
		return err
	}); err != nil {
		return err
	}
	for e, err := range db.EventsAfter(ctx, after) {
		if err != nil {
			return err
		}
		if e.TaskID != v.TaskID {
			continue
		}
		told, err := e.Read()
		if err != nil {
			return err
		}
		switch d := told.(type) {
		case ralph.ChangeMerged:
			v.Commit, v.Reverses, v.Files, v.said = d.Commit, d.Reverses, d.Files, words.Undone(e.TaskID, d)
		case ralph.TaskStatusChanged:
			if d.From != ralph.Merging && d.To != ralph.Merging { // people have reversed it themselves
				v.said = fmt.Sprintf("TASK-%d is %s: %s", v.TaskID, strings.ToLower(d.To.Look().Label), text.VisibleLine(d.Reason))
			}
		}
	}
	return nil
}

// say describes the task's state in a line.
func (v undone) say(w io.Writer, waits string) {
	switch {
	case v.Agent != 0:
		fmt.Fprintf(w, "TASK-%d conflicts with later commits in %s; TASK-%d is for an agent to undo it\n",
			v.TaskID, text.VisibleLine(signals.FileList(v.Conflicts)), v.Agent)
	case len(v.Conflicts) > 0:
		fmt.Fprintf(w, "TASK-%d is not undone: later commits changed the same lines of %s; "+
			"undo those first, or have an agent do it: ralph undo %d --agent\n",
			v.TaskID, text.VisibleLine(signals.FileList(v.Conflicts)), v.TaskID)
	case v.Status == ralph.Merging && waits == "": // the branch was pushed
		fmt.Fprintf(w, "TASK-%d: the reverse of its change becomes a pull request\n", v.TaskID)
	case v.Status == ralph.Merging:
		fmt.Fprintf(w, "TASK-%d: the reverse of its change waits to be merged (%s)\n",
			v.TaskID, text.VisibleLine(waits))
	case v.said != "" && v.back != "":
		fmt.Fprintf(w, "%s; it was cancelled: %s\n", v.said, text.VisibleLine(v.back))
	case v.said != "":
		fmt.Fprintln(w, v.said)
	default:
		fmt.Fprintf(w, "TASK-%d is %s: %s\n", v.TaskID, strings.ReplaceAll(v.State, "_", " "), text.VisibleLine(v.Reason))
	}
}

// parseTasks parses ids of tasks, none of them twice.
func parseTasks(args []string) (ids []int64, err error) {
	seen := map[int64]bool{}
	for _, arg := range args {
		id, err := ralph.ParseTaskID(arg)
		if err != nil {
			return nil, err
		}
		if seen[id] {
			return nil, usage(fmt.Errorf("TASK-%d is named twice", id))
		}
		seen[id], ids = true, append(ids, id)
	}
	return ids, nil
}
