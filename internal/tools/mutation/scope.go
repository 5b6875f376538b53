package main

// scope lists the code to change, and the packages whose tests must notice. Of their tests, only those covering the
// mutant run, fastest first.
//
// Functions of loop that require real processes or the command line are left out: freezing, and people's messages to a
// working agent. The stories of cmd/ralph cover them.
var scope = []target{
	{files: "signals/*.go", judges: []string{"signals"}},
	{files: "loop/gate/*.go", judges: []string{"loop/gate"}},
	{files: "loop/**/*.go", functions: []string{ // limits, clocks, models, costs, changes of a session
		"reached", "Allowance", "Midnight", "usedUp", "usageLimit", "charge", "afterError",
		`Models\.choose`, "withCause",
		"causeOf", `newClock|clock\..*`, `idleness\..*`, `hashes\.differ`, `parts\..*`, "judgeRest", "Shortly",
	}, judges: []string{"loop", "loop/order", "loop/session"}},
	{files: "loop/**/*.go", functions: []string{ // protected files and baselines
		`Workspace\.Files`, "Digests?", "digest(Matches|One|File)", "below", "Compare", `Verifier\.excusable`,
	}, judges: []string{"loop", "loop/check", "loop/workspace"}},
	{files: "loop/**/*.go", functions: []string{ // the check of a done, and the replies to its agent
		`finding\..*`, `Session\.(checkDone|inspect|since|watchProtected|spare|own|drift|closing)`, "names",
		`Session\.(TurnEnded|reply|objection)`, `course\.obeying`, "obeyed",
	}, judges: []string{"loop", "loop/session"}},
	{files: "loop/**/*.go", functions: []string{ // deciding, recovery, claims
		`Session\.(Decide|observe|Claimed|lostWork|checkpoint|take|salvage|Heard|GiveBack)`, "killedCommands",
		`Session\.(tryEnding|rescued|saveMade|CheckTime)`, `Parts\.(Recover|reopen|Lapse)`,
		`course\.(recover|each|undecided|lapse)`,
		`Claim\.(Renew|Close|merge|extend|Release|end|decide)`,
	}, judges: []string{"loop"}},
	{files: "loop/**/*.go", functions: []string{ // a red begin
		`runner\.(ready|readyFirst|stopRed|announce|hasNews|redNow|suiteCommands)`,
		`course\.nameTests`, `Verifier\.(Red|KnownRed)`,
	}, judges: []string{"loop"}},
	{files: "loop/**/*.go", functions: []string{ // a run's counts, waits and ends
		`runner\.(bounded|waitForLost|missed|tasksReached|waitForDay|ofDays|per|limit)`,
		`runner\.(afterAgent|waitForAgent|heed|finish|begin|apply|room)`, `job\..*`,
		`Loop\.pick`, `runner\.choose`, `inWork\.fit`, "Meet", "undecidedEnds", "Outside",
	}, judges: []string{"loop", "loop/order"}},
	{files: "loop/merging/step.go", judges: []string{"loop/merging"}}, // the next step with the queue
	{files: "loop/merging/line.go", functions: []string{ // the line ahead of a change
		"before", "inOrder", `standing\.same`,
	}, judges: []string{"loop/merging"}},
	{files: "store/change.go", functions: []string{ // from which state to which
		`Tx\.(SetChange|BeginMove|Requeue|BeginAfter|QueuedChanges|JoinLine|LeaveLine|AddChange|MergesAlone)`,
		`Tx\.(withdraw|leaveQueue|readmit|dropOpen)`,
	}, judges: []string{"store"}},
	{files: "store/decide.go", judges: []string{"store"}},
	{files: "internal/permission/guards.go", judges: []string{"internal/permission"}},
}
