package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
)

// kernel identifies the boot of the kernel and the namespace in which this process has its number: a container sees no
// process of another one.
var kernel = sync.OnceValue(func() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, nerr := os.Readlink("/proc/self/ns/pid")
	if err != nil || nerr != nil {
		return unknown
	}
	return strings.TrimSpace(string(boot)) + "/" + namespace
})

// started returns when a process began, in ticks since the boot, which tells a reused number apart; unknown if it
// cannot be read.
func started(pid int) string {
	at, _, err := stat(pid)
	if err != nil {
		return unknown
	}
	return at
}

// evidenceOn returns the evidence on a process of this kernel.
func evidenceOn(pid int, began string) Evidence {
	at, state, err := stat(pid)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Gone
	case err != nil || began == unknown:
		return Unknown
	case at != began || state == "Z" || state == "X": // another one, or one that only its parent has still to see
		return Gone
	}
	return Lives
}

// stat reads when a process began and its state.
func stat(pid int) (began, state string, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		if errors.Is(err, syscall.ESRCH) { // it ended while it was read
			err = errors.Join(err, fs.ErrNotExist)
		}
		return "", "", err
	}
	// The name, in parentheses, may contain anything.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 20 {
		return "", "", fmt.Errorf("/proc/%d/stat has %d fields after the name", pid, len(fields))
	}
	return fields[19], fields[0], nil
}
