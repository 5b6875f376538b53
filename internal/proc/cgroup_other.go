//go:build !linux

package proc

import "syscall"

// A cgroup does not exist here.
type cgroup string

func newGroup(enclosure) (cgroup, error) { return "", nil }
func (g cgroup) remove() error           { return nil }

// forkExec starts a program.
func forkExec(r request, _ cgroup, attr *syscall.ProcAttr) (int, error) {
	return syscall.ForkExec(r.Path, r.Args, attr)
}
