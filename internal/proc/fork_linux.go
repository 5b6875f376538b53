package proc

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// forkExec starts a program in its namespaces.
func forkExec(r request, attr *syscall.ProcAttr) (pid int, err error) {
	if closed, err := apart(r.Apart, attr.Sys); err != nil {
		return 0, err
	} else if closed != nil {
		defer func() { err = errors.Join(err, closed()) }()
	}
	return syscall.ForkExec(r.Path, r.Args, attr)
}

// apart starts a process in its own namespaces. closed, unless it is nil, must be called after the start: the writer
// of the new process's user map must stay open until then, see [Close]. A sandbox prevents its processes from using
// that moment.
func apart(n Namespaces, attr *syscall.SysProcAttr) (closed func() error, err error) {
	if n.Mounts {
		attr.Cloneflags |= syscall.CLONE_NEWNS
	}
	if n.Network {
		attr.Cloneflags |= syscall.CLONE_NEWNET
	}
	uid, gid := os.Geteuid(), os.Getegid()
	if attr.Cloneflags == 0 || uid == 0 {
		return nil, nil
	}
	attr.Cloneflags |= syscall.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	attr.AmbientCaps = []uintptr{ // an overlay itself needs the others
		unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_FSETID,
	}
	return Close, unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
}
