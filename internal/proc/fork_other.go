//go:build !linux

package proc

import "syscall"

// forkExec starts a program.
func forkExec(r request, attr *syscall.ProcAttr) (int, error) {
	return syscall.ForkExec(r.Path, r.Args, attr)
}
