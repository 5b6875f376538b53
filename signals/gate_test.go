package signals_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
		{"no reason", ralph.Gate{Weakened: []ralph.Weakening{lost}}, signals.Rules{}, nil, ralph.Pending, "done was refused: tests that pass on the target refuse it as they were, and no reason is given (TestA)"},
		{"a reason", ralph.Gate{Reason: "x", Weakened: []ralph.Weakening{changed, lost}, Files: []ralph.Blob{was}}, signals.Rules{}, nil, ralph.NeedsInput, "waits for approval of changed tests (TestA lost, TestB changed); done and verified"},
		{"refused whatever the reason", ralph.Gate{Reason: "x", Weakened: []ralph.Weakening{lost}}, signals.Rules{Lost: signals.PolicyRefuse}, nil, ralph.Pending, "tests that pass on the target are lost or loosened (TestA)"},
		{"only lost is refused", ralph.Gate{Reason: "x", Weakened: []ralph.Weakening{changed}}, signals.Rules{Lost: signals.PolicyRefuse}, nil, ralph.NeedsInput, "TestB changed"},
		{"changed is noted", ralph.Gate{Weakened: []ralph.Weakening{changed}}, signals.Rules{TestsChanged: signals.PolicyNote}, nil, ralph.Merging, "tests: TestB changed"},
		{"changed, and sessions of the same feature wrote it", ralph.Gate{Weakened: []ralph.Weakening{unseen(changed)}}, signals.Rules{}, nil, ralph.Merging, "tests: TestB changed, written for the same feature"},
		{"lost, and sessions of the same feature wrote it", ralph.Gate{Reason: "x", Weakened: []ralph.Weakening{unseen(lost), unseen(changed)}}, signals.Rules{}, nil, ralph.NeedsInput, "waits for approval of changed tests (TestA lost); done and verified"},
		{"a reviewer says that the task asks for it", ralph.Gate{Weakened: []ralph.Weakening{changed}, Asks: ralph.AsksYes}, signals.Rules{TestsChanged: signals.PolicyReview}, nil, ralph.Merging, ""},
		{"a reviewer does not", ralph.Gate{Reason: "x", Weakened: []ralph.Weakening{changed}, Asks: ralph.AsksUnsure}, signals.Rules{TestsChanged: signals.PolicyReview}, nil, ralph.NeedsInput, ""},
		{"a reviewer's word where people decide", ralph.Gate{Reason: "x", Weakened: []ralph.Weakening{changed}, Asks: ralph.AsksYes}, signals.Rules{}, nil, ralph.NeedsInput, ""},
		{"unproved", ralph.Gate{Unproved: true}, signals.Rules{}, nil, ralph.Pending, "done was refused: no test of its own fails on the code as it was before"},
		{"unproved, with a reason", ralph.Gate{Unproved: true, Reason: "x"}, signals.Rules{}, nil, ralph.Merging, ""},
		{"unproved, and a test lost without a reason", ralph.Gate{Unproved: true, Weakened: []ralph.Weakening{lost}}, signals.Rules{}, nil, ralph.Pending, "no reason is given (TestA)"},
		{"no test runs", ralph.Gate{Reason: "x", Refused: "it runs no test"}, signals.Rules{}, nil, ralph.Pending, "done was refused: it runs no test"},
		{"tests that pass whatever they expect", ralph.Gate{Reason: "x", Trial: ralph.Trial{Neutralised: []string{"TestA", "`make`"}}}, signals.Rules{}, nil, ralph.Pending, "done was refused: what tests expect (TestA, `make`) can be changed without them failing"},
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

func TestWhetherAReviewerIsAsked(t *testing.T) {
	lost, changed := ralph.Weakening{Kind: ralph.TestLost}, ralph.Weakening{Kind: ralph.TestChanged}
	review := signals.Rules{TestsChanged: signals.PolicyReview}
	for _, c := range []struct {
		name  string
		rules signals.Rules
		gate  ralph.Gate
		want  bool
	}{
		{"no test changed", review, ralph.Gate{}, false},
		{"a test changed", review, ralph.Gate{Weakened: []ralph.Weakening{lost, changed}}, true},
		{"a test lost", review, ralph.Gate{Weakened: []ralph.Weakening{lost}}, false},
		{"a person decides", signals.Rules{TestsChanged: signals.PolicyAsk}, ralph.Gate{Weakened: []ralph.Weakening{changed}}, false},
		{"it was asked", review, ralph.Gate{Weakened: []ralph.Weakening{changed}, Asks: ralph.AsksYes}, false},
	} {
		if got := c.rules.Asks(c.gate); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// TestNotesOfAGate checks the text in brackets after a done that was verified.
func TestNotesOfAGate(t *testing.T) {
	lost := ralph.Weakening{Kind: ralph.TestLost, Test: "TestA"}
	changed := ralph.Weakening{Kind: ralph.TestChanged, Test: "TestB"}
	depends := make([]ralph.Dependency, 7)
	for i := range depends {
		depends[i] = ralph.Dependency{Name: fmt.Sprintf("d%d", i), Removed: true}
	}
	const five = "removed dependency d0; removed dependency d1; removed dependency d2; removed dependency d3; removed dependency d4"
	for _, c := range []struct {
		name string
		gate ralph.Gate
		want string
	}{
		{"the former tests pass", ralph.Gate{Tried: true}, "also passes the old tests"},
		{"former tests fail", ralph.Gate{Tried: true, Weakened: []ralph.Weakening{changed}}, "tests: TestB changed"},
		{"the task allows it", ralph.Gate{Tried: true, Allowed: []ralph.Weakening{lost}}, "tests, as the task allows: TestA lost"},
		{"both", ralph.Gate{Tried: true, Weakened: []ralph.Weakening{changed}, Allowed: []ralph.Weakening{lost}}, "tests: TestB changed; tests, as the task allows: TestA lost"},
		{"a reviewer agrees", ralph.Gate{Weakened: []ralph.Weakening{changed}, Asks: ralph.AsksYes, Says: "the task says so"}, "tests: TestB changed; the task says so"},
		{"a reviewer is unsure", ralph.Gate{Weakened: []ralph.Weakening{changed}, Asks: ralph.AsksUnsure, Says: "perhaps"}, "tests: TestB changed"},
		{"tests without literals", ralph.Gate{Trial: ralph.Trial{Tests: 80, Silent: 12}}, "12 of 80 tests state no literal expectation"},
		{"a test that was emptied", ralph.Gate{Trial: ralph.Trial{Fewer: []string{"a_test.go (1, 3 before)"}}}, "fewer expectations: a_test.go (1, 3 before)"},
		{"a trial that did not end", ralph.Gate{Trial: ralph.Trial{Unknown: "2 test files"}}, "not tried with other expectations: 2 test files"},
		{"five dependencies", ralph.Gate{Depends: depends[:5]}, five},
		{"six", ralph.Gate{Depends: depends[:6]}, five + "; 1 more changed dependency"},
		{"seven", ralph.Gate{Depends: depends}, five + "; 2 more changed dependencies"},
		{"no proof", ralph.Gate{Idle: []string{"make\nmore", "true"}, Unproved: true}, "`make` passed before any work: it proves nothing; `true` passed before any work: it proves nothing; no test proves it"},
		{"no comparison", ralph.Gate{Unknown: "no time"}, "not compared with the old tests: no time"},
	} {
		c.gate.Reason = "x"
		d := signals.Decide(signals.Facts{
			Ending: ralph.Finished, Changed: true, Said: say(done), Evidence: ralph.Evidence{Gate: c.gate},
			Verify: []ralph.Check{{Command: "make test", Passed: true}},
			Rules:  signals.Rules{Attempts: 10, Lost: signals.PolicyNote, TestsChanged: signals.PolicyNote},
		})
		if want := "done and verified (" + c.want + "): it works"; d.StatusReason != want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, d.StatusReason, want)
		}
	}
}

// TestWhatAPersonHasToApprove compares whole approvals.
func TestWhatAPersonHasToApprove(t *testing.T) {
	lost := ralph.Weakening{Kind: ralph.TestLost, Test: "TestA"}
	changed := ralph.Weakening{Kind: ralph.TestChanged, Test: "TestB"}
	files, ci := []ralph.Blob{{Path: "a_test.go"}}, []ralph.Blob{{Path: "ci.yml"}}
	depends := []ralph.Dependency{{Name: "left-pad", Added: true}}
	review := func(agent, none string, list ...ralph.Objection) ralph.Review {
		return ralph.Review{Agent: agent, None: none, Objections: list}
	}
	objects := review("codex", "", ralph.Objection{File: "a.go", What: "wrong", Severity: ralph.ObjectionBlocking})
	fell := review("qwen", "it fell silent")
	for _, c := range []struct {
		name     string
		evidence ralph.Evidence
		want     ralph.Approval
		asks     string
	}{
		{
			"changed tests that are noted are no part of it",
			ralph.Evidence{Gate: ralph.Gate{Reason: "x", Weakened: []ralph.Weakening{changed}, Files: files, Says: "fine", Guarded: ci, Depends: depends}},
			ralph.Approval{Reason: "x", Guarded: ci, Depends: depends},
			"guarded files (ci.yml)",
		},
		{
			"lost tests, with their files",
			ralph.Evidence{Gate: ralph.Gate{Reason: "x", Weakened: []ralph.Weakening{changed, lost}, Files: files, Says: "fine"}},
			ralph.Approval{Reason: "x", Weakened: []ralph.Weakening{lost}, Files: files, Says: "fine"},
			"changed tests (TestA lost)",
		},
		{
			"an empty change",
			ralph.Evidence{Gate: ralph.Gate{Unchanged: true}},
			ralph.Approval{Reason: "it works", Unchanged: true},
			"an empty change, whose checks passed before",
		},
		{
			"reviewers that object or fell silent",
			ralph.Evidence{Rounds: signals.ReviewRounds, Reviews: []ralph.Review{
				review("claude", ""), fell, objects, review("gemini", "", ralph.Objection{Severity: ralph.ObjectionRemark}),
			}},
			ralph.Approval{Objected: []ralph.Review{objects}, Unreviewed: []ralph.Review{fell}, Summary: "it works"},
			"a reviewer's open objections (codex objects: a.go: wrong), a change that was not reviewed (no review by qwen: it fell silent)",
		},
		{
			"a reviewer that fell silent",
			ralph.Evidence{Reviews: []ralph.Review{fell}},
			ralph.Approval{Unreviewed: []ralph.Review{fell}},
			"a change that was not reviewed (no review by qwen: it fell silent)",
		},
	} {
		d := signals.Decide(signals.Facts{
			Ending: ralph.Finished, Changed: true, Head: "c0ffee", Said: say(done), Evidence: c.evidence,
			Rules: signals.Rules{Attempts: 10, TestsChanged: signals.PolicyNote},
		})
		c.want.Change = "c0ffee"
		if diff := cmp.Diff(&c.want, d.Approval, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
		if !strings.HasPrefix(d.StatusReason, "waits for approval of "+c.asks+"; done") {
			t.Errorf("%s: asks %q", c.name, d.StatusReason)
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
		open     string // the comments named
	}{
		{"open", []signals.Said{{ID: 1, Payload: flag}, {ID: 2, Payload: signals.Done{Summary: "a"}}}, nil, ralph.Blocked, 0, "C1"},
		{"answered by the done", []signals.Said{{ID: 1, Payload: flag}, {ID: 2, Payload: signals.Done{Summary: "a", FlagsAnswered: "mended"}}}, nil, ralph.Completed, 1, ""},
		{"answered by a person", []signals.Said{{ID: 1, Payload: flag, Resolved: true}, {ID: 2, Payload: signals.Done{Summary: "a"}}}, nil, ralph.Completed, 0, ""},
		{"of an earlier session", []signals.Said{{ID: 2, Payload: signals.Done{Summary: "a", FlagsAnswered: "mended"}}}, []int64{1}, ralph.Blocked, 0, "C1"},
		{"of both", []signals.Said{{ID: 3, Payload: flag}, {ID: 4, Payload: signals.Done{Summary: "a"}}}, []int64{1}, ralph.Blocked, 0, "C1, C3"},
		{"a warning", []signals.Said{{ID: 1, Payload: signals.Flag{What: "x", Severity: "warning", Category: "bug"}}, {ID: 2, Payload: signals.Done{Summary: "a"}}}, nil, ralph.Completed, 0, ""},
	} {
		d := signals.Decide(signals.Facts{
			Ending: ralph.Finished, Changed: true, Said: c.said, OpenFlags: c.earlier,
			Verify: []ralph.Check{{Command: "make test", Passed: true}},
			Rules:  signals.Rules{StuckLimit: 3, VerifyFailures: 3, Attempts: 10},
		})
		if !strings.HasSuffix(d.Reason, c.open) {
			t.Errorf("%s: open is %q", c.name, d.Reason)
		}
		if d.Status != c.want || len(d.Answered) != c.answered || (len(d.Holds) > 0) != (c.want == ralph.Blocked) {
			t.Errorf("%s: %s, %q, %v", c.name, d.Status, d.StatusReason, d.Answered)
		}
	}
}
