package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/pipe"
	"ralph/internal/project"
	"ralph/loop"
	"ralph/loop/agent/claude"
	"ralph/mcpserver"
	"ralph/store"
)

func newMCP(a *app) *cobra.Command {
	var profile, names, scopes string
	w := mcpserver.WorkerOptions{Version: release, Token: a.getenv(mcpserver.TokenVariable), Tell: a.err}
	cmd := newCommand("mcp", func(cmd *cobra.Command, _ []string) error {
		if err := oneOf("--tool-names", names, "", "dotted", "underscore"); err != nil {
			return err
		}
		if profile == "loop" {
			if socket := a.getenv(pipe.Variable); socket != "" {
				return pipe.Run(cmd.Context(), socket, a.getenv(pipe.Ticket), os.Stdin, os.Stdout)
			}
			return usage(errors.New("the profile loop is served by a run to the agents that it starts; " +
				"for agents that pull work there is --profile worker, for chats --profile chat"))
		}
		err := a.refuseInSession(cmd.Context(), "use the tools that this session was given")
		if err != nil {
			return err
		}
		if err := oneOf("--profile", profile, "loop", "worker", "chat"); err != nil {
			return err
		}
		if profile == "chat" {
			return a.withLoop(cmd.Context(), func(p *project.Project, l *loop.Loop) error {
				return a.chats(p, l.Store, l).Serve(cmd.Context(), w.Address, os.Stdin, os.Stdout)
			})
		}
		w.Scopes, w.Dotted = strings.Split(scopes, ","), names == "dotted"
		return serveWorker(cmd, a, w)
	})
	f := cmd.Flags()
	f.StringVar(&profile, "profile", "loop", "`PROFILE`: loop, worker or chat")
	f.StringVar(&names, "tool-names", "", "the `STYLE` in which the profile worker names signals: "+
		"dotted (ralph.signal.done) or underscore (ralph_signal_done), for clients that refuse dots")
	f.StringVar(&w.Name, "name", "worker", "the worker's `NAME`, under which it signals and comments")
	f.StringVar(&scopes, "scopes", "tasks:read,tasks:write", "rights of the worker: `SCOPES`, separated by commas")
	f.IntVar(&w.PerMinute, "calls-per-minute", 0, fmt.Sprintf("`N` calls that a client may make in a minute "+
		"(default %d, or %d where it may only read)", mcpserver.CallsPerMinute, mcpserver.CallsPerMinuteReading))
	f.StringVar(&w.Address, "http", "", "serve on this loopback `ADDRESS` instead of stdio")
	return cmd
}

func serveWorker(cmd *cobra.Command, a *app, o mcpserver.WorkerOptions) error {
	for _, s := range o.Scopes {
		if err := oneOf("--scopes", s, mcpserver.Scopes...); err != nil {
			return err
		}
	}
	if cmd.Flags().Changed("calls-per-minute") && o.PerMinute <= 0 {
		return usage(&ralph.FieldError{
			Field: fmt.Sprintf("--calls-per-minute %d", o.PerMinute), Problem: "must be a number from 1",
		})
	}
	if err := ralph.CheckTitle("--name", o.Name); err != nil {
		return usage(err)
	}
	return a.begin(cmd.Context(), func(p *project.Project, db *store.DB) error {
		l, err := p.Loop(cmd.Context(), db)
		if err != nil {
			return err
		}
		if err := project.Cloneable(cmd.Context(), l); err != nil {
			return err
		}
		return mcpserver.ServeWorker(cmd.Context(), o, l, os.Stdin, os.Stdout)
	})
}

// registerTools gives chats in the project ralph's tools.
func (a *app) registerTools(ctx context.Context) error {
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	changed, err := mcpserver.Register(p.Root)
	if err != nil {
		return usage(err)
	}
	said := "has ralph's tools already; it was not changed"
	if changed {
		said = "has ralph's tools now; a chat that is open must be restarted"
	}
	path := p.Path(mcpserver.ClientFile)
	return a.say(map[string]any{"file": path, "changed": changed, "allow": claude.AllowTools},
		"%s %s\nClaude Code asks before it uses each of them; with %q in permissions.allow of %s it does not",
		path, said, claude.AllowTools, claude.LocalSettings)
}
