//go:build unix

package scripted

import (
	"os/exec"
	"syscall"
)

// detach makes a process start a session of its own.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
