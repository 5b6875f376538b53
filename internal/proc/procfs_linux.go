package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// An identity distinguishes a process from a later one with the same id.
type identity struct {
	pid   int
	start uint64 // start time in clock ticks since boot
}

// A process is the content of /proc/PID/stat.
type process struct {
	identity
	parent  int
	group   int
	state   byte   // state of the main thread
	threads int    // 1 if dead: the main thread stays until it is reaped
	name    string // name of the program, at most 15 bytes
	command string // command line, or else the name
	noEnv   bool   // currently without environment, as while it executes a program
}

// String names the process for people.
func (p process) String() string { return fmt.Sprintf("%d (%s)", p.pid, p.command) }

// dead reports whether the process has ended and only waits to be reaped.
func (p process) dead() bool { return p.ended() && p.threads <= 1 }

// headless reports whether the main thread has ended while others run: the process looks like a
// zombie, but needs to be killed.
func (p process) headless() bool { return p.ended() && p.threads > 1 }

// alive reports whether the process has not ended yet.
func (p process) alive() bool {
	now, err := readProcess(p.pid)
	return err == nil && now.identity == p.identity && !now.dead()
}

// named returns p with its command line if it can still be read.
func (p process) named() process {
	if line := commandLine(p.pid); line != "" {
		p.command = line
	}
	return p
}

func (p process) ended() bool { return p.state == 'Z' || p.state == 'X' }

// signal signals the process, never a later one with the same id: FindProcess holds the process
// that has the id now (by a pidfd), and if that one has the same start time, it is p.
func (p process) signal(sig syscall.Signal) error {
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return err
	}
	now, err := readProcess(p.pid)
	if err != nil || now.identity != p.identity {
		return errors.Join(os.ErrProcessDone, handle.Release())
	}
	return errors.Join(handle.Signal(sig), handle.Release())
}

// pids lists the ids of all processes.
func pids() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	var list []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			list = append(list, pid)
		}
	}
	return list, nil
}

// processes lists all processes; sure is false if one has ended during the listing.
func processes() (list []process, sure bool, err error) {
	ids, err := pids()
	if err != nil {
		return nil, false, err
	}
	for _, pid := range ids {
		if p, err := readProcess(pid); err == nil {
			list = append(list, p)
		}
	}
	return list, len(list) == len(ids), nil
}

func readProcess(pid int) (process, error) {
	return readStat("/proc/" + strconv.Itoa(pid) + "/stat")
}

// readStat reads the stat file of a process or thread. A search of all processes reads hundreds,
// and package os needs more than twice as many system calls for each.
func readStat(path string) (process, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return process{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var stat [4096]byte // the kernel gives all of it at once
	n, err := unix.Read(fd, stat[:])
	_ = unix.Close(fd) // it was only read
	if err != nil {
		return process{}, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return parseStat(string(stat[:n]))
}

// readMemory reads a file of /proc/PID that shows a part of the process's memory. The text is empty
// if the process is gone or has no memory (any more). The error is [fs.ErrPermission].
func readMemory(pid int, name string) ([]byte, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	text, err := os.ReadFile(dir + "/" + name)
	if len(text) > 0 || errors.Is(err, fs.ErrPermission) {
		return text, err
	}
	// A main thread that has ended has no memory, but the others do.
	if p, err := readProcess(pid); err != nil || !p.headless() {
		return nil, nil
	}
	threads, err := filepath.Glob(dir + "/task/*/" + name)
	if err != nil {
		return nil, err
	}
	for _, file := range threads {
		if text, err := os.ReadFile(file); len(text) > 0 || errors.Is(err, fs.ErrPermission) {
			return text, err
		}
	}
	return nil, nil
}

// parseStat parses the text of /proc/PID/stat; see proc_pid_stat(5).
func parseStat(stat string) (process, error) {
	// The name is in parentheses and may itself contain parentheses and blanks.
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return process{}, fmt.Errorf("no name in the process state %q", stat)
	}
	fields := strings.Fields(stat[end+1:])
	const state, parent, group, flags, threads, start, envEnd = 0, 1, 2, 6, 17, 19, 48 // the manual's numbers, minus 3
	if len(fields) <= start || len(fields[state]) != 1 {
		return process{}, fmt.Errorf("too few fields in the process state %q", stat)
	}
	p := process{state: fields[state][0], name: stat[open+1 : end], command: "[" + stat[open+1:end] + "]"}
	var errs [6]error
	p.pid, errs[0] = strconv.Atoi(strings.TrimSpace(stat[:open]))
	p.parent, errs[1] = strconv.Atoi(fields[parent])
	p.start, errs[2] = strconv.ParseUint(fields[start], 10, 64)
	bits, err := strconv.ParseUint(fields[flags], 10, 32)
	errs[3] = err
	p.group, errs[5] = strconv.Atoi(fields[group])
	p.threads, errs[4] = strconv.Atoi(fields[threads])
	const kernelThread = 0x00200000 // PF_KTHREAD: it never has an environment
	p.noEnv = bits&kernelThread == 0 && len(fields) > envEnd && fields[envEnd] == "0"
	return p, errors.Join(errs[:]...)
}

// descendants lists the children of root, their children and so on, parents first.
func descendants(all []process, root int) []process {
	children := map[int][]process{}
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
	}
	list := children[root]
	// The list was not taken at one instant, so it may have a cycle.
	seen := map[int]bool{root: true}
	var found []process
	for len(list) > 0 {
		p := list[0]
		list = list[1:]
		if seen[p.pid] {
			continue
		}
		seen[p.pid] = true
		found = append(found, p)
		list = append(list, children[p.pid]...)
	}
	return found
}

// commandLine returns the arguments of a process separated by blanks, or "" if it has none (any
// more).
func commandLine(pid int) string {
	line, err := readMemory(pid, "cmdline")
	if err != nil {
		return ""
	}
	line = bytes.TrimRight(line[:min(len(line), 1024)], "\x00")
	return strings.ToValidUTF8(string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})), "�")
}

// isThread reports whether an id belongs to a secondary thread. /proc does not list such ids, but
// has their folders.
func isThread(id int) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/status")
	return err == nil && !bytes.Contains(status, []byte("\nTgid:\t"+strconv.Itoa(id)+"\n"))
}

// program returns the path of a process's executable, or "" if it cannot be read.
func program(pid int) string {
	path, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	if err != nil {
		return ""
	}
	return path
}
