package pipe

import (
	"os"
	"syscall"
)

// Dial connects to a socket, without the packages that net needs. shut signals that nothing more
// will be sent.
func Dial(socket string) (conn *os.File, shut func(), err error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: socket}); err != nil {
		return nil, nil, err
	}
	// An error means that the peer has gone, which the reader notices.
	return os.NewFile(uintptr(fd), socket), func() { _ = syscall.Shutdown(fd, syscall.SHUT_WR) }, nil
}
