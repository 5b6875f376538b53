package proc

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// doubt is how long Sweep looks for what may just have escaped it, on a machine
// where other processes come and go too fast for it to be sure.
const doubt = time.Second

// Sweep kills every process whose environment, as it was when the process was
// started, has the entry marker, such as "RALPH_SESSION_ID=…", or which is in
// the cgroup of a command that was started with it, and waits until all are gone. It is for what a crash has left behind, and reaches what the
// current user may read and signal. The error names what could not be killed,
// or is about the marker: it must be NAME=value, and not one that the calling
// process carries itself. Where processes cannot be found by their environment
// (anywhere but on Linux), the error is [errors.ErrUnsupported].
func Sweep(marker string) ([]Leftover, error) {
	name, value, _ := strings.Cut(marker, "=")
	if name == "" || value == "" {
		return nil, fmt.Errorf("sweep: the marker %q is not of the form NAME=value", marker)
	}
	if kind, _ := classify(os.Getpid(), marker); kind == carrier {
		return nil, fmt.Errorf("sweep: this process itself carries the marker %q", marker)
	}
	c := &census{marker: marker}
	h := &hunt{find: c.look, groups: groupsOf(marker), seen: map[identity]bool{}}
	begin := time.Now()
	last := begin
	// Twice, from scratch: a process that was about to execute its first
	// program may have been taken for what it was before.
	for calm := 0; calm < 2; {
		before := len(h.prey)
		err := h.strike()
		fresh := len(h.prey) > before
		switch {
		case fresh || err != nil || len(h.alive()) > 0:
			if time.Since(begin) > patience {
				return h.leftovers(), fmt.Errorf("sweep %s: %s", name, h.survivors(err))
			}
			calm, last = 0, time.Now()
			if !fresh { // what is killed needs a moment to die
				time.Sleep(pause)
			}
		case h.sure || time.Since(last) > doubt:
			calm++
			c.others = nil
		}
	}
	for _, g := range h.groups {
		if err := g.remove(); err != nil {
			return h.leftovers(), fmt.Errorf("sweep %s: %w", name, err)
		}
	}
	return h.leftovers(), nil
}

// A census finds the processes that carry a marker. Between the listing of the
// processes and the look at one of them, that one may have passed the marker on
// to a child and ended. So a look is sure only if each process on the list could
// be looked at, and it is made short by skipping those known from the last one.
type census struct {
	marker string
	others map[int]bool // the processes that are known not to carry it
}

// look lists the processes that carry the marker.
func (c *census) look() (found []process, sure bool, err error) {
	ids, err := pids()
	if err != nil {
		return nil, false, err
	}
	others := make(map[int]bool, len(ids))
	sure = true
	for _, pid := range slices.Backward(ids) { // the newest, which may end soonest, first
		if c.others[pid] {
			others[pid] = true
			continue
		}
		switch kind, p := classify(pid, c.marker); kind {
		case carrier:
			found = append(found, p)
		case other:
			others[pid] = true
		case zombie:
			others[pid] = true
			sure = false
		case unclear:
			sure = false
		}
	}
	c.others = others
	return found, sure, nil
}

// A kind is what a process is with regard to a marker.
type kind int

const (
	carrier kind = iota // it carries the marker
	other               // it does not, or is another user's
	zombie              // it has ended, and what it was is unknown
	unclear             // it is gone, ending, or executing another program
)

// classify looks at one process; the process is valid for a carrier.
func classify(pid int, marker string) (kind, process) {
	environ, err := readMemory(pid, "environ")
	if err != nil {
		return other, process{}
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if string(entry) == marker {
			p, err := readProcess(pid)
			if err != nil {
				return unclear, p
			}
			return carrier, p
		}
	}
	if len(environ) > 0 {
		return other, process{}
	}
	p, err := readProcess(pid)
	switch {
	case err != nil:
		return unclear, p
	case p.dead():
		return zombie, p
	case p.noEnv:
		return unclear, p
	}
	return other, p // a kernel thread, or its environment is empty
}
