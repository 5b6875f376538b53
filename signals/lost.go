package signals

import (
	"fmt"
	"strings"
	"time"

	"ralph"
)

// LostLimit is the number of lost sessions in a row after which a task waits for a person.
const LostLimit = 5

// The delays before a retry after lost sessions.
const (
	lostWait    = time.Second
	longestWait = 10 * time.Minute
)

// LostWait returns the delay before a retry after that number of lost sessions in a row.
func LostWait(lost int) time.Duration {
	switch {
	case lost <= 0:
		return 0
	case lost > 10: // 2^10 s exceeds longestWait
		return longestWait
	}
	return min(lostWait<<(lost-1), longestWait)
}

// Lost reports whether a session was lost: its agent died, or its done could
// not be checked although nobody stopped the check. Sessions that ralph or a
// person stopped, or that the agent's service refused, are not lost.
func Lost(f Facts, accepted bool) bool {
	return !accepted && f.CancelledBy == "" && (f.Ending == ralph.Lost || f.Unchecked != "" && !f.Void)
}

// lost counts the lost sessions of a task in a row. Interruptions, and agents that could
// not work, do not count.
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
	blockedBy(d)
}

// unseen adds the undetermined facts to the reasons.
func unseen(f Facts, d *Decision) {
	if len(f.Unseen) == 0 {
		return
	}
	why := "; could not be looked at: " + strings.Join(f.Unseen, "; ")
	d.Reason += why
	d.StatusReason += why
}
