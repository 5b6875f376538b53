package proc

import "time"

// A Member is a living process of a command's tree.
type Member struct {
	Pid     int
	Parent  int    // the supervisor's id for the command and for orphans
	Command string // command line, at most 1 KiB
	Exe     string // path of its executable; "" if unreadable
	Wrapper bool   // part of the wrapper, which Still keeps for what it wraps
}

// A Still is a frozen process tree. Call one of Thaw and Kill, once; ralph's death kills the tree.
type Still struct {
	Killed []Leftover // processes that were not to be kept
	By     string     // "cgroup", or "signals", which somebody outside of the tree can undo

	process *Process
}

// stillTime is the time limit of Still.
const stillTime = 10 * time.Second
