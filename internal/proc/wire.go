package proc

import (
	"syscall"
	"time"
)

// The supervisor receives a request and then orders. It answers with a started and then events; the last event is the
// end. Each is one gob value: arguments and file names need not be UTF-8.

// File descriptors of the supervisor, fixed by the order of exec.Cmd.ExtraFiles.
const (
	ordersFD = 3 + iota
	eventsFD
	stdinFD
	stdoutFD
	stderrFD
)

// supervisorEnv is set only in the supervisor's environment.
const supervisorEnv = "RALPH_SUPERVISOR"

type request struct {
	Path      string
	Args      []string
	Dir       string
	Env       []string
	KillGrace time.Duration
	Wrapper   string // file name of the wrapper's program; "" for none
	Apart     Namespaces
}

// An order is a command to the supervisor, at any time until the end.
type order struct {
	Do     verb
	Serial int   // serial of the answer; 0 for none
	Keep   []int // for killOthers
}

type verb int

const (
	interruptLeader verb = iota + 1
	interruptGroup
	killAll
	listAll    // answered with the members
	killOthers // answered with the killed ones; none means that only the kept ones are left
)

type started struct {
	Pid     int
	Errno   syscall.Errno // why the program cannot be executed
	Problem string        // why there is no process otherwise
}

// An event is the answer to an order, or the end.
type event struct {
	Serial  int    // serial of the order
	Problem string // why the order failed
	Members []Member
	Killed  []Leftover
	Ended   *ended
}

type ended struct {
	Exit      Exit
	Survivors string // processes that could not be killed, for people; "" if all are gone
}
