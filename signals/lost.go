package signals

import (
	"fmt"
	"strings"
	"time"

	"ralph"
)

// LostLimit is how many sessions of a task are lost in a row before it waits for a
// person.
const LostLimit = 5

// The time for which a task is left alone after lost sessions.
const (
	lostWait    = time.Second
	longestWait = 10 * time.Minute
)

// LostWait is how long a task is left alone after so many lost sessions in a row.
func LostWait(lost int) time.Duration {
	switch {
	case lost <= 0:
		return 0
	case lost > 10: // 2^10 s is more than the longest
		return longestWait
	}
	return min(lostWait<<(lost-1), longestWait)
}

// Lost reports whether a session came to nothing that counts elsewhere: its agent
// died, or its done could not be checked although nobody stopped that. Whom ralph or
// a person stopped, and whom the service refused, did not die.
func Lost(f Facts, accepted bool) bool {
	return !accepted && f.CancelledBy == "" && (f.Ending == ralph.Lost || f.Unchecked != "" && !f.Void)
}

// lost counts the lost sessions of a task in a row. An interruption, and an agent
// that could not work, say nothing of the next session.
func lost(f Facts, d *Decision) {
	switch {
	case Lost(f, d.Accepted):
		d.LostCount = f.Task.LostCount + 1
	case d.Accepted || f.Ending == ralph.Finished || f.Ending == ralph.TimedOut:
		d.LostCount = 0
	default:
		d.LostCount = f.Task.LostCount
	}
	if d.LostCount <= f.Task.LostCount || d.LostCount < LostLimit || d.Status != ralph.Pending {
		return
	}
	d.Blocker = fmt.Sprintf("%d sessions in a row were lost; the last: %s", d.LostCount, d.StatusReason)
	d.Status, d.StatusReason = ralph.Blocked, WaitingReason(0, 1, 0)+"; "+d.Blocker
}

// unseen tells what could not be looked at, whatever was decided without it.
func unseen(f Facts, d *Decision) {
	if len(f.Unseen) == 0 {
		return
	}
	why := "; could not be looked at: " + strings.Join(f.Unseen, "; ")
	d.Reason += why
	d.StatusReason += why
}
