package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/follow"
	"ralph/internal/project"
	"ralph/mcpserver"
	"ralph/store"
)

// newChat is for people with their own chat on a task.
func newChat(a *app) *cobra.Command {
	return noun("chat", newChatClaim(a), newChatComplete(a), newChatRelease(a), newChatInfo(a), newChatWatch(a),
		newChatCheckpoint(a), newChatStart(a), newChatStop(a))
}

func newChatInfo(a *app) *cobra.Command {
	var tokens bool
	cmd := newCommand("info", func(cmd *cobra.Command, _ []string) error {
		if tokens {
			return a.sayTokens(cmd.Context())
		}
		var v mcpserver.Info
		err := a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
			chats := a.chats(p, db, nil)
			v.Server, v.Registered, v.File = chats.Server(), chats.Registered(), chats.File
			return db.View(cmd.Context(), func(tx *store.Tx) (err error) { v.Mirror, err = chats.ReadMirror(tx); return err })
		})
		if err != nil {
			return err
		}
		return a.print(v, v.Write)
	})
	cmd.Flags().BoolVar(&tokens, "tokens", false, "only the tokens of each open session, and how full its context is")
	return cmd
}

func newChatStart(a *app) *cobra.Command {
	return newCommand("start", func(cmd *cobra.Command, _ []string) error {
		return a.begin(cmd.Context(), func(p *project.Project, db *store.DB) error {
			chats := a.chats(p, db, nil)
			s, err := chats.Start(cmd.Context())
			if err != nil {
				return err
			}
			chats.WriteMirror()
			where := "the one in RALPH_MCP_TOKEN"
			if s.TokenFile != "" {
				where = "the one in " + s.TokenFile
			}
			return a.say(s, "MCP server on %s (process %d)\n"+
				"clients send it the header Authorization: Bearer TOKEN, where TOKEN is %s", s.URL, s.PID, where)
		})
	})
}

func newChatStop(a *app) *cobra.Command {
	return newCommand("stop", func(cmd *cobra.Command, _ []string) error {
		return a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
			chats := a.chats(p, db, nil)
			stopped, err := chats.Stop(cmd.Context())
			if err != nil {
				return err
			}
			chats.WriteMirror()
			said := "no MCP server was running"
			if stopped {
				said = "the MCP server is stopped"
			}
			return a.say(map[string]bool{"stopped": stopped}, "%s", said)
		})
	})
}

func taskList(ids []int64) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = fmt.Sprintf("TASK-%d", id)
	}
	return strings.Join(names, ", ")
}

func newChatWatch(a *app) *cobra.Command {
	return newCommand("watch [TASK]", func(cmd *cobra.Command, args []string) (err error) {
		w := follow.Chats{Out: a.out, JSON: a.json}
		if w.Task, err = optionalTask(append(args, "")[0]); err != nil {
			return err
		}
		return a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			w.Store = db
			chats := a.chats(p, db, nil)
			w.Context = func(tx *store.Tx, s ralph.Session) (*float64, error) {
				used, err := chats.ContextOf(tx, s, chats.See(s))
				return used.Percent, err
			}
			return w.Follow(ctx)
		})
	})
}
