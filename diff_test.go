package ralph_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph"
)

func TestAPatchIsShownAsChanges(t *testing.T) {
	t.Parallel()
	task := ralph.Task{Title: "Parse", Description: "one\ntwo\nthree", Priority: 2, Acceptance: []string{"works", "is\nfast"}}
	title, description, priority, acceptance := "Parse URLs", "one\n2\nthree\nfour", 0, []string{"works"}
	p := ralph.Patch{Title: &title, Description: &description, Priority: &priority, Contracts: &ralph.Contract{Acceptance: &acceptance}}
	want := []string{
		"  title", "-   Parse", "+   Parse URLs", "  priority", "-   2", "+   0",
		"  description", "    one", "-   two", "+   2", "    three", "+   four",
		"  acceptance", "    works", "-   is fast",
	}
	if d := cmp.Diff(want, p.Diff(p.Of(task))); d != "" {
		t.Error(d)
	}
}

// TestTwoTextsWithoutAnythingInCommonAreShownAsAWhole: an agent's patch must not use up the memory of its viewer.
func TestTwoTextsWithoutAnythingInCommonAreShownAsAWhole(t *testing.T) {
	t.Parallel()
	task := ralph.Task{Description: "same\n" + strings.Repeat("a\n", 30_000) + "end"}
	description := "same\n" + strings.Repeat("b\n", 30_000) + "end"
	p := ralph.Patch{Description: &description}
	lines := p.Diff(p.Of(task))
	if len(lines) != 60_003 || lines[1] != "    same" || lines[2] != "-   a" || lines[60_001] != "+   b" || lines[60_002] != "    end" {
		t.Errorf("%d lines, from %q to %q", len(lines), lines[1], lines[len(lines)-1])
	}
}
