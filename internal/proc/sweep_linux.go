package proc

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// doubt is how long Sweep looks for what may just have escaped it, on a machine
// where other processes come and go too fast for it to be sure.
const doubt = time.Second

// minDoubts is how often it looks at least in that time: a loaded machine may let
// it look but once.
const minDoubts = 5

// Sweep kills every process whose environment, as it was when the process was
// started, has the entry marker, such as "RALPH_SESSION_ID=…", or which is in
// the cgroup of a command that was started with it, and waits until all are
// gone. It is for what a crash has left behind, and reaches what the current
// user may read and signal. The error names what could not be killed, or is
// about the marker: it must be NAME=value, and not one that the calling
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
	c := &census{marker: marker, others: map[int]bool{}}
	h := &hunt{find: c.look, groups: groupsOf(marker), seen: map[identity]bool{}}
	begin := time.Now()
	caught, last := begin, begin // when the last one was, and when something was not as it should be
	doubts := 0                  // strikes since then that could not be sure
	// Twice, from scratch: a process that was about to execute its first
	// program may have been taken for what it was before.
	for calm := 0; calm < 2; {
		before := len(h.prey)
		err := h.strike()
		fresh := len(h.prey) > before
		switch {
		case fresh || err != nil || len(h.alive()) > 0:
			if fresh {
				caught = time.Now()
			}
			if time.Since(caught) > patience || time.Since(begin) > 6*patience {
				return h.leftovers(), fmt.Errorf("sweep %s: %s", name, h.survivors(err))
			}
			calm, last, doubts = 0, time.Now(), 0
			if !fresh { // what is killed needs a moment to die
				time.Sleep(pause)
			}
		case h.sure || doubts >= minDoubts && time.Since(last) > doubt:
			calm++
			doubts = 0
			clear(c.others)
		default:
			doubts++
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

// look lists the processes that carry the marker, and stops each as soon as it is
// found: soon it may be gone, and its child be there instead.
func (c *census) look() (found []process, sure bool, err error) {
	found = c.chase()
	ids, err := pids()
	if err != nil {
		return nil, false, err
	}
	others := map[int]bool{}
	var unknown []int
	for _, pid := range slices.Backward(ids) { // the newest, which may end soonest, first
		if c.others[pid] {
			others[pid] = true
		} else {
			unknown = append(unknown, pid)
		}
	}
	c.others = others
	more, sure := c.examine(unknown)
	return append(found, more...), sure, nil
}

// chase looks at the newest processes alone, as long as it finds some. A look at
// all of them takes too long on a loaded machine to catch those of a fork storm,
// each of which lives but for a moment.
func (c *census) chase() (found []process) {
	caught := map[int]bool{}
	for idle := 0; idle < 2 && len(found) < 1000; idle++ {
		var last int
		load, err := os.ReadFile("/proc/loadavg")
		if err == nil {
			last, err = strconv.Atoi(string(bytes.TrimSpace(load[bytes.LastIndexByte(load, ' ')+1:])))
		}
		if err != nil {
			return found // it is but a shortcut
		}
		var newest []int
		for pid := last; pid > max(last-64, 0); pid-- {
			if !c.others[pid] && !caught[pid] {
				newest = append(newest, pid)
			}
		}
		more, _ := c.examine(newest)
		for _, p := range more {
			caught[p.pid] = true
			idle = -1
		}
		found = append(found, more...)
	}
	return found
}

// examine looks at some processes, many at the same time, because it may have to
// wait for one that executes a program just then. It stops those that carry the
// marker, notes those that do not, and tells whether it is sure of all.
func (c *census) examine(ids []int) (found []process, sure bool) {
	var (
		mu    sync.Mutex // guards the results
		looks sync.WaitGroup
		free  = make(chan struct{}, 32)
	)
	sure = true
	for _, pid := range ids {
		free <- struct{}{}
		looks.Go(func() {
			defer func() { <-free }()
			kind, p := classify(pid, c.marker)
			if kind == carrier && isThread(pid) {
				kind = other // the process itself is on the list of all
			}
			if kind == carrier && !p.dead() {
				_ = p.signal(syscall.SIGSTOP) // or the hunt will say why it cannot be killed
			}
			mu.Lock()
			defer mu.Unlock()
			switch kind {
			case carrier:
				found = append(found, p)
			case other:
				c.others[pid] = true
			case zombie:
				c.others[pid] = true
				sure = false
			case unclear:
				sure = false
			}
		})
	}
	looks.Wait()
	return found, sure
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
