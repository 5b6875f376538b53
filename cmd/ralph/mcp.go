package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/mcpserver"
	"ralph/signals"
	"ralph/store"
)

func newMCP(a *app) *cobra.Command {
	var profile string
	var w workerFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve ralph's tools to an agent, on stdio or HTTP",
		Long: `Serve tools to an agent (MCP). The profile loop is what ralph starts itself for each
session: environment variables say which one (RALPH_TASK_ID, RALPH_SESSION_ID and
RALPH_DB_PATH, and optionally RALPH_DISCIPLINE and RALPH_AGENT_TASK_ID).

The profile worker is for agents that pull work by themselves: they look for a task,
claim it, and close it with the same signals; ralph checks a done in the same way.
See docs/workers.md.

The profile human is for the chat of a person who has claimed a task (docs/human.md).`,
		Example: "  ralph mcp --profile worker --name codex\n  RALPH_MCP_TOKEN=… ralph mcp --profile worker --http 127.0.0.1:7476", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if profile == "loop" {
				return serveMCP(cmd.Context(), a, w.names)
			}
			if err := a.refuseInSession(cmd.Context(), "use the tools that this session was given"); err != nil {
				return err
			}
			switch profile {
			case "worker":
				return serveWorker(cmd, a, w)
			case "human":
				return serveHuman(cmd.Context(), a, w.http)
			}
			return usage(fieldError("--profile", profile, "loop", "worker", "human"))
		},
	}
	cmd.Flags().StringVar(&profile, "profile", "loop", "loop, worker or human")
	cmd.Flags().StringVar(&w.names, "tool-names", "", "dotted (ralph.signal.done) or underscore (ralph_signal_done), for clients that refuse dots; dotted for the profile loop, underscore for others")
	cmd.Flags().StringVar(&w.name, "name", "worker", "the worker's `NAME`, under which it signals and comments")
	cmd.Flags().StringVar(&w.scopes, "scopes", "tasks:read,tasks:write", "what the worker may do")
	cmd.Flags().IntVar(&w.calls, "calls-per-minute", 0, fmt.Sprintf("calls that a client may make in a minute (default %d, or %d where it may only read)", callsPerMinute, callsPerMinuteReading))
	cmd.Flags().StringVar(&w.http, "http", "", "serve on this loopback `ADDRESS` instead of stdio")
	return cmd
}

// serveMCP serves until the agent closes stdin. Every reason not to start is an
// error of usage, so that the agent reports the server as failed.
func serveMCP(ctx context.Context, a *app, names string) error {
	s, err := mcpserver.Env(os.Getenv)
	if err != nil {
		return usage(err)
	}
	options := mcpserver.Options{Version: version()}
	switch names {
	case "", "dotted":
	case "underscore":
		options.Underscore = true
	default:
		return usage(fieldError("--tool-names", names, "dotted", "underscore"))
	}
	path, err := filepath.Abs(s.DBPath)
	if err != nil {
		return usage(err)
	}
	db, err := store.Open(ctx, path, store.Options{MustExist: true})
	if err != nil {
		return usage(err)
	}
	defer db.Close()
	if err := db.View(ctx, func(tx *store.Tx) error { return tx.CheckSession(s.TaskID, s.SessionID) }); err != nil {
		return usage(err)
	}
	options.Say = func(ctx context.Context, p signals.Payload) (int64, error) {
		return db.Say(ctx, s.TaskID, s.SessionID, s.Author(), s.AgentTaskID, p)
	}
	options.SetState = func(ctx context.Context, c mcpserver.StateChange) (reply mcpserver.StateReply, err error) {
		session := s.SessionID
		if c.SessionID != "" && c.SessionID != session {
			return reply, otherSession(ctx, db, c.SessionID, session)
		}
		err = db.Tx(ctx, func(tx *store.Tx) error {
			previous, err := tx.ReportState(session, c.State, c.Metadata)
			reply = mcpserver.StateReply{Success: true, PreviousState: previous, NewState: c.State, TransitionedAt: tx.Now()}
			return err
		})
		return reply, err
	}
	own := func(id int64) error {
		if id != s.TaskID {
			return fmt.Errorf("TASK-%d is not the task that you work on, which is TASK-%d: %w", id, s.TaskID, ralph.ErrConflict)
		}
		return nil
	}
	me := speaker{s.SessionID, s.Author()}
	options.Comment = func(ctx context.Context, c mcpserver.CommentCall) (id int64, err error) {
		err = db.Tx(ctx, func(tx *store.Tx) error {
			if err := errors.Join(own(int64(c.TaskID)), tx.CheckSession(s.TaskID, s.SessionID)); err != nil {
				return err
			}
			id, err = me.comment(tx, c)
			return err
		})
		return id, err
	}
	options.Propose = func(ctx context.Context, c mcpserver.AmendmentCall) (id int64, err error) {
		err = db.Tx(ctx, func(tx *store.Tx) error {
			if err := errors.Join(own(int64(c.TaskID)), tx.CheckSession(s.TaskID, s.SessionID)); err != nil {
				return err
			}
			id, err = me.propose(tx, c)
			return err
		})
		return id, err
	}
	if options.Permit, err = permitter(db, s.TaskID, s.SessionID, os.Getenv(permissionsVariable)); err != nil {
		return usage(err)
	}
	return mcpserver.Serve(ctx, mcpserver.New(options), os.Stdin, os.Stdout)
}

// A speaker is the agent on whose behalf a server adds to the discussion.
type speaker struct {
	session string // "" if it holds no task
	author  string
}

func (s speaker) comment(tx *store.Tx, c mcpserver.CommentCall) (int64, error) {
	return tx.AddComment(ralph.Comment{
		TaskID: int64(c.TaskID), SessionID: s.session, Author: s.author, AuthorKind: ralph.ByAgent, Kind: c.Kind, Body: c.Body, Rationale: c.Rationale, ParentID: c.Parent,
	})
}

func (s speaker) propose(tx *store.Tx, c mcpserver.AmendmentCall) (int64, error) {
	patch, err := ralph.ParsePatch(c.Patch)
	if err != nil {
		return 0, err
	}
	return tx.Propose(ralph.Amendment{TaskID: int64(c.TaskID), SessionID: s.session, Author: s.author, AuthorKind: ralph.ByAgent, Patch: patch, Rationale: c.Rationale})
}

// otherSession says why the state of another session cannot be reported.
func otherSession(ctx context.Context, db *store.DB, id, own string) error {
	if err := db.View(ctx, func(tx *store.Tx) error { return tx.OpenSession(id) }); err != nil {
		return err
	}
	return fmt.Errorf("session %s is not the one that this server serves (%s); leave sessionId out", id, own)
}
