//go:build !unix

package scripted

import "os/exec"

// detach does nothing: there are no sessions of processes here.
func detach(*exec.Cmd) {}
