package words_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/words"
)

var now = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

func event(t *testing.T, p ralph.EventPayload) ralph.Event {
	t.Helper()
	e, err := ralph.Event{ID: 1, TaskID: 7, SessionID: "abcdef0123", RunID: 3}.Telling(p)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestEveryTypeOfEventHasItsWords walks all of them: short as in a run, listed among
// all others, and the title of the message that somebody may be sent.
func TestEveryTypeOfEventHasItsWords(t *testing.T) {
	t.Parallel()
	said := json.RawMessage(`{"summary":"made it\nand tested it"}`)
	seen := map[string]bool{}
	for _, c := range []struct {
		told          ralph.EventPayload
		short, listed string
		title         string
	}{
		{ralph.TaskCreated{Title: "A", Status: "pending"}, "", "task.created TASK-7 A (pending)", ""},
		{ralph.TaskUpdated{Title: "A"}, "", `task.updated TASK-7 {"title":"A"}`, ""},
		{
			ralph.TaskStatusChanged{From: "in_progress", To: "blocked", Reason: "key", Waits: &ralph.Waits{Blockers: 2}},
			"",
			"task.status_changed TASK-7 in_progress → blocked: key", "TASK-7 is blocked: Title",
		},
		{ralph.CommentAdded{Kind: "note", CommentID: 4, Author: "ann"}, "", "task.comment.added TASK-7 note 4 by ann", "TASK-7 asks: Title"},
		{ralph.CommentResolved{CommentID: 4, Decision: "yes"}, "", "task.comment.resolved TASK-7 comment 4: yes", ""},
		{ralph.SignalGiven{Verb: "done", Payload: said}, "    done: made it and tested it", "TASK-7 done: made it and tested it", ""},
		{ralph.AmendmentMade{AmendmentID: 5, PatchKeys: []string{"title", "verify"}}, "", "task.amendment.proposed TASK-7 amendment 5 of title, verify", ""},
		{ralph.AmendmentApplied{AmendmentID: 5, ClaimDropped: true}, "", "task.amendment.applied TASK-7 amendment 5; the claim is dropped", ""},
		{ralph.AmendmentRefused{AmendmentID: 5}, "", "task.amendment.rejected TASK-7 amendment 5", ""},
		{
			ralph.BaselineRed{Reason: "exit status 1"},
			"! your tests fail before TASK-7 is begun, and its \"done\" is refused until they pass: exit status 1", "=", "",
		},
		{ralph.ProvesNothing{Commands: []string{"test -f a"}}, "! passes before any work on TASK-7, and proves nothing: test -f a", "=", ""},
		{ralph.ChangeProved{Proved: []string{"TestA"}, Idle: 1}, "⇢ TASK-7 is proved by TestA: red before, green now; of its new tests 1 pass on the old code too", "=", ""},
		{ralph.SessionStarted{Title: "A", Attempt: 2, Agent: "codex"}, "▶ TASK-7 A (attempt 2, by codex)", "=", ""},
		{ralph.SessionStarted{Title: "A", Attempt: 2, Agent: "claude"}, "▶ TASK-7 A (attempt 2)", "=", ""},
		{ralph.SessionStarted{Title: "A", Attempt: 2, Number: 3, Of: 4}, "▶ TASK-7 A (attempt 2, 3 of 4)", "=", ""},
		{ralph.SessionStarted{Title: "A", Attempt: 2}, "▶ TASK-7 A (attempt 2)", "=", ""},
		{
			ralph.SessionMoved{Previous: "idle", State: "testing", Source: "reported", Unexpected: true},
			"",
			"session.state TASK-7 idle → testing (reported, unusual order)", "",
		},
		{
			ralph.SessionProgressed{Progress: ralph.Progress{Iteration: 2}},
			"",
			"session.progress TASK-7 {", "",
		},
		{ralph.CheckpointAdded{}, "", "session.checkpoint TASK-7 {", ""},
		{ralph.SlowCheck{Command: "make test"}, "    verifying: make test", "TASK-7 verifying: make test", ""},
		{ralph.ReviewStarted{Agent: "codex"}, "    being reviewed by codex", "TASK-7 being reviewed by codex", ""},
		{ralph.ReviewEnded{Agent: "codex", Said: "approved by codex: it adds"}, "    approved by codex: it adds", "TASK-7 approved by codex: it adds", ""},
		{ralph.DoneRefused{Reason: "exit 1"}, "    refused: exit 1", "TASK-7 refused: exit 1", ""},
		{ralph.StrangerRefused{Asked: "review.approve"}, "    refused: `review.approve` of a program that is not the agent", "TASK-7 refused: `review.approve` of a program that is not the agent", ""},
		{ralph.CommandRefused{Command: "ralph answer"}, "    refused: `ralph answer`, which only people may do", "TASK-7 refused: `ralph answer`, which only people may do", ""},
		{
			ralph.SessionEnded{Status: "completed", StatusReason: "done", Seconds: 4, CostUSD: 0.5, CostKnown: true, Notes: []string{"n"}},
			"■ TASK-7 merged: done (4 s, $0.50)\n          ! n", "=", "",
		},
		{ralph.ChangeQueued{ChangeID: 3, Head: "abc"}, "", "change.queued TASK-7 change 3, abc", ""},
		{ralph.ChangeMerged{Into: "main", Commit: "abc"}, "⇢ TASK-7 merged into main as abc", "=", ""},
		{ralph.ChangeSentBack{Reason: "r"}, "    conflicts, and its agent is told: r", "TASK-7 conflicts, and its agent is told: r", ""},
		{ralph.ChangeSentBack{ChangeID: 3, Reason: "r"}, "↩ TASK-7 was sent back from the merge queue: r", "=", ""},
		{ralph.ChangeDropped{Reason: "by eve"}, "", "change.dropped TASK-7 by eve", ""},
		{ralph.QueuePaused{Reason: "r"}, "! nothing is merged until `ralph resume --merging`: r", "=", "Merging is paused"},
		{ralph.QueueResumed{By: "eve"}, "", "queue.resumed TASK-7 by eve", ""},
		{
			ralph.TargetRewritten{Branch: "main", Kept: "refs/ralph/lost/x"},
			"! main was moved back behind merged work, which is no longer on it: refs/ralph/lost/x keeps it; `ralph doctor` names its tasks", "=", "",
		},
		{
			ralph.TargetBehind{Branch: "main", Reason: "your edits in a", Command: "git merge x"},
			"! passed, not on main yet: your edits in a: `git merge x`", "=", "Not on main yet",
		},
		{
			ralph.TroubleFound{Kind: "merge.after", What: "make deploy failed", Command: "ralph show 7"},
			"! make deploy failed: `ralph show 7`", "=", "Trouble: make deploy failed",
		},
		{
			ralph.PermissionAsked{Tool: "Bash", Input: "rm\x1b", PermissionID: 6},
			"⏸ TASK-7 waits to use Bash rm<U+001B>: `ralph approve P6`, or `ralph reject P6`", "=",
			"TASK-7 waits for your permission: Title",
		},
		{ralph.PermissionDecided{}, "", "permission.decided TASK-7 {", ""},
		{ralph.RunStarted{}, "", "run.started TASK-7 run 3", ""},
		{ralph.RunWaiting{Reason: "for work", State: "waiting"}, "… waiting for work", "=", "The agent is unavailable"},
		{ralph.RunEnded{ExitStatus: 5, Reason: "a limit"}, "", "run.ended TASK-7 run 3 with status 5: a limit", "Run 3 ended"},
	} {
		e := event(t, c.told)
		seen[e.Type] = true
		if c.listed == "=" {
			c.listed = c.short
		}
		if got := words.Short(e, now); got != c.short {
			t.Errorf("%s in a run: got\n%q, want\n%q", e.Type, got, c.short)
		}
		if got := words.Listed(e, now); got != c.listed && !(strings.HasSuffix(c.listed, "{") && strings.HasPrefix(got, c.listed)) {
			t.Errorf("%s in a list: got\n%q, want\n%q", e.Type, got, c.listed)
		}
		if got := words.Long(e, c.told, "Title", "body").Title; got != c.title {
			t.Errorf("%s as a message: got %q, want %q", e.Type, got, c.title)
		}
	}
	for _, name := range ralph.EventTypes {
		if !seen[name] {
			t.Errorf("%s is in no row", name)
		}
	}
	if e := (ralph.Event{Type: "new", Payload: []byte(`{"a":1}`)}); words.Short(e, now) != "" || words.Listed(e, now) != `new {"a":1}` {
		t.Errorf("an unknown type is %q, %q", words.Short(e, now), words.Listed(e, now))
	}
}

func TestWordsWithSeveralForms(t *testing.T) {
	t.Parallel()
	in := ralph.At(now.Add(90 * time.Second))
	red := event(t, ralph.BaselineRed{Checks: []ralph.Check{{Command: "make", Exit: 2, Tail: "a\nb\n"}}, Consequence: "it is first"})
	red.TaskID = 0
	for _, c := range []struct{ what, got, want string }{
		{"paused", words.Short(event(t, ralph.RunWaiting{State: "paused", Reason: "by ann"}), now), "… by ann; `ralph resume` goes on"},
		{
			"a wait with an end", words.Short(event(t, ralph.RunWaiting{State: "waiting", Reason: "the limit", Until: in}), now),
			"… waiting until " + in.Local().Format("15:04") + " (1 min 30 s from now): the limit",
		},
		{
			"red before any work", words.Short(red, now),
			"! your tests fail already:\n            make: FAILED with exit status 2 (0.0 s)\n" +
				"              | a\n              | b\n            → it is first",
		},
		{"a batch", words.Batch(ralph.RunEnded{Reason: "empty", Sessions: 1, Tasks: 2, CostUSD: 1, CostKnown: true}), "● batch ended: empty (1 session on 2 tasks, $1.00, status 0)"},
		{"a chat's report", words.Chat(event(t, ralph.SessionProgressed{Progress: ralph.Progress{
			Iteration: 2, TestsStatus: "red", FilesModified: []string{"a"}, Notes: "n",
		}}), now), "iteration 2, tests: red, 1 files: n"},
		{"a chat's checkpoint", words.Chat(event(t, ralph.CheckpointAdded{}), now), "checkpoint kept"},
		{"a comment in a chat", words.Chat(event(t, ralph.CommentAdded{}), now), "comment: see `ralph timeline 7`"},
		{"a chat's signal", words.Chat(event(t, ralph.DoneRefused{Reason: "x"}), now), "refused: x"},
		{"a check that is excused", words.Check(ralph.Check{Command: "make", Passed: true, Excused: []string{"T"}}, 0), "make: 1 test failed as before the task: T (0.0 s)"},
		{
			"a check with a long output, in colours", words.Check(ralph.Check{Command: "make", Error: "timed out", Tail: "a\nb\n\x1b[1;31mc\x1b[m\n", Failures: []string{"T"}}, 2),
			"make: FAILED: timed out: T (0.0 s)\n  | … 1 line before (all of it: ralph verify -v)\n  | b\n  | c",
		},
	} {
		if c.got != c.want {
			t.Errorf("%s: got\n%q, want\n%q", c.what, c.got, c.want)
		}
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		told ralph.EventPayload
		want words.Message
	}{
		{
			ralph.SignalGiven{Verb: ralph.VerbAsk, CommentID: 4, Payload: json.RawMessage(`{"question":"blue?","options":["yes","no"],"preferred":"no"}`)},
			words.Message{Title: "TASK-7 asks: Title", Text: "blue?\n- yes\n- no (preferred)\nThe work goes on meanwhile.", Command: "ralph answer Q4 TEXT"},
		},
		{
			ralph.SignalGiven{Verb: ralph.VerbFlag, CommentID: 4, Payload: json.RawMessage(`{"what":"leak","severity":"blocking","category":"bug"}`)},
			words.Message{Title: "TASK-7 flags a blocking problem: Title", Text: "bug: leak", Command: "ralph comment 7 TEXT"},
		},
		{ralph.TaskStatusChanged{To: ralph.Failed, Reason: "r"}, words.Message{Title: "TASK-7 failed: Title", Text: "r", Command: "ralph task retry 7"}},
		{ralph.TaskStatusChanged{To: ralph.Completed, Reason: "r"}, words.Message{Title: "TASK-7 completed: Title", Text: "r"}},
		{ralph.CommentAdded{CommentID: 5}, words.Message{Title: "TASK-7 asks: Title", Text: "body", Command: "ralph comment 7 TEXT --reply-to 5"}},
	} {
		if got := words.Long(event(t, c.told), c.told, "Title", "body"); got != c.want {
			t.Errorf("got %+v, want %+v", got, c.want)
		}
	}
}
