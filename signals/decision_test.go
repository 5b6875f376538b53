package signals_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ralph"
	"ralph/signals"
)

// TestDecisionsInFull compares whole decisions, to the last word. TestDecide
// covers the rules, one per row; this test covers their side effects.
func TestDecisionsInFull(t *testing.T) {
	red := ralph.Check{Command: "\n  make test  \nand more", Exit: 1}
	green := ralph.Check{Command: "make lint", Passed: true}
	excused := func(names ...string) ralph.Check {
		return ralph.Check{Command: "go test", Exit: 1, Passed: true, Excused: names}
	}
	upstream := func(u signals.Upstream) map[int64]signals.Upstream { return map[int64]signals.Upstream{1: u} }
	blocked := func(why string) signals.Decision {
		return signals.Decision{
			Closing: ralph.VerbStuck, Status: ralph.Blocked, Waits: ralph.Waits{Blockers: 1}, StatusReason: "waits for a blocker to be resolved", Reason: "stuck: no idea",
			Attempts: 1, StuckCount: 1, Outcome: ralph.OutcomeFailure, Stagnant: true, Holds: []signals.Hold{{Comment: 1, Why: why}},
		}
	}
	tests := []struct {
		name  string
		facts signals.Facts
		want  signals.Decision // without Mover if it is the verdict, and without Reason if it is StatusReason
	}{
		// Rule 2.
		{
			"done that nothing checks clears the counters",
			signals.Facts{Task: signals.Task{Attempts: 4, StuckCount: 2, VerifyFailures: 2, PromptTooLong: 1}, Ending: ralph.Finished, Said: say(done), Changed: true},
			signals.Decision{Closing: ralph.VerbDone, Accepted: true, Status: ralph.Completed, StatusReason: "done (nothing is configured to verify it): it works", Attempts: 5, Outcome: ralph.OutcomeSuccess},
		},
		{
			"done of a complete plan clears the counters, whatever else is known",
			signals.Facts{
				Task: signals.Task{StuckCount: 2, VerifyFailures: 2}, Ending: ralph.Finished, Said: say(done), Changed: true,
				Untouched: true, Planned: "planned: 5 tasks", Verify: []ralph.Check{red},
			},
			signals.Decision{
				Closing: ralph.VerbDone, Accepted: true, Status: ralph.Completed, StatusReason: "planned: 5 tasks: it works",
				Attempts: 1, Outcome: ralph.OutcomeSuccess,
			},
		},
		{
			"done that answers the open blocking flag",
			signals.Facts{Ending: ralph.Finished, Changed: true, Said: []signals.Said{
				{ID: 1, Payload: signals.Flag{What: "a", Severity: "blocking", Category: "bug"}, Resolved: true},
				{ID: 2, Payload: signals.Flag{What: "b", Severity: "blocking", Category: "bug"}},
				{ID: 3, Payload: signals.Flag{What: "c", Severity: "info", Category: "bug"}},
				{ID: 4, Payload: signals.Done{Summary: "it works", FlagsAnswered: "b is mended"}},
			}},
			signals.Decision{
				Closing: ralph.VerbDone, Accepted: true, Status: ralph.Completed, StatusReason: "done (nothing is configured to verify it): it works",
				Attempts: 1, Outcome: ralph.OutcomeSuccess, Announce: []int64{1, 2}, Answered: []int64{2},
			},
		},
		{
			"done without a change, confirmed",
			signals.Facts{Ending: ralph.Finished, Said: say(done), Untouched: true, Vouched: true},
			signals.Decision{
				Closing: ralph.VerbDone, Accepted: true, Status: ralph.Completed, StatusReason: "done (nothing is configured to verify it; no changes): it works",
				Attempts: 1, Outcome: ralph.OutcomeSuccess, Stagnant: true,
			},
		},
		{
			"done and verified is never stagnant",
			signals.Facts{Ending: ralph.Finished, Said: say(done), Verify: []ralph.Check{green}},
			signals.Decision{Closing: ralph.VerbDone, Accepted: true, Verified: true, Status: ralph.Completed, StatusReason: "done and verified: it works", Attempts: 1, Outcome: ralph.OutcomeSuccess},
		},
		{
			"done and verified, but for a test that failed before",
			signals.Facts{Ending: ralph.Finished, Said: say(done), Changed: true, Verify: []ralph.Check{green, excused("TestA")}},
			signals.Decision{Closing: ralph.VerbDone, Accepted: true, Verified: true, Status: ralph.Completed, StatusReason: "done and verified (1 test fails as before): it works", Attempts: 1, Outcome: ralph.OutcomeSuccess},
		},
		{
			"done and verified without a change, but for tests of two commands that failed before",
			signals.Facts{Ending: ralph.Finished, Said: say(done), Changed: true, Untouched: true, Verify: []ralph.Check{excused("TestA"), excused("TestB", "TestC")}},
			signals.Decision{
				Closing: ralph.VerbDone, Accepted: true, Verified: true, Status: ralph.Completed, StatusReason: "done and verified (no changes; 3 tests fail as before): it works",
				Attempts: 1, Outcome: ralph.OutcomeSuccess,
			},
		},
		{
			"done with protected files for a person to review",
			signals.Facts{Ending: ralph.Finished, Said: say(done), Changed: true, Protected: []string{"a", "b", "c", "d", "e"}, Rules: signals.Rules{ReviewProtect: true}},
			signals.Decision{
				Closing: ralph.VerbDone, Accepted: true, Status: ralph.NeedsInput, Approval: &ralph.Approval{Protected: []string{"a", "b", "c", "d", "e"}}, Attempts: 1, Outcome: ralph.OutcomeSuccess,
				StatusReason: "waits for approval of changed protected files (a, b, c, d, e); done (nothing is configured to verify it): it works",
			},
		},
		{
			"done that is refused names everything that fails",
			signals.Facts{
				Task: signals.Task{VerifyFailures: 1, StuckCount: 1}, Ending: ralph.Finished, Said: say(done), Changed: true, Protected: []string{"a", "b", "c", "d", "e", "f"},
				Verify: []ralph.Check{
					red, green,
					{Command: "slow", Exit: -1, Error: "stopped after 1m0s", Failures: []string{"TestA"}},
					{Command: "go test", Exit: 1, Failures: []string{"TestA", "TestB"}},
					{Command: "npm ci", Exit: 1, Cause: ralph.NoNetwork},
				},
			},
			signals.Decision{
				Closing: ralph.VerbDone, Status: ralph.Pending, Attempts: 1, StuckCount: 1, VerifyFailures: 2, Outcome: ralph.OutcomeFailure,
				StatusReason: "done was refused: `make test` exits 1, `slow` stopped after 1m0s, `go test` exits 1 (TestA, TestB), `npm ci` exits 1 (no network: `verify.network: true` in ralph.yaml), protected files were changed (a, b, c, d, e and 1 more)",
			},
		},
		{
			"done that is refused for the third time",
			signals.Facts{Task: signals.Task{VerifyFailures: 2}, Ending: ralph.Finished, Said: say(done), Changed: true, Verify: []ralph.Check{red}},
			signals.Decision{
				Closing: ralph.VerbDone, Status: ralph.Failed, StatusReason: "done was refused: `make test` exits 1; refused 3 times",
				Attempts: 1, VerifyFailures: 3, Outcome: ralph.OutcomeFailure,
			},
		},
		{
			"done without a change, not confirmed",
			signals.Facts{Ending: ralph.Finished, Said: say(done), Untouched: true},
			signals.Decision{
				Closing: ralph.VerbDone, Status: ralph.Pending, StatusReason: "done without any change, and not confirmed: it works",
				Attempts: 1, StuckCount: 1, Outcome: ralph.OutcomeFailure, Stagnant: true,
			},
		},
		{
			"done without a change of a session that could not be asked",
			signals.Facts{Ending: ralph.Lost, Said: say(done), Untouched: true},
			signals.Decision{Closing: ralph.VerbDone, Status: ralph.Pending, StatusReason: "done without any change, and not confirmed: it works", LostCount: 1, Outcome: ralph.OutcomeFailure},
		},
		{
			"a verified done of a session that was lost is no attempt",
			signals.Facts{Task: signals.Task{Attempts: 3}, Ending: ralph.Lost, Said: say(done), Verify: []ralph.Check{green}},
			signals.Decision{Closing: ralph.VerbDone, Accepted: true, Verified: true, Status: ralph.Completed, StatusReason: "done and verified: it works", Attempts: 3, Outcome: ralph.OutcomeSuccess},
		},
		{
			"what was asked holds nothing back beside an accepted done",
			signals.Facts{Ending: ralph.Finished, Said: say(ask, outside, done), Changed: true, Waits: ralph.Waits{Questions: 1, Blockers: 1, Tasks: []int64{4}}},
			signals.Decision{Closing: ralph.VerbDone, Accepted: true, Status: ralph.Completed, StatusReason: "done (nothing is configured to verify it): it works", Attempts: 1, Outcome: ralph.OutcomeSuccess},
		},
		// Rule 1.
		{
			"a void done",
			signals.Facts{Task: signals.Task{Attempts: 1}, Ending: ralph.Finished, EndingWhy: "the contract was changed", Said: say(done), Void: true, Changed: true},
			signals.Decision{Status: ralph.Pending, StatusReason: "the contract was changed", Attempts: 1, Outcome: ralph.OutcomeFailure},
		},
		{
			"no closing verb",
			signals.Facts{Ending: ralph.Finished, EndingWhy: "it ended", Changed: true},
			signals.Decision{
				Closing: ralph.VerbStuck, Inferred: true, Status: ralph.Pending, StatusReason: "stuck: the agent stopped without a verdict",
				Attempts: 1, StuckCount: 1, Outcome: ralph.OutcomeFailure,
			},
		},
		{
			"no closing verb until the time was up",
			signals.Facts{Ending: ralph.TimedOut, EndingWhy: "timed out after 45m0s"},
			signals.Decision{
				Closing: ralph.VerbStuck, Inferred: true, Status: ralph.Pending, StatusReason: "stuck: timed out after 45m0s",
				Attempts: 1, StuckCount: 1, Outcome: ralph.OutcomeTimeout, Stagnant: true,
			},
		},
		{
			"an accepted done of a session whose time was up is a success",
			signals.Facts{Ending: ralph.TimedOut, Said: say(done), Changed: true},
			signals.Decision{Closing: ralph.VerbDone, Accepted: true, Status: ralph.Completed, StatusReason: "done (nothing is configured to verify it): it works", Attempts: 1, Outcome: ralph.OutcomeSuccess},
		},
		{
			"interrupted",
			signals.Facts{Task: signals.Task{Attempts: 2, StuckCount: 2, VerifyFailures: 2, PromptTooLong: 2}, Ending: ralph.Interrupted, EndingWhy: "interrupted: by ann"},
			signals.Decision{Status: ralph.Pending, StatusReason: "interrupted: by ann", Attempts: 2, StuckCount: 2, VerifyFailures: 2, Outcome: ralph.OutcomeFailure},
		},
		{
			"lost",
			signals.Facts{Task: signals.Task{Attempts: 2, LostCount: 3}, Ending: ralph.Lost, EndingWhy: "lost: it is gone"},
			signals.Decision{Status: ralph.Pending, StatusReason: "lost: it is gone", Attempts: 2, LostCount: 4, Outcome: ralph.OutcomeFailure},
		},
		{
			"lost for the fifth time in a row",
			signals.Facts{Task: signals.Task{LostCount: 4}, Ending: ralph.Lost, EndingWhy: "lost: it is gone"},
			signals.Decision{
				Status: ralph.Blocked, Waits: ralph.Waits{Blockers: 1}, StatusReason: "waits for a blocker to be resolved; 5 sessions in a row were lost; the last: lost: it is gone",
				Reason: "lost: it is gone", LostCount: 5, Blocker: "5 sessions in a row were lost; the last: lost: it is gone", Outcome: ralph.OutcomeFailure,
			},
		},
		{
			"lost for the fifth time, with a question that holds the task back anyway",
			signals.Facts{Task: signals.Task{LostCount: 4}, Ending: ralph.Lost, EndingWhy: "lost: it is gone", Waits: ralph.Waits{Questions: 1}},
			signals.Decision{
				Status: ralph.NeedsInput, Waits: ralph.Waits{Questions: 1}, StatusReason: "waits for an answer", Reason: "lost: it is gone", LostCount: 5, Outcome: ralph.OutcomeFailure,
			},
		},
		{
			"done that conflicts with what has been merged",
			signals.Facts{
				Task: signals.Task{Attempts: 2, TimesSentBack: 1}, Ending: ralph.Finished, Said: say(done), Changed: true,
				Conflict: "main has moved", Conflicts: []string{"a.go"},
			},
			signals.Decision{
				Closing: ralph.VerbDone, Status: ralph.Pending, StatusReason: "main has moved", Attempts: 2, Outcome: ralph.OutcomeFailure,
				SentBack: "main has moved", Conflicts: []string{"a.go"}, TimesSentBack: 2,
			},
		},
		{
			"done that conflicts although nothing else was merged",
			signals.Facts{Task: signals.Task{TimesSentBack: 2}, Ending: ralph.Finished, Said: say(done), Changed: true, Conflict: "main has moved"},
			signals.Decision{
				Closing: ralph.VerbDone, Status: ralph.Blocked, Reason: "main has moved", Outcome: ralph.OutcomeFailure, SentBack: "main has moved", TimesSentBack: 3,
				Waits: ralph.Waits{Blockers: 1}, StatusReason: "waits for a blocker to be resolved; could not be merged, 3 times, at last by itself: main has moved",
				Blocker: "could not be merged, 3 times, at last by itself: main has moved",
			},
		},
		{
			"interrupted after many were lost",
			signals.Facts{Task: signals.Task{LostCount: 7}, Ending: ralph.Interrupted, EndingWhy: "interrupted: by ann"},
			signals.Decision{Status: ralph.Pending, StatusReason: "interrupted: by ann", LostCount: 7, Outcome: ralph.OutcomeFailure},
		},
		{
			"a done that could not be checked, with what else could not be looked at",
			signals.Facts{
				Task: signals.Task{Attempts: 2}, Ending: ralph.Finished, EndingWhy: "it ended", Said: say(done), Unchecked: "no space left", Unseen: []string{"a: denied", "b: gone"}, Changed: true,
			},
			signals.Decision{
				Status: ralph.Pending, StatusReason: "no space left; could not be looked at: a: denied; b: gone", Attempts: 2, LostCount: 1, Outcome: ralph.OutcomeFailure,
			},
		},
		{
			"a void done that could not be checked either is nobody's loss",
			signals.Facts{Ending: ralph.Interrupted, EndingWhy: "the contract was changed", Said: say(done), Void: true, Unchecked: "no space left"},
			signals.Decision{Status: ralph.Pending, StatusReason: "the contract was changed", Outcome: ralph.OutcomeFailure},
		},
		{
			"whoever is heard again is not lost any more",
			signals.Facts{Task: signals.Task{LostCount: 4}, Ending: ralph.TimedOut, Said: say(stuck), Changed: true},
			signals.Decision{Closing: ralph.VerbStuck, Status: ralph.Pending, StatusReason: "stuck: no idea", Attempts: 1, StuckCount: 1, Outcome: ralph.OutcomeTimeout},
		},
		{
			"nor is one that was lost when its done held",
			signals.Facts{Task: signals.Task{LostCount: 4}, Ending: ralph.Lost, Said: say(done), Changed: true},
			signals.Decision{Closing: ralph.VerbDone, Accepted: true, Status: ralph.Completed, StatusReason: "done (nothing is configured to verify it): it works", Outcome: ralph.OutcomeSuccess},
		},
		{
			"one whose task was called off was not lost",
			signals.Facts{Task: signals.Task{LostCount: 4}, Ending: ralph.Lost, EndingWhy: "lost: it is gone", CancelledBy: "ann"},
			signals.Decision{
				Status: ralph.Cancelled, Mover: ralph.Person, StatusReason: "cancelled by ann while it was worked on", Reason: "lost: it is gone", LostCount: 4, Outcome: ralph.OutcomeFailure,
			},
		},
		{
			"an agent error",
			signals.Facts{Task: signals.Task{Attempts: 2}, Ending: ralph.Network, EndingWhy: "no route"},
			signals.Decision{Status: ralph.Pending, StatusReason: "no route", Attempts: 2, Outcome: ralph.OutcomeFailure},
		},
		{
			"a prompt that is too long for the second time",
			signals.Facts{Task: signals.Task{PromptTooLong: 1}, Ending: ralph.PromptTooLong, EndingWhy: "too long"},
			signals.Decision{
				Status: ralph.Pending, StatusReason: "the prompt is too long for the agent; it is tried again with half the budget",
				PromptTooLong: 2, Outcome: ralph.OutcomeFailure,
			},
		},
		{
			"a prompt that stays too long",
			signals.Facts{Task: signals.Task{PromptTooLong: 2}, Ending: ralph.PromptTooLong, EndingWhy: "too long"},
			signals.Decision{
				Status: ralph.Failed, PromptTooLong: 3, Outcome: ralph.OutcomeFailure,
				StatusReason: "the prompt is too long for the agent, even after its budget was halved 2 times; shorten the task's description or split it",
			},
		},
		// Rules 3 and 4.
		{
			"a partial that changed something",
			signals.Facts{Task: signals.Task{StuckCount: 2, VerifyFailures: 1}, Ending: ralph.Finished, Said: say(partial), Changed: true},
			signals.Decision{Closing: ralph.VerbPartial, Status: ralph.Pending, StatusReason: "partial: the rest", Attempts: 1, VerifyFailures: 1, Outcome: ralph.OutcomeSuccess},
		},
		{
			"a partial that changed nothing is no success",
			signals.Facts{Ending: ralph.Finished, Said: say(partial)},
			signals.Decision{
				Closing: ralph.VerbPartial, Status: ralph.Pending, StatusReason: "stopped; changed nothing: half",
				Attempts: 1, StuckCount: 1, Outcome: ralph.OutcomeFailure, Stagnant: true,
			},
		},
		{
			"the third partial in a row that changed nothing",
			signals.Facts{Task: signals.Task{StuckCount: 2}, Ending: ralph.Finished, Said: say(partial)},
			signals.Decision{
				Closing: ralph.VerbPartial, Status: ralph.Failed, StatusReason: "stopped; changed nothing: half (stuck 3 times)",
				Attempts: 1, StuckCount: 3, Outcome: ralph.OutcomeFailure, Stagnant: true,
			},
		},
		{
			"a partial that taught something new is a success",
			signals.Facts{Task: signals.Task{StuckCount: 1}, Ending: ralph.Finished, Said: say(lesson, partial)},
			signals.Decision{
				Closing: ralph.VerbPartial, Status: ralph.Pending, StatusReason: "partial: the rest", Attempts: 1, Outcome: ralph.OutcomeSuccess,
				Learn: []signals.Learn{{Comments: []int64{1}, Text: "the cache lives in /var", Kind: "discovery", Scope: "project"}},
			},
		},
		{
			"a partial of a session whose time was up",
			signals.Facts{Ending: ralph.TimedOut, Said: say(partial), Changed: true},
			signals.Decision{Closing: ralph.VerbPartial, Status: ralph.Pending, StatusReason: "partial: the rest", Attempts: 1, Outcome: ralph.OutcomeTimeout},
		},
		{
			"a stuck that taught something new leaves something behind",
			signals.Facts{Task: signals.Task{StuckCount: 1}, Ending: ralph.Finished, Said: say(lesson, stuck)},
			signals.Decision{
				Closing: ralph.VerbStuck, Status: ralph.Pending, StatusReason: "stuck: no idea", Attempts: 1, StuckCount: 2, Outcome: ralph.OutcomeFailure,
				Learn: []signals.Learn{{Comments: []int64{1}, Text: "the cache lives in /var", Kind: "discovery", Scope: "project"}},
			},
		},
		{
			"the third stuck",
			signals.Facts{Task: signals.Task{StuckCount: 2}, Ending: ralph.Finished, Said: say(stuck), Changed: true},
			signals.Decision{Closing: ralph.VerbStuck, Status: ralph.Failed, StatusReason: "stuck: no idea (stuck 3 times)", Attempts: 1, StuckCount: 3, Outcome: ralph.OutcomeFailure},
		},
		// Rule 5.
		{
			"a question, also one of before",
			signals.Facts{Ending: ralph.Finished, Said: say(mention, ask, partial), Changed: true, Waits: ralph.Waits{Questions: 1}},
			signals.Decision{
				Closing: ralph.VerbPartial, Status: ralph.NeedsInput, Waits: ralph.Waits{Questions: 2}, StatusReason: "waits for an answer", Reason: "partial: the rest",
				Attempts: 1, Outcome: ralph.OutcomeSuccess, Holds: []signals.Hold{{Comment: 2}},
			},
		},
		{
			"a question of before alone",
			signals.Facts{Ending: ralph.Finished, Said: say(partial), Changed: true, Waits: ralph.Waits{Questions: 1}},
			signals.Decision{
				Closing: ralph.VerbPartial, Status: ralph.NeedsInput, Waits: ralph.Waits{Questions: 1}, StatusReason: "waits for an answer", Reason: "partial: the rest",
				Attempts: 1, Outcome: ralph.OutcomeSuccess,
			},
		},
		{
			"a blocker of before alone",
			signals.Facts{Ending: ralph.Finished, Said: say(partial), Changed: true, Waits: ralph.Waits{Blockers: 1}},
			signals.Decision{
				Closing: ralph.VerbPartial, Status: ralph.Blocked, Waits: ralph.Waits{Blockers: 1}, StatusReason: "waits for a blocker to be resolved", Reason: "partial: the rest",
				Attempts: 1, Outcome: ralph.OutcomeSuccess,
			},
		},
		{
			"a dependency of before alone",
			signals.Facts{Ending: ralph.Finished, Said: say(partial), Changed: true, Waits: ralph.Waits{Tasks: []int64{4}}},
			signals.Decision{
				Closing: ralph.VerbPartial, Status: ralph.Blocked, Waits: ralph.Waits{Tasks: []int64{4}}, StatusReason: "waits for TASK-4", Reason: "partial: the rest",
				Attempts: 1, Outcome: ralph.OutcomeSuccess,
			},
		},
		{
			"all that can hold back, of a task that would have failed",
			signals.Facts{
				Task: signals.Task{StuckCount: 2, Attempts: 9}, Ending: ralph.Finished, Said: say(up, outside, ask, stuck), Upstream: upstream(signals.Upstream{Matches: []int64{7}}),
			},
			signals.Decision{
				Closing: ralph.VerbStuck, Status: ralph.NeedsInput, Reason: "stuck: no idea (stuck 3 times)",
				Waits: ralph.Waits{Questions: 1, Blockers: 1, Tasks: []int64{7}}, StatusReason: "waits for an answer and a blocker to be resolved and TASK-7",
				Attempts: 10, StuckCount: 3, Outcome: ralph.OutcomeFailure, Stagnant: true,
				Holds: []signals.Hold{{Comment: 2, Why: "waits for something outside"}, {Comment: 3}}, DependsOn: []int64{7},
			},
		},
		{
			"a task upstream",
			signals.Facts{Ending: ralph.Finished, Said: say(up, stuck), Upstream: upstream(signals.Upstream{Matches: []int64{7}})},
			signals.Decision{
				Closing: ralph.VerbStuck, Status: ralph.Blocked, Waits: ralph.Waits{Tasks: []int64{7}}, StatusReason: "waits for TASK-7", Reason: "stuck: no idea",
				Attempts: 1, StuckCount: 1, Outcome: ralph.OutcomeFailure, Stagnant: true, DependsOn: []int64{7},
			},
		},
		{
			"a task upstream that has completed",
			signals.Facts{Ending: ralph.Finished, Said: say(up, stuck), Upstream: upstream(signals.Upstream{Matches: []int64{7}, Completed: true})},
			signals.Decision{Closing: ralph.VerbStuck, Status: ralph.Pending, StatusReason: "stuck: no idea", Attempts: 1, StuckCount: 1, Outcome: ralph.OutcomeFailure, Stagnant: true},
		},
		{"no such task upstream", signals.Facts{Ending: ralph.Finished, Said: say(up, stuck)}, blocked(`no task matches "#7"`)},
		{
			"several such tasks upstream",
			signals.Facts{Ending: ralph.Finished, Said: say(up, stuck), Upstream: upstream(signals.Upstream{Matches: []int64{7, 8}})},
			blocked(`several tasks match "#7": TASK-7, TASK-8`),
		},
		{
			"upstream is the task itself",
			signals.Facts{Task: signals.Task{ID: 7}, Ending: ralph.Finished, Said: say(up, stuck), Upstream: upstream(signals.Upstream{Matches: []int64{7}})},
			blocked(`"#7" is this task itself`),
		},
		{
			"upstream waits for the task",
			signals.Facts{Ending: ralph.Finished, Said: say(up, stuck), Upstream: upstream(signals.Upstream{Matches: []int64{7}, Cycle: true})},
			blocked("TASK-7 depends on this task already; waiting for it would never end (a cycle)"),
		},
		{
			"an answered question and a resolved blocker, and one that is not",
			signals.Facts{Ending: ralph.Finished, Changed: true, Said: []signals.Said{
				{ID: 1, Payload: ask, Answered: true}, {ID: 2, Payload: outside, Resolved: true}, {ID: 3, Payload: outside}, {ID: 4, Payload: partial},
			}},
			signals.Decision{
				Closing: ralph.VerbPartial, Status: ralph.Blocked, Waits: ralph.Waits{Blockers: 1}, StatusReason: "waits for a blocker to be resolved", Reason: "partial: the rest",
				Attempts: 1, Outcome: ralph.OutcomeSuccess, Holds: []signals.Hold{{Comment: 3, Why: "waits for something outside"}},
			},
		},
		// Attempts, and people.
		{
			"the last attempt",
			signals.Facts{Task: signals.Task{Attempts: 9}, Ending: ralph.Finished, Said: say(partial), Changed: true},
			signals.Decision{
				Closing: ralph.VerbPartial, Status: ralph.Failed, StatusReason: "10 attempts without success; last: partial: the rest", Reason: "partial: the rest",
				Attempts: 10, Outcome: ralph.OutcomeSuccess,
			},
		},
		{
			"the last but one",
			signals.Facts{Task: signals.Task{Attempts: 8}, Ending: ralph.Finished, Said: say(partial), Changed: true},
			signals.Decision{Closing: ralph.VerbPartial, Status: ralph.Pending, StatusReason: "partial: the rest", Attempts: 9, Outcome: ralph.OutcomeSuccess},
		},
		{
			"the last attempt of a task that waits",
			signals.Facts{Task: signals.Task{Attempts: 9}, Ending: ralph.Finished, Said: say(ask, partial), Changed: true},
			signals.Decision{
				Closing: ralph.VerbPartial, Status: ralph.NeedsInput, Waits: ralph.Waits{Questions: 1}, StatusReason: "waits for an answer", Reason: "partial: the rest",
				Attempts: 10, Outcome: ralph.OutcomeSuccess, Holds: []signals.Hold{{Comment: 1}},
			},
		},
		{
			"a person's word outranks an accepted done",
			signals.Facts{Ending: ralph.Finished, Said: say(done), Changed: true, CancelledBy: "ann"},
			signals.Decision{
				Closing: ralph.VerbDone, Accepted: true, Status: ralph.Cancelled, Mover: ralph.Person, StatusReason: "cancelled by ann while it was worked on",
				Reason: "done (nothing is configured to verify it): it works", Attempts: 1, Outcome: ralph.OutcomeSuccess,
			},
		},
		// Rule 7.
		{
			"blocking flags are announced, and no others",
			signals.Facts{Ending: ralph.Finished, Changed: true, Said: say(
				signals.Flag{What: "a", Severity: "blocking", Category: "bug"}, signals.Flag{What: "b", Severity: "warning", Category: "bug"},
				signals.Flag{What: "c", Severity: "info", Category: "bug"}, signals.Flag{What: "d", Severity: "blocking", Category: "bug"}, partial,
			)},
			signals.Decision{Closing: ralph.VerbPartial, Status: ralph.Pending, StatusReason: "partial: the rest", Attempts: 1, Outcome: ralph.OutcomeSuccess, Announce: []int64{1, 4}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			review := tt.facts.Rules.ReviewProtect
			tt.facts.Rules = rules
			tt.facts.Rules.ReviewProtect = review
			if tt.want.Mover == "" {
				tt.want.Mover = ralph.Verdict
			}
			if tt.want.Reason == "" {
				tt.want.Reason = tt.want.StatusReason
			}
			if diff := cmp.Diff(tt.want, signals.Decide(tt.facts), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOnlySessionsWithTheTaskToThemselvesAreAttempts: any ending changes
// either all counters or none.
func TestOnlySessionsWithTheTaskToThemselvesAreAttempts(t *testing.T) {
	for _, ending := range ralph.Endings {
		want := 5
		if ending == ralph.Finished || ending == ralph.TimedOut {
			want = 6
		}
		for _, said := range [][]signals.Said{nil, say(stuck), say(partial)} {
			d := signals.Decide(signals.Facts{Task: signals.Task{Attempts: 5}, Ending: ending, Said: said, Rules: rules})
			if d.Attempts != want || d.Stagnant != (want == 6) {
				t.Errorf("%s, %v: %d attempts, stagnant %t; want %d", ending, said, d.Attempts, d.Stagnant, want)
			}
		}
	}
}

// TestATaskWaitsForAnotherOneTwice is about a signal that names a task for which its task waits already.
func TestATaskWaitsForAnotherOneTwice(t *testing.T) {
	f := signals.Facts{
		Ending: ralph.Finished, Changed: true, Said: say(up, partial), Waits: ralph.Waits{Tasks: []int64{4, 7}},
		Upstream: map[int64]signals.Upstream{1: {Matches: []int64{4}}}, Rules: rules,
	}
	d := signals.Decide(f)
	if want := (ralph.Waits{Tasks: []int64{4, 7}}); d.Status != ralph.Blocked || !reflect.DeepEqual(d.Waits, want) || d.Waits.People() != 0 {
		t.Errorf("%s, %+v: %s", d.Status, d.Waits, d.StatusReason)
	}
}

func TestProposals(t *testing.T) {
	task := func(what, feature string) signals.Suggest {
		return signals.Suggest{What: what, Kind: "new_task", Why: " it helps ", Feature: feature}
	}
	long := strings.Repeat("ä", 120)
	for _, tt := range []struct {
		name  string
		facts signals.Facts
		want  []signals.Proposal
	}{
		{"nothing but new tasks", signals.Facts{Said: say(signals.Suggest{What: "x", Kind: "split", Why: "w"}, signals.Suggest{What: "y", Kind: "deprecate", Why: "w"})}, nil},
		{"what is in the queue or was said already is left out", signals.Facts{
			Titles: map[string]bool{"add a cache": true}, Said: say(task("Add a cache.", ""), task("Add b", ""), task("add `B`!", ""), task("Add c", "")),
		}, []signals.Proposal{
			{Comment: 2, Title: "Add b", Status: ralph.Proposed, Description: "Add b\n\nWhy: it helps"},
			{Comment: 4, Title: "Add c", Status: ralph.Proposed, Description: "Add c\n\nWhy: it helps"},
		}},
		{"as many as the day has room for enter the queue", signals.Facts{
			Rules: signals.Rules{AutoApprove: 3}, Approved: 1, Titles: map[string]bool{"known": true}, Said: say(task("Known", ""), task("A", ""), task("B", ""), task("C", "")),
		}, []signals.Proposal{
			{Comment: 2, Title: "A", Status: ralph.Pending, Description: "A\n\nWhy: it helps"},
			{Comment: 3, Title: "B", Status: ralph.Pending, Description: "B\n\nWhy: it helps"},
			{Comment: 4, Title: "C", Status: ralph.Proposed, Description: "C\n\nWhy: it helps"},
		}},
		{"none where the day is full", signals.Facts{Rules: signals.Rules{AutoApprove: 2}, Approved: 2, Said: say(task("A", ""))}, []signals.Proposal{
			{Comment: 1, Title: "A", Status: ralph.Proposed, Description: "A\n\nWhy: it helps"},
		}},
		{"none where the limit was lowered since", signals.Facts{Rules: signals.Rules{AutoApprove: 1}, Approved: 5, Said: say(task("A", ""))}, []signals.Proposal{
			{Comment: 1, Title: "A", Status: ralph.Proposed, Description: "A\n\nWhy: it helps"},
		}},
		{"the feature is the one that is named, or the task's", signals.Facts{
			Task: signals.Task{Feature: "billing"}, Features: map[string]bool{"billing": true, "audit": true}, Said: say(task("A", ""), task("B", "audit"), task("C", "unheard")),
		}, []signals.Proposal{
			{Comment: 1, Title: "A", Feature: "billing", Status: ralph.Proposed, Description: "A\n\nWhy: it helps"},
			{Comment: 2, Title: "B", Feature: "audit", Status: ralph.Proposed, Description: "B\n\nWhy: it helps"},
			{Comment: 3, Title: "C", Status: ralph.Proposed, Description: "C\n\nWhy: it helps\n\nFeature (there is none of that name): unheard"},
		}},
		{"the title is the first line, as long as a list has room for, in one colour", signals.Facts{
			Said: say(task(" \n  \x1b[31mred \nmore ", ""), task(long, ""), task("x"+long, "")),
		}, []signals.Proposal{
			{Comment: 1, Title: "red", Status: ralph.Proposed, Description: "\x1b[31mred \nmore\n\nWhy: it helps"},
			{Comment: 2, Title: long, Status: ralph.Proposed, Description: long + "\n\nWhy: it helps"},
			{Comment: 3, Title: "x" + strings.Repeat("ä", 118) + "…", Status: ralph.Proposed, Description: "x" + long + "\n\nWhy: it helps"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.facts.Ending, tt.facts.Rules.Attempts = ralph.Finished, 10
			if diff := cmp.Diff(tt.want, signals.Decide(tt.facts).Propose); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLearningsAreMerged covers rule 8, except for which texts say the same:
// see TestOnlyEqualTextsAreMerged.
func TestLearningsAreMerged(t *testing.T) {
	learned := func(text, scope, rationale string) signals.Learned {
		return signals.Learned{Text: text, Kind: "decision", Scope: scope, Rationale: rationale}
	}
	const short, full, contrary = "Tests need Redis on port 6379", "Tests need Redis on port 6379; start it with make redis", "Tests need no Redis on port 6379"
	known := func(k ...ralph.Learning) []ralph.Learning { return k }
	billing := signals.Task{ID: 3, Feature: "billing"}
	for _, tt := range []struct {
		name  string
		facts signals.Facts
		want  []signals.Learn
	}{
		{"a text is trimmed, and for the feature where nothing else is said", signals.Facts{Task: billing, Said: say(done, learned(" a b c ", "", " d "))}, []signals.Learn{
			{Comments: []int64{2}, Text: "a b c", Kind: "decision", Scope: "feature", Rationale: "d"},
		}},
		{"other scopes than the feature's stay where there is no feature", signals.Facts{Said: say(learned("a b c", "project", ""), learned("d e f", "task", ""))}, []signals.Learn{
			{Comments: []int64{1}, Text: "a b c", Kind: "decision", Scope: "project"}, {Comments: []int64{2}, Text: "d e f", Kind: "decision", Scope: "task"},
		}},
		{"tasks without a feature are one group", signals.Facts{Said: say(learned("a b c", "feature", ""), learned("d e f", "", ""))}, []signals.Learn{
			{Comments: []int64{1}, Text: "a b c", Kind: "decision", Scope: "feature"}, {Comments: []int64{2}, Text: "d e f", Kind: "decision", Scope: "feature"},
		}},
		{"what a session says twice is one learning, in its fullest words", signals.Facts{Task: billing, Said: say(
			learned(short, "project", "b c d"), learned(full, "project", "b"), learned(short, "feature", ""),
		)}, []signals.Learn{
			{Comments: []int64{1, 2}, Text: full, Kind: "decision", Scope: "project", Rationale: "b c d"},
			{Comments: []int64{3}, Text: short, Kind: "decision", Scope: "feature"},
		}},
		{"what is known is raised, in its fullest words", signals.Facts{
			Said:  say(learned(full, "project", "")),
			Known: known(ralph.Learning{ID: 4, Text: "Prices are stored in cents", Scope: "project"}, ralph.Learning{ID: 5, Text: short, Scope: "project", Rationale: "seen"}),
		}, []signals.Learn{{Comments: []int64{1}, Into: 5, Text: full, Kind: "decision", Scope: "project", Rationale: "seen"}}},
		{"of what says as much the older words stay", signals.Facts{
			Said: say(learned("tests need redis on port 6379.", "project", "")), Known: known(ralph.Learning{ID: 5, Text: short, Scope: "project"}),
		}, []signals.Learn{{Comments: []int64{1}, Into: 5, Text: short, Kind: "decision", Scope: "project"}}},
		{"what says the contrary stands beside it", signals.Facts{
			Said:  say(learned(contrary, "project", "")),
			Known: known(ralph.Learning{ID: 4, Text: short, Scope: "project"}, ralph.Learning{ID: 5, Text: "Prices are stored in cents", Scope: "project"}),
		}, []signals.Learn{{Comments: []int64{1}, Text: contrary, Kind: "decision", Scope: "project"}}},
		{"of another audience nothing is raised", signals.Facts{
			Task: billing, Said: say(learned(short, "project", ""), learned(short, "feature", ""), learned(short, "task", "")),
			Known: known(
				ralph.Learning{ID: 4, Text: short, Scope: "feature", Feature: "audit"}, ralph.Learning{ID: 5, Text: short, Scope: "task", TaskID: 9},
			),
		}, []signals.Learn{
			{Comments: []int64{1}, Text: short, Kind: "decision", Scope: "project"},
			{Comments: []int64{2}, Text: short, Kind: "decision", Scope: "feature"},
			{Comments: []int64{3}, Text: short, Kind: "decision", Scope: "task"},
		}},
		{"advice to break the rules makes a claim, first or second", signals.Facts{Said: say(
			learned("a b c", "", "tests may be skipped"), learned("a b c", "", "as seen"), learned("d e f", "", "as seen"), learned("d e f", "", "tests may be skipped"),
		)}, []signals.Learn{
			{Comments: []int64{1, 2}, Text: "a b c", Kind: "decision", Scope: "feature", Rationale: "tests may be skipped", Claim: true},
			{Comments: []int64{3, 4}, Text: "d e f", Kind: "decision", Scope: "feature", Rationale: "tests may be skipped", Claim: true},
		}},
		{"of the same audience it is", signals.Facts{
			Task: billing, Said: say(learned(short, "feature", ""), learned(short, "task", "")),
			Known: known(
				ralph.Learning{ID: 3, Text: short, Scope: "project"}, ralph.Learning{ID: 4, Text: short, Scope: "feature", Feature: "billing"}, ralph.Learning{ID: 5, Text: short, Scope: "task", TaskID: 3},
			),
		}, []signals.Learn{
			{Comments: []int64{1}, Into: 4, Text: short, Kind: "decision", Scope: "feature"}, {Comments: []int64{2}, Into: 5, Text: short, Kind: "decision", Scope: "task"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.facts.Ending = ralph.Finished
			if diff := cmp.Diff(tt.want, signals.Decide(tt.facts).Learn); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTheVerbThatWasGiven: an inferred verb was not given.
func TestTheVerbThatWasGiven(t *testing.T) {
	for inferred, want := range map[bool]ralph.Verb{false: ralph.VerbStuck, true: ""} {
		if got := (signals.Decision{Closing: ralph.VerbStuck, Inferred: inferred}).Signalled(); got != want {
			t.Errorf("inferred %t: %q", inferred, got)
		}
	}
}
