package main

import (
	"regexp"
	"strings"
)

// of are judges: some of a package's tests, by the beginnings of their names, or all.
func of(pkg string, tests ...string) judge {
	return judge{pkg: pkg, run: regexp.MustCompile("^(" + strings.Join(tests, "|") + ")")}
}

// Of loop's tests, those that judge the same things.
var (
	decisions = of("loop",
		"TestTheModelOfASession", "TestLimitsOfARun", "TestUsageWindows", "TestADayBegins", "TestAfterAnAgentError",
		"TestHowARunEndsWithNothingLeftToDo",
	)
	sessions = of("loop",
		"TestWhatBecomesOfASession", "TestWhatASessionIsHeldTo", "TestACheckIsGivenItsTime", "TestADoneOf",
		"TestWhatAnAgentReports", "TestWhereAPersons", "TestFilesOfPeople", "TestADoneIsNotJudged",
		"TestWhatIsTakenAway", "TestWhatASessionShows", "TestWhatAnAttemptLeaves",
		"TestWhatIsTakenAway", "TestAnAgentStandsStill", "TestWhatCouldNot", "TestAConfigurationThat",
	)
	lost = of("loop",
		"TestWhatALostSessionLeft", "TestLooksAtTheWorkTree", "TestASessionThatCannotBeSettled",
		"TestARunLeaves", "TestASupervisor",
	)
	claims = of("loop",
		"TestAClaim", "TestALapsedClaim", "TestADoneThatIsChecked", "TestALease", "TestReleasing", "TestWhoIsTooLate",
		"TestATaskWhoseAttempts", "TestAPersonsClaim", "TestAWorkerHears", "TestATaskOfAPersons", "TestAPersonIs",
	)
	red  = of("loop", "TestARunThatBeginsRed", "TestADaemonWaitsUntil")
	runs = of("loop",
		"TestSessionsInARow", "TestAnAgentThatDoesNothing", "TestARunWorksOn", "TestALostRace",
		"TestATaskThatNeverStandsStill", "TestAUsageWindow", "TestTheWaitsForAnAgent", "TestADaemonHas",
		"TestARunWithALimit", "TestADaemonThatWaits", "TestADaemonStill",
	)
	faults = of("loop", "TestNoFailureOfTheDatabase")
)

// scope is what is broken, and who is to notice: of its judges' tests those that run
// through the mutant, the fastest first.
//
// Left out of loop is what needs real processes or the command line, which the stories of
// cmd/ralph hold: freezing, and people's words to an agent that works.
//
// Of signals/near.go, what compares texts by shares and thresholds is left out:
// TestMergingIsMeasured measures it on labelled pairs, between which a threshold may move.
var scope = []target{
	{files: "signals/[^n]*.go", judges: []judge{of("signals")}},
	{files: "signals/near.go", functions: []string{
		"learnings", "merged", "Against", "headOf", "alike", "sameAudience", "taughtNew", "fuller",
	}, judges: []judge{of("signals")}},
	{files: "loop/**/*.go", functions: []string{ // limits, clocks, models, costs, what a session changed
		"reached", "allowance", "Midnight", "usedUp", "usageLimit", "charge", "afterError",
		`Models\.choose`, `Limits\.withCause`,
		"causeOf", `newClock|clock\..*`, `idleness\..*`, `hashes\.differ`, `parts\..*`, "judgeRest", "Shortly",
	}, judges: []judge{decisions, of("loop/session")}},
	{files: "loop/**/*.go", functions: []string{ // protected files and baselines
		`Place\.Files`, "Digests?", "digest(Matches|One|File)", "below", "welcome", "farewell", "tampered", "paths",
		"isHidden", "assumed", "hiding", "Judge", "withEarlier", `Verifier\.excusable`,
	}, judges: []judge{of("loop/check"), of("loop/place")}},
	{files: "loop/**/*.go", functions: []string{ // the check of a done, and what its agent is told
		`finding\..*`, `Session\.(check|inspect|since|watchProtected|spare|own|drift|closing)`, "names", `Verifier\.Tampered`,
		`Session\.(turnEnded|reply|objection)`, `runner\.obeying`, "obeyed",
	}, judges: []judge{sessions, of("loop/session"), faults}},
	{files: "loop/**/*.go", functions: []string{ // settling, recovery, claims
		`Session\.(Settle|observe|claimed|lostWork|checkpoint|take|salvage)`, "killedCommands",
		`Needs\.(Recover|reopen|Lapse)`,
		`Loop\.(recover|each|unsettled|Lapse)`, `Claim\.(Held|Close|checkTime|renew|Heard|Release|end)`,
	}, judges: []judge{sessions, lost, claims, faults}},
	{files: "loop/**/*.go", functions: []string{ // a red begin
		`runner\.(ready|readyFirst|stopRed|announce|hasNews|redNow|suiteCommands)`,
		`Loop\.nameTests`, `Verifier\.(Red|KnownRed)`,
	}, judges: []judge{red, faults}},
	{files: "loop/**/*.go", functions: []string{ // what a run counts, waits for and ends with
		`runner\.(bounded|waitForLost|missed|tasksReached|waitForDay|ofDays|per|limit)`,
		`runner\.(afterAgent|waitForAgent|mayBegin|session)`,
		`Loop\.pick`, "unsettledEnds", "Outside",
	}, judges: []judge{runs, lost, claims, faults}},
}
