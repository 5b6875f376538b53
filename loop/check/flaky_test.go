package check_test

import (
	"errors"
	"slices"
	"testing"

	"ralph"
	"ralph/internal/testresult"
	"ralph/loop/check"
)

// ended returns the result of the command "t": its exit status, and its tests by name.
func ended(exit int, tests map[string]testresult.Status) check.Outcome {
	o := check.Outcome{Check: ralph.Check{Command: "t", Exit: exit, Passed: exit == 0, Seconds: 1}}
	if tests != nil {
		o.Tests = &testresult.Results{Tests: tests}
	}
	return o
}

func TestAgain(t *testing.T) {
	type tests = map[string]testresult.Status
	const red, green = testresult.Failed, testresult.Passed
	slow, withheld, absent, late := ended(1, nil), ended(1, nil), ended(127, nil), ended(-1, tests{"A": red})
	slow.Check.Seconds, withheld.Check.Cause = 60, ralph.NoNetwork
	late.Check.Error, late.Check.Seconds = "took longer than 10m", 600
	slowNamed := ended(1, tests{"A": red})
	slowNamed.Check.Seconds = 600
	text := ended(1, nil)
	text.Text = &testresult.Results{Tests: tests{"A": red}}
	for _, c := range []struct {
		name          string
		off           bool
		first, second check.Outcome
		ran, passed   bool
		flaky         []string
	}{
		{"what passes is not run again", false, ended(0, nil), ended(0, nil), false, true, nil},
		{"a test that passes then is flaky", false, ended(1, tests{"A": red, "B": green}), ended(0, tests{"A": green, "B": green}), true, true, []string{"A"}},
		{"also if its command takes long", false, slowNamed, ended(0, tests{"A": green}), true, true, []string{"A"}},
		{"also if its name is only printed", false, text, ended(0, nil), true, true, []string{"A"}},
		{"a broken one is refused", false, ended(1, tests{"A": red}), ended(1, tests{"A": red}), true, false, nil},
		{"beside a broken one it is named", false, ended(1, tests{"A": red, "B": red}), ended(1, tests{"A": green, "B": red}), true, false, []string{"A"}},
		{"a test that is gone is not flaky", false, ended(1, tests{"A": red, "B": red}), ended(1, tests{"B": red}), true, false, nil},
		{"the second run decides", false, ended(1, tests{"A": red, "B": green}), ended(1, tests{"A": green, "B": red}), true, false, []string{"A"}},
		{"a command without names", false, ended(1, nil), ended(0, nil), true, true, []string{""}},
		{"a broken one", false, ended(1, nil), ended(1, nil), true, false, nil},
		{"one that takes a minute is not run again", false, slow, ended(0, nil), false, false, nil},
		{"nor one that reached its time limit", false, late, ended(0, nil), false, false, nil},
		{"nor one that the sandbox kept from what it needs", false, withheld, ended(0, nil), false, false, nil},
		{"nor one without its program", false, absent, ended(0, nil), false, false, nil},
		{"nor any if that is off", true, ended(1, nil), ended(0, nil), false, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran := 0
			list, err := check.Rules{Retry: !c.off}.Again([]check.Outcome{ended(0, nil), c.first},
				func(o check.Outcome) ralph.Check { return o.Check },
				func(commands []string) ([]check.Outcome, error) {
					ran++
					return []check.Outcome{c.second}, nil
				})
			if err != nil || len(list) != 2 || (ran == 1) != c.ran || ran > 1 {
				t.Fatalf("%v, %v, run %d times", list, err, ran)
			}
			if got := list[1].Check; got.Passed != c.passed || !slices.Equal(got.Flaky, c.flaky) {
				t.Errorf("passed %t, flaky %q; want %t, %q", got.Passed, got.Flaky, c.passed, c.flaky)
			}
		})
	}
}

// TestAgainRunsRefusedCommandsAndEarlierOnes: it does not run an excused command after the last refused one, and does
// not read an error of the second run as a result.
func TestAgainRunsRefusedCommandsAndEarlierOnes(t *testing.T) {
	a, b, c := ended(1, nil), ended(1, nil), ended(1, nil)
	a.Check.Command, c.Check.Command = "a", "c"
	compare := func(o check.Outcome) ralph.Check {
		o.Check.Passed = o.Check.Command != "t"
		return o.Check
	}
	broken := errors.New("no disk")
	list, err := check.Rules{Retry: true}.Again([]check.Outcome{a, b, c}, compare, func(commands []string) ([]check.Outcome, error) {
		if !slices.Equal(commands, []string{"a", "t"}) {
			t.Errorf("runs %q", commands)
		}
		return nil, broken
	})
	if !errors.Is(err, broken) || list[1].Check.Passed {
		t.Errorf("%v, %v", list, err)
	}
}

// TestEither: a test that passes in one of two runs on a commit has passed.
func TestEither(t *testing.T) {
	type tests = map[string]testresult.Status
	const red, green = testresult.Failed, testresult.Passed
	for _, c := range []struct {
		name          string
		first, second check.Outcome
		passed        bool
		failed        []string
	}{
		{"flaky in each run", ended(1, tests{"A": red, "B": green, "C": red}), ended(1, tests{"A": green, "B": red, "C": red}), false, []string{"C"}},
		{"the command passes then", ended(1, tests{"A": red}), ended(0, tests{"A": green}), true, nil},
		{"without names", ended(1, nil), ended(1, nil), false, nil},
		{"the second stops early", ended(1, tests{"A": red, "B": green}), ended(1, nil), false, nil},
	} {
		got := check.Either(c.first, c.second)
		var failed []string
		if names := got.Names(); names != nil {
			failed = names.Failed()
		}
		if got.Check.Passed != c.passed || !slices.Equal(failed, c.failed) {
			t.Errorf("%s: passed %t, failed %q", c.name, got.Check.Passed, failed)
		}
	}
}
