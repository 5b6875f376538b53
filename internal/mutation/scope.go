package main

import "regexp"

// idle are tests that judge nothing: what a run asks of its database, a fault at every
// write, and days of a daemon, which take long and say nothing that others do not.
var idle = regexp.MustCompile("^Test(AnyWriteMayFail|NoStatementOfTheLoop.*|ASessionAsksLittle.*|Batches.*|ABatch.*|" +
	"SessionsBeginOnlyWithin.*|ADaemonTakesUp.*|ARunEndsWithItsWork.*|EachSessionOfATask.*|TheThirdSession.*)$")

// scope is what is broken, and whose tests are to notice: of them, those that run
// through the mutant, the fastest first.
//
// Left out of loop is what needs real processes or the command line, which the stories of
// cmd/ralph hold: freezing, people's words to an agent that works, git's part of the evidence.
//
// Of signals/near.go, what compares texts by shares and thresholds is left out:
// TestMergingIsMeasured measures it on labelled pairs, between which a threshold may move.
var scope = []target{
	{files: "signals/[^n]*.go", tests: []string{"signals"}},
	{files: "signals/near.go", functions: []string{
		"learnings", "merged", "Against", "headOf", "alike", "sameAudience", "taughtNew", "fuller",
	}, tests: []string{"signals"}},
	{files: "loop/**/*.go", functions: []string{
		// Limits, clocks, models, what is charged.
		"reached", "allowance", "Midnight", "usedUp", "usageLimit", "charge", "afterError", `Models\.choose`, "causeOf", `Limits\.withCause`,
		`newClock|clock\..*`, `idleness\..*`,
		// What a session changed, and protected files.
		`hashes\.differ`, `parts\..*`, `Place\.Files`, "Digests?", "digest(Matches|One|File)", "welcome", "farewell",
		"tampered", "paths", "isHidden", "assumed", "hiding", "below",
		// Verification.
		"Judge", `Verifier\.(excusable|Red|KnownRed|Tampered)`, `finding\..*`,
		`Session\.(check|inspect|since|watchProtected|spare|own|drift|closing)`, "names", "Shortly",
		// What its agent is told.
		`Session\.(turnEnded|reply|objection|unheard)`,
		// Settling.
		`Session\.(Settle|observe|claimed|lostWork|checkpoint|take)`, "killedCommands",
		// Recovery and lapses.
		`Loop\.(recover|each|unsettled|Lapse)`, `Needs\.(Recover|reopen|Lapse)`, `Session\.salvage`, `Claim\.(Held|Close|checkTime|renew|Heard|Release|end)`,
		// A red begin.
		`runner\.(ready|readyFirst|stopRed|announce|hasNews|redNow|suiteCommands)`, `Loop\.nameTests`,
		// What a run counts, waits for and ends with.
		`runner\.(bounded|waitForLost|missed|tasksReached|waitForDay|ofDays|per|limit|afterAgent|waitForAgent|obeying|mayBegin|session)`,
		`Loop\.pick`, "judgeRest", "unsettledEnds", "Outside",
	}, tests: []string{"loop", "loop/session", "loop/check", "loop/place"}},
}
