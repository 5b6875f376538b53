// Package pipe connects processes of an agent to the run, over the session's socket. `ralph mcp` passes bytes between
// its standard streams and the socket, and presents the agent's ticket, so that no other program of the session can
// speak as the agent (docs/decisions/0008-a-socket-for-each-session.md). Hooks and signals ask the run one question
// each.
package pipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
)

// Variable names the socket.
const Variable = "RALPH_CHANNEL"

// Ticket is the variable with the one-time ticket that lets a connection use ralph's tools. The
// agent passes it to `ralph mcp` alone.
const Ticket = "RALPH_TICKET"

// Speak is the notification that presents the ticket, before all other messages of a connection.
const Speak = "ralph/speak"

// dial connects to a session's socket.
func dial(ctx context.Context, socket string) (*net.UnixConn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("the run cannot be reached at %s: %w", socket, err)
	}
	return conn.(*net.UnixConn), nil
}

// Run passes bytes until the other end closes. The error means that the run cannot be reached, or has gone before it
// had everything.
func Run(ctx context.Context, socket, ticket string, in io.Reader, out io.Writer) error {
	conceal()
	conn, err := dial(ctx, socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if ticket != "" {
		hello := `{"jsonrpc":"2.0","method":"` + Speak + `","params":{"ticket":"` + ticket + `"}}` + "\n"
		if _, err := io.WriteString(conn, hello); err != nil {
			return fmt.Errorf("the run has gone: %w", err)
		}
	}
	ended := make(chan error, 2)
	go func() {
		if _, err := io.Copy(conn, in); err != nil {
			ended <- fmt.Errorf("the run has gone: %w", err) // unsent data is lost
			return
		}
		if err := conn.CloseWrite(); err != nil && !errors.Is(err, net.ErrClosed) {
			ended <- err
		}
	}()
	go func() {
		_, err := io.Copy(out, conn)
		ended <- err
	}()
	return <-ended
}
