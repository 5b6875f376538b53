package proc

import "time"

// A Member is a living process of a command's tree.
type Member struct {
	Pid     int
	Parent  int    // the supervisor's id for the command, and for what is orphaned
	Command string // its command line, at most 1 KiB of it
	Exe     string // the path of its program; "" if it cannot be read
	Wrapper bool   // it is the wrapper's, which Still keeps with what is below it
}

// A Still is a tree of processes that cannot move. One of Thaw and Kill is
// called, once; ralph's death kills it.
type Still struct {
	Killed []Leftover // what was not to be kept
	By     string     // "cgroup", or "signals", which somebody outside of the tree can undo

	process *Process
}

// stillTime is how long Still may take.
const stillTime = 10 * time.Second
