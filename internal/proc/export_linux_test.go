package proc

// CgroupMount is cgroupMount for other packages' tests.
func CgroupMount(mountinfo string) (mount, root string) { return cgroupMount(mountinfo) }

// ParseStat is parseStat for other packages' tests.
func ParseStat(stat string) (pid, parent int, start uint64, state byte, command string, err error) {
	p, err := parseStat(stat)
	return p.pid, p.parent, p.start, p.state, p.command, err
}

// SupervisorPid is the process id of the supervisor.
func (s *Prepared) SupervisorPid() int { return s.process.supervisor.Process.Pid }

// WrapperOf returns the name by which a wrapper's processes are known, of a leader and its program's file name.
func WrapperOf(leader int, program string) string { return newHunt(leader, program, "").wrapper }
