package main

// rules are loop's tests of its decisions, which need no run of a loop.
const rules = "TestTheModelOfASession|TestASessionsClock|TestWhatARedBaseline|TestAProtectedFile|TestProtectedFiles|TestLimitsOfARun|TestUsageWindows|TestIdleness|TestADayBegins"

// scope is what is broken, and who is to notice. Tests that take long come last: few
// mutants live to see them. What a table says is for a story alone is not in it.
var scope = []target{
	{files: "signals/*.go", judges: []judge{
		{pkg: "signals", skip: "TestEveryDecision"},
		{pkg: "signals", run: "TestEveryDecision"},
	}},
	{files: "loop/limits.go", judges: []judge{{pkg: "loop", run: rules}, {pkg: "loop", skip: rules}}},
	{files: "loop/watch.go", functions: `newClock|clock\..*`, judges: []judge{{pkg: "loop", run: rules}}},
	{files: "loop/protect.go", judges: []judge{{pkg: "loop", run: rules}}},
	{files: "loop/idle.go", judges: []judge{{pkg: "loop", run: rules}}},
	{files: "loop/session.go", functions: "Loop.chooseModel|withCause", judges: []judge{{pkg: "loop", run: rules}, {pkg: "loop", skip: rules}}},
	{files: "loop/baseline.go", functions: "judge|Loop.inexcusable", judges: []judge{{pkg: "loop", run: rules}, {pkg: "loop", skip: rules}}},
	{files: "loop/backoff.go", judges: []judge{{pkg: "loop", run: rules}, {pkg: "loop", skip: rules}}},
	{files: "loop/rest.go", functions: "judgeRest", judges: []judge{{pkg: "loop", run: rules}, {pkg: "loop", skip: rules}}},
	{files: "loop/stagnation.go", functions: "hashes.differ|parts.*|digestFiles", judges: []judge{{pkg: "loop", run: rules}, {pkg: "loop", skip: rules}}},
	{files: "loop/loop.go", functions: "runner.work|runner.session|runner.stopped|runner.unusable|Loop.pick", judges: []judge{{pkg: "loop"}}},
	{files: "loop/recover.go", functions: "Loop.recover|Loop.recoverOne", judges: []judge{{pkg: "loop"}}},
	{files: "loop/worker.go", functions: "Loop.Lapse|Claim.Held|Claim.Close|Claim.Release", judges: []judge{{pkg: "loop"}}},
}
