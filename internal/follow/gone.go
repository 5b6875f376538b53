package follow

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// readerGone reports whether the other end of the pipe w has been closed. A write would fail too,
// but a follower may have nothing to write for days.
func readerGone(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}} //nolint:gosec // descriptors are small
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
