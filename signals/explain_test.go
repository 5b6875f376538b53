package signals_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/signals"
)

func TestExplainNamesEveryRuleThatHadASay(t *testing.T) {
	lint := ralph.Check{Command: "make lint", Passed: true, Excused: []string{"TestOld"}, Flaky: []string{"TestA"}}
	for _, tt := range []struct {
		name  string
		facts signals.Facts
		want  []string
	}{
		{"a refused claim", signals.Facts{
			Ending: ralph.Finished, Changed: true, Said: say(partial, done),
			Verify: []ralph.Check{lint, {Command: "make test", Exit: 2}},
		}, []string{
			"1: the session ended as finished",
			"1: closed by done (comment 2), the last one; superseded: partial (comment 1)",
			"2: `make lint` passes (failing as before: TestOld) (" + ralph.FlakyOf([]ralph.Check{lint})[0] + ")",
			"2: `make test` exits 2",
			"2: the claim is not accepted; refused 1 times so far, 3 are the limit",
			"attempts: 0 before, 1 after",
			"result: pending: done was refused: `make test` exits 2",
		}},
		{"a claim whose agent was told twice", signals.Facts{
			Ending: ralph.Finished, Untouched: true, Said: say(done, done),
			Told: []signals.Notice{{Reply: signals.ReplyRemind}, {Reply: signals.ReplyConfirm, Comment: 1}},
		}, []string{
			"told: remind",
			"told: confirm, about comment 1",
			"1: the session ended as finished",
			"1: closed by done (comment 2), the last one; superseded: done (comment 1)",
			"2: nothing is configured to check the claim",
			"2: the work tree is as it was before the session; confirmed when asked",
			"2: the claim is accepted",
			"stagnation: the session left nothing behind; so many in a row end a run",
			"attempts: 0 before, 1 after",
			"result: completed: done (nothing is configured to verify it; no changes): it works",
		}},
		{"an accepted claim beside a question", signals.Facts{Ending: ralph.Finished, Changed: true, Said: say(ask, done)}, []string{
			"1: the session ended as finished",
			"1: closed by done (comment 2)",
			"2: nothing is configured to check the claim",
			"2: the claim is accepted",
			"6: comment 1 (question: red or blue?) is informational beside an accepted done",
			"attempts: 0 before, 1 after",
			"result: completed: done (nothing is configured to verify it): it works",
		}},
		{"a claim for a person to review", signals.Facts{
			Ending: ralph.Finished, Changed: true, Said: say(done), Protected: []string{"ci.sh"}, Evidence: ralph.Evidence{Gate: ralph.Gate{Guarded: []ralph.Blob{{Path: "ralph.yaml"}}}}, Rules: signals.Rules{ReviewProtect: true},
		}, []string{
			"1: the session ended as finished",
			"1: closed by done (comment 1)",
			"2: nothing is configured to check the claim",
			"2: protected files were changed: ci.sh",
			"2: the claim waits for approval of changed protected files (ci.sh), guarded files (ralph.yaml)",
			"attempts: 0 before, 1 after",
			"result: needs_input: waits for approval of changed protected files (ci.sh), guarded files (ralph.yaml); done (nothing is configured to verify it): it works",
		}},
		{"a claim with a secret", signals.Facts{
			Ending: ralph.Finished, Changed: true, Said: say(signals.Learned{Text: "x is y", Kind: "discovery", Scope: "feature"}, done),
			Evidence: ralph.Evidence{Secrets: []string{".env"}},
		}, []string{
			"1: the session ended as finished",
			"1: closed by done (comment 2)",
			"2: nothing is configured to check the claim",
			"2: .env looks like a secret of a person's and was committed: undo that, so that no commit of yours has it",
			"2: the claim is not accepted; refused 1 times so far, 3 are the limit",
			"8: new learning for the tasks without a feature: x is y",
			"attempts: 0 before, 1 after",
			"result: pending: done was refused: .env looks like a secret of a person's and was committed: undo that, so that no commit of yours has it",
		}},
		{"a claim that cannot be merged", signals.Facts{
			Ending: ralph.Finished, Changed: true, Said: say(done), Conflict: "main has moved", Task: signals.Task{TimesSentBack: 1},
		}, []string{
			"1: the session ended as finished",
			"1: closed by done (comment 1)",
			"2: nothing is configured to check the claim",
			"2: the claim cannot be merged, which is neither an attempt nor a failure: main has moved; its changes were sent back 2 times",
			"attempts: 0 before, 0 after",
			"result: pending: main has moved",
		}},
		{"a done that was not confirmed", signals.Facts{Ending: ralph.Finished, Untouched: true, Said: say(done)}, []string{
			"1: the session ended as finished",
			"1: closed by done (comment 1)",
			"2: nothing is configured to check the claim",
			"2: the work tree is as it was before the session; not confirmed",
			"2: the claim is not accepted; refused 0 times so far, 3 are the limit",
			"4: stuck, 1 of 3",
			"stagnation: the session left nothing behind; so many in a row end a run",
			"attempts: 0 before, 1 after",
			"result: pending: done without any change, and not confirmed: it works",
		}},
		{"no closing verb", signals.Facts{Ending: ralph.TimedOut, EndingWhy: "timed out after 5m", Changed: true}, []string{
			"1: the session ended as timed_out: timed out after 5m",
			"1: no closing verb: stuck is inferred",
			"4: stuck, 1 of 3",
			"attempts: 0 before, 1 after",
			"result: pending: stuck: timed out after 5m",
		}},
		{"an agent error", signals.Facts{Ending: ralph.Network, EndingWhy: "no route"}, []string{
			"1: the session ended as network: no route",
			"1: no closing verb, and the session is not judged: the task goes back",
			"attempts: 0 before, 0 after",
			"result: pending: no route",
		}},
		{"a void claim of a cancelled task", signals.Facts{Ending: ralph.Interrupted, Void: true, Said: say(done), CancelledBy: "ann"}, []string{
			"1: the session ended as interrupted",
			"1: its closing signal does not count: done (comment 1)",
			"attempts: 0 before, 0 after",
			"result: a person cancelled the task meanwhile, which has the last word",
			"result: cancelled: cancelled by ann while it was worked on",
		}},
		{"progress after stuck ones", signals.Facts{Task: signals.Task{StuckCount: 2}, Ending: ralph.Finished, Changed: true, Said: say(lesson, partial)}, []string{
			"1: the session ended as finished",
			"1: closed by partial (comment 2)",
			"3: the stuck count returns from 2 to 0",
			"8: new learning for the project: the cache lives in /var",
			"attempts: 0 before, 1 after",
			"result: pending: partial: the rest",
		}},
		{"what is known is repeated, and nothing is done", signals.Facts{
			Ending: ralph.Finished, Said: say(lesson, partial), Known: []ralph.Learning{{ID: 4, Text: "The cache lives in /var.", Scope: "project"}},
		}, []string{
			"1: the session ended as finished",
			"1: closed by partial (comment 2)",
			"3: nothing changed and nothing new was learned: it counts as stuck, 1 of 3",
			"8: repeats learning 4, which counts for more now",
			"stagnation: the session left nothing behind; so many in a row end a run",
			"attempts: 0 before, 1 after",
			"result: pending: stopped; changed nothing: half",
		}},
		{"what holds back", signals.Facts{
			Ending: ralph.Finished, Said: say(ask, mention, outside, up, signals.Blocked{On: "#8", Kind: "upstream_task"}, partial), Changed: true, Waits: ralph.Waits{Blockers: 1},
			Upstream: map[int64]signals.Upstream{4: {Matches: []int64{7}}, 5: {Matches: []int64{8}, Completed: true}},
		}, []string{
			"1: the session ended as finished",
			"1: closed by partial (comment 6)",
			"3: progress: the rest of the work goes into the next prompt",
			"5: comment 1 (question: red or blue?) holds the task back",
			"6: comment 2 (question: nice?) holds nothing back",
			"5: comment 3 (blocked on a password) holds the task back: waits for something outside",
			"5: comment 4 (blocked on #7): the task depends on TASK-7 from now on",
			"5: comment 5 (blocked on #8): that task has completed already",
			"5: open from before: 0 questions, 1 blockers, 0 dependencies",
			"attempts: 0 before, 1 after",
			"result: needs_input: waits for an answer and a blocker to be resolved and TASK-7",
		}},
		{"the third of several closing verbs", signals.Facts{Ending: ralph.Finished, EndingWhy: "\n it ended\nwell", Changed: true, Said: say(done, stuck, partial)}, []string{
			"1: the session ended as finished: it ended",
			"1: closed by partial (comment 3), the last one; superseded: done (comment 1), stuck (comment 2)",
			"3: progress: the rest of the work goes into the next prompt",
			"attempts: 0 before, 1 after",
			"result: pending: partial: the rest",
		}},
		{"questions and dependencies of before", signals.Facts{Ending: ralph.Finished, Changed: true, Waits: ralph.Waits{Questions: 1, Tasks: []int64{8, 9}}, Said: say(stuck)}, []string{
			"1: the session ended as finished",
			"1: closed by stuck (comment 1)",
			"4: stuck, 1 of 3",
			"5: open from before: 1 questions, 0 blockers, 2 dependencies",
			"attempts: 0 before, 1 after",
			"result: needs_input: waits for an answer and TASK-8 and TASK-9",
		}},
		{"nothing of before counts beside an accepted done", signals.Facts{Ending: ralph.Finished, Changed: true, Waits: ralph.Waits{Questions: 1}, Said: say(outside, done)}, []string{
			"1: the session ended as finished",
			"1: closed by done (comment 2)",
			"2: nothing is configured to check the claim",
			"2: the claim is accepted",
			"6: comment 1 (blocked on a password) is informational beside an accepted done",
			"attempts: 0 before, 1 after",
			"result: completed: done (nothing is configured to verify it): it works",
		}},
		{"a confirmed done", signals.Facts{Ending: ralph.Finished, Untouched: true, Vouched: true, Said: say(done)}, []string{
			"1: the session ended as finished",
			"1: closed by done (comment 1)",
			"2: nothing is configured to check the claim",
			"2: the work tree is as it was before the session; confirmed when asked",
			"2: the claim is accepted",
			"stagnation: the session left nothing behind; so many in a row end a run",
			"attempts: 0 before, 1 after",
			"result: completed: done (nothing is configured to verify it; no changes): it works",
		}},
		{"a void session that claimed nothing", signals.Facts{Ending: ralph.Finished, Void: true}, []string{
			"1: the session ended as finished",
			"1: no closing verb, and the session is not judged: the task goes back",
			"attempts: 0 before, 0 after",
			"result: pending: ",
		}},
		{"two new learnings, one said twice", signals.Facts{
			Ending: ralph.Finished, Changed: true, Said: say(lesson, lesson, signals.Learned{Text: "Deploys happen on Fridays", Kind: "convention", Scope: "project"}, partial),
		}, []string{
			"1: the session ended as finished",
			"1: closed by partial (comment 4)",
			"3: progress: the rest of the work goes into the next prompt",
			"8: new learning for the project: the cache lives in /var",
			"8: new learning for the project: Deploys happen on Fridays",
			"attempts: 0 before, 1 after",
			"result: pending: partial: the rest",
		}},
		{"a task that is let in, and all flags", signals.Facts{
			Ending: ralph.Finished, Changed: true, Rules: signals.Rules{AutoApprove: 1},
			Said: say(signals.Suggest{What: "A", Kind: "new_task", Why: "w"}, signals.Flag{What: "a\nb", Severity: "info", Category: "bug"}, signals.Flag{What: "c", Severity: "warning", Category: "bug"}, partial),
		}, []string{
			"1: the session ended as finished",
			"1: closed by partial (comment 4)",
			"3: progress: the rest of the work goes into the next prompt",
			"7: comment 2 (info: a) goes into the task's next prompt",
			"7: comment 3 (warning: c) is shown to people and goes into the feature's prompts",
			`9: comment 1: the task "A" enters the queue at once`,
			"attempts: 0 before, 1 after",
			"result: pending: partial: the rest",
		}},
		{"a lost session, of which not all could be seen", signals.Facts{Task: signals.Task{LostCount: 1}, Ending: ralph.Lost, EndingWhy: "lost: gone", Unseen: []string{"a: denied"}}, []string{
			"1: the session ended as lost: lost: gone",
			"1: no closing verb, and the session is not judged: the task goes back",
			"attempts: 0 before, 0 after",
			"lost: 2 in a row, 5 are the limit",
			"result: could not be looked at: a: denied",
			"result: pending: lost: gone; could not be looked at: a: denied",
		}},
		{"flags and suggestions", signals.Facts{
			Ending: ralph.Finished, Changed: true, Titles: map[string]bool{"b": true},
			Said: say(signals.Flag{What: "fire", Severity: "blocking", Category: "bug"}, signals.Suggest{What: "A", Kind: "new_task", Why: "w"},
				signals.Suggest{What: "B", Kind: "new_task", Why: "w"}, signals.Suggest{What: "C", Kind: "split", Why: "w"}, partial),
		}, []string{
			"1: the session ended as finished",
			"1: closed by partial (comment 5)",
			"3: progress: the rest of the work goes into the next prompt",
			"7: comment 1 (blocking: fire) is announced and comes first in the next prompt",
			`9: comment 2: the task "A" waits for approval`,
			`9: comment 3: an open task has the title "B" already`,
			"9: comment 4 (split) is kept for people to decide",
			"attempts: 0 before, 1 after",
			"result: pending: partial: the rest",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			review, approve := tt.facts.Rules.ReviewProtect, tt.facts.Rules.AutoApprove
			tt.facts.Rules = rules
			tt.facts.Rules.ReviewProtect, tt.facts.Rules.AutoApprove = review, approve
			var got []string
			for _, s := range signals.Explain(tt.facts, signals.Decide(tt.facts)) {
				got = append(got, s.Rule+": "+s.Text)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
