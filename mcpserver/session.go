package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// A Session says which session a server serves.
type Session struct {
	TaskID      int64
	SessionID   string
	DBPath      string
	Discipline  string // "" if the task has none
	AgentTaskID string
	Permissions string // the rules by which it may use tools; "" if nobody asks
}

// Author is the name under which the session speaks.
func (s Session) Author() string {
	if s.Discipline == "" {
		return "agent"
	}
	return s.Discipline
}

// Env reads the session from the environment variables RALPH_TASK_ID,
// RALPH_SESSION_ID and RALPH_DB_PATH, and, optionally, RALPH_DISCIPLINE,
// RALPH_AGENT_TASK_ID and RALPH_PERMISSIONS. The error names the variable that is missing or wrong.
func Env(getenv func(string) string) (Session, error) {
	s := Session{
		SessionID: getenv("RALPH_SESSION_ID"), DBPath: getenv("RALPH_DB_PATH"),
		Discipline: getenv("RALPH_DISCIPLINE"), AgentTaskID: getenv("RALPH_AGENT_TASK_ID"),
		Permissions: getenv(permissionsVariable),
	}
	for _, v := range []string{"RALPH_TASK_ID", "RALPH_SESSION_ID", "RALPH_DB_PATH"} {
		if strings.TrimSpace(getenv(v)) == "" {
			return s, fmt.Errorf("the environment variable %s is not set; ralph sets it when it starts the agent", v)
		}
	}
	id, err := strconv.ParseInt(getenv("RALPH_TASK_ID"), 10, 64)
	if err != nil || id <= 0 {
		return s, fmt.Errorf("the environment variable RALPH_TASK_ID is %q, which is no task id", getenv("RALPH_TASK_ID"))
	}
	s.TaskID = id
	return s, nil
}

// NewSession is the server of one session of the loop's. The error says that there is no
// such session, or that the rules of permissions cannot be read.
func NewSession(ctx context.Context, db *store.DB, s Session, o Options) (*mcp.Server, error) {
	if err := db.View(ctx, func(tx *store.Tx) error { return tx.CheckSession(s.TaskID, s.SessionID) }); err != nil {
		return nil, err
	}
	o.Say = func(ctx context.Context, p signals.Payload) (int64, error) {
		return db.Say(ctx, s.TaskID, s.SessionID, s.Author(), s.AgentTaskID, p)
	}
	o.SetState = func(ctx context.Context, c StateChange) (StateReply, error) {
		return setState(ctx, db, s.SessionID, c)
	}
	// own adds to the discussion of the session's own task.
	own := func(ctx context.Context, task taskID, add func(tx *store.Tx) (int64, error)) (id int64, err error) {
		err = db.Tx(ctx, func(tx *store.Tx) error {
			var other error
			if int64(task) != s.TaskID {
				other = fmt.Errorf("TASK-%d is not the task that you work on, which is TASK-%d: %w",
					task, s.TaskID, ralph.ErrConflict)
			}
			if err := errors.Join(other, tx.CheckSession(s.TaskID, s.SessionID)); err != nil {
				return err
			}
			id, err = add(tx)
			return err
		})
		return id, err
	}
	me := speaker{s.SessionID, s.Author()}
	o.Comment = func(ctx context.Context, c CommentCall) (int64, error) {
		return own(ctx, c.TaskID, func(tx *store.Tx) (int64, error) { return me.comment(tx, c) })
	}
	o.Propose = func(ctx context.Context, c AmendmentCall) (int64, error) {
		return own(ctx, c.TaskID, func(tx *store.Tx) (int64, error) { return me.propose(tx, c) })
	}
	if s.Permissions != "" {
		permit, err := permitter(db, s)
		if err != nil {
			return nil, fmt.Errorf("the environment variable %s: %w", permissionsVariable, err)
		}
		o.Permit = permit
	}
	return New(o), nil
}
