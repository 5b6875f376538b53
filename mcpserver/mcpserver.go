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

	"ralph"
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

// A tool is one verb as an agent sees it.
type tool struct {
	payload     signals.Payload
	description string
}

// tools are the frozen interface: the eight verbs, the closing ones first.
var tools = []tool{
	{signals.Done{}, "Signal that the task is fully complete and tested. " +
		"It closes the session; ralph then checks the claim by running the verification. " +
		"Call exactly one of done, partial and stuck, as the last thing you do."},
	{signals.Partial{}, "Signal that progress was made but the task couldn't be fully completed. " +
		"The remaining work will be picked up in a future session. It closes the session."},
	{signals.Stuck{}, "Signal that you cannot make meaningful progress on this task. It closes the session."},
	{signals.Ask{}, "Ask a question that you need answered to do this task well. " +
		"If `blocking: true`, you should also call `partial` to pause the task until the question is answered. " +
		"Nobody answers during this session."},
	{signals.Flag{}, "Report a problem you discovered during this task."},
	{signals.Learned{}, "Record knowledge that will be useful for future tasks on this project."},
	{signals.Suggest{}, "Recommend an action that should be taken but is outside the scope of your current task."},
	{signals.Blocked{}, "Report that you cannot complete part of your task " +
		"because something outside your control is missing or broken. Then call partial or stuck."},
}

// enums are the accepted values of fields, by verb and field.
var enums = map[ralph.Verb]map[string][]string{
	ralph.VerbFlag:    {"severity": signals.Severities, "category": signals.Categories},
	ralph.VerbLearned: {"kind": signals.LearnedKinds, "scope": signals.Scopes},
	ralph.VerbSuggest: {"kind": signals.SuggestKinds},
	ralph.VerbBlocked: {"kind": signals.BlockedKinds},
}

const instructions = "These tools are how you speak to ralph, which runs you unattended. " +
	"Close the session with exactly one of done, partial or stuck; " +
	"call the others whenever there is something to say."

// New is a server with exactly the eight tools. It panics if a tool's schema
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
func Schema(p signals.Payload) (*jsonschema.Schema, error) {
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
		for _, v := range enums[p.Verb()][name] {
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

// addVerbs serves the eight verbs.
func addVerbs(server *mcp.Server, prefix string, say said) {
	for _, t := range tools {
		verb := t.payload.Verb()
		schema, err := Schema(t.payload)
		if err != nil {
			panic(err)
		}
		addTool(server, prefix+string(verb), t.description, schema, spoken,
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
