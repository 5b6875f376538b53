package proc

import (
	"errors"
	"os"
)

// ParseStat is parseStat for other packages' tests.
func ParseStat(stat string) (pid, parent int, start uint64, state byte, command string, err error) {
	p, err := parseStat(stat)
	return p.pid, p.parent, p.start, p.state, p.command, err
}

// NewProcess starts a supervisor that has no command yet; start gives it one.
func NewProcess(stdin, stdout, stderr *os.File) (pid int, start func(spec Spec) (*Process, error), err error) {
	p, err := newProcess(stdin, stdout, stderr)
	if err != nil {
		return 0, nil, err
	}
	return p.supervisor.Process.Pid, func(spec Spec) (*Process, error) {
		path, dir, args, err := spec.resolve()
		if err != nil {
			return nil, errors.Join(err, p.abandon())
		}
		return p, p.start(spec, path, dir, args)
	}, nil
}

// WrapperOf returns the name by which a wrapper's processes are known, of a leader and its program's file name.
func WrapperOf(leader int, program string) string { return newHunt(leader, program).wrapper }
