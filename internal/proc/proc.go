// Package proc starts a process so that all of it can be stopped: the command,
// its children, what they put into sessions of their own and what they
// detached as daemons.
//
// On Linux each command has a supervisor, which is this same program started
// with [SuperviseArg]:
//
//	ralph ──orders──► supervisor ──► command ──► children, daemons, …
//	      ◄──events──  (subreaper)
//
// The supervisor adopts every orphan among the command's descendants, so none
// gets out of its sight. It kills what is left when the command ends, when it
// is told to, and when the pipe of orders closes, which the kernel does at
// ralph's death, whatever the cause. It is finished when it has no child left,
// which the kernel tells: nothing that the command started is alive then, not
// even as a zombie, whatever it did to its name, environment, session and files.
// The command's standard streams are handed through and never copied.
//
// If the supervisor itself is killed, [Process.Wait] finds the command's
// processes by an entry of their environment, as [Sweep] does after a crash.
// Those that have cleared it are found if the command was in a cgroup, which
// [Contain] offers where it can; it is also what limits can be put on.
//
// [Process.Still] makes the whole tree stand still, so that somebody can look at
// what it has done, and [Still.Kill] ends it without another move.
//
// Out of reach is what another daemon was asked to start (docker, systemd-run,
// at) and what runs as a user whom ralph may not signal (sudo); the latter is
// reported by Wait. Other Unix systems have no subreaper: there the process
// group is killed. Windows has a job object. The package never interprets what
// a command says, logs nothing and knows none of ralph's other packages.
//
// A program that uses it hands over before it does anything else:
//
//	if len(os.Args) > 1 && os.Args[1] == proc.SuperviseArg {
//		os.Exit(proc.Supervise())
//	}
package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// SuperviseArg is the first argument that selects [Supervise].
const SuperviseArg = "__supervise"

// ErrSupervisorLost is returned by [Start] and [Process.Wait] when the supervisor
// was killed: how the command ended, or whether it was started, is unknown.
var ErrSupervisorLost = errors.New("the supervisor was killed")

// A Spec says what to start, and how.
type Spec struct {
	// Args is the program and its arguments. A program without a slash is
	// looked up in the PATH of Env; a relative path counts from Dir.
	Args []string
	Dir  string   // working directory; "" is the caller's
	Env  []string // the whole environment: NAME=value, each name once

	// Standard streams, handed to the command as they are; nil is the null
	// device. The caller keeps its own ends and closes them.
	Stdin, Stdout, Stderr *os.File

	// KillGrace is how long the command may take to end after an interrupt
	// before everything is killed; 0 kills at once.
	KillGrace time.Duration

	// Marker is the entry of Env that no other process has. With it the
	// processes are found if the supervisor is lost; "" is none.
	Marker string

	// Wrapper is a program, and the arguments before Args, that starts the
	// command as its child, like a sandbox; nil is none. Interrupts pass it by,
	// and it is no leftover. How it reports the end of the command is its affair.
	Wrapper []string

	Containment Containment // see [Contain]
}

// An Exit is how a command ended.
type Exit struct {
	Code      int    // exit status; -1 if a signal ended it or nobody knows
	Signal    string // what ended it, as "SIGKILL"; "" if it exited
	Leftovers []Leftover
	Reached   []string // limits of the containment that were reached, in words
}

// A Leftover is a process, other than the command itself, that was still alive
// when the command had ended or was killed, and that was therefore killed.
type Leftover struct {
	Pid     int
	Command string // its command line, at most 1 KiB of it
}

// resolve checks what can be checked before anything is started, and returns
// the absolute paths of the program and the directory, and the arguments.
func (s Spec) resolve() (path, dir string, args []string, err error) {
	if len(s.Args) == 0 || s.Args[0] == "" {
		return "", "", nil, errors.New("no program to start")
	}
	if s.Marker != "" && !slices.Contains(s.Env, s.Marker) {
		return "", "", nil, fmt.Errorf("start %s: the marker %q is not in its environment", s.Args[0], s.Marker)
	}
	if dir, err = filepath.Abs(s.Dir); err != nil {
		return "", "", nil, fmt.Errorf("start %s: working directory: %w", s.Args[0], err)
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "chdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return "", "", nil, fmt.Errorf("start %s: working directory: %w", s.Args[0], err)
	}
	if path, err = s.look(s.Args[0], dir); err != nil {
		return "", "", nil, fmt.Errorf("start %s: %w", s.Args[0], err)
	}
	if len(s.Wrapper) == 0 {
		return path, dir, s.Args, nil
	}
	args = slices.Concat(s.Wrapper, []string{path}, s.Args[1:])
	if path, err = s.look(s.Wrapper[0], dir); err != nil {
		return "", "", nil, fmt.Errorf("start %s: %w", s.Wrapper[0], err)
	}
	return path, dir, args, nil
}

// look finds a program. It differs from [exec.LookPath] in that the PATH is
// the command's own, so that what is configured for the command holds.
func (s Spec) look(name, dir string) (string, error) {
	if filepath.Base(name) != name {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		path, err := exec.LookPath(name)
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%s does not exist (%w)", name, exec.ErrNotFound)
		}
		return path, err
	}
	for _, d := range filepath.SplitList(s.getenv("PATH")) {
		if !filepath.IsAbs(d) {
			continue // as os/exec: never run what merely lies in the working directory
		}
		if path, err := exec.LookPath(filepath.Join(d, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w", exec.ErrNotFound)
}

func (s Spec) getenv(name string) string {
	for _, entry := range s.Env {
		key, value, _ := strings.Cut(entry, "=")
		if key == name || runtime.GOOS == "windows" && strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}
