package loop

import (
	"context"
	"fmt"
	"strings"

	"ralph"
	"ralph/store"
)

// leftOver finds the tasks that failed in this run or hold back its queue, and
// those that wait for people (decision 6). Proposals and questions that hold
// nothing back are no reason.
func (r *runner) leftOver(ctx context.Context) ([]end, error) {
	var tasks []ralph.Task
	var inbox []store.InboxItem
	var unaccepted []int64
	var unsettled []store.UnsettledSession
	err := r.Store.View(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
		held := []ralph.Status{ralph.Failed, ralph.Blocked, ralph.NeedsInput}
		if tasks, err = tx.Tasks(store.TaskFilter{Statuses: held}); err != nil {
			return err
		}
		if inbox, err = tx.Inbox(); err != nil {
			return err
		}
		if unsettled, err = tx.Unsettled(); err != nil {
			return err
		}
		unaccepted, err = tx.Unaccepted()
		return err
	})
	if err != nil {
		return nil, err
	}
	ends := append(judgeRest(tasks, inbox, r.worked, r.Task), unsettledEnds(unsettled)...)
	if len(unaccepted) > 0 {
		ends = append(ends, end{ralph.ExitWaiting, Outside(unaccepted)})
	}
	return ends, nil
}

// unsettledEnds names the sessions that could not be settled, whose tasks wait for
// somebody to mend that.
func unsettledEnds(list []store.UnsettledSession) (ends []end) {
	for _, u := range list {
		why := fmt.Sprintf("session %.8s of TASK-%d is over and could not be settled: %s (see `ralph doctor`)",
			u.ID, u.Task, u.Why)
		ends = append(ends, end{ralph.ExitWaiting, why})
	}
	return ends
}

// Outside says of completed tasks that nothing recorded says why they are.
func Outside(tasks []int64) string {
	names := make([]string, len(tasks))
	for i, id := range tasks {
		names[i] = fmt.Sprintf("TASK-%d", id)
	}
	return fmt.Sprintf("%s: %s; look at what is there, and have it done again with `ralph task retry`",
		store.Unaccepted, strings.Join(names, ", "))
}

// judgeRest is the decision behind leftOver. Of all tasks it is given those that
// failed, are blocked or need input; only one of them counts if the run was for one.
func judgeRest(tasks []ralph.Task, inbox []store.InboxItem, worked map[int64]bool, only int64) []end {
	holds := map[int64]bool{} // failed tasks that another one depends on
	for _, i := range inbox {
		if i.Kind == "dependency" && (only == 0 || i.TaskID == only) {
			holds[i.Ref.ID] = true
		}
	}
	var failed, waiting []string
	for _, t := range tasks {
		switch {
		case only != 0 && t.ID != only && !holds[t.ID]:
		case t.Status == ralph.Failed:
			if worked[t.ID] || holds[t.ID] || t.ID == only {
				failed = append(failed, fmt.Sprintf("TASK-%d", t.ID))
			}
		default:
			waiting = append(waiting, fmt.Sprintf("TASK-%d", t.ID))
		}
	}
	var ends []end
	if len(failed) > 0 {
		ends = append(ends, end{ralph.ExitFailed, "failed: " + strings.Join(failed, ", ")})
	}
	if len(waiting) > 0 {
		why := "waiting for people: " + strings.Join(waiting, ", ") + " (see `ralph inbox`)"
		ends = append(ends, end{ralph.ExitWaiting, why})
	}
	return ends
}
