package schedule

import "time"

// Opening returns until when no session may begin, and why, in words that follow "waiting"; the
// zero time means that a session may begin now. now is the current time, batch the start of the
// run's next batch (the zero time if it has begun), and b the run's window.
//
// A session that has begun is not affected.
func Opening(now, batch time.Time, b Between) (until time.Time, reason string) {
	if now.Before(batch) {
		if until = b.NextOpen(batch); until.Equal(batch) {
			return until, "for the next batch"
		}
		return until, "for the next batch, and for the window " + b.String()
	}
	if until = b.NextOpen(now); until.Equal(now) {
		return time.Time{}, ""
	}
	return until, "for the window " + b.String()
}
