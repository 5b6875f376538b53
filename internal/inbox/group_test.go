package inbox

import (
	"slices"
	"testing"

	"ralph/store"
)

// TestGroups: items that wait for the same reason are one row, in the place of the first; all others have their own
// rows. Rows are sorted by urgency.
func TestGroups(t *testing.T) {
	item := func(kind string, task int64, text string) store.InboxItem {
		return store.InboxItem{Kind: kind, TaskID: task, Text: text, Title: "T"}
	}
	again := store.InboxItem{Kind: "suggestion", TaskID: 9, Sort: "refactor", Text: "split it", Action: "task"}
	elsewhere := store.InboxItem{Kind: "suggestion", TaskID: 8, Sort: "alternative", Text: "split it", Action: "adopt"}
	other := store.InboxItem{Kind: "suggestion", TaskID: 9, Sort: "alternative", Text: "split it", Action: "adopt"}
	list := []store.InboxItem{
		item("question", 1, "which?"), item("question", 2, "which?"),
		item("failed", 3, "stuck: the server on :8080 is silent (stuck 3 times)"),
		item("blocker", 4, "could not be merged, 3 times: it conflicts in app.py"),
		item("failed", 5, "stuck: the server on :8081 is silent (stuck 2 times)\nmore"),
		item("failed", 6, "done was refused: `npm test` exits 1"),
		item("blocker", 7, "could not be merged, 4 times: it conflicts in app.py"),
		item("proposal", 8, "so"), item("proposal", 8, "so"), item("proposal", 8, "other"),
		again, again, other, other, elsewhere,
	}
	got := Groups(list)
	var sizes []int
	for _, g := range got {
		sizes = append(sizes, len(g))
	}
	if want := []int{2, 2, 2, 1, 2, 1, 2, 2, 1}; !slices.Equal(sizes, want) {
		t.Errorf("%v, want %v", sizes, want)
	}
	if second := got[1]; second[0].TaskID != 3 || second[1].TaskID != 5 {
		t.Errorf("the second group is %v", second)
	}
	held := item("question", 10, "?")
	held.Holding = true
	blocking := item("flag", 11, "SSRF")
	blocking.Severity = "blocking"
	var order []int64
	for _, g := range Sorted(Groups(append(list, held, item("review", 12, ""), blocking, item("dependency", 13, "")))) {
		order = append(order, g[0].TaskID)
	}
	if want := []int64{4, 10, 12, 11, 13, 3, 6, 1, 8, 8, 9, 9, 8}; !slices.Equal(order, want) {
		t.Errorf("sorted by urgency: %v, want %v", order, want)
	}
}
