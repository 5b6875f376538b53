package dashboard

import (
	"strings"

	"ralph/store"
)

// Choices are the answers that an agent offers to its question.
func (i item) Choices() []option { return options(i.Options, i.Preferred) }

// An item is one thing that waits for a person, with how it is shown.
type item struct {
	store.InboxItem
	Look look
	Sort string   // of a suggestion: "split", "alternative", …
	Diff []string // of an amendment: what it changes
}

func newItem(i store.InboxItem) item {
	it := item{InboxItem: i, Look: waits[i.Kind]}
	if i.Kind == "suggestion" {
		it.Sort, it.Text, _ = strings.Cut(i.Text, ": ")
	}
	return it
}
