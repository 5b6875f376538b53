package signals_test

import (
	"os"
	"strings"
	"testing"

	"ralph/signals"
)

// TestMergingIsMeasured prints how well repetitions and contradictions are told
// apart, on labelled pairs, and holds what it is good for: what is merged must be
// the same, or a fact is lost.
func TestMergingIsMeasured(t *testing.T) {
	for _, set := range []struct {
		file              string
		precision, recall float64 // of merging, at least
		conflicts         float64 // recall of contradictions, at least
	}{
		{"pairs.tsv", 1, 0.85, 0.95},
		{"pairs_heldout.tsv", 1, 0.9, 0.9},
		{"pairs_replaced.tsv", 1, 0.9, 0.9},
	} {
		t.Run(set.file, func(t *testing.T) {
			text, err := os.ReadFile("testdata/" + set.file)
			if err != nil {
				t.Fatal(err)
			}
			count := map[[2]string]int{} // label, found
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
					t.Logf("%s, taken for %s: %q / %q", part[0], found, part[1], part[2])
				}
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
