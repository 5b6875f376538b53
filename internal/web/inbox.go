package web

import (
	"fmt"
	"math"
	"net/http"
	"strings"

	"ralph"
	"ralph/internal/advice"
	"ralph/store"
)

// An item is one thing that waits for a person, with how it is shown.
type item struct {
	store.InboxItem
	Look look
	Sort string // of a suggestion: "split", "alternative", …; of a flag: "blocking, security"
}

func newItem(i store.InboxItem) item {
	i.Command = advice.Command(i)
	it := item{InboxItem: i, Look: waits[i.Kind]}
	if i.Kind == "suggestion" || i.Kind == "flag" {
		it.Sort, it.Text, _ = strings.Cut(i.Text, ": ")
	}
	return it
}

// left is how many seconds a person has until something answers itself.
func left(until, now ralph.Time) float64 { return max(0, math.Floor(until.Sub(now.Time).Seconds())) }

// Anchor is the item's place on the page of the inbox.
func (i item) Anchor() string { return fmt.Sprintf("w-%s-%d-%d", i.Kind, i.TaskID, i.Ref.ID) }

// Choices are the answers that an agent offers to its question.
func (i item) Choices() []option { return options(i.Options, i.Preferred) }

// inboxItems is how many things are on a page of the inbox.
const inboxItems = 50

// An inboxView is a page of the inbox.
type inboxView struct {
	Items []item
	Kinds []inboxKind
	Kind  string
	Pager pager
}

// An inboxKind is how much of a kind waits.
type inboxKind struct {
	Kind string
	Look look
	N    int
}

func (a *app) inbox(tx *store.Tx, r *http.Request) (view, error) {
	v := inboxView{Kind: r.URL.Query().Get("kind")}
	counts, err := tx.InboxCounts()
	if err != nil {
		return view{}, err
	}
	for _, kind := range store.InboxKinds() {
		if counts[kind] > 0 {
			v.Kinds = append(v.Kinds, inboxKind{kind, waits[kind], counts[kind]})
		}
	}
	list, err := tx.InboxPart(v.Kind, inboxItems+1, (pageOf(r)-1)*inboxItems)
	if err != nil {
		return view{}, err
	}
	list, more := paged(list, inboxItems)
	for _, i := range list {
		v.Items = append(v.Items, newItem(i))
	}
	v.Pager = newPager(r, more)
	return view{title: "Inbox", name: "inbox", nav: "/inbox", live: true, body: v}, nil
}

// verdictOf is which of two a form decides for.
func verdictOf(r *http.Request, yes, no string) (bool, error) {
	switch r.PostFormValue("verdict") {
	case yes:
		return true, nil
	case no:
		return false, nil
	}
	return false, &ralph.FieldError{Field: "verdict", Problem: "is required", Accepted: []string{yes, no}}
}
