//go:build unix

package scripted

import (
	"os/exec"
	"syscall"
)

// detach gives a process a session of its own.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
