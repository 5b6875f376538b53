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

// An item is an inbox item and how it is shown.
type item struct {
	store.InboxItem
	Look look
	Sort string // of a suggestion: "split", "alternative", …; of a flag: "blocking, security"
}

func newItem(i store.InboxItem) item {
	i.Item, i.Command = advice.Of(i)
	it := item{InboxItem: i, Look: waits[i.Kind]}
	if i.Kind == "suggestion" || i.Kind == "flag" {
		it.Sort, it.Text, _ = strings.Cut(i.Text, ": ")
	}
	return it
}

// left returns the seconds until something expires.
func left(until, now ralph.Time) float64 { return max(0, math.Floor(until.Sub(now.Time).Seconds())) }

// Anchor is the item's anchor on the inbox page.
func (i item) Anchor() string { return fmt.Sprintf("w-%s-%d-%d", i.Kind, i.TaskID, i.Ref.ID) }

// Choices returns the options that an agent offers for its question.
func (i item) Choices() []option { return options(i.Options, i.Preferred) }

// inboxItems is the number of items on a page of the inbox.
const inboxItems = 50

// An inboxView is a page of the inbox.
type inboxView struct {
	Items []item
	Kinds []inboxKind
	Kind  string
	Pager pager
}

// An inboxKind is the number of items of a kind.
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

// verdictOf parses which of two verdicts a form gives.
func verdictOf(r *http.Request, yes, no string) (bool, error) {
	switch r.PostFormValue("verdict") {
	case yes:
		return true, nil
	case no:
		return false, nil
	}
	return false, &ralph.FieldError{Field: "verdict", Problem: "is required", Accepted: []string{yes, no}}
}
