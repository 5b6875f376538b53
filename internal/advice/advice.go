// Package advice gives inbox items their names and the commands that answer them, wherever they are
// shown.
package advice

import (
	"strconv"
	"strings"

	"ralph/store"
)

// kinds are the names of inbox items by kind, and the commands that answer them.
var kinds = map[string]struct{ item, answeredBy string }{
	"permission":    {"P{id}", "ralph approve P{id}, or ralph reject P{id}"},
	"question":      {"Q{id}", "ralph answer Q{id} TEXT"},
	"merging":       {"merge", "ralph resume --merging"},
	"behind":        {"branch", ""},
	"blocker":       {"C{id}", "ralph resolve C{id} DECISION"},
	"tests changed": {"C{id}", "ralph approve C{id}, or ralph reject C{id} REASON"},
	"review":        {"C{id}", "ralph approve C{id}, or ralph reject C{id}"},
	"dependency":    {"TASK-{task}", "ralph task retry {id}, or ralph task unblock {task} --on {id}"},
	"plan":          {"PLAN-{id}", "ralph inbox PLAN-{id}, or ralph approve PLAN-{id}, or ralph reject PLAN-{id}"},
	"amendment":     {"A{id}", "ralph approve A{id}, or ralph reject A{id}"},
	"failed":        {"TASK-{task}", "ralph task retry {task}, or ralph task cancel {task}"},
	"claim":         {"TASK-{task}", "ralph chat complete {task}, or ralph chat release {task}"},
	"flag":          {"C{id}", "ralph resolve C{id} DECISION"},
	"proposal":      {"TASK-{task}", "ralph approve TASK-{task}, or ralph reject TASK-{task}"},
	"suggestion":    {"C{id}", "ralph approve C{id}, or ralph reject C{id}"},
	"learning":      {"L{id}", "ralph approve L{id}, or ralph reject L{id}"},
	"nack":          {"C{id}", "ralph approve C{id}, or ralph reject C{id}"},
}

// Of returns the name of an item in approve, reject and answer, and the command that answers it.
func Of(i store.InboxItem) (item, command string) {
	k := kinds[i.Kind]
	if i.Kind == "behind" {
		return k.item, i.Command
	}
	fill := strings.NewReplacer("{task}", strconv.FormatInt(i.TaskID, 10), "{id}", strconv.FormatInt(i.Ref.ID, 10))
	if i.Action == "split" {
		k.answeredBy = "ralph task split {id}, or ralph reject C{id}"
	}
	return fill.Replace(k.item), fill.Replace(k.answeredBy)
}

// Inbox returns the inbox with names and commands.
func Inbox(tx *store.Tx) ([]store.InboxItem, error) {
	inbox, err := tx.Inbox()
	return named(inbox), err
}

// InboxPart is the first of what waits of a kind, as [Inbox] has it.
func InboxPart(tx *store.Tx, kind string, limit int) ([]store.InboxItem, error) {
	inbox, err := tx.InboxPart(kind, limit, 0)
	return named(inbox), err
}

// WaitsOfPlan is what waits of the plan of a feature, with names and commands.
func WaitsOfPlan(tx *store.Tx, feature int64) ([]store.InboxItem, error) {
	parts, err := tx.WaitsOfPlan(feature)
	return named(parts), err
}

func named(inbox []store.InboxItem) []store.InboxItem {
	for n, i := range inbox {
		inbox[n].Item, inbox[n].Command = Of(i)
		named(i.Parts)
	}
	return inbox
}
