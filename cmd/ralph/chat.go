package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/show"
	"ralph/internal/text"
	"ralph/internal/words"
	"ralph/loop"
	"ralph/mcpserver"
	"ralph/store"
)

// newChat is for people who work on a task themselves, with their own chat.
func newChat(a *app) *cobra.Command {
	return noun("chat", newChatClaim(a), newChatComplete(a), newChatRelease(a), newChatInfo(a), newChatWatch(a),
		newChatCheckpoint(a), newChatTokens(a), newChatClear(a), newChatStart(a), newChatStop(a))
}

// sessionInfo is what `chat info` prints.
type sessionInfo struct {
	mcpserver.Mirror
	Server     *mcpserver.Background `json:"server"`     // null if none runs in the background
	Registered bool                  `json:"registered"` // .mcp.json has ralph
	File       string                `json:"session_file"`
}

func newChatInfo(a *app) *cobra.Command {
	return newCommand("info", func(cmd *cobra.Command, _ []string) error {
		var v sessionInfo
		err := a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
			chats := a.chats(p, db, nil)
			v.Server, v.Registered, v.File = chats.Server(), chats.Registered(), chats.File
			return db.View(cmd.Context(), func(tx *store.Tx) (err error) { v.Mirror, err = chats.ReadMirror(tx); return err })
		})
		if err != nil {
			return err
		}
		return a.print(v, func(w io.Writer) { sayInfo(w, v) })
	})
}

func sayInfo(w io.Writer, v sessionInfo) {
	if len(v.Sessions) == 0 {
		fmt.Fprint(w, "no active session")
		if v.ActiveTask != nil {
			fmt.Fprintf(w, "; the last one was on %s, which is %s", v.ActiveTask.ID, v.ActiveTask.Status)
		}
		fmt.Fprintln(w)
	}
	for _, s := range v.Sessions {
		fmt.Fprintf(w, "%s %s\n", s.Task.ID, text.Line(s.Task.Title, 100))
		fmt.Fprintf(w, "  claimed   %s by %s", show.Minute(s.ClaimedAt.Time), s.Person)
		if s.Branch != "" {
			fmt.Fprintf(w, " on branch %s", text.Line(s.Branch, 100))
		}
		fmt.Fprintf(w, "\n  in        %s\n", text.Line(s.Dir, 300))
		if s.Progress != nil {
			fmt.Fprintf(w, "  progress  %s\n", words.Progress(*s.Progress))
		}
		fmt.Fprintf(w, "  context   %s\n", sayUse(s.Tokens))
	}
	switch {
	case v.Server != nil:
		fmt.Fprintf(w, "MCP server on %s (process %d)", v.Server.URL, v.Server.PID)
		if v.Server.TokenFile != "" {
			fmt.Fprintf(w, ", token in %s", v.Server.TokenFile)
		}
		fmt.Fprintln(w)
	case v.Registered:
		fmt.Fprintln(w, "chats start ralph themselves (.mcp.json); no server for URLs runs: `ralph chat start`")
	default:
		fmt.Fprintln(w, "chats cannot reach ralph: `ralph init-mcp`, and for clients that want a URL `ralph chat start`")
	}
	fmt.Fprintf(w, "mirror: %s\n", v.File)
}

// sayUse describes the use of a context in a few words.
func sayUse(u mcpserver.ContextUse) string {
	if u.Used == nil {
		return "not known"
	}
	from := map[string]string{
		"transcript": "chat's transcript", "stream": "agent's stream", "reported": "chat's report",
	}[u.Source]
	return fmt.Sprintf("%d of %d tokens (%.1f %%, from the %s)", *u.Used, *u.Limit, *u.Percent, from)
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

func newChatClear(a *app) *cobra.Command {
	return newCommand("clear [TASK]", func(cmd *cobra.Command, args []string) error {
		only, err := optionalTask(append(args, "")[0])
		if err != nil {
			return err
		}
		return a.withLoop(cmd.Context(), func(p *project.Project, l *loop.Loop) error {
			released, err := a.chats(p, l.Store, l).Clear(cmd.Context(), only, a.person())
			if err != nil {
				return err
			}
			said := "nothing was claimed here"
			if len(released) > 0 {
				said = "released " + taskList(released)
			}
			return a.say(map[string][]int64{"released": released}, "%s", said)
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
		w := chatWatch{app: a}
		if w.task, err = optionalTask(append(args, "")[0]); err != nil {
			return err
		}
		return a.with(cmd.Context(), func(p *project.Project, db *store.DB) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			w.chats, w.every, w.db = a.chats(p, db, nil), p.Config.Session.WatchInterval, db
			return w.follow(ctx)
		})
	})
}

// A chatWatch follows what people's chats report.
type chatWatch struct {
	app     *app
	chats   *mcpserver.Chats
	every   time.Duration // interval of its checks
	db      *store.DB
	task    int64 // 0 for all claimed ones
	after   int64 // the last event seen
	watched map[string]bool
}

func (w *chatWatch) follow(ctx context.Context) error {
	w.watched = map[string]bool{}
	begin := func(tx *store.Tx) (err error) {
		if w.after, err = tx.LastEvent(); err != nil {
			return err
		}
		claims, err := w.claims(tx)
		if err != nil {
			return err
		}
		for _, s := range claims {
			if err := w.introduce(tx, s); err != nil {
				return err
			}
		}
		if len(claims) == 0 {
			return ralph.Conflict("no active session; claim a task with `ralph chat claim`")
		}
		return nil
	}
	changed := w.db.Changed()
	if err := w.db.View(ctx, begin); err != nil {
		return err
	}
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		changed = w.db.Changed()
		over, err := w.look(ctx)
		if err != nil || over {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// claims returns the sessions that are followed.
func (w *chatWatch) claims(tx *store.Tx) ([]ralph.Session, error) {
	if w.task == 0 {
		return tx.ClaimsOfPeople()
	}
	s, err := tx.ClaimOfPerson(w.task)
	return []ralph.Session{s}, err
}

func (w *chatWatch) introduce(tx *store.Tx, s ralph.Session) error {
	w.watched[s.ID] = true
	if w.app.json {
		return nil
	}
	t, err := tx.Task(s.TaskID)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.app.out, "TASK-%d %s, claimed %s by %s\n",
		t.ID, text.Line(t.Title, 100), s.StartedAt.Local().Format("15:04:05"), s.Worker)
	if s.Progress != nil {
		at := s.Progress.Timestamp.Local().Format("15:04:05")
		_, err = fmt.Fprintf(w.app.out, "%s  %s\n", at, words.Progress(*s.Progress))
	}
	return err
}

// look prints new events; over reports that nothing is left to follow.
func (w *chatWatch) look(ctx context.Context) (over bool, err error) {
	for e, err := range w.db.EventsAfter(ctx, w.after) {
		if err != nil {
			return false, err
		}
		w.after = e.ID
		if err := w.db.View(ctx, func(tx *store.Tx) error { return w.show(tx, e) }); err != nil {
			return false, err
		}
	}
	err = w.db.View(ctx, func(tx *store.Tx) error {
		claims, err := tx.ClaimsOfPeople()
		over = true
		for _, s := range claims {
			over = over && w.task != 0 && s.TaskID != w.task
		}
		return err
	})
	return over, err
}

func (w *chatWatch) show(tx *store.Tx, e ralph.Event) error {
	if e.Type == ralph.EventSessionStarted && w.task == 0 {
		s, err := tx.Session(e.SessionID)
		if err != nil || s.Origin != ralph.FromHuman {
			return err
		}
		return w.introduce(tx, s)
	}
	if !w.watched[e.SessionID] {
		return nil
	}
	if w.app.json {
		return json.NewEncoder(text.Escaping(w.app.out)).Encode(e)
	}
	line, err := w.line(tx, e)
	if err != nil || line == "" {
		return err
	}
	if w.task == 0 && len(w.watched) > 1 {
		line = fmt.Sprintf("TASK-%d  %s", e.TaskID, line)
	}
	_, err = fmt.Fprintf(w.app.out, "%s  %s\n", e.Created.Local().Format("15:04:05"), line)
	return err
}

// line formats an event of a chat for people; "" for events that do not matter.
func (w *chatWatch) line(tx *store.Tx, e ralph.Event) (string, error) {
	line := words.Chat(e, time.Now())
	if e.Type != ralph.EventSessionProgress {
		return line, nil
	}
	s, err := tx.Session(e.SessionID)
	if err != nil {
		return "", err
	}
	if u, err := w.chats.ContextOf(tx, s, w.chats.See(s)); err == nil && u.Percent != nil {
		line += fmt.Sprintf("  (context %.0f %% full)", *u.Percent)
	}
	return line, nil
}
