package machine

import (
	"errors"
	"sync"
	"syscall"
)

// kernel identifies the boot of the kernel.
var kernel = sync.OnceValue(func() string {
	boot, err := syscall.Sysctl("kern.bootsessionuuid")
	if err != nil || boot == "" {
		return unknown
	}
	return boot
})

// started is unknown here.
func started(int) string { return unknown }

// evidenceOn returns the evidence on a process of this kernel. The process number alone proves nothing, because
// numbers are reused.
func evidenceOn(pid int, _ string) Evidence {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return Gone
	}
	return Unknown
}
