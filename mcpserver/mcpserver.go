// Package mcpserver serves the tools that agents use to talk to ralph. There is a profile for each kind of agent: the
// loop's own ([New]), workers that pull their work ([ServeWorker]) and people's chats ([Chats]).
//
// Calls are checked against their tool's schema; errors tell a model how to correct the call. The package has no rules
// and stores no data: package loop and the store decide on the effects of calls. The loop's server reads nothing to the
// agent, edits no task and merges nothing. Everything that it has confirmed is durable.
package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph/signals"
)

// Options configure New.
type Options struct {
	Version string
	// Say stores a signal durably and returns the id of its comment.
	Say func(ctx context.Context, p signals.Payload) (int64, error)
	// SetState records the activity that the agent reports. nil omits the tool.
	SetState func(ctx context.Context, c StateChange) (StateReply, error)
	// Comment and Propose record an agent's comment or amendment on a task,
	// and return its id. nil omits the tool.
	Comment func(ctx context.Context, c CommentCall) (int64, error)
	Propose func(ctx context.Context, c AmendmentCall) (int64, error)
	// Permit decides for the agent's program whether a tool may be used, and explains a
	// refusal. It may wait for a person. nil omits the tool.
	Permit func(ctx context.Context, tool string, input json.RawMessage) (allow bool, why string, err error)
}

const instructions = "These tools are how you speak to ralph, which runs you unattended. " +
	"Close the session with exactly one of done, partial or stuck; " +
	"call the others whenever there is something to say."

// New returns a server with exactly the verbs' tools. It panics if a
// tool's schema is invalid, which only a change of this package can cause.
func New(o Options) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "ralph", Version: o.Version},
		&mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{}})
	addVerbs(server, "ralph.signal.", recorded(o))
	if o.SetState != nil {
		addState(server, o.SetState)
	}
	addDiscussion(server, o.Comment, o.Propose)
	if o.Permit != nil {
		addPermission(server, o)
	}
	return server
}

// Schema returns the input schema of a verb's tool: exactly its fields, with descriptions
// and accepted values.
func Schema(v signals.Known) (*jsonschema.Schema, error) {
	p := v.Payload
	schema, err := jsonschema.ForType(reflect.TypeOf(p), &jsonschema.ForOptions{})
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", p.Verb(), err)
	}
	for name, field := range schema.Properties {
		field.Description = v.Fields[name]
		// Pointers and slices get "null or …" by default, which would invite null.
		if len(field.Types) == 2 {
			field.Type, field.Types = field.Types[1], nil
		}
		for _, v := range v.Accepted[name] {
			field.Enum = append(field.Enum, v)
		}
	}
	return schema, nil
}

// said stores a signal and returns the answer to the agent.
type said func(ctx context.Context, p signals.Payload) (string, error)

// recorded returns the said for agents of the loop, which only stores the signal.
func recorded(o Options) said {
	return func(ctx context.Context, p signals.Payload) (string, error) {
		id, err := o.Say(ctx, p)
		said := fmt.Sprintf("Recorded %s as comment %d.", p.Verb(), id)
		if p.Verb().Closes() {
			said += " It closes this session: end your work now. If you call another closing verb, the last one counts."
		}
		return said, err
	}
}

// addVerbs adds the verbs' tools to the server.
func addVerbs(server *mcp.Server, prefix string, say said) {
	for _, t := range signals.Verbs {
		verb := t.Payload.Verb()
		schema, err := Schema(t)
		if err != nil {
			panic(err)
		}
		addTool(server, prefix+string(verb), t.Tool, schema, spoken,
			func(ctx context.Context, req *mcp.CallToolRequest) (any, error) {
				raw := req.Params.Arguments
				if len(raw) == 0 {
					raw = json.RawMessage("{}")
				}
				payload, err := signals.Parse(verb, raw)
				if err != nil {
					return nil, err
				}
				// The client may close its end right after the call; the signal still counts.
				return say(context.WithoutCancel(ctx), payload)
			})
	}
}

// Serve serves a pair of streams until the client closes its end. It ignores lines that are not JSON.
func Serve(ctx context.Context, server *mcp.Server, in io.ReadCloser, out io.WriteCloser) error {
	lines := struct {
		io.Reader
		io.Closer
	}{&jsonLines{in: bufio.NewReaderSize(in, maxMessage)}, in}
	err := server.Run(ctx, &mcp.IOTransport{Reader: lines, Writer: out})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// jsonLines reads the lines of a stream that are JSON, and not too long.
type jsonLines struct {
	in   *bufio.Reader
	rest []byte // rest of the line
}

func (l *jsonLines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.in.ReadSlice('\n')
		switch {
		case err == nil && json.Valid(line):
			l.rest = line
		case errors.Is(err, bufio.ErrBufferFull):
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = l.in.ReadSlice('\n')
			}
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
