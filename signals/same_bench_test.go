package signals_test

import (
	"fmt"
	"testing"

	"ralph"
	"ralph/signals"
)

// BenchmarkDecideWithTenThousandLearnings decides on a session with a
// learning in a project that knows very many.
func BenchmarkDecideWithTenThousandLearnings(b *testing.B) {
	f := signals.Facts{Ending: ralph.Finished, Changed: true, Said: say(lesson, lesson, done), Rules: rules}
	for i := range 10_000 {
		f.Known = append(f.Known, ralph.Learning{ID: int64(i + 1), Scope: "project", Text: fmt.Sprintf("Service %d is restarted every %d minutes by the supervisor because its memory grows without bound", i, i%60)})
	}
	for b.Loop() {
		signals.Decide(f)
	}
}
