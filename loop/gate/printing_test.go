package gate_test

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"ralph/internal/testresult"
	"ralph/loop/gate"
)

// TestPrinting judges the output of real runners: code and tests that begin to print lose nothing, and a test that is
// also deleted or skipped is lost.
func TestPrinting(t *testing.T) {
	text, err := os.ReadFile("testdata/printing.txtar")
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string]gate.Run{}
	var runners []string
	for _, f := range txtar.Parse(text).Files {
		tests, err := testresult.ParseText(strings.NewReader(string(f.Data)))
		if err != nil {
			t.Fatal(err)
		}
		runs[f.Name] = gate.Run{Command: "check", Passed: true, Tests: tests}
		if runner, ok := strings.CutSuffix(f.Name, ": target"); ok {
			runners = append(runners, runner)
		}
	}
	if len(runners) < 15 {
		t.Fatalf("only %q", runners)
	}
	for _, runner := range runners {
		for _, c := range []struct {
			was, now string
			lost     bool
		}{
			{"target", "honest", false},
			{"honest", "honest", false},
			{"honest", "target", false},
			{"target", "deleted", true},
			{"honest", "deleted", true},
			{"target", "skipped", true},
			{"honest", "skipped", true},
		} {
			was, now := runs[runner+": "+c.was], runs[runner+": "+c.now]
			found, refused := gate.Judge(gate.Results{Target: []gate.Run{was}, Now: []gate.Run{now}})
			if c.lost != (len(found) == 1) || refused != "" {
				t.Errorf("%s: %s, %s: %+v %s", runner, c.was, c.now, found, refused)
			}
			if len(found) == 1 && strings.HasPrefix(found[0].Name(), "`") != (len(was.Tests.Tests) < 8) {
				t.Errorf("%s: %s, %s: it names %+v", runner, c.was, c.now, found)
			}
			// With test files changed, and the former ones passing with the new code.
			r := gate.Results{
				Files:  []gate.Changed{{File: gate.File{Path: "code.test.js", Was: []byte("a"), Is: []byte("b")}, Kind: gate.Test}},
				Target: []gate.Run{was}, Now: []gate.Run{now}, Old: []gate.Run{runs[runner+": honest"]},
			}
			if found, refused := gate.Judge(r); c.lost != (len(found) == 1) || refused != "" {
				t.Errorf("%s: %s, %s, and files: %+v %s", runner, c.was, c.now, found, refused)
			}
		}
	}
}
