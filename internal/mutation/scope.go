package main

import "strings"

// of are judges: some of loop's tests, by the beginnings of their names.
func of(tests ...string) judge {
	return judge{pkg: "loop", run: "^(" + strings.Join(tests, "|") + ")"}
}

// decisions are loop's tests of what it decides, which need no run of a loop.
var decisions = of(
	"TestTheModelOfASession", "TestASessionsClock", "TestWhatARedBaseline", "TestAProtectedFile", "TestProtectedFiles", "TestLimitsOfARun", "TestUsageWindows",
	"TestIdleness", "TestADayBegins", "TestWhyASession", "TestTheParts", "TestFilesOfStagnation", "TestAfterAnAgentError", "TestJudgeByTheBaseline",
	"TestHowARunEndsWithNothingLeftToDo", "TestWhatASessionIsCharged",
)

// Tests that need a run, or a claim, with an agent of the test's: what is run is
// chosen, so that a mutant costs a second or two.
var (
	settling = of("TestWhatBecomesOfASession", "TestADoneOfARunThatIsStopped")
	claims   = of(
		"TestAClaim", "TestALapsedClaim", "TestADoneThatIsChecked", "TestALease", "TestReleasing", "TestWhoIsTooLate", "TestASessionThatCannotBeSettled",
	)
	lost  = of("TestWhatALostSessionLeft", "TestLooksAtTheWorkTree")
	begun = of("TestARunThatBeginsRed")
	runs  = of("TestSessionsInARow", "TestARunWorksOn", "TestALostRace", "TestATaskThatNeverStandsStill")
	waits = of("TestAUsageWindow", "TestADaemonHas", "TestARunWithALimit", "TestADaemonThatWaits", "TestADaemonStill")
)

// scope is what is broken, and who is to notice. Tests that take long come last: few
// mutants live to see them.
//
// Left out is what needs real processes or the whole command line, and is held by the
// stories of cmd/ralph: the freezing of an agent, what people say to one that works,
// git's part of the evidence, configuration and protected files that are put back,
// baselines, prompts, and what a daemon does with its schedule. signals/near.go compares
// texts by shares and thresholds, which TestMergingIsMeasured measures on labelled pairs:
// of 260 mutants of it a fifth moves a threshold between two pairs.
var scope = []target{
	{files: "signals/[^n]*.go", judges: []judge{
		{pkg: "signals", skip: "TestEveryDecision"},
		{pkg: "signals", run: "TestEveryDecision"},
	}},
	{files: "signals/near.go", functions: "merge.*|Near|Compare|Against|headOf|alike|sameAudience|taughtNew|fuller", judges: []judge{{pkg: "signals", skip: "TestEveryDecision"}}},
	{files: "loop/*.go", functions: strings.Join([]string{
		"reached", "allowance", "Midnight", "usedUp", "usageLimit", "charge", "afterError", "judgeRest", "judge", "withCause", `Loop\.(chooseModel|excusable)`,
		`newClock|clock\..*`, `idleness\..*`, `hashes\.differ|parts\..*|digestFiles`, "digest.*", "welcome|farewell|tampered|paths", "isHidden|assumed|hiding|below",
	}, "|"), judges: []judge{decisions}},
	{files: "loop/*.go", functions: `runner\.(bounded|waitForLost|missed|tasksReached|waitForDay|ofDays|per|limit|afterAgent|waitForAgent)`, judges: []judge{runs, waits}},
	{files: "loop/*.go", functions: `runner\.(ready|readyFirst|stopRed|redNow|suiteCommands|announce)`, judges: []judge{begun}},
	{files: "loop/*.go", functions: `Loop\.(recover|recoverOne|unsettled|salvage|reopen|Lapse)|Claim\..*`, judges: []judge{lost, claims}},
	{files: "loop/*.go", functions: `runner\.obeying|session\.(turnEnded|objection|check|own|drift|settle|observe|claimed)`, judges: []judge{settling, lost}},
}
