package proc

// A Member is a living process of a command's tree.
type Member struct {
	Pid     int
	Parent  int    // the supervisor's id for the command and for orphans
	Command string // command line, at most 1 KiB
	Exe     string // path of its executable; "" if unreadable
	Wrapper bool   // part of the wrapper, which Prune keeps for the wrapped command
}
