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

// CPUTime returns the CPU time used so far by the commands that this process started with a
// [Spec.Marker], including their descendants and those that have ended. It grows while such a
// command runs.
func CPUTime(marker string) (time.Duration, error) {
	all, _, err := processes()
	if err != nil {
		return 0, err
	}
	var ticks uint64
	for _, top := range all {
		if of, ok := supervised.Load(top.pid); !ok || of != marker {
			continue
		}
		for _, p := range append(descendants(all, top.pid), top) { // with reaped children
			if n, err := cpuTicks(p.pid); err == nil { // otherwise it has just ended
				ticks += n
			}
		}
	}
	return time.Duration(ticks) * clockTick, nil
}

// cpuTicks returns the CPU time of a process and its reaped children, in clock ticks.
func cpuTicks(pid int) (ticks uint64, err error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const first, last = 11, 14 // utime, stime, cutime, cstime: the manual's numbers, minus 3
	if len(fields) <= last {
		return 0, fmt.Errorf("too few fields in the process state %q", stat)
	}
	for _, f := range fields[first : last+1] {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return ticks, nil
}
