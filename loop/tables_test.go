package loop_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/store"
)

func TestAfterAnAgentError(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	b := loop.Backoff{Initial: 10 * time.Second, Max: time.Minute, Tries: 4}
	for _, tt := range []struct {
		name              string
		ending            ralph.Ending
		reset             time.Time
		failures, repeats int
		noWait            bool
		others            bool          // another agent may stand in
		wait              time.Duration // with the most jitter; 0 is none
		ends              bool
	}{
		{"refused credentials end the run", ralph.AuthFailed, time.Time{}, 1, 1, false, false, 0, true},
		{"so does an empty account", ralph.Billing, time.Time{}, 1, 1, false, false, 0, true},
		{"without its tools it is tried once more", ralph.MCPFailed, time.Time{}, 1, 1, false, false, 0, false},
		{"and no further time", ralph.MCPFailed, time.Time{}, 1, 2, false, false, 0, true},
		{"one that did nothing is tried once more", ralph.NoWork, time.Time{}, 1, 1, false, false, 0, false},
		{"and no further time too", ralph.NoWork, time.Time{}, 1, 2, false, false, 0, true},
		{"a prompt that is too long is the task's affair", ralph.PromptTooLong, time.Time{}, 9, 9, false, false, 0, false},
		{"the first wait", ralph.Overloaded, time.Time{}, 1, 1, false, false, 10 * time.Second, false},
		{"the second is twice that", ralph.Overloaded, time.Time{}, 2, 2, false, false, 20 * time.Second, false},
		{"the third twice again", ralph.Network, time.Time{}, 3, 3, false, false, 40 * time.Second, false},
		{"the fourth is the longest", ralph.Network, time.Time{}, 4, 1, false, false, time.Minute, false},
		{"after so many tries the run ends", ralph.Network, time.Time{}, 5, 1, false, false, 0, true},
		{"a rate limit is waited for however often", ralph.RateLimited, time.Time{}, 99, 99, false, false, time.Minute, false},
		{"until it is reset, and a second more", ralph.RateLimited, now.Add(5 * time.Hour), 1, 1, false, false, 5*time.Hour + time.Second, false},
		{"a reset that is past says nothing", ralph.RateLimited, now, 1, 1, false, false, 10 * time.Second, false},
		{"nor does one that is weeks away", ralph.RateLimited, now.Add(9 * 24 * time.Hour), 1, 1, false, false, 10 * time.Second, false},
		{"who does not wait ends, and the next run knows until when", ralph.RateLimited, now.Add(time.Hour), 1, 1, true, false, time.Hour + time.Second, true},
		{"a finished session leads to nothing", ralph.Finished, time.Time{}, 9, 9, false, false, 0, false},
		{"a lost one is the task's affair", ralph.Lost, time.Time{}, 9, 9, false, false, 0, false},
		{"refused credentials have another one work", ralph.AuthFailed, time.Time{}, 1, 1, false, true, time.Minute, false},
		{"and so has one that did nothing", ralph.NoWork, time.Time{}, 1, 1, false, true, 10 * time.Second, false},
		{"so has an empty account", ralph.Billing, time.Time{}, 1, 1, false, true, time.Minute, false},
		{"an overloaded service for long, too", ralph.Overloaded, time.Time{}, 9, 9, false, true, time.Minute, false},
		{"one that is not reached is nobody else's work", ralph.Network, time.Time{}, 5, 1, false, true, 0, true},
		{"nor one without its tools", ralph.MCPFailed, time.Time{}, 1, 2, false, true, 0, true},
		{"who does not wait need not", ralph.RateLimited, now.Add(time.Hour), 1, 1, true, true, time.Hour + time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report := agent.Report{Ending: tt.ending, Reason: "why", ResetAt: tt.reset}
			until, reason, e := loop.AfterError(report, tt.failures, tt.repeats, tt.others, tt.noWait, b, now, 1)
			wait := time.Duration(0)
			if !until.IsZero() {
				wait = until.Sub(now)
			}
			if wait != tt.wait || (e != "") != tt.ends || tt.wait > 0 && !strings.Contains(reason, ": why") {
				t.Errorf("got a wait of %s (%q) and the end %q", wait, reason, e)
			}
			if strings.Contains(e, " times in a row") && !strings.Contains(e, fmt.Sprintf(" %d times in a row", tt.failures)) {
				t.Errorf("after %d failures it ends: %s", tt.failures, e)
			}
			if tt.wait > 0 && tt.reset.Sub(now) <= 0 {
				if least, _, _ := loop.AfterError(report, tt.failures, tt.repeats, tt.others, tt.noWait, b, now, 0); least.Sub(now) != tt.wait/2 {
					t.Errorf("the shortest wait is %s, want half of %s", least.Sub(now), tt.wait)
				}
			}
		})
	}
}

func TestHowARunEndsWithNothingLeftToDo(t *testing.T) {
	t.Parallel()
	failed, blocked := ralph.Task{ID: 1, Status: ralph.Failed}, ralph.Task{ID: 2, Status: ralph.Blocked}
	holds := []store.InboxItem{{Kind: "dependency", TaskID: 2, Holding: true, Ref: store.Reference{Of: store.OfTask, ID: 1}}}
	for _, tt := range []struct {
		name   string
		tasks  []ralph.Task
		inbox  []store.InboxItem
		worked map[int64]bool
		only   int64
		want   []int
	}{
		{"nothing is left", nil, nil, nil, 0, nil},
		{"a task that failed in this run", []ralph.Task{failed}, nil, map[int64]bool{1: true}, 0, []int{ralph.ExitFailed}},
		{"one that failed in an earlier run and holds nothing back", []ralph.Task{failed}, nil, nil, 0, nil},
		{"one that another waits for", []ralph.Task{failed, blocked}, holds, nil, 0, []int{ralph.ExitFailed, ralph.ExitWaiting}},
		{"another kind of item holds no task", []ralph.Task{failed}, []store.InboxItem{{Kind: "failed", TaskID: 1, Ref: store.Reference{Of: store.OfTask, ID: 1}}}, nil, 0, nil},
		{"tasks that wait for people", []ralph.Task{blocked, {ID: 3, Status: ralph.NeedsInput}}, nil, nil, 0, []int{ralph.ExitWaiting}},
		{"of a run for one task, another counts for nothing", []ralph.Task{failed, blocked}, nil, map[int64]bool{1: true}, 3, nil},
		{"the one that the run was for", []ralph.Task{failed}, nil, nil, 1, []int{ralph.ExitFailed}},
		{"what the one waits for", []ralph.Task{failed, blocked}, holds, nil, 2, []int{ralph.ExitFailed, ralph.ExitWaiting}},
		{"what another one waits for", []ralph.Task{failed, blocked}, holds, nil, 3, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			statuses, _ := loop.JudgeRest(tt.tasks, tt.inbox, tt.worked, tt.only)
			if diff := cmp.Diff(tt.want, statuses); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReasonsWithWorkLeft: a task that waits for people has an item in the inbox, and the sentence stays short however
// many there are.
func TestReasonsWithWorkLeft(t *testing.T) {
	t.Parallel()
	asks, behind := ralph.Task{ID: 1, Status: ralph.NeedsInput}, ralph.Task{ID: 2, Status: ralph.Blocked}
	inbox := []store.InboxItem{{Kind: "question", TaskID: 1, Holding: true}, {Kind: "flag", TaskID: 2}}
	_, why := loop.JudgeRest([]ralph.Task{asks, behind}, inbox, nil, 0)
	if diff := cmp.Diff([]string{"waiting for people: TASK-1 (see `ralph inbox`); for other tasks: TASK-2"}, why); diff != "" {
		t.Error(diff)
	}
	_, why = loop.JudgeRest([]ralph.Task{asks}, inbox, nil, 0)
	if diff := cmp.Diff([]string{"waiting for people: TASK-1 (see `ralph inbox`)"}, why); diff != "" {
		t.Error(diff)
	}
	many := make([]ralph.Task, 100_000)
	for i := range many {
		many[i] = ralph.Task{ID: int64(i + 1), Status: ralph.Blocked}
	}
	_, why = loop.JudgeRest(many, nil, nil, 0)
	if len(why) != 1 || len(why[0]) > 300 || !strings.Contains(why[0], "TASK-20 and 99980 more") {
		t.Errorf("%.400q", why)
	}
}
