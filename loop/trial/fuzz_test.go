package trial

import (
	"strings"
	"testing"
)

// TestMalformedFiles: a file of an agent is read in little time and memory. It once took hours, or ended the run.
func TestMalformedFiles(t *testing.T) {
	for _, c := range []struct{ name, unit string }{
		{"test.sh", "$("}, {"test.sh", "$(("}, {"a.test.js", "`${"}, {"a.test.js", "expect("}, {"ATests.cs", `r#"`}, {"ATests.cs", `"#{`},
	} {
		if n := Read(c.name, []byte(strings.Repeat(c.unit, maxText/2/len(c.unit)))).Len(); n > 0 {
			t.Errorf("%s of %q has %d expectations", c.name, c.unit, n)
		}
	}
}

// FuzzMutant: no test file ends the run that changes its expectations.
func FuzzMutant(f *testing.F) {
	for _, name := range []string{
		"a_test.go", "test_a.py", "a.test.js", "a.spec.ts", "tests/a.rs", "ATest.java", "a_test.rb", "ATest.php", "test.sh", "a.bats",
		"test.c", "ATest.kt", "ATests.cs", "t/a.t", "__snapshots__/a.snap",
	} {
		f.Add(name, "assert f(1) == \"a\"\nif x != 1 { t.Fatal(`\n")
	}
	f.Fuzz(func(_ *testing.T, name, text string) {
		e := Read(name, []byte(text))
		for round := range Values + 1 {
			e.Mutant("seed", round, nil)
		}
		e.Firm()
		e.states(Base(text), []string{name, text})
	})
}
