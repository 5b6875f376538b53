//go:build unix

package proc

import (
	"syscall"
	"time"
)

// The supervisor is told a request and then orders. It answers with a started
// and then events, the last of which is the end. Each is one gob value: gob, because arguments and names of
// files need not be UTF-8.

// File descriptors of the supervisor, fixed by the order of exec.Cmd.ExtraFiles.
const (
	ordersFD = 3 + iota
	eventsFD
	stdinFD
	stdoutFD
	stderrFD
)

// supervisorEnv is set in the supervisor's environment, and there only.
const supervisorEnv = "RALPH_SUPERVISOR"

type request struct {
	Path      string
	Args      []string
	Dir       string
	Env       []string
	KillGrace time.Duration
	Wrapped   bool
	Enclosure enclosure
}

// An order is what the supervisor is to do, at any time until the end.
type order struct {
	Do     verb
	Serial int   // of the answer; 0 is none
	Keep   []int // for cull: the processes that are not killed
}

type verb int

const (
	interruptLeader verb = iota + 1
	interruptGroup
	killAll // answered if the processes are held: have they been so all the time?
	listAll // answered with the members
	holdAll // answered with the members when nothing moves
	cull    // answered when what is not to be kept is gone
	thaw    // answered when all goes on again
)

type started struct {
	Pid     int
	Errno   syscall.Errno // why the program cannot be executed
	Problem string        // why there is no process otherwise
}

// An event is the answer to an order, or the end.
type event struct {
	Serial  int    // of the order
	Problem string // why it cannot be done
	Members []Member
	Killed  []Leftover
	By      string
	Moving  []string // what did not stand still until it was thawed, for people
	Ended   *ended
}

type ended struct {
	Exit      Exit
	Survivors string // what could not be killed, for people; "" if all is gone
}
