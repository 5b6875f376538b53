package proc

import (
	"os"
	"os/exec"
	"syscall"
)

// Detach starts a program that outlives this one, such as a server that a person starts and stops.
// It gets a session of its own, has no terminal, and is neither supervised nor limited. Its output
// goes to log. If it ends before this process does, the channel delivers its error.
func Detach(argv, env []string, dir string, log *os.File) (ended <-chan error, err error) {
	cmd := &exec.Cmd{
		Path: argv[0], Args: argv, Env: env, Dir: dir, Stdout: log, Stderr: log,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	return over, nil
}
