// Package machine identifies this machine and process, and tells at once whether another process is
// alive, if possible.
//
// Several machines may work on one database. Each process that does so stores its identity there, with a lease that
// it renews. The identity is only a hint: the kernel of the process sees its end at once; other machines have only
// the lease.
package machine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"
)

// Variable names the machine, if its host name is not unique.
const Variable = "RALPH_MACHINE"

// Name returns the name of this machine.
var Name = sync.OnceValue(func() string {
	name := os.Getenv(Variable)
	if name == "" {
		name, _ = os.Hostname() // without one it is unnamed
	}
	if name = strings.Join(strings.Fields(name), "-"); name == "" {
		name = "unnamed"
	}
	return name
})

// Evidence is this machine's knowledge of a process without its lease.
type Evidence int

// The evidence that there may be.
const (
	Unknown Evidence = iota // it ran on another kernel, or out of sight: its lease decides
	Lives
	Gone
)

// here are the tokens of runs in this process.
var here sync.Map

// Join registers a run of this process and returns its identity. The run counts as alive until leave is called.
func Join() (identity string, leave func()) {
	token := uuid.NewString()
	here.Store(token, true)
	return fmt.Sprintf("%s %d %s %s", kernel(), os.Getpid(), started(os.Getpid()), token), func() { here.Delete(token) }
}

// Look returns the evidence on a process by its identity from [Join].
func Look(identity string) Evidence {
	part := strings.Fields(identity)
	if len(part) != 4 || part[0] != kernel() || part[0] == unknown {
		return Unknown
	}
	pid, err := strconv.Atoi(part[1])
	if err != nil {
		return Unknown
	}
	if pid == os.Getpid() && part[2] == started(pid) {
		if _, runs := here.Load(part[3]); runs {
			return Lives
		}
		return Gone
	}
	return evidenceOn(pid, part[2])
}

// unknown stands for undetermined facts.
const unknown = "-"
