package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/internal/permission"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// A Session is the session that a server serves.
type Session struct {
	Store      *store.DB
	TaskID     int64
	SessionID  string
	Discipline string            // "" if the task has none
	Rules      *permission.Rules // permission rules for its tools; nil if nobody asks
	NoTool     bool              // its program asks for permissions without a tool
	// Uses converts a tool use in a question of the agent's hook for the rules; nil keeps it unchanged.
	Uses       func(tool string, input json.RawMessage) []permission.Use
	Enforce    bool   // it must report a phase before it may change files
	State, Dir string // the project's state, and the folder in which the session works
	Version    string
	Mask       func(string) string // masks secrets in the agent's input; nil masks nothing

	Review *agent.Review // for a reviewing session; nil for others
	Plan   *agent.Plan   // for a planning session; nil for others

	unreported string // a file that exists until it has reported a phase; "" if none was created
}

// Author returns the name that the session speaks under.
func (s Session) Author() string {
	if s.Discipline == "" {
		return "agent"
	}
	return s.Discipline
}

// say stores a signal.
func (s Session) say(ctx context.Context, p signals.Payload) (id int64, err error) {
	err = patiently(ctx, func() error { id, err = s.Store.Say(ctx, s.TaskID, s.SessionID, s.Author(), p); return err })
	return id, err
}

// Server returns the server for a session of the loop.
func (s Session) Server() *mcp.Server {
	if s.Review != nil || s.Plan != nil {
		var server *mcp.Server
		if s.Plan != nil {
			server = newPlan(s.Version, *s.Plan)
		} else {
			server = newReview(s.Version, *s.Review)
		}
		if s.Rules != nil && !s.NoTool {
			addPermission(server, Options{Permit: s.permit})
		}
		server.AddReceivingMiddleware(s.masking)
		return server
	}
	db, o := s.Store, Options{Version: s.Version}
	o.Say = s.say
	o.SetState = func(ctx context.Context, c StateChange) (reply StateReply, err error) {
		err = patiently(ctx, func() error { reply, err = setState(ctx, db, s.SessionID, c); return err })
		if err == nil && s.unreported != "" {
			err = os.RemoveAll(s.unreported)
		}
		return reply, err
	}
	// It can only add to the discussion of its own task.
	own := discussing(func(
		ctx context.Context, task taskID, add func(tx *store.Tx, me speaker) (int64, error),
	) (id int64, err error) {
		err = patiently(ctx, func() error {
			return db.Tx(ctx, func(tx *store.Tx) error {
				var other error
				if int64(task) != s.TaskID {
					other = ralph.Conflict("TASK-%d is not the task that you work on, which is TASK-%d",
						task, s.TaskID)
				}
				if err := errors.Join(other, tx.CheckAdding(s.TaskID, s.SessionID, false)); err != nil {
					return err
				}
				id, err = add(tx, speaker{s.SessionID, s.Author()})
				return err
			})
		})
		return id, err
	})
	o.Comment, o.Propose = own.comment, own.propose
	if s.Rules != nil && !s.NoTool {
		o.Permit = s.permit
	}
	server := New(o)
	server.AddReceivingMiddleware(s.masking)
	return server
}

// How long and how often a call is retried while the database is unavailable (decision 25).
const (
	tryFor   = 4 * time.Minute
	tryAfter = 100 * time.Millisecond // doubled each time, up to
	tryEvery = 5 * time.Second

	// On a full disk, which seldom recovers by itself; then the session ends.
	tryForRoom = 8 * time.Second
)

// patiently retries while the database fails for a temporary reason: after an error the agent would only repeat its
// call.
func patiently(ctx context.Context, try func() error) error {
	for begun, wait := time.Now(), tryAfter; ; wait = min(2*wait, tryEvery) {
		err := try()
		if !store.Passes(err) || time.Since(begun) > tryFor || store.NoRoom(err) && time.Since(begun)+wait > tryForRoom {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// masking masks secrets in the input of tools, except for requests for
// permission, whose input is returned to the agent's program unchanged.
func (s Session) masking(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if call, ok := req.(*mcp.CallToolRequest); ok && s.Mask != nil && call.Params.Name != PermissionTool &&
			call.Params.Name != strings.ReplaceAll(PermissionTool, ".", "_") {
			call.Params.Arguments = json.RawMessage(s.Mask(string(call.Params.Arguments)))
		}
		return next(ctx, method, req)
	}
}
