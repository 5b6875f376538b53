package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/text"
	"ralph/loop"
	"ralph/loop/agent/claude"
	"ralph/loop/session"
	"ralph/mcpserver"
	"ralph/store"
)

func newChatClaim(a *app) *cobra.Command {
	var withMCP bool
	cmd := newCommand("claim ID", onTask(func(ctx context.Context, id int64) error {
		return a.withLoop(ctx, func(p *project.Project, l *loop.Loop) error {
			chats := a.chats(p, l.Store, l)
			v, err := chats.Claim(ctx, id, a.person(), withMCP)
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) { sayClaimed(w, v, chats.Registered()) })
		})
	}))
	cmd.Flags().BoolVar(&withMCP, "with-mcp", false, "give the chat ralph's tools")
	return cmd
}

func sayClaimed(w io.Writer, v mcpserver.Claimed, registered bool) {
	rule := strings.Repeat("─", 62)
	fmt.Fprintf(w, "Claimed task TASK-%d", v.TaskID)
	if v.Branch != "" {
		fmt.Fprintf(w, " on branch %s", text.Line(v.Branch, 100))
	}
	fmt.Fprintln(w)
	if v.MCP != nil {
		fmt.Fprintf(w, "MCP server started on %s; its token is in %s\n\nTools for the chat:\n", v.MCP.URL, v.MCP.TokenFile)
		for _, t := range mcpserver.HumanTools {
			fmt.Fprintf(w, "  - %s\n", t)
		}
	}
	how := "Copy this into the chat:"
	if registered {
		how = "In Claude Code type " + claude.ChatPrompt + "; into another chat copy this:"
	}
	fmt.Fprintf(w, "\n%s\n%s\n\n%s%s\n", rule, how, text.Visible(v.Prompt), rule)
	if v.MCP == nil && !registered {
		fmt.Fprintln(w, "TIP: `ralph init --mcp` gives a chat in this project ralph's tools.")
	}
	fmt.Fprintf(w, "TIP: follow it with `ralph chat watch`; "+
		"end with `ralph chat complete %d` or `ralph chat release %d`.\n", v.TaskID, v.TaskID)
}

func newChatComplete(a *app) *cobra.Command {
	var c session.Completion
	cmd := newCommand("complete ID", onTask(func(ctx context.Context, id int64) error {
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
		return a.withLoop(ctx, func(p *project.Project, l *loop.Loop) error {
			var s ralph.Session
			err := l.Store.View(ctx, func(tx *store.Tx) (err error) { s, err = tx.ClaimOfPerson(id); return err })
			if err != nil {
				return err
			}
			v, refused, err := a.chats(p, l.Store, l).CompleteClaim(ctx, s, c)
			if err != nil {
				return err
			}
			if refused != "" {
				return &ralph.ExitError{
					Status: ralph.ExitFailed, Err: errors.New(strings.TrimRight(text.Visible(refused), "\n")),
				}
			}
			return a.say(v, "%s is %s: %s\n%s, %s, %s", v.Task, v.Status, text.Line(v.Reason, 400),
				text.Count(v.Learnings, "learning"), text.Count(len(v.Commits), "commit"), text.Count(len(v.Files), "file"))
		})
	}))
	cmd.Flags().StringArrayVar(&c.Learnings, "learning", nil, "a hint for other tasks, a `TEXT` (repeatable)")
	cmd.Flags().StringVar(&c.Summary, "summary", "", "the finished work, a `TEXT`")
	return cmd
}

func newChatRelease(a *app) *cobra.Command {
	return newCommand("release [ID]", func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		id, err := optionalTask(append(args, "")[0])
		if err != nil {
			return err
		}
		return a.withLoop(ctx, func(p *project.Project, l *loop.Loop) error {
			chats := a.chats(p, l.Store, l)
			if id == 0 {
				released, err := chats.Clear(ctx, 0, a.person())
				if err != nil {
					return err
				}
				said := "nothing was claimed here"
				if len(released) > 0 {
					said = "released " + taskList(released)
				}
				return a.say(map[string][]int64{"released": released}, "%s", said)
			}
			d, err := chats.Release(ctx, id, a.person())
			if err != nil {
				return err
			}
			t := ralph.Task{Status: d.Status, Waits: d.Waits}
			return a.say(map[string]any{"task_id": id, "status": t.Key(), "status_reason": d.StatusReason},
				"TASK-%d is yours no more; it %s: %s",
				id, t.Is(), text.Line(d.StatusReason, 400))
		})
	})
}
