package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph/internal/text"
)

// apart is the least time between two digests to a receiver.
const apart = time.Minute

// maxLines is the number of notifications that a digest describes by a line. It only names further ones.
const maxLines = 12

// figures maps the types of news about tasks to their counts in the title of a digest.
var figures = map[Type]int{TaskFailed: 0, TaskBlocked: 1, FlagBlocking: 1, QuestionAsked: 1, TaskCompleted: 2}

// counts are the words of the counts, for one task and for several.
var counts = [...][2]string{{"failed", "failed"}, {"needs you", "need you"}, {"merged", "merged"}}

// urgent reports whether a notification is sent alone and without delay, because work waits for a
// person.
func urgent(n Notification) bool {
	return n.Type == PermissionAsked || n.Type == QuestionAsked && n.Data.Blocking != nil && *n.Data.Blocking
}

// digests returns the notifications to send for the waiting ones, in their order. News of tasks become one, and so do
// several notifications of any other type. dashboard is its address; "" for none.
func digests(waiting []Notification, dashboard string) (list []Notification) {
	about := func(n Notification) any {
		if _, of := figures[n.Type]; of {
			return "tasks"
		}
		return n.Type
	}
	for len(waiting) > 0 {
		var together, rest []Notification
		for _, n := range waiting {
			if about(n) == about(waiting[0]) {
				together = append(together, n)
			} else {
				rest = append(rest, n)
			}
		}
		list, waiting = append(list, digest(together, dashboard)), rest
	}
	return list
}

// digest returns one notification in place of several about the same. A single one stays as it is.
func digest(list []Notification, dashboard string) Notification {
	last := list[len(list)-1]
	if len(list) == 1 {
		return last
	}
	n := Notification{ID: "msg_", Type: last.Type, Timestamp: last.Timestamp}
	n.Data = Data{
		EventID: last.Data.EventID, Project: last.Data.Project, RunID: last.Data.RunID,
		Title: title(list), Text: text.Clip(lines(list), maxText), Command: "ralph inbox", Digest: list,
	}
	if to := strings.TrimSuffix(dashboard, "/"); to != "" {
		n.Data.URL = to + "/inbox"
	}
	ids := sha256.New()
	for _, of := range list {
		fmt.Fprintln(ids, of.ID)
		if of.Type != n.Type {
			n.Type = typeDigest
		}
	}
	n.ID += hex.EncodeToString(ids.Sum(nil)[:16])
	return n
}

// title counts the tasks of a digest, each once per word, and the other notifications.
func title(list []Notification) string {
	tasks := [len(counts)]map[int64]bool{}
	for _, n := range list {
		i, of := figures[n.Type]
		if !of {
			return fmt.Sprintf("%s (%d times)", list[len(list)-1].Data.Title, len(list))
		}
		if tasks[i] == nil {
			tasks[i] = map[int64]bool{}
		}
		tasks[i][n.Data.TaskID] = true
	}
	var parts []string
	for i, of := range tasks {
		if len(of) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", len(of), counts[i][min(len(of), 2)-1]))
		}
	}
	return strings.Join(parts, ", ")
}

// lines lists the notifications of a digest, a line each, with the beginning of the reason unless all went well.
func lines(list []Notification) string {
	var all, names []string
	for i, n := range list {
		said := n.Data.Title
		if n.Type != TaskCompleted && n.Data.Text != "" {
			said += " (" + n.Data.Text + ")"
		}
		switch {
		case i < maxLines:
			all = append(all, text.Short(said, 100))
		case n.Data.TaskID != 0:
			names = append(names, strconv.FormatInt(n.Data.TaskID, 10))
		}
	}
	if more := len(list) - maxLines; more > 0 {
		said := fmt.Sprintf("and %d more", more)
		if len(names) > 0 {
			said += ": tasks " + strings.Join(slices.Compact(names), ", ")
		}
		all = append(all, said)
	}
	return strings.Join(all, "\n")
}
