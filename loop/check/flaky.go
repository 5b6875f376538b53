package check

import (
	"maps"
	"slices"
	"time"

	"ralph"
	"ralph/internal/testresult"
)

// soon is the maximum time of a command without test names for a second run, in seconds.
const soon = 60

// Longest returns the maximum time for that number of commands, including retries.
func (r Rules) Longest(commands int) time.Duration {
	limit := r.Timeout
	if r.Retry {
		limit *= 2
	}
	return time.Duration(commands) * limit
}

// Again runs refused commands once more on the same commit by run, after those before them, which may build what they
// need, and returns the results that count, in the order of results. compare judges a result as [Compare] does. A run
// that was stopped leaves the first results.
func (r Rules) Again(
	results []Outcome, compare func(Outcome) ralph.Check, run func(commands []string) ([]Outcome, error),
) ([]Outcome, error) {
	if !r.Retry {
		return results, nil
	}
	var commands, all []string
	last := 0
	for _, o := range results {
		all = append(all, o.Check.Command)
		if !compare(o).Passed && repeatable(o) {
			commands, last = append(commands, o.Check.Command), len(all)
		}
	}
	if last == 0 {
		return results, nil
	}
	second, err := run(all[:last])
	if err != nil {
		return results, err
	}
	settled := slices.Clone(results)
	for i, first := range settled {
		for _, o := range second {
			if o.Check.Command == first.Check.Command && slices.Contains(commands, o.Check.Command) {
				settled[i] = settle(first, o)
			}
		}
	}
	return settled, nil
}

// repeatable reports whether a failed command may pass on the same commit: it ran, the sandbox withheld nothing from
// it, and it names its tests or takes less than a minute.
func repeatable(o Outcome) bool {
	c := o.Check
	return c.Exit != NoProgram && c.Cause == "" && (o.Tests != nil && c.Error == "" || c.Seconds < soon)
}

// settle returns the second result of a command on a commit, which is the one that counts.
func settle(first, second Outcome) Outcome {
	second.Wrote = append(slices.Clone(first.Wrote), second.Wrote...)
	second.Check.Flaky = flips(first, second)
	return second
}

// Either joins two results of a command on a commit: a test that passes in one of them has passed.
func Either(first, second Outcome) Outcome {
	before, now := first.Names(), second.Names()
	if first.Check.Passed || second.Check.Passed || before == nil || now == nil {
		if first.Check.Passed {
			return first
		}
		return second
	}
	joined := *now
	joined.Tests = maps.Clone(now.Tests)
	for name, status := range before.Tests {
		if status == testresult.Passed {
			joined.Tests[name] = status
		}
	}
	if second.Tests != nil {
		second.Tests = &joined
	} else {
		second.Text = &joined
	}
	return second
}

// Flips notes in results which tests failed before on the same commit, at an earlier done, and pass now.
func Flips(before, now []Outcome) {
	for i, o := range now {
		for _, b := range before {
			if b.Check.Command == o.Check.Command && b.Check.Error == "" && b.Check.Cause == "" && b.Check.Exit != NoProgram {
				now[i].Check.Flaky = flips(b, o)
			}
		}
	}
}

// flips returns the tests that failed in a first run on a commit and pass in a second; "" stands for a command that
// passes only then, if no test explains it.
func flips(first, second Outcome) (flaky []string) {
	before, now := first.Names(), second.Names()
	if before != nil {
		for _, name := range before.Failed() {
			if second.Check.Passed || now != nil && now.Tests[name] == testresult.Passed {
				flaky = append(flaky, name)
			}
		}
	}
	if second.Check.Passed && !first.Check.Passed && len(flaky) == 0 {
		flaky = []string{""}
	}
	return flaky
}
