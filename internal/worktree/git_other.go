//go:build !unix

package worktree

import (
	"os"
	"os/exec"
)

// asGroup has nothing to do: the command alone is killed.
func asGroup(*exec.Cmd) {}

// sameDevice cannot tell file systems apart.
func sameDevice(os.FileInfo, os.FileInfo) bool { return true }
