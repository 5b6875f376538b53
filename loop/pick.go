package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"ralph"
	"ralph/internal/text"
	"ralph/loop/order"
	"ralph/store"
)

// scopeLook is how many tasks of the queue are searched for one that fits the tasks in progress. maxPasses is how often
// a task may be passed over.
const (
	scopeLook = 20
	maxPasses = 5
)

// inWork describes the work in progress, to find a task that fits.
type inWork struct {
	tasks  map[int64]bool            // the tasks of the jobs
	kinds  map[string]int            // their number by discipline
	most   map[string]int            // maximum number by discipline; an unlisted discipline has no limit
	files  []string                  // globs of the files that those tasks, and the changes in the merge queue, may touch
	scopes func(task int64) []string // the globs of a task; nil if unknown
	passed map[int64]int             // number of times that each task was passed over
}

// fit returns the index of the task to begin next, and the tasks that it
// passes over. Tasks are passed over only within one priority. File scopes are
// hints: an overlap is not a reason to begin nothing. i is -1 if there is none.
func (b inWork) fit(queue []ralph.Task) (i int, passes []int64) {
	first := -1
	for i, t := range queue {
		if most := b.most[t.Discipline]; b.tasks[t.ID] || most > 0 && b.kinds[t.Discipline] >= most {
			continue
		}
		if first >= 0 && queue[first].Priority != t.Priority {
			break
		}
		if b.passed[t.ID] >= maxPasses || !order.Meet(b.scopes(t.ID), b.files) {
			return i, passes
		}
		if first < 0 {
			first = i
		}
		passes = append(passes, t.ID)
	}
	return first, nil
}

// choose returns the next task to begin while the jobs work on theirs.
func (r *runner) choose(tx *store.Tx) (task ralph.Task, ok bool, err error) {
	r.held = ""
	if r.Merger.Pulls {
		if open, err := tx.TasksInReview(); err != nil {
			return task, false, err
		} else if len(open) >= r.Merger.MaxOpen {
			return r.amongOpen(tx, open)
		}
	}
	alone, err := r.mergedAlone(tx)
	if err != nil {
		return task, false, err
	}
	if r.Width() == 1 && len(alone) == 0 {
		return tx.Next()
	}
	queue, err := tx.Queue(len(r.jobs) + scopeLook)
	if err != nil {
		return task, false, err
	}
	queue = append(alone, queue...)
	b := inWork{tasks: map[int64]bool{}, kinds: map[string]int{}, passed: r.passed}
	if b.most, err = tx.DisciplineBounds(); err != nil {
		return task, false, err
	}
	for _, j := range r.jobs {
		b.tasks[j.task] = true
		b.kinds[j.kind]++
	}
	at, err := tx.WorkedOn()
	for id := range b.tasks { // including jobs without a session yet
		at = append(at, id)
	}
	for _, id := range at {
		scope, serr := tx.Scope(id)
		b.files, err = append(b.files, scope...), cmp.Or(err, serr)
	}
	b.scopes = func(id int64) []string {
		if len(b.files) == 0 {
			return nil
		}
		scope, serr := tx.Scope(id)
		err = cmp.Or(err, serr)
		return scope
	}
	i, passes := b.fit(queue)
	if err != nil || i < 0 {
		return task, false, err
	}
	r.passes = passes
	return queue[i], true, nil
}

// amongOpen returns the first queued task that has an open pull request: merge.max_open holds the others back.
func (r *runner) amongOpen(tx *store.Tx, open []int64) (task ralph.Task, ok bool, err error) {
	queue, err := tx.Queue(math.MaxInt)
	for _, t := range queue {
		if slices.Contains(open, t.ID) {
			return t, true, nil
		}
	}
	if len(queue) > 0 {
		r.held = fmt.Sprintf("no new task begins until one of %s is merged or closed (merge.max_open)",
			text.Count(len(open), "open pull request"))
	}
	return task, false, err
}

// mergedAlone returns the task that must be merged before all others, if it waits for a session. Nothing else is merged
// before.
func (r *runner) mergedAlone(tx *store.Tx) (list []ralph.Task, err error) {
	id, err := tx.MergesAlone(r.Merger.MaxSentBack)
	if err != nil || id == 0 {
		return nil, err
	}
	t, err := tx.Task(id)
	if err != nil || t.Status != ralph.Pending || t.NotBefore.After(tx.Now().Time) {
		return nil, err
	}
	r.passed[id] = maxPasses
	return []ralph.Task{t}, nil
}

// next returns the task to work on, and the agent whose turn it is; ok is false if there is none now.
func (r *runner) next(ctx context.Context) (task ralph.Task, its order.Turn, ok bool, err error) {
	task, ok, spent, err := r.pick(ctx, func(tx *store.Tx) (task ralph.Task, ok bool, err error) {
		if r.Task == 0 {
			task, ok, err = r.choose(tx)
		} else {
			task, ok, err = only(tx, r.Task)
		}
		if err == nil && ok {
			its, err = r.TurnOf(tx, task)
		}
		return task, ok, err
	})
	for _, id := range spent {
		r.worked[id], r.counted[id] = true, true
	}
	return task, its, ok, err
}

// only returns a task; ok is false if no session can begin on it now.
func only(tx *store.Tx, id int64) (task ralph.Task, ok bool, err error) {
	task, err = tx.Task(id)
	return task, task.Status == ralph.Pending && !task.NotBefore.After(tx.Now().Time), err
}

// pick returns the task that next finds. If a task's attempts are used up, it fails when its turn comes; its id is in
// spent.
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
			why := fmt.Sprintf("the limit of %s is reached", text.Count(l.Limits.Attempts, "attempt"))
			return tx.Move(task.ID, ralph.Failed, ralph.Loop, why)
		})
		if err != nil && !errors.Is(err, ralph.ErrConflict) { // another process may have been faster
			return task, false, spent, err
		}
		spent = append(spent, task.ID)
	}
}
