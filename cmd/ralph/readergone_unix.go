//go:build unix

package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// readerGone reports whether nobody reads any more what is written to w: the other
// end of a pipe has been closed. A write would tell too, but a follower may have
// nothing to write for days.
func readerGone(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}} //nolint:gosec // descriptors are small
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
