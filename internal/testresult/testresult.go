// Package testresult reads what a command reports of its tests by name, as
// `go test -json` or as JUnit XML, and compares two such reports (pipeline,
// "Verification").
//
// It is pure and believes no report more than it has to: one that is cut short,
// miscounts, or tells of a package without its tests is marked as broken, and
// excuses nothing.
package testresult

import (
	"maps"
	"slices"
)

// A Status is how a test ended.
type Status string

// The statuses.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Results are the tests of one run of a command.
type Results struct {
	Tests  map[string]Status `json:"tests"`            // by name: "example.org/pkg.TestName", "tests.test_app.test_login"
	Broken string            `json:"broken,omitempty"` // why the report cannot be trusted; "" if it can
}

// add notes a test. Of several with one name the worst counts.
func (r *Results) add(name string, s Status) {
	if r.Tests == nil {
		r.Tests = map[string]Status{}
	}
	if old, ok := r.Tests[name]; ok && (old == Failed || s == Skipped) {
		return
	}
	r.Tests[name] = s
}

// Failed are the names of the tests that failed, in order.
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

// A Comparison is what became of a failing command since the baseline.
type Comparison struct {
	New     []string // tests that fail and did not, or that passed and are gone
	Known   []string // tests that fail as they did
	Excused bool     // nothing but known failures: the command's failure is not this task's
}

// Compare compares a report of a command that fails with the one from before
// (decision 1). A test that passed before and is not reported any more counts as
// failing: who removes it, or keeps it from running, proves nothing by it.
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
