//go:build unix

package proc

import (
	"syscall"
	"time"
)

// The supervisor is told a request and then orders, and answers with a started
// and an ended, each as one gob value. gob, because arguments and names of
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

type order int

const (
	interruptLeader order = iota + 1
	interruptGroup
	killAll
)

type started struct {
	Pid     int
	Errno   syscall.Errno // why the program cannot be executed
	Problem string        // why there is no process otherwise
}

type ended struct {
	Exit      Exit
	Survivors string // what could not be killed, for people; "" if all is gone
}
