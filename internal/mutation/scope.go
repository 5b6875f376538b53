package main

import "strings"

// decisions are loop's tests of what it decides, which need no run of a loop.
var decisions = []judge{{pkg: "loop", run: strings.Join([]string{
	"TestTheModelOfASession", "TestASessionsClock", "TestWhatARedBaseline", "TestAProtectedFile", "TestProtectedFiles", "TestLimitsOfARun", "TestUsageWindows",
	"TestIdleness", "TestADayBegins", "TestWhyASession", "TestTheParts", "TestFilesOfStagnation", "TestAfterAnAgentError", "TestJudgeByTheBaseline",
	"TestHowARunEndsWithNothingLeftToDo", "TestWhichModelASessionHas", "TestProtectedFilesThatCannotBeSeen",
}, "|")}}

// scope is what is broken, and who is to notice. Tests that take long come last: few
// mutants live to see them. What only a whole run shows is not in it.
var scope = []target{
	{files: "signals/*.go", judges: []judge{
		{pkg: "signals", skip: "TestEveryDecision"},
		{pkg: "signals", run: "TestEveryDecision"},
	}},
	{files: "loop/limits.go", functions: "reached|allowance|Midnight|usedUp|usageLimit", judges: decisions},
	{files: "loop/watch.go", functions: `newClock|clock\..*`, judges: decisions},
	{files: "loop/protect.go", functions: "digest.*|welcome|farewell|tampered|paths", judges: decisions},
	{files: "loop/idle.go", functions: `idleness\..*`, judges: decisions},
	{files: "loop/session.go", functions: "Loop.chooseModel|withCause", judges: decisions},
	{files: "loop/baseline.go", functions: "judge", judges: decisions},
	{files: "loop/backoff.go", functions: "afterError", judges: decisions},
	{files: "loop/rest.go", functions: "judgeRest", judges: decisions},
	{files: "loop/stagnation.go", functions: "hashes.differ|parts.*|digestFiles", judges: decisions},
}
