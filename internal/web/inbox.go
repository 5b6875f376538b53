package web

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/inbox"
	"ralph/internal/text"
	"ralph/store"
)

// An item is an inbox item and how it is shown.
type item struct {
	store.InboxItem
	Look  look
	Sort  string // of a suggestion: "split", "alternative", …; of a flag: "blocking, security"
	Open  bool   // the row is open at first
	Parts string // the form for splitting the task as suggested; "" for other items
	Also  []item // further items that say the same
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

// YesOrNo reports whether the item can be decided on together with others.
func (i item) YesOrNo() bool { return inbox.YesOrNo(i.InboxItem) }

// Names are the names of the item and of those that say the same.
func (i item) Names() string {
	names := i.Item
	for _, a := range i.Also {
		names += " " + a.Item
	}
	return names
}

// Times is how often the same was said.
func (i item) Times() int { return 1 + len(i.Also) }

// same returns what two items have in common that say the same; "" for an item that stands alone.
func (i item) same() string {
	switch {
	case i.Kind == "proposal":
		return i.Kind + "\x00" + i.Title + "\x00" + i.Text
	case i.Kind == "suggestion" && i.Action == "task":
		return i.Kind + "\x00" + i.Sort + "\x00" + i.Text
	}
	return ""
}

// rows makes rows of inbox items, one of all that say the same.
func rows(tx *store.Tx, list []store.InboxItem) (items []item, err error) {
	at := map[string]int{}
	for _, i := range list {
		it := newItem(i)
		if i.Action == "split" {
			_, said, err := tx.Suggestion(i.Ref.ID)
			if err != nil {
				return nil, err
			}
			it.Parts = partsOf(ralph.Task{ID: i.TaskID, Title: i.Title}, said)
		}
		same := it.same()
		if first, ok := at[same]; ok && same != "" {
			items[first].Also = append(items[first].Also, it)
			continue
		}
		at[same] = len(items)
		items = append(items, it)
	}
	for i := range items {
		items[i].Open = i == 0 || items[i].Holding || len(items) <= openRows
	}
	return items, nil
}

// inboxItems is the number of items on a page of the inbox, and openRows the number of rows up to
// which all are open at first.
const (
	inboxItems = 50
	openRows   = 5
)

// An inboxView is a page of the inbox.
type inboxView struct {
	Items []item
	Kinds []inboxKind
	Kind  string
	Pager pager

	Several bool // some can be decided on together
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
	if v.Items, err = rows(tx, list); err != nil {
		return view{}, err
	}
	v.Several = len(v.Items) > 1 && slices.ContainsFunc(v.Items, item.YesOrNo)
	v.Pager = newPager(r, more)
	return view{title: "Inbox", name: "inbox", nav: "/inbox", live: true, body: v}, nil
}

// chosen returns the inbox items that a form names, each once. A field may have several names.
func chosen(tx *store.Tx, r *http.Request) ([]store.InboxItem, error) {
	var names []string
	for _, name := range strings.Fields(strings.Join(r.Form["item"], " ")) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 2*inboxItems {
		return nil, &ralph.FieldError{Field: "item", Problem: fmt.Sprintf("names more than %d items", 2*inboxItems)}
	}
	return inbox.Named(tx, names)
}

// A manyView has the items that are to be decided on together, whole.
type manyView struct{ Items []item }

func (a *app) many(tx *store.Tx, r *http.Request) (view, error) {
	list, err := chosen(tx, r)
	var v manyView
	for _, i := range list {
		v.Items = append(v.Items, newItem(i))
	}
	return view{title: "Decide on several", name: "many", nav: "/inbox", body: v}, err
}

// decideMany approves or rejects all items that are named, or none; those that are approved one by
// one are left, and named. With the verdict "one", they say the same: the first is approved, and the
// others are rejected as its doubles.
func (a *app) decideMany(tx *store.Tx, r *http.Request) (string, error) {
	list, err := chosen(tx, r)
	if err != nil {
		return "", err
	}
	one := r.PostFormValue("verdict") == "one"
	same, err := rows(tx, list)
	if err != nil {
		return "", err
	}
	if one && len(same) != 1 {
		return "", ralph.Conflict("these do not say the same any more, so nothing was decided")
	}
	approve := one
	if !one {
		if approve, err = verdictOf(r, "approve", "reject"); err != nil {
			return "", err
		}
	}
	words := written(r, "text")
	var said, alone []string
	for n, i := range list {
		if approve && inbox.Alone(i) {
			alone = append(alone, fmt.Sprintf("%s is left: it splits TASK-%d into parts, which you write in the inbox.",
				i.Item, i.TaskID))
			continue
		}
		if one && n > 0 {
			approve, words = false, "the same as "+list[0].Item
		}
		line, err := inbox.DecideItem(tx, i, approve, words, a.Person)
		if err != nil {
			return "", fmt.Errorf("%s: %w; nothing was decided", i.Item, err)
		}
		said = append(said, sentence(line))
	}
	if n := len(said); n == 0 && len(alone) > 0 {
		return "", ralph.Conflict("%s", strings.Join(alone, " "))
	} else if n > 1 && !one {
		said = slices.Insert(said, 0, text.Count(n, "item")+" decided on.")
	}
	return strings.Join(append(said, alone...), " "), nil
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
