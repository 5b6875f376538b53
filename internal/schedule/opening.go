package schedule

import "time"

// Opening decides until when no session may begin, at the moment now, of a run
// whose batch begins at batch (the zero time if it has begun) and that works
// within the window b; and says why in words that follow "waiting". The zero time
// means that a session may begin now.
//
// A session that has begun is not concerned: it goes on to its own end.
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
