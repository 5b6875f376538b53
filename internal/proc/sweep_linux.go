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

// doubt is how long Sweep searches for escaped processes on a machine where processes come and go
// too fast for it to be sure.
const doubt = time.Second

// minDoubts is the minimum number of looks in that time: a loaded machine may allow only one.
const minDoubts = 5

// Sweep kills every process that was started with the entry marker in its environment, such as
// "RALPH_SESSION_ID=…", and waits until all are gone. It cleans up after a crash, and reaches processes that the
// current user may read and signal. The error names the remaining processes, or is about the marker: it must be
// NAME=value, and must not be in the calling process's own environment. On other systems than Linux the error is
// [errors.ErrUnsupported].
func Sweep(marker string) ([]Leftover, error) {
	name, value, _ := strings.Cut(marker, "=")
	if name == "" || value == "" {
		return nil, fmt.Errorf("sweep: the marker %q is not of the form NAME=value", marker)
	}
	if kind, _ := classify(os.Getpid(), marker); kind == carrier {
		return nil, fmt.Errorf("sweep: this process itself carries the marker %q", marker)
	}
	c := &census{marker: marker, others: map[int]bool{}}
	h := &hunt{find: c.take, seen: map[identity]bool{}}
	begin := time.Now()
	caught, last := begin, begin // the last catch, and the last irregularity
	doubts := 0                  // strikes since then that were not sure
	// Twice, from scratch: a process that was about to execute its first program may have been
	// mistaken for its previous self.
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
			if !fresh { // killed processes need a moment to die
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
	return h.leftovers(), nil
}

// A census finds the processes that carry a marker. Between the listing and the examination of a
// process, that process may have passed the marker on to a child and ended. So a search is sure
// only if it could examine every listed process. To stay short, it skips processes known from the
// last one.
type census struct {
	marker string
	others map[int]bool // processes known not to carry it
}

// take lists the processes that carry the marker, and stops each as soon as it is found. Otherwise
// a child might replace it.
func (c *census) take() (found []process, sure bool, err error) {
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

// chase looks only at the newest processes, as long as it finds some. On a loaded machine, a look
// at all processes is too slow to catch a fork storm, whose processes live only for a moment.
func (c *census) chase() (found []process) {
	caught := map[int]bool{}
	for idle := 0; idle < 2 && len(found) < 1000; idle++ {
		var last int
		load, err := os.ReadFile("/proc/loadavg")
		if err == nil {
			last, err = strconv.Atoi(string(bytes.TrimSpace(load[bytes.LastIndexByte(load, ' ')+1:])))
		}
		if err != nil {
			return found // it is only a shortcut
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

// examine looks at some processes, many at a time, because it may have to wait for one that is executing a program. It
// stops the processes that carry the marker, notes the others, and reports whether it is sure of all.
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
				kind = other // the process itself is listed
			}
			if kind == carrier && !p.dead() {
				_ = p.signal(syscall.SIGSTOP) // if that fails, the hunt reports why it cannot be killed
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

// A kind is the relation of a process to a marker.
type kind int

const (
	carrier kind = iota // it carries the marker
	other               // it does not, or is another user's
	zombie              // it has ended; whether it carried the marker is unknown
	unclear             // it is gone, ending, or executing another program
)

// classify examines one process; the process is valid for a carrier.
func classify(pid int, marker string) (kind, process) {
	environ, err := readMemory(pid, "environ")
	if err != nil {
		// A supervisor is closed to others, and so is a command that it is about to start.
		args, _ := readMemory(pid, "cmdline")
		if !slices.Contains(marks(args), marker) {
			return other, process{}
		}
		environ = []byte(marker)
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
