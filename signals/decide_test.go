package signals_test

import (
	"slices"
	"testing"

	"ralph"
	"ralph/signals"
)

var (
	yes, no = true, false

	done    = signals.Done{Summary: "it works"}
	partial = signals.Partial{Summary: "half", Remaining: "the rest"}
	stuck   = signals.Stuck{Reason: "no idea"}
	ask     = signals.Ask{Question: "red or blue?", Blocking: &yes}
	mention = signals.Ask{Question: "nice?", Blocking: &no}
	outside = signals.Blocked{On: "a password", Kind: "external"}
	up      = signals.Blocked{On: "#7", Kind: "upstream_task"}
	lesson  = signals.Learned{Text: "the cache lives in /var", Kind: "discovery", Scope: "project"}
)

var rules = signals.Rules{StuckLimit: 3, VerifyFailures: 3, Attempts: 10, MaxSentBack: 2}

func say(payloads ...signals.Payload) []signals.Said {
	var said []signals.Said
	for i, p := range payloads {
		said = append(said, signals.Said{ID: int64(i + 1), Payload: p})
	}
	return said
}

func TestDecide(t *testing.T) {
	red, green := []ralph.Check{{Command: "make test", Exit: 1}}, []ralph.Check{{Command: "make test", Passed: true}}
	one := func(id int64) map[int64]signals.Upstream {
		return map[int64]signals.Upstream{1: {Matches: []int64{id}}}
	}
	tests := []struct {
		name   string
		facts  signals.Facts
		status ralph.Status
		stuck  int
	}{
		{"done is accepted where nothing checks it", signals.Facts{Ending: ralph.Finished, Said: say(done)}, ralph.Completed, 0},
		{"done is accepted when the verification passes", signals.Facts{Ending: ralph.Finished, Said: say(done), Verify: green}, ralph.Completed, 0},
		{"done that verified without a change is accepted", signals.Facts{Ending: ralph.Finished, Said: say(done), Verify: green, Untouched: true}, ralph.Completed, 0},
		{"done without a change and without verification is not believed", signals.Facts{Ending: ralph.Finished, Said: say(done), Untouched: true}, ralph.Pending, 1},
		{"done that its agent was asked about, and did not repeat, is not believed", signals.Facts{
			Ending: ralph.Finished, Said: say(done), Untouched: true, Told: []signals.Notice{{Reply: signals.ReplyConfirm, Comment: 1}},
		}, ralph.Pending, 1},
		{"done without a change is accepted when it is confirmed", signals.Facts{Ending: ralph.Finished, Said: say(done), Untouched: true, Vouched: true}, ralph.Completed, 0},
		{"a lost session that could not confirm moves no counter", signals.Facts{Ending: ralph.Lost, Said: say(done), Untouched: true}, ralph.Pending, 0},
		{"done with changed protected files is refused", signals.Facts{Ending: ralph.Finished, Said: say(done), Verify: green, Protected: []string{"ci.sh"}}, ralph.Pending, 0},
		{"done with changed protected files waits for a person where they are reviewed", signals.Facts{
			Ending: ralph.Finished, Said: say(done), Verify: green,
			Protected: []string{"ci.sh"}, Rules: signals.Rules{ReviewProtect: true},
		}, ralph.NeedsInput, 0},
		{"a red verification is refused before anything is reviewed", signals.Facts{
			Ending: ralph.Finished, Said: say(done), Verify: red,
			Protected: []string{"ci.sh"}, Rules: signals.Rules{ReviewProtect: true},
		}, ralph.Pending, 0},
		{"done that conflicts with what has been merged is sent back", signals.Facts{Ending: ralph.Finished, Said: say(done), Conflict: "main has moved", Merges: true}, ralph.Pending, 0},
		{"the third conflict, with which it was merged alone, waits for a person", signals.Facts{
			Task: signals.Task{TimesSentBack: 2}, Ending: ralph.Finished, Said: say(done), Conflict: "main has moved",
		}, ralph.Blocked, 0},
		{"so does the one of which its agent was told", signals.Facts{
			Task: signals.Task{TimesSentBack: 3}, Ending: ralph.Finished, Said: say(done), Conflict: "marks are left", Told: []signals.Notice{{Reply: signals.ReplyConflict}},
		}, ralph.Blocked, 0},
		{"the second of which its agent was told does not", signals.Facts{
			Task: signals.Task{TimesSentBack: 2}, Ending: ralph.Finished, Said: say(done), Conflict: "marks are left", Told: []signals.Notice{{Reply: signals.ReplyConflict}},
		}, ralph.Pending, 0},
		{"it does not where something was merged meanwhile", signals.Facts{
			Task: signals.Task{TimesSentBack: 2}, Ending: ralph.Finished, Said: say(done), Conflict: "main has moved", Moved: true,
		}, ralph.Pending, 0},
		{"nor where no task is merged alone", signals.Facts{
			Task: signals.Task{TimesSentBack: 9}, Ending: ralph.Finished, Said: say(done), Conflict: "main has moved", Rules: signals.Rules{MaxSentBack: -rules.MaxSentBack},
		}, ralph.Pending, 0},
		{"a red verification is refused, whatever conflicts", signals.Facts{
			Task: signals.Task{VerifyFailures: 2}, Ending: ralph.Finished, Said: say(done), Verify: red, Conflict: "main has moved",
		}, ralph.Failed, 0},
		{"done is refused when the verification fails", signals.Facts{Ending: ralph.Finished, Said: say(done), Verify: red}, ralph.Pending, 0},
		{"the third refused done fails the task", signals.Facts{Task: signals.Task{VerifyFailures: 2}, Ending: ralph.Finished, Said: say(done), Verify: red}, ralph.Failed, 0},
		{"a done of a lost session is judged", signals.Facts{Ending: ralph.Lost, Said: say(done), Verify: green}, ralph.Completed, 0},
		{"a done of a timed out session is judged", signals.Facts{Ending: ralph.TimedOut, Said: say(done), Verify: green}, ralph.Completed, 0},
		{"a done that is accepted is merged first, where it has to be", signals.Facts{Ending: ralph.Finished, Said: say(done), Verify: green, Merges: true}, ralph.Merging, 0},
		{"a done that has to be merged waits for approval before", signals.Facts{
			Ending: ralph.Finished, Said: say(done), Verify: green, Merges: true,
			Protected: []string{"ci.sh"}, Rules: signals.Rules{ReviewProtect: true},
		}, ralph.NeedsInput, 0},
		{"a done that is refused is not merged", signals.Facts{Ending: ralph.Finished, Said: say(done), Verify: red, Merges: true}, ralph.Pending, 0},
		{"a void done counts for nothing", signals.Facts{Ending: ralph.Interrupted, Said: say(done), Void: true}, ralph.Pending, 0},
		{"the last closing verb wins", signals.Facts{Ending: ralph.Finished, Said: say(stuck, done)}, ralph.Completed, 0},
		{"a stuck after a done wins too", signals.Facts{Ending: ralph.Finished, Said: say(done, stuck)}, ralph.Pending, 1},
		{"no closing verb is stuck", signals.Facts{Ending: ralph.Finished, Changed: true}, ralph.Pending, 1},
		{"a timeout without closing verb is stuck", signals.Facts{Ending: ralph.TimedOut, EndingWhy: "timed out after 45m0s"}, ralph.Pending, 1},
		{"the third stuck fails the task", signals.Facts{Task: signals.Task{StuckCount: 2}, Ending: ralph.Finished, Said: say(stuck)}, ralph.Failed, 3},
		{"an interrupted session moves no counter", signals.Facts{Task: signals.Task{StuckCount: 2}, Ending: ralph.Interrupted}, ralph.Pending, 2},
		{"a rate limit moves no counter", signals.Facts{Task: signals.Task{StuckCount: 2}, Ending: ralph.RateLimited}, ralph.Pending, 2},
		{"a stuck of a session that then hit an agent error is judged", signals.Facts{Ending: ralph.Overloaded, Said: say(stuck)}, ralph.Pending, 1},
		{"partial with a change clears the stuck count", signals.Facts{Task: signals.Task{StuckCount: 2}, Ending: ralph.Finished, Said: say(partial), Changed: true}, ralph.Pending, 0},
		{"partial without a change counts as stuck", signals.Facts{Ending: ralph.Finished, Said: say(partial)}, ralph.Pending, 1},
		{"partial that taught something new is no stuck", signals.Facts{Ending: ralph.Finished, Said: say(lesson, partial)}, ralph.Pending, 0},
		{"partial that repeats what is known is stuck", signals.Facts{
			Ending: ralph.Finished, Said: say(lesson, partial),
			Known: []ralph.Learning{{ID: 4, Text: "The cache lives in /var.", Scope: "project"}},
		}, ralph.Pending, 1},
		{"a blocking question parks the task", signals.Facts{Ending: ralph.Finished, Said: say(ask, partial), Changed: true}, ralph.NeedsInput, 0},
		{"a question that was answered meanwhile does not", signals.Facts{Ending: ralph.Finished, Said: []signals.Said{{ID: 1, Payload: ask, Answered: true}, {ID: 2, Payload: partial}}, Changed: true}, ralph.Pending, 0},
		{"a question that is not blocking does not", signals.Facts{Ending: ralph.Finished, Said: say(mention, partial), Changed: true}, ralph.Pending, 0},
		{"with done a question is informational", signals.Facts{Ending: ralph.Finished, Said: say(ask, done)}, ralph.Completed, 0},
		{"a question acts when the done is refused", signals.Facts{Ending: ralph.Finished, Said: say(ask, done), Verify: red}, ralph.NeedsInput, 0},
		{"a question acts in a session that was lost", signals.Facts{Ending: ralph.Lost, Said: say(ask)}, ralph.NeedsInput, 0},
		{"an open question outranks failed", signals.Facts{Task: signals.Task{StuckCount: 2}, Ending: ralph.Finished, Said: say(ask, stuck)}, ralph.NeedsInput, 3},
		{"something outside blocks", signals.Facts{Ending: ralph.Finished, Said: say(outside, stuck)}, ralph.Blocked, 1},
		{"a blocker that was resolved meanwhile does not", signals.Facts{Ending: ralph.Finished, Said: []signals.Said{{ID: 1, Payload: outside, Resolved: true}, {ID: 2, Payload: stuck}}}, ralph.Pending, 1},
		{"an upstream task blocks", signals.Facts{Ending: ralph.Finished, Said: say(up, stuck), Upstream: one(7)}, ralph.Blocked, 1},
		{"an upstream task that has completed does not", signals.Facts{Ending: ralph.Finished, Said: say(up, stuck), Upstream: map[int64]signals.Upstream{1: {Matches: []int64{7}, Completed: true}}}, ralph.Pending, 1},
		{"an upstream that nobody knows blocks until a person says", signals.Facts{Ending: ralph.Finished, Said: say(up, stuck)}, ralph.Blocked, 1},
		{"with done a blocker is informational", signals.Facts{Ending: ralph.Finished, Said: say(outside, done)}, ralph.Completed, 0},
		{"a question goes before a blocker", signals.Facts{Ending: ralph.Finished, Said: say(outside, ask, stuck)}, ralph.NeedsInput, 1},
		{"the last attempt fails the task", signals.Facts{Task: signals.Task{Attempts: 9}, Ending: ralph.Finished, Said: say(partial), Changed: true}, ralph.Failed, 0},
		{"an agent error is no attempt", signals.Facts{Task: signals.Task{Attempts: 9}, Ending: ralph.Overloaded}, ralph.Pending, 0},
		{"a prompt that is too long is tried again", signals.Facts{Task: signals.Task{PromptTooLong: 1}, Ending: ralph.PromptTooLong}, ralph.Pending, 0},
		{"a prompt that stays too long fails the task", signals.Facts{Task: signals.Task{PromptTooLong: 2}, Ending: ralph.PromptTooLong}, ralph.Failed, 0},
		{"a done that could not be checked is not judged", signals.Facts{
			Task: signals.Task{StuckCount: 1}, Ending: ralph.Finished, Said: say(done), Verify: green, Unchecked: "the index is garbage",
		}, ralph.Pending, 1},
		{"nor one that a person stopped before", signals.Facts{Ending: ralph.Interrupted, Said: say(done), Verify: green, Void: true, Unchecked: "gone"}, ralph.Pending, 0},
		{"what asks and blocks acts beside a done that could not be checked", signals.Facts{Ending: ralph.Finished, Said: say(ask, done), Unchecked: "gone"}, ralph.NeedsInput, 0},
		{"a claim whose changed files are not known holds", signals.Facts{Ending: ralph.Finished, Said: say(done), Verify: green, Changed: true, Unseen: []string{"x"}}, ralph.Completed, 0},
		{"a person who cancels has the last word", signals.Facts{Ending: ralph.Interrupted, Said: say(done), CancelledBy: "ann"}, ralph.Cancelled, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			review := tt.facts.Rules.ReviewProtect
			alone := tt.facts.Rules.MaxSentBack + rules.MaxSentBack
			tt.facts.Rules = rules
			tt.facts.Rules.ReviewProtect, tt.facts.Rules.MaxSentBack = review, alone
			d := signals.Decide(tt.facts)
			if d.Status != tt.status || d.StuckCount != tt.stuck {
				t.Errorf("got %s with stuck count %d, want %s with %d (%s)", d.Status, d.StuckCount, tt.status, tt.stuck, d.StatusReason)
			}
		})
	}
}

// checkRules checks rules that hold for every decision.
func checkRules(t *testing.T, f signals.Facts, d signals.Decision) {
	t.Helper()
	last := signals.Closing(f.Said)
	closing, claimed := last.Payload, false
	if done, ok := last.Payload.(signals.Done); ok {
		claimed = done.Summary != ""
	}
	confirmed := f.Vouched
	sent := map[signals.Reply]int{}
	for _, n := range f.Told {
		sent[n.Reply]++
		confirmed = confirmed || asks(n.Reply) && n.Comment > 0 && last.ID > n.Comment
	}
	red := slices.ContainsFunc(f.Verify, func(c ralph.Check) bool { return !c.Passed })
	refused := signals.Refused(f.Verify, f.Protected, f.Evidence, f.Rules).Any()
	works, cancelled := f.Planned == "", f.CancelledBy != ""
	objects := slices.Contains([]signals.Reply{
		signals.ReplyRemind, signals.ReplyRefused, signals.ReplyTests, signals.ReplyBlind, signals.ReplyConflict, signals.ReplyFlags,
	}, d.Reply)
	for _, wrong := range []struct {
		is   bool
		what string
	}{
		{!ralph.CanMove(ralph.InProgress, d.Status, d.Mover), "the status is a move that the table does not have"},
		{cancelled != (d.Status == ralph.Cancelled), "a person's word is not the last"},
		{!cancelled && d.Accepted != (d.Status == ralph.Completed || d.Status == ralph.Merging || d.Approval != nil), "completed without an accepted claim, or the reverse"},
		{d.SentBack != "" && (d.Attempts != f.Task.Attempts || d.VerifyFailures != f.Task.VerifyFailures || !claimed), "sent back, and it counts"},
		{d.Accepted && works && f.Conflict != "", "accepted with a conflict"},
		{d.Accepted && (!claimed || f.Void || f.Unchecked != "" || works && red), "accepted without a claim that was verified"},
		{d.Accepted && works && refused, "accepted and refused"},
		{d.Accepted && works && f.Untouched && !f.Carries && !confirmed && len(f.Verify) == 0, "accepted without a change, a check or a confirmation"},
		{d.Accepted && works && len(f.Protected) > 0 && d.Approval == nil && !approved(f), "protected files that nobody approved"},
		{d.Accepted && works && signals.ObjectedTo(f.Evidence.Reviews) && d.Approval == nil && !f.Rules.InPull, "a reviewer objects, and nobody decides"},
		{d.Approval != nil && d.Status != ralph.NeedsInput && !cancelled, "an approval that does not wait"},
		{d.Attempts < f.Task.Attempts || d.Attempts > f.Task.Attempts+1, "attempts jump"},
		{d.StuckCount > f.Task.StuckCount+1, "the stuck count jumps"},
		{f.Ending.AgentError() && d.Attempts != f.Task.Attempts, "an agent error counts as an attempt"},
		{f.Ending.AgentError() && closing == nil && d.StuckCount != f.Task.StuckCount, "an agent error counts as stuck"},
		{!cancelled && !d.Accepted && d.Waits.Status() != ralph.Pending && d.Status != d.Waits.Status(), "the status is not what it waits for"},
		{!cancelled && !d.Accepted && (d.Status == ralph.NeedsInput || d.Status == ralph.Blocked) && d.Waits.Status() == ralph.Pending, "it waits for nothing"},
		{d.Reply != "" && !f.Waiting, "a reply to nobody"},
		{d.Accepted && works && objects, "an accepted done is objected to"},
		{d.Reply == signals.ReplyRemind && closing != nil, "reminded of what it has said"},
		{asks(d.Reply) && (refused || f.Conflict != ""), "asked to confirm what cannot be merged"},
		{f.Waiting && d.VerifyFailures > f.Task.VerifyFailures && d.Reply == "" && sent[signals.ReplyRefused] < f.Rules.Retries, "refused, and its agent does not hear why"},
	} {
		if wrong.is {
			t.Fatalf("%s: %+v → %+v", wrong.what, f, d)
		}
	}
}

// approved reports whether people have approved of anything.
func approved(f signals.Facts) bool { return len(f.Approvals) > 0 }

func TestTitlesAreComparedNormalized(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"Fix the  `Login` form.", "fix the login form", true},
		{"Fix login: the form", "Fix login – the form!", true},
		{"Support C", "Support C++", false},
		{"Support C", "Support C#", false},
		{"Prove P=NP", "Prove P≠NP", false},
	} {
		if got := signals.NormalTitle(tt.a) == signals.NormalTitle(tt.b); got != tt.same {
			t.Errorf("%q and %q are the same: %t, want %t", tt.a, tt.b, got, tt.same)
		}
	}
}

// TestAskingIsNoFailure: a session that had to ask before it could change anything succeeded, and so did one that named
// a blocker.
func TestAskingIsNoFailure(t *testing.T) {
	for _, tt := range []struct {
		name string
		said []signals.Said
		want string
	}{
		{"asked", say(ask, partial), ralph.OutcomeSuccess},
		{"named what is in the way", say(signals.Blocked{On: "a key", Kind: "external"}, partial), ralph.OutcomeSuccess},
		{"asked in passing", say(mention, partial), ralph.OutcomeFailure},
		{"asked, and got stuck", say(ask, stuck), ralph.OutcomeFailure},
	} {
		if got := signals.Decide(signals.Facts{Rules: signals.Rules{StuckLimit: 3, Attempts: 10}, Ending: ralph.Finished, Said: tt.said}).Outcome; got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
