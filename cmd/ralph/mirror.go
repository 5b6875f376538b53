package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"ralph"
	"ralph/loop"
	"ralph/loop/agent/claude"
	"ralph/store"
)

// A chatTask is the task that a person works on, for a chat.
type chatTask struct {
	ID         string       `json:"id"` // "TASK-12"
	Title      string       `json:"title"`
	Status     ralph.Status `json:"status"`
	SpecRefs   []string     `json:"specRefs"` // files of the project that its description names
	Acceptance []string     `json:"acceptance"`
}

// A chatSession is one person's session, in session.json and for a chat.
type chatSession struct {
	Task      chatTask        `json:"task"`
	SessionID string          `json:"sessionId"`
	Person    string          `json:"person"`
	State     ralph.Phase     `json:"state"` // "done" or "failed" once it has ended
	ClaimedAt ralph.Time      `json:"claimedAt"`
	Branch    string          `json:"branch"`
	Dir       string          `json:"dir"`
	Progress  *ralph.Progress `json:"progress"`
	Tokens    contextUse      `json:"tokens"`
}

// A mirror is session.json: what the database knows of people's sessions. Nothing
// reads it back.
type mirror struct {
	ActiveTask *chatTask       `json:"activeTask"` // the one claimed last; null if none is
	ClaimedAt  ralph.Time      `json:"claimedAt"`
	Branch     string          `json:"branch"`
	MCPEnabled bool            `json:"mcpEnabled"` // the tools can be reached
	Progress   *ralph.Progress `json:"progress"`
	Tokens     *contextUse     `json:"tokens"`
	Sessions   []chatSession   `json:"sessions"` // those that are open, the one claimed last first
}

// mirrorPath is where session.json is.
func mirrorPath(p *project) string {
	if file := p.config.MCP.SessionFile; filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(p.state, p.config.MCP.SessionFile)
}

// readMirror says what session.json is to be.
func (a *app) readMirror(tx *store.Tx, p *project) (m mirror, err error) {
	claims, err := tx.ClaimsOfPeople()
	if err != nil {
		return m, err
	}
	m.MCPEnabled, m.Sessions = registered(p) || serverOf(p) != nil, []chatSession{}
	for _, s := range claims {
		c, err := a.chatSession(tx, p, s)
		if err != nil {
			return m, err
		}
		m.Sessions = append(m.Sessions, c)
	}
	shown := m.Sessions
	if len(shown) == 0 {
		// What was completed last stays to be seen until something else is claimed.
		last, ok, err := tx.LastOfPeople()
		if err != nil || !ok || last.Outcome != ralph.OutcomeSuccess {
			return m, err
		}
		c, err := a.chatSession(tx, p, last)
		if err != nil {
			return m, err
		}
		shown = []chatSession{c}
	}
	s := shown[0]
	m.ActiveTask, m.ClaimedAt, m.Branch, m.Progress, m.Tokens = &s.Task, s.ClaimedAt, s.Branch, s.Progress, &s.Tokens
	return m, nil
}

// writeMirror brings session.json up to date. It is for people and scripts, so that
// a failure is no more than worth a word.
func (a *app) writeMirror(p *project, db *store.DB) {
	err := db.View(context.Background(), func(tx *store.Tx) error {
		m, err := a.readMirror(tx, p)
		if err != nil {
			return err
		}
		b, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			return err
		}
		return writeWhole(mirrorPath(p), append(b, '\n'), 0o600)
	})
	if err != nil {
		fmt.Fprintf(a.err, "warning: %s is not up to date: %v\n", mirrorPath(p), err)
	}
}

func (a *app) chatSession(tx *store.Tx, p *project, s ralph.Session) (c chatSession, err error) {
	t, err := tx.Task(s.TaskID)
	if err != nil {
		return c, err
	}
	c = chatSession{
		Task: newChatTask(t, s.Dir), SessionID: s.ID, Person: s.Worker, State: s.State,
		ClaimedAt: s.StartedAt, Branch: s.Branch, Dir: s.Dir, Progress: s.Progress,
	}
	c.Tokens, err = a.contextOf(tx, p, s)
	return c, err
}

func newChatTask(t ralph.Task, dir string) chatTask {
	c := chatTask{ID: fmt.Sprintf("TASK-%d", t.ID), Title: t.Title, Status: t.Status, SpecRefs: []string{}, Acceptance: append([]string{}, t.Acceptance...)}
	for _, f := range ralph.NamedFiles(t.Description) {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f))); err == nil {
			c.SpecRefs = append(c.SpecRefs, f)
		}
	}
	return c
}

// A contextUse is how full the context of a session's model is.
type contextUse struct {
	Used    *int64   `json:"used"` // tokens; null if that is not known
	Limit   *int64   `json:"limit"`
	Percent *float64 `json:"percent"`
	Source  string   `json:"source"` // "transcript" of the chat, "stream" of a session of the loop, "reported" by the chat, or "unknown"
	Model   string   `json:"model"`
	Advice  string   `json:"advice"`
}

// longContext is the size of a model's large context: what has been used is then
// more than the usual one holds, and nobody has told how much there is.
const longContext = 1_000_000

// contextOf finds how full the context of a session's model is.
func (a *app) contextOf(tx *store.Tx, p *project, s ralph.Session) (u contextUse, err error) {
	u.Source, u.Advice = "unknown", "ralph cannot see how full the context is; watch it in the client"
	path, source := filepath.Join(p.state, "sessions", s.ID, claude.TranscriptFile), "stream"
	if s.Origin == ralph.FromHuman {
		home := a.getenv("HOME")
		path, source = claude.OfChat(a.getenv("CLAUDE_CONFIG_DIR"), home, s.Dir, s.StartedAt.Time), "transcript"
	}
	var used, limit int64
	use, ok, err := claude.LastUse(path)
	switch {
	case err != nil:
		return u, fmt.Errorf("transcript %s: %w", path, err)
	case ok:
		windows, err := tx.ContextWindows()
		if err != nil {
			return u, err
		}
		used, limit = use.Tokens, windows[use.Model]
		u.Source, u.Model = source, use.Model
	case s.Progress != nil && s.Progress.TokensUsed > 0:
		used, limit, u.Source = s.Progress.TokensUsed, s.Progress.TokensLimit, "reported"
	default:
		return u, nil
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
	if at := p.config.Session.CheckpointAt; percent >= float64(at) {
		u.Advice = fmt.Sprintf("the context is more than %d %% full: call agentic_create_checkpoint with what is done and what remains, then go on in a new chat", at)
	}
	return u, nil
}

// autoCheckpoint keeps where a person's session stands once its context is as full
// as the configuration says (human, "MCP tools of this profile").
func (a *app) autoCheckpoint(tx *store.Tx, p *project, l *loop.Loop, s ralph.Session) error {
	if l.Session.CheckpointAt == 0 {
		return nil
	}
	u, err := a.contextOf(tx, p, s)
	if err != nil || u.Percent == nil || *u.Percent < float64(l.Session.CheckpointAt) {
		return err
	}
	list, err := tx.Checkpoints(s.ID)
	if err != nil {
		return err
	}
	c := ralph.Checkpoint{SessionID: s.ID, Source: ralph.CheckpointLimit, TokensUsed: *u.Used, TokensLimit: *u.Limit}
	for _, k := range list {
		if k.Source == ralph.CheckpointLimit {
			return nil
		}
		c.Completed, c.Remaining, c.Iteration = k.Completed, k.Remaining, k.Iteration
	}
	if s.Progress != nil {
		c.Iteration, c.Note = s.Progress.Iteration, s.Progress.Notes
	}
	_, err = tx.AddCheckpoint(c)
	return err
}
