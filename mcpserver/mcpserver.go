// Package mcpserver serves the tools by which agents speak to ralph, a profile for
// each sort of them: those that the loop starts ([New]), those that pull work by
// themselves ([ServeWorker]) and the chats of people ([Chats]).
//
// A call is checked by its tool's schema; what is wrong is said so that a model can mend
// it. The package holds no rules and keeps no data: what calls come to is up to package
// loop and the store. The loop's server reads nothing to the agent, edits no task and
// merges nothing, and what it has answered is durable.
package mcpserver

import (
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

// Options of New.
type Options struct {
	Version    string
	Underscore bool // ralph_signal_done instead of ralph.signal.done, for clients that refuse dots
	// Say stores a signal durably and returns the id of its comment.
	Say func(ctx context.Context, p signals.Payload) (int64, error)
	// SetState records what the agent reports to be doing. nil leaves the tool out.
	SetState func(ctx context.Context, c StateChange) (StateReply, error)
	// Comment and Propose keep what the agent has to say on a task, and return its
	// id. nil leaves the tool out.
	Comment func(ctx context.Context, c CommentCall) (int64, error)
	Propose func(ctx context.Context, c AmendmentCall) (int64, error)
	// Permit answers the agent's program whether a tool may be used, and says why
	// not. It may take as long as a person does. nil leaves the tool out.
	Permit func(ctx context.Context, tool string, input json.RawMessage) (allow bool, why string, err error)
}

const instructions = "These tools are how you speak to ralph, which runs you unattended. " +
	"Close the session with exactly one of done, partial or stuck; " +
	"call the others whenever there is something to say."

// New is a server with exactly the tools of the verbs. It panics if a tool's schema
// cannot be made, which only a change of this package can cause.
func New(o Options) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "ralph", Version: o.Version},
		&mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{}})
	prefix := "ralph.signal."
	if o.Underscore {
		prefix = "ralph_signal_"
	}
	addVerbs(server, prefix, recorded(o))
	if o.SetState != nil {
		addState(server, o.SetState)
	}
	addDiscussion(server, o.Comment, o.Propose)
	if o.Permit != nil {
		addPermission(server, o)
	}
	return server
}

// Schema is what a verb's calls look like: every field with its description, the
// accepted values, and nothing else.
func Schema(v signals.Known) (*jsonschema.Schema, error) {
	p := v.Payload
	schema, err := jsonschema.ForType(reflect.TypeOf(p), &jsonschema.ForOptions{})
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", p.Verb(), err)
	}
	for name, field := range schema.Properties {
		field.Description = signals.Docs[p.Verb()][name]
		// Pointers and slices come out as "null or …", which would invite null.
		if len(field.Types) == 2 {
			field.Type, field.Types = field.Types[1], nil
		}
		for _, v := range v.Accepted[name] {
			field.Enum = append(field.Enum, v)
		}
	}
	return schema, nil
}

// said keeps a signal and says what came of it.
type said func(ctx context.Context, p signals.Payload) (string, error)

// recorded is what an agent of the loop is told: nothing else happens in the server.
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

// addVerbs serves the verbs.
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
				// The client may close its end right after the call; what it said counts.
				return say(context.WithoutCancel(ctx), payload)
			})
	}
}

// Serve serves on a pair of streams until the client closes its end.
func Serve(ctx context.Context, server *mcp.Server, in io.ReadCloser, out io.WriteCloser) error {
	err := server.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
