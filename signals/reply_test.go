package signals_test

import (
	"math/rand/v2"
	"testing"

	"ralph"
	"ralph/signals"
)

// TestReplies: the reply to an agent that waits. Unless the row says something else, it said done, which nothing
// checks, and changed something. It is reminded once and hears of two refusals.
func TestReplies(t *testing.T) {
	const none = signals.Reply("")
	red, green := []ralph.Check{{Command: "make test", Exit: 1}}, []ralph.Check{{Command: "make test", Passed: true}}
	told := func(replies ...signals.Reply) (list []signals.Notice) {
		for _, r := range replies {
			list = append(list, signals.Notice{Reply: r, Comment: 1})
		}
		return list
	}
	gate := func(g ralph.Gate) ralph.Evidence { return ralph.Evidence{Gate: g} }
	refused, blind := gate(ralph.Gate{Refused: "no test runs"}), gate(ralph.Gate{Trial: ralph.Trial{Neutralised: []string{"TestA"}}})
	objects := ralph.Evidence{Reviews: []ralph.Review{{Agent: "codex", Objections: []ralph.Objection{{Severity: ralph.ObjectionBlocking}}}}}
	aside := ralph.Evidence{Aside: []ralph.Aside{{Branch: "x", Commits: 1}}}
	unchanged := gate(ralph.Gate{Unchanged: true})
	debris := ralph.Evidence{Debris: []string{"a.py~"}}
	flag := signals.Flag{What: "fire", Severity: "blocking", Category: "bug"}
	answer := signals.Done{Summary: "it works", FlagsAnswered: "no fire"}
	for _, tt := range []struct {
		name  string
		facts signals.Facts
		want  signals.Reply
	}{
		{"a done that holds", signals.Facts{}, none},

		{"no closing verb", signals.Facts{Said: say(lesson)}, signals.ReplyRemind},
		{"no closing verb after a reminder", signals.Facts{Said: say(lesson), Told: told(signals.ReplyRemind)}, none},
		{"partial", signals.Facts{Said: say(partial)}, none},
		{"stuck, beside a comment", signals.Facts{Said: say(stuck), Unheard: 5}, none},

		{"a comment", signals.Facts{Unheard: 5}, signals.ReplyComment},
		{"a comment that the agent knows", signals.Facts{Unheard: 5, Told: []signals.Notice{{Reply: signals.ReplyComment, Comment: 5}}}, none},
		{"a later comment", signals.Facts{Unheard: 6, Told: []signals.Notice{{Reply: signals.ReplyComment, Comment: 5}}}, signals.ReplyComment},
		{"a comment beside a red check", signals.Facts{Unheard: 5, Verify: red}, signals.ReplyRefused},

		{"a red check", signals.Facts{Verify: red}, signals.ReplyRefused},
		{"a red check again", signals.Facts{Verify: red, Told: told(signals.ReplyRefused)}, signals.ReplyRefused},
		{"a red check a third time", signals.Facts{Verify: red, Told: told(signals.ReplyRefused, signals.ReplyRefused)}, none},
		{"a red check and a conflict", signals.Facts{Verify: red, Conflict: "main has moved"}, signals.ReplyRefused},
		{"a red check a third time, and a conflict", signals.Facts{
			Verify: red, Conflict: "main has moved", Told: told(signals.ReplyRefused, signals.ReplyRefused),
		}, none},
		{"an objection", signals.Facts{Evidence: objects}, signals.ReplyRefused},
		{"an objection and a red check", signals.Facts{Verify: red, Evidence: objects}, signals.ReplyRefused},

		{"refused tests", signals.Facts{Evidence: refused}, signals.ReplyTests},
		{"refused tests again", signals.Facts{Evidence: refused, Told: told(signals.ReplyTests)}, signals.ReplyRefused},
		{"refused tests after blind ones", signals.Facts{Evidence: refused, Told: told(signals.ReplyBlind)}, signals.ReplyTests},
		{"refused tests and a red check", signals.Facts{Evidence: refused, Verify: red}, signals.ReplyRefused},
		{"blind tests", signals.Facts{Evidence: blind}, signals.ReplyBlind},
		{"blind tests again", signals.Facts{Evidence: blind, Told: told(signals.ReplyBlind)}, signals.ReplyRefused},

		{"a conflict", signals.Facts{Conflict: "main has moved"}, signals.ReplyConflict},
		{"the same conflict again", signals.Facts{Conflict: "main has moved", Told: told(signals.ReplyConflict)}, none},
		{"another conflict", signals.Facts{Conflict: "main has moved", Moved: true, Told: told(signals.ReplyConflict)}, signals.ReplyConflict},
		{"conflict marks", signals.Facts{Conflict: "marks", Moved: true, Marks: []string{"a.go"}}, none},
		{"a conflict of an empty change", signals.Facts{Conflict: "main has moved", Untouched: true}, signals.ReplyConflict},

		{"commits aside", signals.Facts{Evidence: aside, Untouched: true}, signals.ReplyAside},
		{"commits aside, beside a change", signals.Facts{Evidence: aside}, none},
		{"commits aside, after a question", signals.Facts{Evidence: aside, Untouched: true, Told: told(signals.ReplyUnchanged)}, none},

		{"an empty change whose checks passed before", signals.Facts{Evidence: unchanged}, signals.ReplyUnchanged},
		{"a worker's empty change whose checks passed before", signals.Facts{Evidence: unchanged, Worker: true}, none},
		{"an empty change whose checks passed before, after a question", signals.Facts{Evidence: unchanged, Told: told(signals.ReplyAside)}, none},

		{"a blocking flag", signals.Facts{Said: say(flag, done)}, signals.ReplyFlags},
		{"a blocking flag again", signals.Facts{Said: say(flag, done), Told: told(signals.ReplyFlags)}, none},
		{"a blocking flag that the done answers", signals.Facts{Said: say(flag, answer)}, none},
		{"an earlier session's blocking flag", signals.Facts{Said: say(answer), OpenFlags: []int64{9}}, signals.ReplyFlags},

		{"debris", signals.Facts{Evidence: debris}, signals.ReplyDebris},
		{"debris again", signals.Facts{Evidence: debris, Told: told(signals.ReplyDebris)}, none},

		{"a worker's workspace without a change", signals.Facts{Untouched: true, Worker: true, Cloned: true, Verify: green}, signals.ReplyElsewhere},
		{"a worker's own folder without a change", signals.Facts{Untouched: true, Worker: true, Verify: green}, none},
		{"no change, and a check", signals.Facts{Untouched: true, Cloned: true, Verify: green}, none},
		{"no change, and no check", signals.Facts{Untouched: true}, signals.ReplyConfirm},
		{"no change, and no check, after a question", signals.Facts{Untouched: true, Told: told(signals.ReplyElsewhere)}, none},
		{"no change after an earlier session's work", signals.Facts{Untouched: true, Carries: true}, none},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.facts.Waiting, tt.facts.Ending, tt.facts.Rules = true, ralph.Finished, rules
			tt.facts.Rules.Reminders, tt.facts.Rules.Retries = 1, 2
			if tt.facts.Said == nil {
				tt.facts.Said = say(done)
			}
			if got := signals.Decide(tt.facts).Reply; got != tt.want {
				t.Errorf("the reply is %q, want %q", got, tt.want)
			}
		})
	}
}

// TestEveryConversationEnds: no reply is repeated beyond its limit, whatever an agent that always answers done did.
func TestEveryConversationEnds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		f := randomFacts(r)
		f.Waiting, f.Told, f.Rules.Reminders, f.Rules.Retries = true, nil, 1, 2
		sent, questions := map[signals.Reply]int{}, 0
		for {
			d := signals.Decide(f)
			if d.Reply == "" {
				break
			}
			limit := 1
			if d.Reply == signals.ReplyRefused {
				limit = 2
			}
			if asks(d.Reply) {
				questions++
			}
			if sent[d.Reply]++; sent[d.Reply] > limit || questions > 1 {
				t.Fatalf("it goes on: %+v, and now %s", f.Told, d.Reply)
			}
			f.Told = append(f.Told, signals.Notice{Reply: d.Reply, Comment: max(signals.Closing(f.Said).ID, f.Unheard)})
			f.Said = append(f.Said, signals.Said{ID: int64(len(f.Said) + 10), Payload: done})
			f.Moved = false
		}
	}
}

// asks reports whether a reply asks the agent to confirm its done.
func asks(r signals.Reply) bool {
	switch r {
	case signals.ReplyAside, signals.ReplyUnchanged, signals.ReplyElsewhere, signals.ReplyConfirm:
		return true
	}
	return false
}
