package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"ralph"
	"ralph/loop/agent"
	"ralph/signals"
)

// TestRepliesAtTheEndOfATurn: the text of each reply, with everything that it can mention.
func TestRepliesAtTheEndOfATurn(t *testing.T) {
	f := &finding{
		moved: true, conflict: "main has moved",
		merged: []ralph.Check{{Command: "make test", Exit: 2, Tail: "FAIL TestB"}},
		evidence: ralph.Evidence{
			Aside:  []ralph.Aside{{Branch: "fix", Commits: 2}},
			Debris: []string{"__pycache__/", "a.py~"},
			Gate: ralph.Gate{
				Weakened: []ralph.Weakening{{Test: "TestA", Command: "make test", Kind: ralph.TestLost, Why: "it is gone"}},
				Trial:    ralph.Trial{Neutralised: []string{"TestC", "`make test`"}},
			},
			Reviews: []ralph.Review{{Agent: "codex", Objections: []ralph.Objection{
				{Severity: ralph.ObjectionBlocking, File: "a.go", Line: 3, What: "It leaks.", Why: "Nobody closes it."},
			}}},
		},
	}
	full := reply{
		tools: agent.ProfileOf(nil), folder: "/workspaces/1", found: f,
		refusal: signals.Refusal{
			Failed:    []ralph.Check{{Command: "make test", Exit: 1, Tail: "FAIL TestA", Failures: []string{"TestA"}}},
			Protected: []string{"ci.sh"}, Problems: []string{".env was committed: undo that"},
		},
		flags: []int64{4, 5}, lines: "-func TestA", marked: []string{"a.go"}, ignored: []string{"build/a.o"},
		killed: []string{"sleep 100"},
	}
	var b strings.Builder
	say := func(name string, r reply) { fmt.Fprintf(&b, "## %s\n\n%s\n\n", name, strings.TrimSpace(r.words())) }
	for _, kind := range slices.Sorted(maps.Keys(replies)) {
		r := full
		r.kind = kind
		say(string(kind), r)
	}
	bare := reply{kind: signals.ReplyTests, found: &finding{}}
	say("tests: nothing proves it", bare)
	bare.found.evidence.Gate.Refused = "no test runs any more"
	say("tests: refused", bare)
	say("refused: fails with merged work alone", reply{kind: signals.ReplyRefused, found: &finding{moved: true}})
	compare(t, "testdata/replies.md", b.String())
}
