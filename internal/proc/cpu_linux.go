package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the times in /proc/PID/stat: USER_HZ, which is 100 on
// every Linux.
const clockTick = 10 * time.Millisecond

// CPUTime returns the CPU time so far of the descendants of commands that this process started with a
// [Spec.Marker], including ended ones. It excludes the commands' own processes: those whose command line own
// accepts, and their ancestors. If own is nil or accepts none, all count.
func CPUTime(marker string, own func(command string) bool) (time.Duration, error) {
	all, _, err := processes()
	if err != nil {
		return 0, err
	}
	var ticks uint64
	for _, top := range all {
		if of, ok := supervised.Load(top.pid); !ok || of != marker {
			continue
		}
		below := append(descendants(all, top.pid), top)
		its := map[int]bool{}
		if own != nil {
			parents := map[int]int{}
			for _, p := range below {
				parents[p.pid] = p.parent
			}
			for _, p := range below {
				if p.pid == top.pid || !own(p.named().command) {
					continue
				}
				for pid := p.pid; pid != top.pid && !its[pid]; pid = parents[pid] {
					its[pid] = true
				}
				its[top.pid] = true
			}
		}
		for _, p := range below {
			if n, err := cpuTicks(p.pid, !its[p.pid]); err == nil { // otherwise it has just ended
				ticks += n
			}
		}
	}
	return time.Duration(ticks) * clockTick, nil
}

// cpuTicks returns the CPU time of a process's reaped children, and its own if that counts, in clock ticks.
func cpuTicks(pid int, own bool) (ticks uint64, err error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const first, last = 11, 14 // utime, stime, cutime, cstime: the manual's numbers, minus 3
	if len(fields) <= last {
		return 0, fmt.Errorf("too few fields in the process state %q", stat)
	}
	from := first
	if !own {
		from = first + 2
	}
	for _, f := range fields[from : last+1] {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return ticks, nil
}
