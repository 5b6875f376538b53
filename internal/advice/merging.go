// Package advice has the remedies for errors, waiting changes, and sessions, for all screens.
package advice

import (
	"fmt"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

// Merging describes in lines the state of the finished changes: merges in progress, the queue, and how far the person's
// branch is behind the merged work.
func Merging(tx *store.Tx) ([]string, error) {
	q, err := tx.MergeQueue()
	if err != nil {
		return nil, err
	}
	list, err := tx.QueuedChanges()
	if err != nil {
		return nil, err
	}
	titles := map[int64]string{}
	for _, c := range list {
		t, err := tx.Task(c.TaskID)
		if err != nil {
			return nil, err
		}
		titles[c.TaskID] = t.Title
	}
	lines := MergingLines(q, list, titles, tx.Now().Time)
	if len(list) > 0 && q.Paused == "" {
		if running, err := tx.AnyAlive(); err != nil || running {
			return lines, err
		}
		lines = append(lines, "no run is in progress: `ralph merge --now` merges that, or the next run does")
	}
	return lines, nil
}

// MergingLines is [Merging] for a given queue, in its order.
func MergingLines(q store.MergeQueue, list []ralph.Change, titles map[int64]string, now time.Time) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	var batch []string
	for i, c := range list {
		if c.State != ralph.Queued {
			batch = append(batch, fmt.Sprintf("TASK-%d", c.TaskID))
		}
		if i+1 < len(list) && list[i+1].State == c.State || c.State == ralph.Queued {
			continue
		}
		on := q.Target
		if c.From != "" {
			on += fmt.Sprintf("@%.4s", c.From)
		}
		add("merging: %s on %s, %s for %s", strings.Join(batch, " + "), text.Line(on, 100), c.State,
			max(0, now.Sub(c.Updated.Time)).Round(time.Second))
		batch = nil
	}
	for i, c := range list {
		if c.State == ralph.Queued {
			add("TASK-%d %s waits for its merge (%d of %d)", c.TaskID, text.Line(titles[c.TaskID], 60), i+1, len(list))
		}
	}
	return append(lines, Queue(q, now)...)
}

// Queue returns lines about why nothing is merged, and how far the person's branch is behind.
func Queue(q store.MergeQueue, now time.Time) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if q.Paused != "" {
		add("nothing is merged until `ralph resume --merging`: %s", text.Line(q.Paused, 400))
	}
	if q.WaitUntil.After(now) {
		add("%s could not reach the remote, and tries again at %s", q.Waits, q.WaitUntil.Local().Format("15:04:05"))
	}
	if q.Behind != "" {
		add("%s passed, not on %s yet: %s: `%s`", text.Count(q.Ahead, "commit"), text.Line(q.Target, 100),
			text.Line(q.Behind, 400), text.Line(q.Command, 200))
	}
	return lines
}
