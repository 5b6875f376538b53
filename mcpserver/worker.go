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

// The scopes of a worker's server.
const (
	ScopeRead  = "tasks:read"
	ScopeWrite = "tasks:write"
)

// Scopes lists the scopes.
var Scopes = []string{ScopeRead, ScopeWrite}

// The default limits of calls per minute and client. A server that only reads has a higher one.
const (
	CallsPerMinute        = 60
	CallsPerMinuteReading = 600
)

// WorkerOptions configure ServeWorker.
type WorkerOptions struct {
	Version string
	Name    string   // the name that the worker signals and comments under
	Dotted  bool     // ralph.signal.done instead of ralph_signal_done
	Scopes  []string // from [Scopes]; a call without its scope is refused
	// PerMinute is the maximum number of calls per minute. Further calls are refused, with the time to wait. 0 is the
	// default for the scopes.
	PerMinute int

	Address string    // the address to serve; "" for stdio
	Token   string    // the token that clients on an address send; "" generates and prints one
	Tell    io.Writer // for its output
}

const workerInstructions = "These tools hand out tasks. Look with get_next_actionable, take one with claim_task, " +
	"do what its text says, and close it with exactly one of the signals done, partial or stuck; " +
	"ralph checks a done before it counts. " +
	"Any call renews your claim, which lapses after half an hour without one."

// newWorker returns a server for an agent that pulls its own work (discussion, "MCP
// tools"). It panics if a schema is invalid, which only a change of this package can cause.
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
	serve(server, "get_next_actionable", spoken, w.next)
	serve(server, "claim_task", spoken, w.take)
	serve(server, "release_task", spoken, w.release)
	prefix := "ralph_signal_"
	if o.Dotted {
		prefix = "ralph.signal."
	}
	addVerbs(server, prefix, w.say)
	addState(server, w.setState)
	addDiscussion(server, discussing(w.discuss).comment, discussing(w.discuss).propose)
	addReading(server, w.loop.Store, w.alive, w.resolve)
	return server
}

// reading lists the tools that change nothing; a worker needs only the scope tasks:read for them.
var reading = []string{
	"get_next_actionable", "list_task_comments", "list_pending_amendments",
	"agentic_get_active_task", "agentic_get_token_status", "agentic_task_show", "agentic_plan_show",
}

// scopeOf returns the scope that a tool needs.
func scopeOf(tool string) string {
	if slices.Contains(reading, tool) {
		return ScopeRead
	}
	return ScopeWrite
}

// limited refuses calls without their scope, and calls that come too fast, and lists only
// the tools that are not refused.
func limited(limit *rate.Limiter, scopes []string) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			call, ok := req.GetParams().(*mcp.CallToolParamsRaw)
			if method != "tools/call" || !ok {
				res, err := next(ctx, method, req)
				if list, ok := res.(*mcp.ListToolsResult); ok && err == nil {
					list.Tools = slices.DeleteFunc(list.Tools, func(t *mcp.Tool) bool {
						return !slices.Contains(scopes, scopeOf(t.Name))
					})
				}
				return res, err
			}
			if need := scopeOf(call.Name); !slices.Contains(scopes, need) {
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
