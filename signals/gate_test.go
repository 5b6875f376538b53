package signals_test

import (
	"strings"
	"testing"

	"ralph"
	"ralph/signals"
)

func TestVerdictsOfAGate(t *testing.T) {
	lost := ralph.Weakening{Kind: ralph.TestLost, Test: "TestA", Command: "make test"}
	changed := ralph.Weakening{Kind: ralph.TestChanged, Test: "TestB", Command: "make test"}
	was, is := ralph.Blob{Path: "a_test.go", From: "1", To: "2"}, ralph.Blob{Path: "a_test.go", From: "1", To: "3"}
	ci := ralph.Blob{Path: ".github/workflows/ci.yml", To: "4"}
	approved := func(b ralph.Blob, list ...ralph.Weakening) []ralph.Approval {
		return []ralph.Approval{{Weakened: list, Files: []ralph.Blob{b}}}
	}
	unseen := func(w ralph.Weakening) ralph.Weakening {
		w.Unseen = true
		return w
	}
	for _, c := range []struct {
		name     string
		gate     ralph.Gate
		rules    signals.Rules
		approved []ralph.Approval
		want     ralph.Status
		why      string
	}{
		{"nothing", ralph.Gate{}, signals.Rules{}, nil, ralph.Merging, "done and verified: it works"},
		{"the former tests pass", ralph.Gate{Tried: true}, signals.Rules{}, nil, ralph.Merging, "also passes the old tests"},
		{"no reason", ralph.Gate{Weakened: []ralph.Weakening{lost}}, signals.Rules{}, nil, ralph.Pending, "done was refused: tests that pass on the target refuse it as they were, and no reason is given (TestA)"},
		{"a reason", ralph.Gate{Reason: "x", Weakened: []ralph.Weakening{changed, lost}, Files: []ralph.Blob{was}}, signals.Rules{}, nil, ralph.NeedsInput, "waits for approval of changed tests (TestA lost, TestB changed); done and verified"},
		{"refused whatever the reason", ralph.Gate{Reason: "x", Weakened: []ralph.Weakening{lost}}, signals.Rules{Lost: signals.PolicyRefuse}, nil, ralph.Pending, "tests that pass on the target are lost or loosened (TestA)"},
		{"only lost is refused", ralph.Gate{Reason: "x", Weakened: []ralph.Weakening{changed}}, signals.Rules{Lost: signals.PolicyRefuse}, nil, ralph.NeedsInput, "TestB changed"},
		{"changed is noted", ralph.Gate{Weakened: []ralph.Weakening{changed}}, signals.Rules{TestsChanged: signals.PolicyNote}, nil, ralph.Merging, "tests: TestB changed"},
		{"changed, and sessions of the same feature wrote it", ralph.Gate{Weakened: []ralph.Weakening{unseen(changed)}}, signals.Rules{}, nil, ralph.Merging, "tests: TestB changed, written for the same feature"},
		{"lost, and sessions of the same feature wrote it", ralph.Gate{Reason: "x", Weakened: []ralph.Weakening{unseen(lost), unseen(changed)}}, signals.Rules{}, nil, ralph.NeedsInput, "waits for approval of changed tests (TestA lost); done and verified"},
		{"no test runs", ralph.Gate{Reason: "x", Refused: "it runs no test"}, signals.Rules{}, nil, ralph.Pending, "done was refused: it runs no test"},
		{"tests that pass whatever they expect", ralph.Gate{Reason: "x", Trial: ralph.Trial{Neutralised: []string{"TestA", "`make`"}}}, signals.Rules{}, nil, ralph.Pending, "done was refused: what tests expect (TestA, `make`) can be changed without them failing"},
		{"tests without literals", ralph.Gate{Trial: ralph.Trial{Tests: 80, Silent: 12}}, signals.Rules{}, nil, ralph.Merging, "12 of 80 tests state no literal expectation"},
		{"a test that was emptied", ralph.Gate{Trial: ralph.Trial{Fewer: []string{"a_test.go (1, 3 before)"}}}, signals.Rules{}, nil, ralph.Merging, "fewer expectations: a_test.go (1, 3 before)"},
		{"a trial that did not end", ralph.Gate{Trial: ralph.Trial{Unknown: "2 test files"}}, signals.Rules{}, nil, ralph.Merging, "not tried with other expectations: 2 test files"},
		{"the task allows it", ralph.Gate{Tried: true, Allowed: []ralph.Weakening{lost}}, signals.Rules{}, nil, ralph.Merging, "tests, as the task allows: TestA lost"},
		{"a guarded file", ralph.Gate{Guarded: []ralph.Blob{ci}}, signals.Rules{}, nil, ralph.NeedsInput, "waits for approval of guarded files (.github/workflows/ci.yml)"},
		{"files outside of the task's", ralph.Gate{Scope: []string{"src/**"}, Outside: []ralph.Blob{ci}}, signals.Rules{}, nil, ralph.NeedsInput, "waits for approval of files outside of the task's (.github/workflows/ci.yml); done and verified (changes 1 file outside of src/**)"},
		{"are noted", ralph.Gate{Scope: []string{"src/**"}, Outside: []ralph.Blob{ci, was}}, signals.Rules{Scope: signals.PolicyNote}, nil, ralph.Merging, "done and verified (changes 2 files outside of src/**)"},
		{"were approved", ralph.Gate{Scope: []string{"src/**"}, Outside: []ralph.Blob{ci}}, signals.Rules{}, []ralph.Approval{{Outside: []ralph.Blob{ci}}}, ralph.Merging, ""},
		{"were approved with other contents", ralph.Gate{Scope: []string{"src/**"}, Outside: []ralph.Blob{was}}, signals.Rules{}, []ralph.Approval{{Outside: []ralph.Blob{is}}}, ralph.NeedsInput, ""},
		{"nothing changed", ralph.Gate{Unchanged: true}, signals.Rules{}, nil, ralph.NeedsInput, "an empty change"},
		{"approved", ralph.Gate{Reason: "x", Weakened: []ralph.Weakening{lost}, Files: []ralph.Blob{was}}, signals.Rules{}, approved(was, lost), ralph.Merging, ""},
		{"another content than was approved", ralph.Gate{Reason: "x", Weakened: []ralph.Weakening{lost}, Files: []ralph.Blob{is}}, signals.Rules{}, approved(was, lost), ralph.NeedsInput, ""},
		{"another test than was approved", ralph.Gate{Reason: "x", Weakened: []ralph.Weakening{lost, changed}, Files: []ralph.Blob{was}}, signals.Rules{}, approved(was, lost), ralph.NeedsInput, "(TestB changed)"},
		{"a guarded file, with the pull request to approve it", ralph.Gate{Guarded: []ralph.Blob{ci}}, signals.Rules{InPull: true}, nil, ralph.Merging, "its pull request asks for approval of guarded files (.github/workflows/ci.yml)"},
		{"nothing changed, with no pull request to approve it", ralph.Gate{Unchanged: true}, signals.Rules{InPull: true}, nil, ralph.NeedsInput, "waits for approval of an empty change"},
		{"a guarded file that was approved", ralph.Gate{Guarded: []ralph.Blob{ci}}, signals.Rules{}, []ralph.Approval{{Guarded: []ralph.Blob{ci}}}, ralph.Merging, ""},
	} {
		c.rules.StuckLimit, c.rules.VerifyFailures, c.rules.Attempts = 3, 3, 10
		d := signals.Decide(signals.Facts{
			Ending: ralph.Finished, Changed: true, Merges: true, Rules: c.rules, Approvals: c.approved,
			Said:     []signals.Said{{ID: 1, Payload: signals.Done{Summary: "it works"}}},
			Verify:   []ralph.Check{{Command: "make test", Passed: true}},
			Evidence: ralph.Evidence{Gate: c.gate},
		})
		if d.Status != c.want || !strings.Contains(d.StatusReason, c.why) {
			t.Errorf("%s: %s, %q; want %s, %q", c.name, d.Status, d.StatusReason, c.want, c.why)
		}
		if (d.Approval != nil) != (c.want == ralph.NeedsInput) {
			t.Errorf("%s: approval %+v", c.name, d.Approval)
		}
	}
}

func TestADoneBesideABlockingFlag(t *testing.T) {
	flag := signals.Flag{What: "SSRF", Severity: "blocking", Category: "security"}
	for _, c := range []struct {
		name     string
		said     []signals.Said
		earlier  []int64
		want     ralph.Status
		answered int
	}{
		{"open", []signals.Said{{ID: 1, Payload: flag}, {ID: 2, Payload: signals.Done{Summary: "a"}}}, nil, ralph.Blocked, 0},
		{"answered by the done", []signals.Said{{ID: 1, Payload: flag}, {ID: 2, Payload: signals.Done{Summary: "a", FlagsAnswered: "mended"}}}, nil, ralph.Completed, 1},
		{"answered by a person", []signals.Said{{ID: 1, Payload: flag, Resolved: true}, {ID: 2, Payload: signals.Done{Summary: "a"}}}, nil, ralph.Completed, 0},
		{"of an earlier session", []signals.Said{{ID: 2, Payload: signals.Done{Summary: "a", FlagsAnswered: "mended"}}}, []int64{1}, ralph.Blocked, 0},
		{"a warning", []signals.Said{{ID: 1, Payload: signals.Flag{What: "x", Severity: "warning", Category: "bug"}}, {ID: 2, Payload: signals.Done{Summary: "a"}}}, nil, ralph.Completed, 0},
	} {
		d := signals.Decide(signals.Facts{
			Ending: ralph.Finished, Changed: true, Said: c.said, OpenFlags: c.earlier,
			Verify: []ralph.Check{{Command: "make test", Passed: true}},
			Rules:  signals.Rules{StuckLimit: 3, VerifyFailures: 3, Attempts: 10},
		})
		if d.Status != c.want || len(d.Answered) != c.answered || (len(d.Holds) > 0) != (c.want == ralph.Blocked) {
			t.Errorf("%s: %s, %q, %v", c.name, d.Status, d.StatusReason, d.Answered)
		}
	}
}
