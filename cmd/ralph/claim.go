package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/loop"
	"ralph/loop/session"
	"ralph/mcpserver"
	"ralph/signals"
	"ralph/store"
)

// claimed is what `task claim` prints.
type claimed struct {
	TaskID    int64      `json:"task_id"`
	SessionID string     `json:"session_id"`
	ClaimedAt ralph.Time `json:"claimed_at"`
	Branch    string     `json:"branch"`
	MCP       *mcpServer `json:"mcp"` // null if it was not asked for, or could not be started
	Prompt    string     `json:"prompt"`
}

func newTaskClaim(a *app) *cobra.Command {
	var withMCP bool
	cmd := &cobra.Command{
		Use: "claim ID", Short: "Take a task for yourself, to work on it with a chat",
		Long: `Take a task for yourself. The loop leaves it alone until you complete or release it.
What is printed is ready to paste into a chat: the task, its criteria, and how to use
ralph's tools. --with-mcp makes the tools reachable: it registers them in .mcp.json,
and starts a server on this machine for clients that want a URL (docs/human.md).`,
		Example: "  ralph task claim 12 --with-mcp", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := ralph.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			return a.withLoop(cmd.Context(), func(p *project, l *loop.Loop) error {
				v, err := a.claim(cmd.Context(), p, l, id, withMCP || p.config.MCP.AutoStart)
				if err != nil {
					return err
				}
				return a.print(v, func(w io.Writer) error { return sayClaimed(w, v, registered(p)) })
			})
		},
	}
	cmd.Flags().BoolVar(&withMCP, "with-mcp", false, "make ralph's tools reachable for the chat")
	return cmd
}

// withLoop opens the project for what takes more than its database.
func (a *app) withLoop(ctx context.Context, f func(p *project, l *loop.Loop) error) error {
	return a.with(ctx, func(p *project, db *store.DB) error {
		l, err := newLoop(ctx, a, p, db)
		if err != nil {
			return err
		}
		return f(p, l)
	})
}

// claim takes a task. Whatever goes wrong beside it is a warning: the claim stands.
func (a *app) claim(ctx context.Context, p *project, l *loop.Loop, id int64, withMCP bool) (v claimed, err error) {
	if err := l.Store.View(ctx, func(tx *store.Tx) error {
		t, err := tx.Task(id)
		if err != nil {
			return err
		}
		return tx.Claimable(t)
	}); err != nil {
		return v, err
	}
	if withMCP {
		// Before the work tree is looked at: what ralph writes is not the chat's doing.
		if _, err := registerMCP(p.root); err != nil {
			fmt.Fprintf(a.err, "warning: ralph's tools are not registered: %v\n", err)
		}
	}
	s, text, err := l.ClaimFor(ctx, id, a.person())
	if err != nil {
		return v, err
	}
	v = claimed{TaskID: id, SessionID: s.ID, ClaimedAt: s.StartedAt, Branch: s.Branch, Prompt: text}
	if withMCP {
		if v.MCP, err = a.startMCP(ctx, p); err != nil {
			fmt.Fprintf(a.err, "warning: the server for chats is not started: %v\n", err)
		}
	}
	a.writeMirror(p, l.Store)
	return v, nil
}

func sayClaimed(w io.Writer, v claimed, registered bool) error {
	rule := strings.Repeat("─", 62)
	fmt.Fprintf(w, "Claimed task TASK-%d", v.TaskID)
	if v.Branch != "" {
		fmt.Fprintf(w, " on branch %s", oneLine(v.Branch, 100))
	}
	fmt.Fprintln(w)
	if v.MCP != nil {
		fmt.Fprintf(w, "MCP server started on %s; its token is in %s\n\nTools for the chat:\n", v.MCP.URL, v.MCP.TokenFile)
		for _, t := range mcpserver.HumanTools {
			fmt.Fprintf(w, "  - %s\n", t)
		}
	}
	fmt.Fprintf(w, "\n%s\nCopy this into the chat:\n\n%s%s\n", rule, printable(v.Prompt), rule)
	if v.MCP == nil && !registered {
		fmt.Fprintln(w, "TIP: `ralph init-mcp` gives a chat in this project ralph's tools.")
	}
	_, err := fmt.Fprintf(w, "TIP: follow it with `ralph session watch`; end with `ralph task complete %d` or `ralph task release %d`.\n", v.TaskID, v.TaskID)
	return err
}

func newTaskComplete(a *app) *cobra.Command {
	var c session.Completion
	cmd := &cobra.Command{
		Use: "complete ID", Short: "Complete a task that you have claimed; its verification must pass",
		Long: `Complete a claimed task. ralph runs the verification first: if it fails, the task stays
claimed, and the exit status is 3.`,
		Example: "  ralph task complete 12 --learning \"the parser is in internal/url\"", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := ralph.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			for _, l := range c.Learnings {
				if err := ralph.CheckText("--learning", l, true); err != nil {
					return err
				}
			}
			c.Author = a.person()
			if c.Summary == "" {
				c.Summary = c.Author + " completed it"
			}
			if err := ralph.CheckText("--summary", c.Summary, true); err != nil {
				return err
			}
			return a.withLoop(cmd.Context(), func(p *project, l *loop.Loop) error {
				var s ralph.Session
				if err := l.Store.View(cmd.Context(), func(tx *store.Tx) (err error) { s, err = tx.ClaimOfPerson(id); return err }); err != nil {
					return err
				}
				v, refused, err := a.completeClaim(cmd.Context(), p, l, s, c)
				if err != nil {
					return err
				}
				if refused != "" {
					return &statusError{ralph.ExitFailed, errors.New(strings.TrimRight(printable(refused), "\n"))}
				}
				return a.print(v, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "%s is %s: %s\n%d learnings, %d commits, %d files\n", v.Task, v.Status, oneLine(v.Reason, 400), v.Learnings, len(v.Commits), len(v.Files))
					return err
				})
			})
		},
	}
	cmd.Flags().StringArrayVar(&c.Learnings, "learning", nil, "what helps on other tasks (repeatable)")
	cmd.Flags().StringVar(&c.Summary, "summary", "", "what was done")
	return cmd
}

func newTaskRelease(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "release ID", Short: "Give a task back that you have claimed", Example: "  ralph task release 12", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := ralph.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			return a.withLoop(cmd.Context(), func(p *project, l *loop.Loop) error {
				d, err := a.release(cmd.Context(), p, l, id)
				if err != nil {
					return err
				}
				return a.print(map[string]any{"task_id": id, "status": d.Status, "status_reason": d.StatusReason}, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "TASK-%d is yours no more; it is %s: %s\n", id, d.Status, oneLine(d.StatusReason, 400))
					return err
				})
			})
		},
	}
}

func (a *app) release(ctx context.Context, p *project, l *loop.Loop, id int64) (signals.Decision, error) {
	d, err := l.ReleaseFor(ctx, id, a.person())
	if err == nil {
		a.writeMirror(p, l.Store)
	}
	return d, err
}
