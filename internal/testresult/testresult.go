// Package testresult parses a command's report of its tests by name, as `go test -json` or as JUnit
// XML, and compares two reports (pipeline, "Verification").
//
// It is pure and trusts reports as little as possible: one that is truncated, miscounts, or reports
// a package without its tests is marked as broken, and excuses nothing.
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
)

// Results are the tests of one run of a command.
type Results struct {
	Tests  map[string]Status `json:"tests"`            // by name, such as "example.org/pkg.TestName"
	Count  int               `json:"count,omitempty"`  // how many ran, as a summary for people says; 0 if none does
	Broken string            `json:"broken,omitempty"` // why the report cannot be trusted; "" if it can
}

// add adds a test. Of several with one name the worst result counts.
func (r *Results) add(name string, s Status) {
	if r.Tests == nil {
		r.Tests = map[string]Status{}
	}
	if old, ok := r.Tests[name]; ok && (old == Failed || s == Skipped) {
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
