package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ralph"
	"ralph/internal/files"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/agent/claude"
	"ralph/store"
)

// MirrorFile is the name of the mirror of people's sessions, in ralph's folder.
const MirrorFile = "session.json"

// Chats serves the chats that people run with their own clients in one project.
type Chats struct {
	Store *store.DB
	Loop  *loop.Loop // nil if the server only reads
	Root  string     // root of the project
	State string     // the project's state folder
	File  string     // session.json

	CheckpointAt int    // percentage of a context from which ralph recommends a new chat
	Addr         string // address of the background server
	Version      string // version of ralph
	Person       string // owner of these chats
	Environ      []string
	Getenv       func(name string) string
	Warn         io.Writer // receives problems that stop nothing
	// Merge begins to merge the queue if no run does.
	Merge func(ctx context.Context) error
}

// A ChatTask is a person's task as chats see it.
type ChatTask struct {
	ID         string       `json:"id"` // "TASK-12"
	Title      string       `json:"title"`
	Status     ralph.Status `json:"status"`
	SpecRefs   []string     `json:"specRefs"` // existing project files that its description names
	Acceptance []string     `json:"acceptance"`
}

// A ChatSession is a person's session as session.json and chats show it.
type ChatSession struct {
	Task      ChatTask        `json:"task"`
	SessionID string          `json:"sessionId"`
	Person    string          `json:"person"`
	State     ralph.Phase     `json:"state"` // "done" or "failed" once it has ended
	ClaimedAt ralph.Time      `json:"claimedAt"`
	Branch    string          `json:"branch"`
	Dir       string          `json:"dir"`
	Progress  *ralph.Progress `json:"progress"`
	Tokens    ContextUse      `json:"tokens"`
}

// A Mirror is the content of session.json: people's sessions as the
// database has them. Nothing reads it back.
type Mirror struct {
	ActiveTask *ChatTask       `json:"activeTask"` // the task claimed last; null if none
	ClaimedAt  ralph.Time      `json:"claimedAt"`
	Branch     string          `json:"branch"`
	MCPEnabled bool            `json:"mcpEnabled"` // the tools are available
	Progress   *ralph.Progress `json:"progress"`
	Tokens     *ContextUse     `json:"tokens"`
	Sessions   []ChatSession   `json:"sessions"` // the open sessions, the last claimed one first
}

// ReadMirror returns the content for session.json.
func (c *Chats) ReadMirror(tx *store.Tx) (m Mirror, err error) {
	claims, err := tx.ClaimsOfPeople()
	if err != nil {
		return m, err
	}
	m.MCPEnabled, m.Sessions = c.Registered() || c.Server() != nil, []ChatSession{}
	for _, s := range claims {
		session, err := c.session(tx, s)
		if err != nil {
			return m, err
		}
		m.Sessions = append(m.Sessions, session)
	}
	shown := m.Sessions
	if len(shown) == 0 {
		// The last completed task is shown until something else is claimed.
		last, ok, err := tx.LastOfPeople()
		if err != nil || !ok || last.Outcome != ralph.OutcomeSuccess {
			return m, err
		}
		session, err := c.session(tx, last)
		if err != nil {
			return m, err
		}
		shown = []ChatSession{session}
	}
	s := shown[0]
	m.ActiveTask, m.ClaimedAt, m.Branch, m.Progress, m.Tokens = &s.Task, s.ClaimedAt, s.Branch, s.Progress, &s.Tokens
	return m, nil
}

// WriteMirror updates session.json. The file is for people and scripts, so
// a failure is only a warning.
func (c *Chats) WriteMirror() {
	err := c.Store.View(context.Background(), func(tx *store.Tx) error {
		m, err := c.ReadMirror(tx)
		if err != nil {
			return err
		}
		b, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			return err
		}
		return files.Write(c.File, append(b, '\n'), 0o600)
	})
	if err != nil {
		fmt.Fprintf(c.Warn, "warning: %s is not up to date: %v\n", c.File, err)
	}
}

func (c *Chats) session(tx *store.Tx, s ralph.Session) (v ChatSession, err error) {
	t, err := tx.Task(s.TaskID)
	if err != nil {
		return v, err
	}
	v = ChatSession{
		Task: newChatTask(t, s.Dir), SessionID: s.ID, Person: s.Worker, State: s.State,
		ClaimedAt: s.StartedAt, Branch: s.Branch, Dir: s.Dir, Progress: s.Progress,
	}
	v.Tokens, err = c.ContextOf(tx, s, c.See(s))
	return v, err
}

func newChatTask(t ralph.Task, dir string) ChatTask {
	c := ChatTask{
		ID: fmt.Sprintf("TASK-%d", t.ID), Title: t.Title, Status: t.Status,
		SpecRefs: []string{}, Acceptance: append([]string{}, t.Acceptance...),
	}
	for _, f := range ralph.NamedFiles(t.Description) {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f))); err == nil {
			c.SpecRefs = append(c.SpecRefs, f)
		}
	}
	return c
}

// A TokenStatus is the answer of agentic_get_token_status.
type TokenStatus struct {
	Task      string `json:"task"`
	SessionID string `json:"session_id"`
	ContextUse
}

// A ContextUse is the fill of the context of a session's model.
type ContextUse struct {
	Used    *int64   `json:"used"` // tokens; null if unknown
	Limit   *int64   `json:"limit"`
	Percent *float64 `json:"percent"`
	// Source is "transcript" for a chat, "stream" for a session of the loop,
	// "reported" if the chat reported it, or "unknown".
	Source string `json:"source"`
	Model  string `json:"model"`
	Advice string `json:"advice"`
}

// longContext is the size of a model's large context. It is assumed if more than the default size was used, and the
// real size is unknown.
const longContext = 1_000_000

// A Seen is the state of a session's context window according to its transcript. It is read before a write
// transaction, which others wait for.
type Seen struct {
	use    claude.Use
	ok     bool // the transcript has a value
	source string
	err    error // why it cannot be read
}

// See reads a session's transcript.
func (c *Chats) See(s ralph.Session) (seen Seen) {
	path := filepath.Join(c.State, "sessions", s.ID, agent.TranscriptFile)
	seen.source = "stream"
	if s.Origin == ralph.FromHuman {
		path, seen.source = claude.ChatIn(s.Dir, s.StartedAt.Time, c.Getenv), "transcript"
	}
	if seen.use, seen.ok, seen.err = claude.LastUse(path); seen.err != nil {
		seen.err = fmt.Errorf("transcript %s: %w", path, seen.err)
	}
	return seen
}

// ContextOf finds the fill of the context of a session's model.
func (c *Chats) ContextOf(tx *store.Tx, s ralph.Session, seen Seen) (u ContextUse, err error) {
	u.Source, u.Advice = "unknown", "ralph cannot see how full the context is; watch it in the client"
	var used, limit int64
	switch {
	case seen.err != nil:
		return u, seen.err
	case seen.ok:
		windows, err := tx.ContextWindows()
		if err != nil {
			return u, err
		}
		used, limit = seen.use.Tokens, windows[seen.use.Model]
		u.Source, u.Model = seen.source, seen.use.Model
	default:
		if used, limit, err = reportedContext(tx, s); err != nil || used == 0 {
			return u, err
		}
		u.Source = "reported"
	}
	if limit <= 0 {
		limit = ralph.DefaultContextWindow
	}
	if used > limit && limit < longContext {
		limit = longContext
	}
	percent := float64(used*1000/limit) / 10
	u.Used, u.Limit, u.Percent = &used, &limit, &percent
	u.Advice = "go on"
	if at := c.CheckpointAt; percent >= float64(at) {
		u.Advice = fmt.Sprintf("the context is more than %d %% full: call agentic_create_checkpoint with the finished work "+
			"and the rest, then go on in a new chat", at)
	}
	return u, nil
}

// reportedContext returns a chat's last report of its context, with its progress or with a checkpoint; 0 if there is
// none.
func reportedContext(tx *store.Tx, s ralph.Session) (used, limit int64, err error) {
	var at ralph.Time
	if p := s.Progress; p != nil {
		used, limit, at = p.TokensUsed, p.TokensLimit, p.Timestamp
	}
	list, err := tx.Checkpoints(s.ID)
	for _, k := range list { // the oldest first
		if k.TokensUsed > 0 && (used == 0 || !k.Created.Before(at.Time)) {
			used, limit = k.TokensUsed, k.TokensLimit
		}
	}
	return used, limit, err
}

// autoCheckpoint stores a checkpoint of a person's session once its context has the configured fill (human, "MCP tools
// of this profile").
func (c *Chats) autoCheckpoint(tx *store.Tx, s ralph.Session, seen Seen) error {
	at := c.Loop.Session.CheckpointAt
	if at == 0 {
		return nil
	}
	u, err := c.ContextOf(tx, s, seen)
	if err != nil || u.Percent == nil || *u.Percent < float64(at) {
		return err
	}
	list, err := tx.Checkpoints(s.ID)
	if err != nil {
		return err
	}
	made := ralph.Checkpoint{
		SessionID: s.ID, Source: ralph.CheckpointLimit, TokensUsed: *u.Used, TokensLimit: *u.Limit,
	}
	for _, k := range list {
		if k.Source == ralph.CheckpointLimit {
			return nil
		}
		made.Completed, made.Remaining, made.Iteration = k.Completed, k.Remaining, k.Iteration
	}
	if s.Progress != nil {
		made.Iteration, made.Note = s.Progress.Iteration, s.Progress.Notes
	}
	_, err = tx.AddCheckpoint(made)
	return err
}
