package trial

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestExpectations: the expectations of tests in each language, and the order in which they change.
func TestExpectations(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/tests.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range archive.Files {
		fmt.Fprintf(&b, "-- %s --\n", f.Name)
		e := Read(f.Name, f.Data)
		for _, x := range e.list {
			line := 1 + strings.Count(e.text[:x.options[0].at], "\n")
			fmt.Fprintf(&b, "%d:", line)
			for _, o := range x.options {
				said := e.text[o.at:o.end]
				switch {
				case o.wrap:
					said = o.open + said + o.shut
				case o.swap:
					said += " → " + o.open
				}
				if o.expected {
					said = "*" + said
				}
				if o.equal {
					said += "="
				}
				fmt.Fprintf(&b, " %s", strings.ReplaceAll(said, "\n", "⏎"))
			}
			b.WriteString("\n")
		}
	}
	const golden = "testdata/expectations.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("differs from %s:\n%s", golden, got)
	}
}
