// Package hook is `ralph hook` within a session: an agent starts it before each use of a tool, and
// it asks the run over the session's channel for permission. It exits with 0 if allowed, else with
// 2 and the reason on standard error, as agents expect of such hooks.
//
// Like package pipe it runs before most packages of ralph's commands are initialized.
package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"

	"ralph/internal/pipe"
)

// Methods on a session's channel besides the calls of tools.
const (
	Method = "ralph/hook"   // params: the input of the agent's hook; result: why it is denied, or ""
	Signal = "ralph/signal" // params: a ticket, a verb and its input; result: an [Answer]
)

// An Answer answers a signal.
type Answer struct {
	Said    string // what was recorded; "" if nothing was
	Refused string // why not
	Ticket  string // for the next signal; "" if the ticket was not the session's
}

// Arg is the argument that selects the hook.
const Arg = "hook"

// refused is the exit status of a hook that denies.
const refused = 2

func init() { //nolint:gochecknoinits // before the packages that take long
	if socket := os.Getenv(pipe.Variable); socket != "" && len(os.Args) == 2 && os.Args[1] == Arg {
		os.Exit(run(socket)) //nolint:forbidigo // main is not reached
	}
}

func run(socket string) int {
	question, err := io.ReadAll(os.Stdin)
	why := ""
	if err == nil {
		err = Ask(socket, Method, question, &why)
	}
	if err != nil {
		why = "ralph could not decide: " + err.Error()
	}
	if why == "" {
		return 0
	}
	_, _ = os.Stderr.WriteString(why + "\n") // it is denied even if nobody reads the reason
	return refused
}

// Ask sends a request to the run over a session's socket, waits (a person may be asked), and
// decodes the result. The error may be the run's.
func Ask(socket, method string, params []byte, result any) error {
	var line bytes.Buffer
	if err := json.Compact(&line, params); err != nil {
		return err
	}
	conn, _, err := pipe.Dial(socket)
	if err != nil {
		return err
	}
	defer conn.Close()
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
