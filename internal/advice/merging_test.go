package advice_test

import (
	"slices"
	"testing"
	"time"

	"ralph"
	"ralph/internal/advice"
	"ralph/store"
)

// TestLinesOfTheMergeQueue: batch, waiting changes, and why merging does not go on.
func TestLinesOfTheMergeQueue(t *testing.T) {
	now := time.Now()
	change := func(task int64, s ralph.ChangeState) ralph.Change {
		return ralph.Change{TaskID: task, State: s, Updated: ralph.At(now.Add(-41 * time.Second))}
	}
	got := advice.MergingLines(store.MergeQueue{
		Target: "main", Paused: "red", Behind: "your edits in app.go", Ahead: 2, Command: "git merge X",
	}, []ralph.Change{
		change(7, ralph.Moving), change(40, ralph.Verifying), change(28, ralph.Verifying), change(9, ralph.Queued),
	}, map[int64]string{9: "Rename Frob"}, now)
	want := []string{
		"merging: TASK-7 on main, moving for 41s",
		"merging: TASK-40 + TASK-28 on main, verifying for 41s",
		"TASK-9 Rename Frob waits for its merge (4 of 4)",
		"nothing is merged until `ralph resume --merging`: red",
		"2 commits passed, not on main yet: your edits in app.go: `git merge X`",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got := advice.MergingLines(store.MergeQueue{Target: "main"}, nil, nil, now); got != nil {
		t.Errorf("of nothing: %q", got)
	}
}
