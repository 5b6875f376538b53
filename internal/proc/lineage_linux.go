package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A Kin is this process or an ancestor of it.
type Kin struct {
	pid     int
	Environ []string // at the time of its exec; nil if unreadable
}

// Lineage returns this process and its ancestors, itself first. All processes that a supervisor
// has started descend from it, because it adopts orphans.
func Lineage() []Kin {
	var kin []Kin
	seen := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !seen[pid]; {
		seen[pid] = true
		k := Kin{pid: pid}
		if environ, err := readMemory(pid, "environ"); err == nil && len(environ) > 0 {
			k.Environ = strings.Split(strings.TrimRight(string(environ), "\x00"), "\x00")
		}
		kin = append(kin, k)
		p, err := readProcess(pid)
		if err != nil {
			break // it has just ended, and its ancestors cannot be found
		}
		pid = p.parent
	}
	return kin
}

// HasOpen reports whether the process has the file open. It is false if ralph cannot see that:
// another user's process, or a missing file.
func (k Kin) HasOpen(path string) bool {
	file, err := os.Stat(path)
	if err != nil {
		return false
	}
	dir := filepath.Join("/proc", strconv.Itoa(k.pid), "fd")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		return k.hasLocked(file, "") // the process is closed to others; see Close
	}
	if err != nil {
		return false
	}
	for _, e := range entries {
		if open, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && os.SameFile(open, file) {
			return true
		}
	}
	return false
}

// Holds reports whether the process holds an exclusive lock on a file. A process that only checks the lock also
// has the file open, and shares the lock for an instant.
func (k Kin) Holds(path string) bool {
	file, err := os.Stat(path)
	return err == nil && k.hasLocked(file, "WRITE")
}

// hasLocked reports whether the process has locked a file, in a mode or in any (""); /proc shows locks to everybody.
func (k Kin) hasLocked(file fs.FileInfo, mode string) bool {
	stat, ok := file.Sys().(*syscall.Stat_t)
	locks, err := os.ReadFile("/proc/locks")
	if !ok || err != nil {
		return false
	}
	inode := fmt.Sprintf(":%d", stat.Ino)
	for line := range strings.Lines(string(locks)) {
		f := strings.Fields(line) // 1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF
		if len(f) > 5 && f[4] == strconv.Itoa(k.pid) && (mode == "" || f[3] == mode) && strings.HasSuffix(f[5], inode) {
			return true
		}
	}
	return false
}

// Supervises reports whether the process is a command's supervisor.
func (k Kin) Supervises() bool {
	args, err := readMemory(k.pid, "cmdline")
	return err == nil && len(marks(args)) > 0
}

// marks returns the marks in a supervisor's arguments.
func marks(cmdline []byte) (list []string) {
	args := strings.Split(string(cmdline), "\x00")
	if len(args) > 2 && args[1] == superviseArg && strings.HasPrefix(args[2], supervisorEnv+"=") {
		list = args[2:3]
	}
	return list
}
