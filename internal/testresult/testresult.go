// Package testresult parses a command's report of its tests by name, as `go test -json` or as JUnit
// XML, and compares two reports (pipeline, "Verification").
//
// It is pure and trusts reports as little as possible. A report is marked as broken, and excuses
// nothing, if it is truncated, miscounts, or has a package without its tests.
package testresult

import (
	"maps"
	"slices"
)

// A Status is the result of a test.
type Status string

// The statuses.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
	Unknown Status = "unknown" // text names the test, and its status cannot be told
)

// Results are the tests of one run of a command.
type Results struct {
	Tests  map[string]Status `json:"tests"`            // by name, such as "example.org/pkg.TestName"
	Broken string            `json:"broken,omitempty"` // why the report cannot be trusted; "" if it can

	Text   bool             `json:"text,omitempty"`   // read from text for people: output of tests may hide a name
	Named  int              `json:"named,omitempty"`  // number of times that text names a test that may have passed
	Counts map[string]Count `json:"counts,omitempty"` // counts of summaries in text, by runner
}

// A Count is the sum of a runner's summaries.
type Count struct {
	Lines   int `json:"lines"` // summaries
	Passed  int `json:"passed"`
	Skipped int `json:"skipped,omitempty"`
}

// Count returns the number of passed tests according to summaries in text; 0 if there are none.
func (r *Results) Count() (sum int) {
	for _, c := range r.Counts {
		sum += c.Passed
	}
	return sum
}

// skipped returns the number of skipped tests according to summaries, and the number of named ones.
func (r *Results) skipped() (counted, named int) {
	for _, c := range r.Counts {
		counted += c.Skipped
	}
	for _, s := range r.Tests {
		if s == Skipped {
			named++
		}
	}
	return counted, named
}

// AsMany reports whether a later run in text counts as many tests as a former one or more: each runner has as many
// summaries, since a test may print one, and none of its tests is skipped without a name that was not skipped before.
func AsMany(before, after *Results) bool {
	if before == nil || after == nil || !before.Text || !after.Text || len(before.Counts) == 0 {
		return false
	}
	for runner, was := range before.Counts {
		if now := after.Counts[runner]; now.Lines != was.Lines || now.Passed < was.Passed {
			return false
		}
	}
	formerly, _ := before.skipped()
	counted, named := after.skipped()
	return counted <= formerly || counted <= named
}

// add adds a test. Of several with one name the worst result counts, and any rather than an unknown one.
func (r *Results) add(name string, s Status) {
	if r.Tests == nil {
		r.Tests = map[string]Status{}
	}
	if old, ok := r.Tests[name]; ok && (s == Unknown || old != Unknown && (old == Failed || s == Skipped)) {
		return
	}
	r.Tests[name] = s
}

// Failed returns the names of the failed tests, sorted.
func (r *Results) Failed() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(r.Tests)) {
		if r.Tests[name] == Failed {
			names = append(names, name)
		}
	}
	return names
}

// Merge adds the tests of another report of the same run.
func (r *Results) Merge(other *Results) {
	for name, s := range other.Tests {
		r.add(name, s)
	}
	if r.Broken == "" {
		r.Broken = other.Broken
	}
}

// A Comparison compares a failing command with the baseline.
type Comparison struct {
	New     []string // tests that fail now, or that passed before and are missing
	Known   []string // tests that failed before, too
	Excused bool     // only known failures: the task is not to blame
}

// Compare compares the report of a failing command with the baseline (decision 1). A test that
// passed before and is missing now counts as failing: removing or skipping a test proves nothing.
func Compare(before, after *Results) Comparison {
	var c Comparison
	for _, name := range after.Failed() {
		if before.Tests[name] == Failed {
			c.Known = append(c.Known, name)
		} else {
			c.New = append(c.New, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.Tests)) {
		if _, there := after.Tests[name]; !there && before.Tests[name] == Passed {
			c.New = append(c.New, name+" (gone)")
		}
	}
	c.Excused = len(c.New) == 0 && len(c.Known) > 0 && before.Broken == "" && after.Broken == ""
	return c
}
