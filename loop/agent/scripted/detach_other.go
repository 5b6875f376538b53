//go:build !unix

package scripted

import "os/exec"

// detach does nothing: this system has no process sessions.
func detach(*exec.Cmd) {}
