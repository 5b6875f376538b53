package advice_test

import (
	"strings"
	"testing"

	"ralph/internal/advice"
	"ralph/store"
)

// TestEveryKindHasItsCommand: nothing waits for a person who is not told what to do.
func TestEveryKindHasItsCommand(t *testing.T) {
	for _, kind := range store.InboxKinds() {
		i := store.InboxItem{Kind: kind, TaskID: 7, Ref: store.Reference{ID: 9}, Action: "split", Command: "ralph x"}
		if _, c := advice.Of(i); !strings.HasPrefix(c, "ralph ") || strings.ContainsAny(c, "{}") {
			t.Errorf("%s: %q", kind, c)
		}
	}
	i := store.InboxItem{Kind: "dependency", TaskID: 7, Ref: store.Reference{Of: store.OfTask, ID: 9}}
	item, got := advice.Of(i)
	if want := "ralph task retry 9, or ralph task unblock 7 --on 9"; got != want || item != "TASK-7" {
		t.Errorf("%s: got %q, want %q", item, got, want)
	}
}
