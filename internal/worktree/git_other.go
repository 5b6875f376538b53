//go:build !unix

package worktree

import (
	"os"
	"os/exec"
)

// asGroup does nothing: only the command itself is killed.
func asGroup(*exec.Cmd) {}

// sameDevice cannot tell file systems apart.
func sameDevice(os.FileInfo, os.FileInfo) bool { return true }
