package signals_test

import (
	"reflect"
	"strings"
	"testing"

	"ralph"
	"ralph/signals"
)

// full are facts of which no field is empty, so that none can be forgotten.
func full(t *testing.T) signals.Facts {
	t.Helper()
	f := signals.Facts{
		Task: ralph.Task{
			ID: 3, Feature: "billing", Attempts: 2, StuckCount: 1, VerifyFailures: 1, PromptTooLong: 1, LostCount: 2,
		},
		Ending: ralph.Finished, EndingWhy: "it ended",
		Said: []signals.Said{
			{ID: 1, Payload: ask, Answered: true},
			{ID: 2, Payload: up, Resolved: true},
			{ID: 3, Payload: lesson},
			{ID: 4, Payload: signals.Flag{What: "slow", Severity: "warning", Category: "performance"}},
			{ID: 5, Payload: signals.Suggest{What: "Split it", Kind: "split", Why: "too large"}},
			{ID: 6, Payload: stuck},
			{ID: 7, Payload: partial},
			{ID: 8, Payload: done},
		},
		Changed: true, Untouched: true, Confirmed: true, Void: true,
		Verify: []ralph.Check{{Command: "make test", Exit: 1, Seconds: 2, Error: "timed out", Failures: []string{"TestA"}, Excused: []string{"TestB"}}},
		Evidence: ralph.Evidence{
			Standing: ralph.Standing{
				Git: true, Branch: "main", Commit: "1f3c9ab0", Uncommitted: 2, Began: "side", Switched: true,
				Lost: []ralph.Commit{{ID: "aa", Subject: "Fix", Author: "Ann"}}, Aside: []ralph.Aside{{Branch: "x", Commits: 1}},
				Stashes: []string{"WIP"}, Taken: []string{".env", "a"}, Secrets: []string{".env"},
			},
			Rewritten: []ralph.Touch{{File: "a", Command: "b"}}, Drives: []ralph.Touch{{File: "c", Command: "d"}},
			Drift: []string{"e"}, Killed: []string{"sleep"}, Uncontained: true,
		},
		Protected: []string{"ci.sh"}, CancelledBy: "ann", Unchecked: "no index", Unseen: []string{"the saved files"}, OpenQuestions: 1, OpenBlockers: 2, Unfinished: 3,
		Upstream: map[int64]signals.Upstream{2: {Matches: []int64{7}, Completed: true, Cycle: true}},
		Titles:   map[string]bool{"split it": true}, Features: map[string]bool{"billing": true}, Approved: 2,
		Known: []ralph.Learning{{ID: 1}}, Rules: rules,
	}
	v := reflect.ValueOf(f)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Fatalf("%s is empty: this test does not see whether it is kept", v.Type().Field(i).Name)
		}
	}
	return f
}

func TestRecordedFactsAreTheFacts(t *testing.T) {
	f := full(t)
	text, err := f.Record()
	if err != nil {
		t.Fatal(err)
	}
	got, err := signals.Recorded(text)
	if err != nil {
		t.Fatal(err)
	}
	f.Known, f.Rules = nil, signals.Rules{} // of the day, not recorded
	if !reflect.DeepEqual(got, f) {
		t.Errorf("read back\n%+v\nwant\n%+v", got, f)
	}
}

func TestRecordedFactsThatAreBrokenAreAnError(t *testing.T) {
	for _, text := range []string{"", "[]", "{", `{"said":[{"id":1,"verb":"shout","payload":{}}]}`, `{"said":[{"id":1,"verb":"done","payload":{}}]}`} {
		if _, err := signals.Recorded([]byte(text)); err == nil || !strings.Contains(err.Error(), "recorded facts") {
			t.Errorf("Recorded(%q): %v", text, err)
		}
	}
}

func TestExplainNamesEveryRuleThatHadASay(t *testing.T) {
	for _, tt := range []struct {
		name  string
		facts signals.Facts
		want  []string // in this order
	}{
		{"a refused claim", signals.Facts{
			Ending: ralph.Finished, Changed: true, Said: say(partial, done),
			Verify: []ralph.Check{{Command: "make lint", Passed: true, Excused: []string{"TestOld"}}, {Command: "make test", Exit: 2}},
		}, []string{
			"1: the session ended as finished", "1: closed by done (comment 2), the last one; superseded: partial (comment 1)",
			"2: `make lint` passes (failing as before: TestOld)", "2: `make test` exits 2", "2: the claim is not accepted; refused 1 times so far, 3 are the limit",
			"attempts: 0 before, 1 after", "result: pending: done was refused: `make test` exits 2",
		}},
		{"an accepted claim beside a question", signals.Facts{Ending: ralph.Finished, Changed: true, Said: say(ask, done)}, []string{
			"1: closed by done (comment 2)", "2: nothing is configured to check the claim", "2: the claim is accepted",
			"6: comment 1 (question: red or blue?) is informational beside an accepted done", "result: completed",
		}},
		{"a claim for a person to review", signals.Facts{
			Ending: ralph.Finished, Changed: true, Said: say(done), Protected: []string{"ci.sh"}, Rules: signals.Rules{ReviewProtect: true},
		}, []string{"2: protected files were changed: ci.sh", "2: the claim holds if a person approves the protected files"}},
		{"a done that was not confirmed", signals.Facts{Ending: ralph.Finished, Untouched: true, Said: say(done)}, []string{
			"2: the work tree is as it was before the session; not confirmed", "4: stuck, 1 of 3", "stagnation: the session left nothing behind",
		}},
		{"no closing verb", signals.Facts{Ending: ralph.TimedOut, EndingWhy: "timed out after 5m", Changed: true}, []string{
			"1: the session ended as timed_out: timed out after 5m", "1: no closing verb: stuck is inferred", "4: stuck, 1 of 3",
		}},
		{"an agent error", signals.Facts{Ending: ralph.Network, EndingWhy: "no route"}, []string{
			"1: no closing verb, and the session is not judged: the task goes back", "attempts: 0 before, 0 after",
		}},
		{"a void claim of a cancelled task", signals.Facts{Ending: ralph.Interrupted, Void: true, Said: say(done), CancelledBy: "ann"}, []string{
			"1: what closed it does not count: done (comment 1)", "result: a person cancelled the task meanwhile", "result: cancelled",
		}},
		{"progress after stuck ones", signals.Facts{Task: ralph.Task{StuckCount: 2}, Ending: ralph.Finished, Changed: true, Said: say(lesson, partial)}, []string{
			"3: the stuck count returns from 2 to 0", "8: new learning for the project: the cache lives in /var",
		}},
		{"what is known is repeated, and nothing is done", signals.Facts{
			Ending: ralph.Finished, Said: say(lesson, partial), Known: []ralph.Learning{{ID: 4, Text: "The cache lives in /var.", Scope: "project"}},
		}, []string{"3: nothing changed and nothing new was learned", "8: repeats learning 4"}},
		{"what holds back", signals.Facts{
			Ending: ralph.Finished, Said: say(ask, mention, outside, up, signals.Blocked{On: "#8", Kind: "upstream_task"}, partial), Changed: true, OpenBlockers: 1,
			Upstream: map[int64]signals.Upstream{4: {Matches: []int64{7}}, 5: {Matches: []int64{8}, Completed: true}},
		}, []string{
			"5: comment 1 (question: red or blue?) holds the task back", "6: comment 2 (question: nice?) holds nothing back",
			"5: comment 3 (blocked on a password) holds the task back: waits for something outside",
			"5: comment 4 (blocked on #7): the task depends on TASK-7 from now on", "5: comment 5 (blocked on #8): that task has completed already",
			"5: open from before: 0 questions, 1 blockers, 0 dependencies", "result: needs_input",
		}},
		{"flags and suggestions", signals.Facts{
			Ending: ralph.Finished, Changed: true, Titles: map[string]bool{"b": true},
			Said: say(signals.Flag{What: "fire", Severity: "blocking", Category: "bug"}, signals.Suggest{What: "A", Kind: "new_task", Why: "w"},
				signals.Suggest{What: "B", Kind: "new_task", Why: "w"}, signals.Suggest{What: "C", Kind: "split", Why: "w"}, partial),
		}, []string{
			"3: progress", "7: comment 1 (blocking: fire) is announced", `9: comment 2: the task "A" waits for approval`,
			`9: comment 3: an open task has the title "B" already`, "9: comment 4 (split) is kept for people to decide",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			review := tt.facts.Rules.ReviewProtect
			tt.facts.Rules = rules
			tt.facts.Rules.ReviewProtect = review
			steps := signals.Explain(tt.facts, signals.Decide(tt.facts))
			at := 0
			for _, s := range steps {
				if at < len(tt.want) && strings.HasPrefix(s.Rule+": "+s.Text, tt.want[at]) {
					at++
				}
			}
			if at < len(tt.want) {
				t.Errorf("%q is not said, or not in its place:\n%v", tt.want[at], steps)
			}
		})
	}
}

func TestDifferencesAreWhatLeadsElsewhere(t *testing.T) {
	f := signals.Facts{Task: ralph.Task{StuckCount: 1}, Ending: ralph.Finished, Said: say(stuck), Rules: rules}
	then := signals.Decide(f)
	if d := signals.Differences(then, then); len(d) != 0 {
		t.Errorf("a decision differs from itself: %q", d)
	}
	f.Rules.StuckLimit = 2
	want := []string{"status: pending, now failed"}
	if got := signals.Differences(then, signals.Decide(f)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
