//go:build !unix

package pipe

import "net"

// Dial connects to a socket. shut signals that nothing more will be sent.
func Dial(socket string) (conn *net.UnixConn, shut func(), err error) {
	conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: socket})
	// An error means that the peer has gone, which the reader notices.
	return conn, func() { _ = conn.CloseWrite() }, err
}
