package proc

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// forkExec starts a program in its cgroup and under its limits.
func forkExec(r request, group cgroup, attr *syscall.ProcAttr) (pid int, err error) {
	if group != "" {
		dir, err := os.Open(string(group))
		if err != nil {
			return 0, fmt.Errorf("the cgroup of the command: %w", err)
		}
		defer dir.Close()
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(dir.Fd())
	}
	if closed, err := apart(r.Apart, attr.Sys); err != nil {
		return 0, err
	} else if closed != nil {
		defer func() { err = errors.Join(err, closed()) }()
	}
	limits := r.Enclosure.Limits
	if r.Enclosure.Meters {
		limits.Processes = 0 // the cgroup's limit is better
	}
	if limits.Nice == 0 && limits.Processes == 0 {
		return syscall.ForkExec(r.Path, r.Args, attr)
	}
	done := make(chan struct{})
	go func() {
		// The nice value applies to the thread and stays raised, so nothing else may run on the
		// thread. It must not end either: a child may have requested a signal for that.
		runtime.LockOSThread()
		pid, err = limited(r, limits, attr)
		close(done)
		select {}
	}()
	<-done
	return pid, err
}

// apart has a process start in namespaces of its own. closed, unless it is nil, is to be called when
// it has started: who may write the map of a new process's users must be open meanwhile, see [Close].
// A sandbox keeps what it confines from using that moment.
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
	attr.AmbientCaps = []uintptr{ // the others are what an overlay itself works with
		unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_FSETID,
	}
	return Close, unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
}

// limited starts a program under the limits that children inherit.
func limited(r request, l Limits, attr *syscall.ProcAttr) (int, error) {
	if l.Nice != 0 {
		now, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err == nil { // the kernel reports 20 minus the nice value
			err = unix.Setpriority(unix.PRIO_PROCESS, 0, min(20-now+l.Nice, 19))
		}
		if err != nil {
			return 0, fmt.Errorf("the priority of the command: %w", err)
		}
	}
	if l.Processes == 0 {
		return syscall.ForkExec(r.Path, r.Args, attr)
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &before); err != nil {
		return 0, fmt.Errorf("the limit of processes: %w", err)
	}
	others, err := userThreads()
	if err != nil {
		return 0, err
	}
	lower := before
	lower.Cur = min(uint64(others+l.Processes), before.Cur)
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &lower); err != nil {
		return 0, fmt.Errorf("the limit of processes: %w", err)
	}
	pid, err := syscall.ForkExec(r.Path, r.Args, attr)
	// The supervisor itself must not be limited, or it could not go on. Restoring the previous
	// limit cannot fail.
	_ = unix.Setrlimit(unix.RLIMIT_NPROC, &before)
	return pid, err
}

// userThreads counts the threads of this user, as RLIMIT_NPROC does.
func userThreads() (int, error) {
	all, _, err := processes()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range all {
		var stat syscall.Stat_t
		err := syscall.Stat(fmt.Sprintf("/proc/%d", p.pid), &stat)
		if err == nil && int(stat.Uid) == os.Getuid() {
			n += p.threads
		}
	}
	return n, nil
}
