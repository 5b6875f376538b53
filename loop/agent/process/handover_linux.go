package process

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lasting returns a name of a file that stays valid, whatever becomes of its path, until it is released.
func lasting(path string) (name string, release func(), err error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fmt.Sprintf("/proc/self/fd/%d", fd), func() { _ = unix.Close(fd) }, nil
}
