// Package proc starts a process so that all of it can be stopped: the command, its children, processes in sessions of
// their own, and daemons that it detached.
//
// On Linux each command has a supervisor. It is this same program, with an argument that makes this package run the
// supervisor instead of main:
//
//	ralph ──orders──► supervisor ──► command ──► children, daemons, …
//	      ◄──events──  (subreaper)
//
// The supervisor adopts every orphan among the command's descendants, so that none escapes it. It kills the rest when
// the command ends, when ralph tells it to, and when the pipe of orders closes, as it does whenever ralph dies. It
// exits when the kernel reports that it has no child left. At that point no process of the command is alive, not even
// as a zombie, whatever its name, environment, session or files. The command's standard streams are passed through
// and never copied.
//
// If the supervisor itself is killed, [Process.Wait] finds the command's processes by an entry of their environment, as
// [Sweep] does after a crash. Processes that have cleared their environment are found only where a wrapper with the
// marker has a namespace of processes, as bubblewrap has, which ends as a whole.
//
// [Process.Prune] kills the processes that the command has started, except those to keep.
//
// Two kinds of processes are out of reach: another daemon started them for the command (docker, systemd-run, at), or
// ralph may not signal their user (sudo). Wait reports the latter. Other Unix systems have no
// subreaper: there the process group is killed. Windows has job objects. The package never interprets a command's
// output, logs nothing and does not depend on ralph's other packages.
package proc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// superviseArg is the first argument of a supervisor.
const superviseArg = "__supervise"

// ErrSupervisorLost is returned by [Start] and [Process.Wait] when the supervisor was
// killed. It is then unknown how the command ended, or whether it was started.
var ErrSupervisorLost = errors.New("the supervisor was killed")

// A Spec describes a command to start.
type Spec struct {
	// Args is the program and its arguments. A program without a slash is
	// looked up in the PATH of Env; a relative path counts from Dir.
	Args []string
	Dir  string   // working directory; "" is the caller's
	Env  []string // the whole environment: NAME=value, each name once

	// Standard streams, passed to the command as they are; nil is the null device. The caller keeps
	// its own ends and closes them.
	Stdin, Stdout, Stderr *os.File

	// Through filters all output in [Run], for example to mask secrets; nil for nothing.
	Through func(io.Reader) io.Reader

	// KillGrace is the time between an interrupt and the killing of everything; 0 kills at once.
	KillGrace time.Duration

	// Marker is an entry of Env that no other process has. By it the processes are found if the
	// supervisor is lost; "" for none.
	Marker string

	// Wrapper is a program with arguments, put before Args, that starts the command as its child,
	// like a sandbox; nil for none. Interrupts skip it, and it is not a leftover. The wrapper
	// decides how it reports the end of the command.
	Wrapper []string

	// Before is a program with arguments, put before Args, that becomes the command, like env or
	// nice; nil for none. With a Wrapper, the wrapper starts it.
	Before []string

	// Apart are the kernel's namespaces that the command gets for itself. First is a program with
	// arguments, put before all others, that prepares them and then executes the rest. In a user's
	// own namespaces First has the capabilities for mounting, and passes none on.
	Apart Namespaces
	First []string

	// Reach are paths that the command may write to in addition to those of its sandbox.
	Reach []string

	// Fixed are files below Dir, relative to it, that the command can neither change nor replace in a sandbox.
	Fixed []string
}

// Namespaces are namespaces of Linux. Without root's rights they take a user namespace, which maps
// the user to itself.
type Namespaces struct{ Mounts, Network bool }

// Enter changes a Spec so that it runs in a sandbox. The caller calls leave when the command has
// ended.
type Enter func(*Spec) (leave func(), err error)

// Enter calls the function; nil changes nothing.
func (e Enter) Enter(s *Spec) (leave func(), err error) {
	if e == nil {
		return func() {}, nil
	}
	return e(s)
}

// Joined merges environments, each name once: the last entry counts.
func Joined(lists ...[]string) (env []string) {
	at := map[string]int{}
	for _, entry := range slices.Concat(lists...) {
		name, _, _ := strings.Cut(entry, "=")
		if i, ok := at[name]; ok {
			env[i] = entry
			continue
		}
		at[name] = len(env)
		env = append(env, entry)
	}
	return env
}

// An Exit describes how a command ended.
type Exit struct {
	Code      int    // exit status; -1 if a signal ended it or it is unknown
	Signal    string // the signal that ended it, such as "SIGKILL"; "" if it exited
	Leftovers []Leftover
}

// A Leftover is a process, other than the command itself, that was still alive when the command had
// ended or was killed, and that was killed therefore.
type Leftover struct {
	Pid     int
	Command string // command line, at most 1 KiB
}

// resolve makes all checks that are possible before the start, and returns the absolute paths of the program and the
// directory, and the arguments.
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
	if path, err = s.program(s.Args[0], dir); err != nil {
		return "", "", nil, fmt.Errorf("start %s: %w", s.Args[0], err)
	}
	first := slices.Concat(s.First, s.Wrapper, s.Before)
	if len(first) == 0 {
		return path, dir, s.Args, nil
	}
	args = slices.Concat(first, []string{path}, s.Args[1:])
	if path, err = s.program(first[0], dir); err != nil {
		return "", "", nil, fmt.Errorf("start %s: %w", first[0], err)
	}
	return path, dir, args, nil
}

// program finds the path of a program. Unlike [exec.LookPath] it uses the command's own PATH, so that the
// command's configuration applies.
func (s Spec) program(name, dir string) (string, error) {
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
			continue // like os/exec: never run a program from the working directory
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
		if key == name {
			return value
		}
	}
	return ""
}
