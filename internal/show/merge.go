package show

import (
	"fmt"
	"io"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/text"
	"ralph/store"
)

// A MergesView is the output of `ralph merge --json`.
type MergesView struct {
	store.MergeQueue
	Changes []ralph.Change   `json:"changes"`
	Titles  map[int64]string `json:"-"`
	Now     ralph.Time       `json:"-"`
}

// newestMerges is the number of changes outside of the queue that are listed.
const newestMerges = 100

// ReadMerges reads the merge queue; with all, also other changes.
func ReadMerges(tx *store.Tx, all bool) (v MergesView, err error) {
	v.Now, v.Titles = tx.Now(), map[int64]string{}
	if v.MergeQueue, err = tx.MergeQueue(); err != nil {
		return v, err
	}
	if v.Changes, err = tx.QueuedChanges(); err == nil && all {
		v.Changes, err = tx.Changes(0, newestMerges)
	}
	for _, c := range v.Changes {
		t, terr := tx.Task(c.TaskID)
		if terr != nil {
			return v, terr
		}
		v.Titles[t.ID] = t.Title
	}
	return v, err
}

// Merges writes the merge queue.
func Merges(w io.Writer, v MergesView) {
	lines(w, advice.Queue(v.MergeQueue, v.Now.Time))
	for _, c := range v.Changes {
		why := ""
		if c.Reason != "" {
			why = ": " + text.Line(c.Reason, 200)
		}
		fmt.Fprintf(w, "  TASK-%-4d %-10s %.10s  %s%s\n", c.TaskID, c.State, c.Head, text.Line(v.Titles[c.TaskID], 80), why)
	}
}

// lines writes lines.
func lines(w io.Writer, list []string) {
	for _, l := range list {
		fmt.Fprintln(w, l)
	}
}
