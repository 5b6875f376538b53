package ralph_test

import (
	"testing"

	"ralph"
)

func TestDoingIsPlainEnglish(t *testing.T) {
	for _, tt := range []struct{ state, reason, until, want string }{
		{"running", "", "", "running"},
		{"running", "verifies the project", "", "running: verifies the project"},
		{"paused", "paused by `ralph pause`", "", "paused by `ralph pause`"},
		{"waiting", "for new tasks and answers", "", "waiting for new tasks and answers"},
		{"waiting", "for the next batch", "22:00", "waiting for the next batch until 22:00"},
		{"waiting", "the limit of 2 tasks per day is reached", "", "waiting: the limit of 2 tasks per day is reached"},
		{"waiting", "rate limit: 429", "22:00", "waiting until 22:00: rate limit: 429"},
	} {
		if got := ralph.Doing(tt.state, tt.reason, tt.until); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
