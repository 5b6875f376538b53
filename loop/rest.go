package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ralph"
	"ralph/store"
)

// leftOver returns why the run ends with work left: tasks that failed in this run or hold
// back its queue, and tasks that wait for people (decision 6). Proposals, and questions
// that block nothing, do not count.
func (r *runner) leftOver(ctx context.Context) ([]end, error) {
	var tasks []ralph.Task
	var inbox []store.InboxItem
	var unaccepted []int64
	var undecided []store.UndecidedSession
	var queue store.MergeQueue
	err := r.Store.View(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
		held := []ralph.Status{ralph.Failed, ralph.Blocked, ralph.NeedsInput}
		if tasks, err = tx.Tasks(store.TaskFilter{Statuses: held}); err != nil {
			return err
		}
		if inbox, err = tx.Inbox(); err != nil {
			return err
		}
		if undecided, err = tx.Undecided(); err != nil {
			return err
		}
		if queue, err = tx.MergeQueue(); err != nil {
			return err
		}
		unaccepted, err = tx.Unaccepted()
		return err
	})
	if err != nil {
		return nil, err
	}
	ends := append(judgeRest(tasks, inbox, r.worked, r.Task), undecidedEnds(undecided)...)
	if queue.Behind != "" {
		// The recorded reason may be outdated: the queue has the present obstacle.
		why := fmt.Sprintf("not all that passed had got onto %s", queue.Target)
		ends = append(ends, end{ralph.ExitWaiting, why})
	}
	if len(unaccepted) > 0 {
		ends = append(ends, end{ralph.ExitWaiting, Outside(unaccepted)})
	}
	return ends, nil
}

// nothingLeft returns the reason to end the run. A limit does not count if no task is left that a session could work
// on.
func (r *runner) nothingLeft(ctx context.Context, e *end) (*end, error) {
	if e.status != ralph.ExitLimit {
		return e, nil
	}
	left := []ralph.Status{ralph.Pending, ralph.InProgress, ralph.Merging}
	tasks, err := store.Read(context.WithoutCancel(ctx), r.Store, func(tx *store.Tx) ([]ralph.Task, error) {
		return tx.Tasks(store.TaskFilter{Statuses: left})
	})
	if r.Task != 0 {
		tasks = slices.DeleteFunc(tasks, func(t ralph.Task) bool { return t.ID != r.Task })
	}
	if err != nil || len(tasks) > 0 {
		return e, err
	}
	return &end{ralph.ExitOK, nothingToDo}, nil
}

// nothingToDo is the reason of a run that has worked through its queue.
const nothingToDo = "nothing is left to do"

// undecidedEnds names the sessions that could not be decided. Their tasks wait until a person fixes the cause.
func undecidedEnds(list []store.UndecidedSession) (ends []end) {
	for _, u := range list {
		why := fmt.Sprintf("session %.8s of TASK-%d is over and could not be decided: %s (see `ralph doctor`)",
			u.ID, u.Task, u.Why)
		ends = append(ends, end{ralph.ExitWaiting, why})
	}
	return ends
}

// Outside reports that tasks are completed without a recorded reason.
func Outside(tasks []int64) string {
	return fmt.Sprintf("%s: %s; look at the branch, and run `ralph retry ID --again` to have it done once more",
		store.Unaccepted, named(tasks))
}

// mostNamed is the maximum number of tasks in a sentence.
const mostNamed = 20

// named lists tasks for a sentence.
func named(tasks []int64) string {
	names := make([]string, 0, mostNamed)
	for _, id := range tasks[:min(len(tasks), mostNamed)] {
		names = append(names, fmt.Sprintf("TASK-%d", id))
	}
	list := strings.Join(names, ", ")
	if more := len(tasks) - mostNamed; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// judgeRest makes the decision of leftOver. Tasks are the failed and blocked tasks, and tasks that need input. If the
// run was for one task, only that task counts.
func judgeRest(tasks []ralph.Task, inbox []store.InboxItem, worked map[int64]bool, only int64) []end {
	holds := map[int64]bool{} // failed tasks that others depend on
	asks := map[int64]bool{}  // tasks that an inbox item holds back
	for _, i := range inbox {
		asks[i.TaskID] = asks[i.TaskID] || i.Holding
		if i.Kind == "dependency" && (only == 0 || i.TaskID == only) {
			holds[i.Ref.ID] = true
		}
	}
	var failed, waiting, behind []int64
	for _, t := range tasks {
		switch {
		case only != 0 && t.ID != only && !holds[t.ID]:
		case t.Status == ralph.Failed:
			if worked[t.ID] || holds[t.ID] || t.ID == only {
				failed = append(failed, t.ID)
			}
		case asks[t.ID]:
			waiting = append(waiting, t.ID)
		default:
			behind = append(behind, t.ID)
		}
	}
	var ends []end
	if len(failed) > 0 {
		ends = append(ends, end{ralph.ExitFailed, "failed: " + named(failed)})
	}
	switch {
	case len(waiting) > 0:
		why := "waiting for people: " + named(waiting) + " (see `ralph inbox`)"
		if len(behind) > 0 {
			why += "; for other tasks: " + named(behind)
		}
		ends = append(ends, end{ralph.ExitWaiting, why})
	case len(behind) > 0:
		ends = append(ends, end{ralph.ExitWaiting, "waiting for other tasks: " + named(behind) + " (see `ralph task graph`)"})
	}
	return ends
}
