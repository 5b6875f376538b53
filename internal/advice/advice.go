// Package advice knows which command settles what waits for a person, for all that show it.
package advice

import (
	"strconv"
	"strings"

	"ralph/store"
)

// settledBy are the commands that settle what waits for a person, by its kind.
var settledBy = map[string]string{
	"permission":    "ralph permission allow {id}, or ralph permission deny {id}",
	"question":      "ralph answer {id} TEXT",
	"blocker":       "ralph resolve {id} DECISION",
	"review":        "ralph resolve {id} --approve or --refuse",
	"configuration": "ralph approve config",
	"dependency":    "ralph task retry {id}, or ralph task unblock {task} --on {id}",
	"amendment":     "ralph amendment approve {id}, show or reject",
	"failed":        "ralph task retry {task}, or ralph task cancel {task}",
	"claim":         "ralph task complete {task}, or ralph task release {task}",
	"flag":          "ralph resolve {id} DECISION",
	"proposal":      "ralph suggestion approve {task}, edit or reject",
	"suggestion":    "ralph suggestion {action} {id}, or ralph resolve {id} DECISION",
	"conflict":      "ralph learning forget {id}, or ralph learning reconcile {id}",
	"nack":          "ralph resolve {id} --approve or --refuse",
}

// Command is what a person types to settle an item.
func Command(i store.InboxItem) string {
	return strings.NewReplacer("{task}", strconv.FormatInt(i.TaskID, 10), "{id}", strconv.FormatInt(i.Ref.ID, 10),
		"{action}", i.Action).Replace(settledBy[i.Kind])
}

// Inbox is all that waits for a person, with the commands that settle it.
func Inbox(tx *store.Tx) ([]store.InboxItem, error) {
	inbox, err := tx.Inbox()
	for n, i := range inbox {
		inbox[n].Command = Command(i)
	}
	return inbox, err
}
