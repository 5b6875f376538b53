package proc

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// closeOnExec keeps the command from inheriting the supervisor's open files: its pipes, and files inherited by
// ralph (locks, sockets of systemd).
func closeOnExec() error {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return fmt.Errorf("list the open files: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}
