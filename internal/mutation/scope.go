package main

import "strings"

// of are judges: some of a package's tests, by the beginnings of their names.
func of(pkg string, tests ...string) judge {
	return judge{pkg: pkg, run: "^(" + strings.Join(tests, "|") + ")"}
}

// decisions are loop's tests of what it decides, which need no run of a loop.
var decisions = of("loop",
	"TestTheModelOfASession", "TestASessionsClock", "TestLimitsOfARun", "TestUsageWindows",
	"TestIdleness", "TestADayBegins", "TestWhyASession", "TestTheParts", "TestAfterAnAgentError",
	"TestHowARunEndsWithNothingLeftToDo", "TestWhatASessionIsCharged",
)

// scope is what is broken, and who is to notice. Tests that take long come last: few
// mutants live to see them.
//
// Left out of loop is what needs a whole run, whose tests take seconds a mutant: the
// settling of sessions (TestWhatBecomesOfASession, TestADoneOfARunThatIsStopped), recovery
// (TestWhatALostSessionLeft, the tests of claims), a red begin (TestARunThatBeginsRed) and what a run counts (runs_test.go);
// and what needs real processes or the command line, which the stories of cmd/ralph hold:
// freezing, people's words to an agent that works, git's part of the evidence.
//
// Of signals/near.go, what compares texts by shares and thresholds is left out:
// TestMergingIsMeasured measures it on labelled pairs, between which a threshold may move.
var scope = []target{
	{files: "signals/[^n]*.go", judges: []judge{
		{pkg: "signals", skip: "TestEveryDecision"},
		{pkg: "signals", run: "TestEveryDecision"},
	}},
	{files: "signals/near.go", functions: "learnings|merged|Against|headOf|alike|sameAudience|taughtNew|fuller", judges: []judge{
		{pkg: "signals", skip: "TestEveryDecision"},
		{pkg: "signals", run: "TestEveryDecision"},
	}},
	{files: "loop/*.go", functions: strings.Join([]string{
		"reached", "allowance", "Midnight", "usedUp", "usageLimit", "charge", "afterError", "judgeRest", "withCause", `Loop\.chooseModel`,
		`newClock|clock\..*`, `idleness\..*`, `hashes\.differ|parts\..*`,
	}, "|"), judges: []judge{decisions}},
	{files: "loop/check/*.go", functions: `Judge|Verifier\.excusable|digestOne|welcome|farewell|tampered|paths|isHidden|assumed|hiding`,
		judges: []judge{of("loop/check", "TestJudgeByTheBaseline", "TestWhatARedBaseline", "TestAProtectedFile", "TestProtectedFiles")}},
	{files: "loop/place/*.go", functions: `Place\.Files|Digests|Digest|digest(Matches|File)|below`,
		judges: []judge{of("loop/place", "TestAProtectedFile", "TestDigestsOfProtectedFiles", "TestFilesOfStagnation")}},
}
