package mcpserver

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"
)

// The scopes in which a worker's server is served.
const (
	ScopeRead  = "tasks:read"
	ScopeWrite = "tasks:write"
)

// Scopes lists them.
var Scopes = []string{ScopeRead, ScopeWrite}

// Calls a minute that a client may make if nothing else is said; more where all that
// it may do is read.
const (
	CallsPerMinute        = 60
	CallsPerMinuteReading = 600
)

// WorkerOptions of ServeWorker.
type WorkerOptions struct {
	Version string
	Name    string   // under which the worker signals and comments
	Dotted  bool     // ralph.signal.done instead of ralph_signal_done
	Scopes  []string // of [Scopes]; a call without its scope is refused
	// PerMinute is how many calls a minute are answered; further ones are refused
	// with the time to wait. 0 is what is usual in the scopes.
	PerMinute int

	Address string    // to serve on; "" for stdio
	Token   string    // that clients on an address send; "" makes one, and tells it
	Tell    io.Writer // where it is told
}

const workerInstructions = "These tools hand out tasks. Look with get_next_actionable, take one with claim_task, " +
	"do what its text says, and close it with exactly one of the signals done, partial or stuck; " +
	"ralph checks a done before it counts. " +
	"Any call renews your claim, which lapses after half an hour without one."

// newWorker is a server for an agent that pulls work by itself (discussion, "MCP
// tools"). It panics if a schema cannot be made, which only a change of this
// package can cause.
func newWorker(o WorkerOptions, w *worker) *mcp.Server {
	if o.PerMinute == 0 {
		o.PerMinute = CallsPerMinuteReading
		if slices.Contains(o.Scopes, ScopeWrite) {
			o.PerMinute = CallsPerMinute
		}
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "ralph", Version: o.Version},
		&mcp.ServerOptions{Instructions: workerInstructions, Capabilities: &mcp.ServerCapabilities{}})
	limit := rate.NewLimiter(rate.Every(time.Minute/time.Duration(o.PerMinute)), o.PerMinute)
	server.AddReceivingMiddleware(limited(limit, o.Scopes))
	serve(server, "get_next_actionable", spoken,
		func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (any, error) { return w.next(ctx) })
	serve(server, "claim_task", spoken, func(ctx context.Context, _ *mcp.CallToolRequest, in onTask) (any, error) {
		return w.take(ctx, int64(in.TaskID))
	})
	serve(server, "release_task", spoken, func(ctx context.Context, _ *mcp.CallToolRequest, in onTask) (any, error) {
		return w.release(ctx, int64(in.TaskID))
	})
	prefix := "ralph_signal_"
	if o.Dotted {
		prefix = "ralph.signal."
	}
	addVerbs(server, prefix, w.say)
	addState(server, w.setState)
	addDiscussion(server, w.comment, w.propose)
	addReading(server, w)
	return server
}

// reading are the tools that need no more than the scope tasks:read.
var reading = []string{"get_next_actionable", "list_task_comments", "list_pending_amendments"}

// limited refuses calls without their scope, and calls that come too fast.
func limited(limit *rate.Limiter, scopes []string) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			call, ok := req.GetParams().(*mcp.CallToolParamsRaw)
			if method != "tools/call" || !ok {
				return next(ctx, method, req)
			}
			need := ScopeWrite
			if slices.Contains(reading, call.Name) {
				need = ScopeRead
			}
			if !slices.Contains(scopes, need) {
				return spoken(nil, fmt.Errorf("%s needs the scope %s; this server is served with %s",
					call.Name, need, strings.Join(scopes, ", "))), nil
			}
			if r := limit.Reserve(); r.Delay() > 0 {
				wait := r.Delay()
				r.Cancel()
				return spoken(nil, fmt.Errorf("too many calls; try again in %s", wait.Round(time.Second/10))), nil
			}
			return next(ctx, method, req)
		}
	}
}
