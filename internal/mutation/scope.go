package main

import "strings"

// decisions are loop's tests of what it decides, which need no run of a loop.
var decisions = []judge{{pkg: "loop", run: strings.Join([]string{
	"TestTheModelOfASession", "TestASessionsClock", "TestWhatARedBaseline", "TestAProtectedFile", "TestProtectedFiles", "TestLimitsOfARun", "TestUsageWindows",
	"TestIdleness", "TestADayBegins", "TestWhyASession", "TestTheParts", "TestFilesOfStagnation", "TestAfterAnAgentError", "TestJudgeByTheBaseline",
	"TestHowARunEndsWithNothingLeftToDo", "TestWhichModelASessionHas", "TestProtectedFilesThatCannotBeSeen", "TestWhatASessionIsCharged",
}, "|")}}

// scope is what is broken, and who is to notice. Tests that take long come last: few
// mutants live to see them. What only a whole run shows is not in it.
var scope = []target{
	{files: "signals/*.go", judges: []judge{
		{pkg: "signals", skip: "TestEveryDecision"},
		{pkg: "signals", run: "TestEveryDecision"},
	}},
	{files: "loop/*.go", judges: decisions},
}
