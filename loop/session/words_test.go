package session

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/loop/agent"
	"ralph/signals"
)

// TestWhatAgentsAreToldAtTheEndOfATurn has each reply in words, with all that it can name.
func TestWhatAgentsAreToldAtTheEndOfATurn(t *testing.T) {
	f := &finding{
		moved: true, conflict: "main has moved",
		merged: []ralph.Check{{Command: "make test", Exit: 2, Tail: "FAIL TestB"}},
		evidence: ralph.Evidence{
			Aside: []ralph.Aside{{Branch: "fix", Commits: 2}},
			Gate:  ralph.Gate{Weakened: []ralph.Weakening{{Test: "TestA", Command: "make test", Kind: ralph.TestLost, Why: "it is gone"}}},
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
	const golden = "testdata/replies.md"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Error(diff)
	}
}
