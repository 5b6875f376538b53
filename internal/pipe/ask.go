package pipe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
)

// Methods on a session's channel besides the calls of tools.
const (
	// Hook asks whether a tool may be used. params: the input of the agent's hook; result: why it is denied, or "".
	Hook = "ralph/hook"
	// Signal reports a signal. params: a ticket, a verb and its input; result: an [Answer].
	Signal = "ralph/signal"
	// Attempt reports a command that only people may give, where the project's state cannot be seen. params: command,
	// state, dir; result: the session, or "" if the command was for another project.
	Attempt = "ralph/attempt"
)

// An Answer answers a signal.
type Answer struct {
	Said    string // the recorded answer; "" if there is none
	Refused string // why not
	Ticket  string // for the next signal; "" if the ticket was not the session's
}

// Ask sends a request to the run over a session's socket, waits until ctx ends (a person may be asked), and
// decodes the result. The error may be the run's.
func Ask(ctx context.Context, socket, method string, params []byte, result any) error {
	var line bytes.Buffer
	if err := json.Compact(&line, params); err != nil {
		return err
	}
	conn, err := dial(ctx, socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_, err = io.WriteString(conn, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+line.String()+"}\n")
	if err != nil {
		return err
	}
	var reply struct {
		Result json.RawMessage
		Error  struct{ Message string }
	}
	if err := json.NewDecoder(conn).Decode(&reply); err != nil {
		return err
	}
	if reply.Result == nil {
		return errors.New(reply.Error.Message)
	}
	return json.Unmarshal(reply.Result, result)
}
