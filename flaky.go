package ralph

import (
	"fmt"
	"time"
)

// FlakyDays is the number of days for which flaky tests are listed.
const FlakyDays = 30

// A Flaky is a test with different results on the same commit, counted over sessions.
type Flaky struct {
	Test    string `json:"test,omitempty"` // "" if the command names no tests
	Command string `json:"command"`
	Times   int    `json:"times"` // sessions in which it failed and then passed
	Last    Time   `json:"last"`  // the end of the last of them
}

// Name returns the test, or the command if it names no tests.
func (f Flaky) Name() string { return Weakening{Test: f.Test, Command: f.Command}.Name() }

// String names the test and counts its flaky runs.
func (f Flaky) String() string {
	times := "once"
	if f.Times > 1 {
		times = fmt.Sprintf("%d times", f.Times)
	}
	return fmt.Sprintf("%s: %s in %d days", f.Name(), times, FlakyDays)
}

// FlakySince returns the beginning of the [FlakyDays] before now.
func FlakySince(now Time) Time { return At(now.Add(-FlakyDays * 24 * time.Hour)) }

// FlakyOf records for each flaky test of checks that it failed once in two runs.
func FlakyOf(checks []Check) (list []string) {
	for _, c := range checks {
		for _, test := range c.Flaky {
			list = append(list, "flaky: "+Flaky{Test: test, Command: c.Command}.Name()+" failed 1 of 2")
		}
	}
	return list
}
