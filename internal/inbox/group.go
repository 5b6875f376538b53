package inbox

import (
	"fmt"
	"regexp"

	"ralph/internal/text"
	"ralph/store"
)

// A Group is what waits for the same reason, in the order in which it was found: it is shown as one row, and can be
// decided on together.
type Group []store.InboxItem

// Groups puts items together that wait for the same reason. The order of the first of each stays.
func Groups(list []store.InboxItem) (groups []Group) {
	at := map[string]int{}
	for _, i := range list {
		cause := Cause(i)
		if n, ok := at[cause]; ok && cause != "" {
			groups[n] = append(groups[n], i)
			continue
		}
		at[cause] = len(groups)
		groups = append(groups, Group{i})
	}
	return groups
}

// counted matches what differs between texts of one cause: numbers, and ids of commits and sessions.
var counted = regexp.MustCompile(`\b[0-9a-f]{7,40}(-[0-9a-f-]+)?\b|\d+`)

// Cause returns what items have in common that wait for the same reason; "" for an item that stands alone.
func Cause(i store.InboxItem) string {
	switch {
	case i.Kind == "failed", i.Kind == "blocker":
		return i.Kind + "\x00" + counted.ReplaceAllString(text.FirstLine(i.Text), "#")
	case i.Kind == "dependency":
		return fmt.Sprint(i.Kind, "\x00", i.Ref.ID)
	case i.Kind == "proposal":
		return i.Kind + "\x00" + i.Title + "\x00" + i.Text
	case i.Kind == "suggestion" && i.Action == "task":
		return i.Kind + "\x00" + i.Text
	case i.Kind == "suggestion" && i.Action == "adopt": // what a task is to be done like is decided for that task alone
		return fmt.Sprint(i.Kind, "\x00", i.TaskID, "\x00", i.Text)
	}
	return ""
}
