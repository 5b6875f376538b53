package signals_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph/signals"
)

// TestMergingIsMeasured prints how well repetitions and contradictions are recognized, on
// labelled pairs, and enforces minimums. Merging must be precise, as a wrong merge loses a fact.
func TestMergingIsMeasured(t *testing.T) {
	for _, set := range []struct {
		file              string
		precision, recall float64 // minimums for merging
		conflicts         float64 // minimum recall of contradictions
		wrong             []string
	}{
		{"pairs.tsv", 1, 0.85, 0.95, []string{
			"same, taken for different: CI has no network access / The CI has no access to the network",
			"same, taken for different: The API returns errors as problem+json / API errors are returned as problem+json",
		}},
		{"pairs_heldout.tsv", 1, 0.9, 0.9, nil},
		{"pairs_replaced.tsv", 1, 0.9, 0.9, nil},
	} {
		t.Run(set.file, func(t *testing.T) {
			text, err := os.ReadFile("testdata/" + set.file)
			if err != nil {
				t.Fatal(err)
			}
			count := map[[2]string]int{} // label, found
			var misjudged []string
			labels := map[signals.Relation]string{signals.Repeats: "same", signals.Contradicts: "conflict", signals.Unrelated: "different"}
			for line := range strings.Lines(string(text)) {
				part := strings.Split(strings.TrimRight(line, "\n"), "\t")
				if len(part) != 3 {
					t.Fatalf("%q is no pair", line)
				}
				found := labels[signals.Compare(part[1], part[2])]
				if other := labels[signals.Compare(part[2], part[1])]; other != found {
					t.Errorf("%q and %q are %s one way round and %s the other", part[1], part[2], found, other)
				}
				count[[2]string{part[0], found}]++
				if part[0] != found {
					misjudged = append(misjudged, fmt.Sprintf("%s, taken for %s: %s / %s", part[0], found, part[1], part[2]))
				}
			}
			// Every wrong answer is listed, so that a wrong merge is noticed however
			// good the average is.
			if diff := cmp.Diff(set.wrong, misjudged); diff != "" {
				t.Errorf("other pairs than before are told wrongly:\n%s", diff)
			}
			measure := func(label string) (precision, recall float64) {
				right, foundAll, all := count[[2]string{label, label}], 0, 0
				for k, n := range count {
					if k[1] == label {
						foundAll += n
					}
					if k[0] == label {
						all += n
					}
				}
				return float64(right) / float64(max(foundAll, 1)), float64(right) / float64(max(all, 1))
			}
			precision, recall := measure("same")
			cp, cr := measure("conflict")
			t.Logf("merging: precision %.2f, recall %.2f; contradictions: precision %.2f, recall %.2f", precision, recall, cp, cr)
			if precision < set.precision || recall < set.recall || cr < set.conflicts || cp < 0.8 {
				t.Errorf("worse than the floor: precision %.2f, recall %.2f; contradictions: recall %.2f", set.precision, set.recall, set.conflicts)
			}
		})
	}
}

// TestWhatDiffersInNamesIsNoContradiction: five facts of five modules are no ten things to answer.
func TestWhatDiffersInNamesIsNoContradiction(t *testing.T) {
	for _, other := range []string{
		"Module 22 keeps its limits in config.py", "Module 21 keeps its limits in limits.py", "Module 22 keeps its limits in limits.py",
	} {
		if got := signals.Compare("Module 21 keeps its limits in config.py", other); got != signals.Unrelated {
			t.Errorf("%s: %q", other, got)
		}
	}
	if got := signals.Compare("Module 21 keeps its limits in config.py", "Module 21 never keeps its limits in config.py"); got != signals.Contradicts {
		t.Errorf("a negation of the same subject: %q", got)
	}
}
