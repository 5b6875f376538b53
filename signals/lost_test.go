package signals_test

import (
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/signals"
)

func TestLostSessionsAreBounded(t *testing.T) {
	green := []ralph.Check{{Passed: true}}
	for _, tt := range []struct {
		name   string
		facts  signals.Facts
		lost   int // before
		count  int // after
		status ralph.Status
	}{
		{"the first lost session", signals.Facts{Ending: ralph.Lost}, 0, 1, ralph.Pending},
		{"the fourth in a row", signals.Facts{Ending: ralph.Lost}, 3, 4, ralph.Pending},
		{"after the fifth a person is waited for", signals.Facts{Ending: ralph.Lost}, 4, 5, ralph.Blocked},
		{"and after each further one", signals.Facts{Ending: ralph.Lost}, 5, 6, ralph.Blocked},
		{"what it reported is progress, and it was lost all the same", signals.Facts{Ending: ralph.Lost, Said: say(partial), Changed: true}, 4, 5, ralph.Blocked},
		{"a question that it asked is what is waited for", signals.Facts{Ending: ralph.Lost, Said: say(ask)}, 4, 5, ralph.NeedsInput},
		{"a done that holds counts, however its session ended", signals.Facts{Ending: ralph.Lost, Said: say(done), Verify: green}, 4, 0, ralph.Completed},
		{"a done that could not be checked", signals.Facts{Ending: ralph.Finished, Said: say(done), Verify: green, Unchecked: "x"}, 4, 5, ralph.Blocked},
		{"a session that ended begins anew", signals.Facts{Ending: ralph.Finished, Said: say(partial), Changed: true}, 4, 0, ralph.Pending},
		{"a time-out too", signals.Facts{Ending: ralph.TimedOut}, 4, 0, ralph.Pending},
		{"ralph's own stop says nothing", signals.Facts{Ending: ralph.Interrupted}, 4, 4, ralph.Pending},
		{"nor does a claim that was void for it", signals.Facts{Ending: ralph.Interrupted, Said: say(done), Void: true}, 4, 4, ralph.Pending},
		{"nor the agent's service", signals.Facts{Ending: ralph.Overloaded}, 4, 4, ralph.Pending},
		{"one that a person cancelled was not lost", signals.Facts{Ending: ralph.Lost, CancelledBy: "ann"}, 4, 4, ralph.Cancelled},
		{"a task that has failed does not wait", signals.Facts{Task: signals.Task{StuckCount: 2}, Ending: ralph.Lost, Said: say(stuck)}, 4, 5, ralph.Failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.facts.Rules, tt.facts.Task.LostCount, tt.facts.EndingWhy = rules, tt.lost, "the agent was killed by SIGKILL"
			d := signals.Decide(tt.facts)
			if d.LostCount != tt.count || d.Status != tt.status {
				t.Errorf("got %s with %d lost, want %s with %d (%s)", d.Status, d.LostCount, tt.status, tt.count, d.StatusReason)
			}
			if (d.Blocker != "") != (d.Status == ralph.Blocked) || d.Blocker != "" && !strings.Contains(d.Blocker, "sessions in a row were lost; the last: ") {
				t.Errorf("a person is asked %q", d.Blocker)
			}
			if d.Attempts != 0 && (tt.facts.Ending == ralph.Lost || tt.facts.Unchecked != "") {
				t.Errorf("%d attempts", d.Attempts)
			}
		})
	}
}

func TestWaitsAfterLostSessions(t *testing.T) {
	for lost, want := range map[int]time.Duration{
		-1: 0, 0: 0, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 9: 256 * time.Second, 10: 512 * time.Second,
		11: 10 * time.Minute, 60: 10 * time.Minute, 1 << 40: 10 * time.Minute,
	} {
		if got := signals.LostWait(lost); got != want {
			t.Errorf("after %d: %s, want %s", lost, got, want)
		}
	}
}

func TestUnknownFactsAreInTheReason(t *testing.T) {
	d := signals.Decide(signals.Facts{Ending: ralph.Finished, Said: say(done), Unseen: []string{"the changed files: no index", "the saved files"}, Rules: rules})
	for _, text := range []string{d.Reason, d.StatusReason} {
		if !strings.HasSuffix(text, "it works; could not be looked at: the changed files: no index; the saved files") {
			t.Errorf("got %q", text)
		}
	}
}
