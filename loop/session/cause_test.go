package session

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/loop/agent"
	"ralph/loop/order"
	"ralph/signals"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// compare compares a text with a golden file, which -update writes.
func compare(t *testing.T, golden, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Error(diff)
	}
}

// TestTableOfCauses prints the causes: the session's ending, whether that counts as an attempt, whether it stops a
// check, and the words for it.
func TestTableOfCauses(t *testing.T) {
	limits := order.Limits{Time: 45 * time.Minute, Idle: 10 * time.Minute}
	var b strings.Builder
	for _, c := range slices.Sorted(maps.Keys(causes)) {
		var cause error = c
		if c == runKilled {
			cause = context.Canceled
		}
		if got := causeOf(fmt.Errorf("it ended: %w", cause)); got != c {
			t.Errorf("%q is taken for %q", c, got)
		}
		r := withCause(limits, agent.Report{Ending: ralph.Interrupted, Reason: "killed"}, cause)
		d := signals.Decide(signals.Facts{
			Task: signals.Task{ID: 1}, Ending: r.Ending, EndingWhy: r.Reason,
			Rules: signals.Rules{StuckLimit: 3, VerifyFailures: 3, Attempts: 10},
		})
		fmt.Fprintf(&b, "%s\n\tending: %s, attempts: %d, calls a check off: %t\n\t%s\n", string(c), r.Ending, d.Attempts, causes[c].people, r.Reason)
	}
	compare(t, "testdata/causes.txt", b.String())
	for _, c := range requests {
		if _, ok := causes[c]; !ok {
			t.Errorf("people ask for %q, which is no cause", c)
		}
	}
}
