package inbox

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ralph"
	"ralph/store"
)

// A decision approves or rejects an inbox item with a person's words. It returns the result as
// text.
type decision func(tx *store.Tx, i store.InboxItem, words, person string) (string, error)

// noReason is the reason of a rejection without words, if one must be stored.
const noReason = "no reason was given"

// reviewed decides on a change of protected files or a proposal to cancel a task.
func reviewed(approve bool) decision {
	return func(tx *store.Tx, i store.InboxItem, words, person string) (string, error) {
		if err := tx.Decide(i.Ref.ID, approve, words, person); err != nil {
			return "", err
		}
		return Becomes(tx, i.TaskID)
	}
}

// Decide approves or rejects an item, and describes the result in one line. It uses the item's kind, task, reference
// and, for a suggestion, action. A plan is decided on by the names of its parts.
func Decide(tx *store.Tx, i store.InboxItem, approve bool, words, person string) (said string, err error) {
	i.Item, i.Commands = Of(i)
	if !YesOrNo(i) {
		return "", ralph.Usage(fmt.Errorf("%s (%s) is not answered with yes or no: %s", i.Item, i.Kind, i.Command()))
	}
	do, verb := kinds[i.Kind].approve, "approved"
	if !approve {
		do, verb = kinds[i.Kind].reject, "rejected"
	}
	if do == nil {
		return "", ralph.Usage(fmt.Errorf("a plan is decided on by the names of its parts: %s are what waits of %s",
			strings.Join(itemNames(i.Parts), ", "), i.Title))
	}
	said, err = do(tx, i, words, person)
	return fmt.Sprintf("%s %s: %s", verb, i.Item, said), err
}

// YesOrNo reports whether an item can be approved and rejected.
func YesOrNo(i store.InboxItem) bool {
	k := kinds[i.Kind]
	return k.approve != nil || k.Form == FormPlan
}

// decideAll decides on several items alike, and describes each result in a line.
func decideAll(tx *store.Tx, list []store.InboxItem, approve bool, words, person string) (said []string, err error) {
	for _, i := range list {
		one, err := Decide(tx, i, approve, words, person)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", i.Title, err)
		}
		said = append(said, one)
	}
	return said, nil
}

// Alone reports whether approving an item needs more than a yes, so that it cannot be approved
// together with others: to split a task, a person writes its parts.
func Alone(i store.InboxItem) bool { return i.Action == "split" }

// Named returns the inbox items of some names, in their order. Of several items of a task, it takes
// one that can be approved or rejected. The parts of a plan, which is one item, have names too.
func Named(tx *store.Tx, names []string) (list []store.InboxItem, err error) {
	inbox, err := All(tx)
	if err != nil {
		return nil, err
	}
	for _, i := range inbox {
		if i.Kind == "plan" {
			parts, err := WaitsOfPlan(tx, i.Ref.ID)
			if err != nil {
				return nil, err
			}
			inbox = append(inbox, parts...)
		}
	}
	for _, name := range names {
		i, err := waitingAs(inbox, name)
		if errors.Is(err, ralph.ErrNotFound) {
			err = cmp.Or(settled(tx, name), err)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, i)
	}
	return list, nil
}

// waitingAs finds the item with a name. The name may be a task's if only one thing waits there.
func waitingAs(inbox []store.InboxItem, name string) (found store.InboxItem, err error) {
	var close []string // items with the same number
	var of []store.InboxItem
	for _, i := range inbox {
		if strings.EqualFold(fmt.Sprintf("TASK-%d", i.TaskID), name) {
			of = append(of, i)
		}
		switch {
		case strings.EqualFold(i.Item, name):
			if found.Item == "" || YesOrNo(i) {
				found = i
			}
		case strings.TrimLeft(i.Item, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == strings.TrimPrefix(name, "#"):
			close = append(close, i.Item)
		}
	}
	switch {
	case found.Item != "":
		return found, nil
	case len(of) == 1: // the only thing that waits there
		return of[0], nil
	case len(of) > 1:
		say := strings.Join(itemNames(of), " or ")
		return found, ralph.Usage(fmt.Errorf("more than one item is of %s: say %s", name, say))
	case len(close) > 0:
		return found, ralph.Usage(fmt.Errorf("no item is called %q; did you mean %s?", name, strings.Join(close, " or ")))
	}
	return found, ralph.NotFound("no item is called %q; `ralph inbox` lists them", name)
}

// settled returns an error with the decision on an item that no longer waits; nil if there was no such item.
func settled(tx *store.Tx, name string) error {
	name = strings.ToUpper(name)
	kind := strings.TrimRight(name, "0123456789")
	id, err := strconv.ParseInt(name[len(kind):], 10, 64)
	if err != nil {
		return nil
	}
	switch kind {
	case "TASK-":
		t, err := tx.Task(id)
		if err != nil {
			return err
		}
		return ralph.Conflict("TASK-%d %s, and nothing of it is in the inbox", id, t.Is())
	case "A":
		if m, err := tx.Amendment(id); err == nil {
			return ralph.Conflict("A%d of TASK-%d is %s already by %s", id, m.TaskID, m.Status, cmp.Or(m.DecidedBy, "ralph"))
		}
	case "P":
		if p, err := tx.Permission(id); err == nil {
			by := cmp.Or(p.DecidedBy, "ralph")
			return ralph.Conflict("P%d of TASK-%d is decided already by %s: %s", id, p.TaskID, by, p.Decision)
		}
	case "C", "Q":
		if c, err := tx.Comment(id); err == nil {
			return c.Settled()
		}
	}
	return nil
}

// Becomes describes a task's status after a decision.
func Becomes(tx *store.Tx, id int64) (string, error) {
	t, err := tx.Task(id)
	if err != nil {
		return "", err
	}
	becomes := t.Is()
	switch {
	case t.Status == ralph.Pending:
		becomes = "is queued again"
	case t.NeedsPerson():
		becomes = "still needs you"
	}
	if t.ClaimedBy != "" {
		s, err := tx.Session(t.ClaimedBy)
		if err != nil {
			return "", err
		}
		if s.StopRequest == "cancel" {
			becomes = "is being stopped and then cancelled"
		}
	}
	return fmt.Sprintf("TASK-%d %s", id, becomes), nil
}

// Split splits a task into parts, and answers the suggestion that it answers; comment is 0 for none.
func Split(tx *store.Tx, task, comment int64, parts []ralph.Part, person string) ([]int64, error) {
	ids, err := tx.Split(task, parts, person)
	if err == nil && comment != 0 {
		err = tx.Resolve(comment, fmt.Sprintf("split into %d tasks", len(ids)), person)
	}
	return ids, err
}
