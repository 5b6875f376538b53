package signals_test

import (
	"os"
	"strings"
	"testing"

	"ralph/signals"
)

// TestOnlyEqualTextsAreMerged plays labelled pairs in several languages, both ways round. A wrong merge loses a fact.
func TestOnlyEqualTextsAreMerged(t *testing.T) {
	text, err := os.ReadFile("testdata/pairs.tsv")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(string(text)) {
		part := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(part) != 3 {
			t.Fatalf("%q is no pair", line)
		}
		count[part[0]]++
		for range 2 {
			if got, want := signals.Same(part[1], part[2]), part[0] == "same"; got != want {
				t.Errorf("%q and %q: same is %t", part[1], part[2], got)
			}
			part[1], part[2] = part[2], part[1]
		}
	}
	if count["same"] < 25 || count["kept"] < 100 || len(count) != 2 {
		t.Errorf("the pairs are %v", count)
	}
}

// TestATextIsTheSameAsItself, and as itself in other punctuation; an empty one is the same as nothing.
func TestATextIsTheSameAsItself(t *testing.T) {
	text, err := os.ReadFile("testdata/pairs.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		said := strings.Split(strings.TrimRight(line, "\n"), "\t")[1]
		for _, other := range []string{said, said + "!", " \"" + said + "\"\n", "**" + said + "**", said + " (seen twice)"} {
			if !signals.Same(said, other) {
				t.Errorf("%q is not the same as %q", said, other)
			}
		}
		if signals.Same(said, "") || signals.Same("...", said) {
			t.Errorf("%q is the same as nothing", said)
		}
	}
	if signals.Same("", "") || signals.Same("—", "!") {
		t.Error("nothing is the same as nothing")
	}
}
