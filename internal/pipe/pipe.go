// Package pipe is `ralph mcp` within a session: it passes bytes between its standard streams and
// the socket on which the run answers. It presents the ticket that the agent was given for it, so
// that no other program of the session can speak as the agent.
//
// An agent waits for it before it begins, and ralph takes several milliseconds to initialize the
// packages of all its commands. This one runs before them: Go initializes packages in the order of
// their paths as soon as their imports are initialized, and this one imports next to nothing (see
// docs/decisions/0008-a-socket-for-each-session.md).
package pipe

import (
	"io"
	"os"
)

// Variable names the socket.
const Variable = "RALPH_CHANNEL"

// Ticket is the variable with the one-time ticket that lets a connection use ralph's tools. The
// agent passes it to `ralph mcp` alone.
const Ticket = "RALPH_TICKET"

// Speak is the notification that presents the ticket, before all other messages of a connection.
const Speak = "ralph/speak"

func init() { //nolint:gochecknoinits // before the packages that take long
	if socket := os.Getenv(Variable); socket != "" && len(os.Args) == 2 && os.Args[1] == "mcp" {
		os.Exit(run(socket)) //nolint:forbidigo // main is not reached
	}
}

// run passes bytes until the other end closes, and returns the exit status.
func run(socket string) int {
	conceal()
	conn, shut, err := Dial(socket)
	if ticket := os.Getenv(Ticket); err == nil && ticket != "" {
		_, err = io.WriteString(conn, `{"jsonrpc":"2.0","method":"`+Speak+`","params":{"ticket":"`+ticket+`"}}`+"\n")
	}
	if err != nil {
		_, _ = os.Stderr.WriteString("ralph: the run cannot be reached at " + socket + ": " + err.Error() + "\n")
		return 2
	}
	ended := make(chan int, 2)
	go func() {
		if _, err := io.Copy(conn, os.Stdin); err != nil {
			ended <- 1 // the run is gone; what was not sent yet is lost
			return
		}
		shut()
	}()
	go func() {
		if _, err := io.Copy(os.Stdout, conn); err != nil {
			ended <- 1
		}
		ended <- 0
	}()
	return <-ended
}
