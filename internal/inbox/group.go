package inbox

import (
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

// sameReason is equal for tasks that stopped for the same reason.
func sameReason(i store.InboxItem) string {
	return counted.ReplaceAllString(text.FirstLine(i.Text), "#")
}

// Cause returns what items have in common that wait for the same reason; "" for an item that stands alone.
func Cause(i store.InboxItem) string {
	same := kinds[i.Kind].same
	if same == nil {
		return ""
	}
	if cause := same(i); cause != "" {
		return i.Kind + "\x00" + cause
	}
	return ""
}
