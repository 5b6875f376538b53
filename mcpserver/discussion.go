package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/store"
)

// Names of the tools for commenting on a task and proposing amendments.
const (
	CommentTool = "comment_on_task"
	AmendTool   = "propose_task_amendment"
)

// A CommentCall is a call of comment_on_task.
type CommentCall struct {
	TaskID    taskID            `json:"task_id"`
	Kind      ralph.CommentKind `json:"kind"`
	Body      string            `json:"body"`
	Rationale string            `json:"rationale"`
	Parent    *int64            `json:"parent_comment_id"`
}

// An AmendmentCall is a call of propose_task_amendment.
type AmendmentCall struct {
	TaskID    taskID          `json:"task_id"`
	Patch     json.RawMessage `json:"patch"`
	Rationale string          `json:"rationale"`
}

// taskID is a task's number; its JSON may also be "12", "#12" or "TASK-12".
type taskID int64

// UnmarshalJSON accepts a number or a text.
func (t *taskID) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil // like an omitted one
	}
	id, err := ralph.ParseTaskID(strings.Trim(string(b), `"`))
	*t = taskID(id)
	return err
}

// An onTask is the input of tools that need only a task; 0 if it is omitted.
type onTask struct {
	TaskID taskID `json:"task_id"`
}

// A discussing adds to a task's discussion on behalf of its speaker.
type discussing func(ctx context.Context, task taskID, add func(tx *store.Tx, me speaker) (int64, error)) (int64, error)

// comment and propose implement Options.Comment and Options.Propose.
func (d discussing) comment(ctx context.Context, c CommentCall) (int64, error) {
	return d(ctx, c.TaskID, func(tx *store.Tx, me speaker) (int64, error) { return me.comment(tx, c) })
}

func (d discussing) propose(ctx context.Context, c AmendmentCall) (int64, error) {
	return d(ctx, c.TaskID, func(tx *store.Tx, me speaker) (int64, error) { return me.propose(tx, c) })
}

// addDiscussion adds the tools for discussing a task; nil omits one.
func addDiscussion(server *mcp.Server, comment func(context.Context, CommentCall) (int64, error),
	propose func(context.Context, AmendmentCall) (int64, error),
) {
	if comment != nil {
		serve(server, CommentTool, spoken, func(ctx context.Context, c CommentCall) (any, error) {
			id, err := comment(ctx, c)
			return fmt.Sprintf("Recorded comment %d on TASK-%d.", id, c.TaskID), err
		})
	}
	if propose != nil {
		serve(server, AmendTool, spoken, func(ctx context.Context, c AmendmentCall) (any, error) {
			id, err := propose(ctx, c)
			return fmt.Sprintf("Proposed amendment %d of TASK-%d; a person decides.", id, c.TaskID), err
		})
	}
}

// addReading adds the tools that list and resolve comments; each calls ready first. resolve only resolves agents'
// comments; people resolve their own.
func addReading(server *mcp.Server, db *store.DB, ready func(context.Context) error,
	resolve func(ctx context.Context, comment int64, decision string) error,
) {
	type resolving struct {
		CommentID int64  `json:"comment_id"`
		Decision  string `json:"decision"`
	}
	serve(server, "resolve_comment", spoken, func(ctx context.Context, in resolving) (any, error) {
		if err := ready(ctx); err != nil {
			return nil, err
		}
		return fmt.Sprintf("Resolved comment %d.", in.CommentID), resolve(ctx, in.CommentID, in.Decision)
	})
	type reading struct {
		TaskID   taskID            `json:"task_id"`
		Kind     ralph.CommentKind `json:"kind"`
		OpenOnly bool              `json:"open_only"`
	}
	serve(server, "list_task_comments", listed, func(ctx context.Context, in reading) (any, error) {
		if err := ready(ctx); err != nil {
			return nil, err
		}
		list, err := store.Read(ctx, db, func(tx *store.Tx) ([]ralph.Comment, error) {
			if _, err := tx.Task(int64(in.TaskID)); err != nil {
				return nil, err
			}
			return tx.Timeline(int64(in.TaskID), store.CommentFilter{Open: in.OpenOnly})
		})
		return slices.DeleteFunc(list, func(c ralph.Comment) bool { return in.Kind != "" && c.Kind != in.Kind }), err
	})
	serve(server, "list_pending_amendments", listed, func(ctx context.Context, in onTask) (any, error) {
		if err := ready(ctx); err != nil {
			return nil, err
		}
		return store.Read(ctx, db, func(tx *store.Tx) ([]ralph.Amendment, error) {
			if err := tx.CheckTask(int64(in.TaskID)); err != nil {
				return nil, err
			}
			return tx.Amendments(store.AmendmentFilter{Task: int64(in.TaskID), Status: ralph.AmendmentProposed})
		})
	})
}

// A speaker is the agent that adds to the discussion.
type speaker struct {
	session string // "" if it has claimed no task
	author  string
}

func (s speaker) comment(tx *store.Tx, c CommentCall) (int64, error) {
	return tx.AddComment(ralph.Comment{
		TaskID: int64(c.TaskID), SessionID: s.session, Author: s.author, AuthorKind: ralph.ByAgent,
		Kind: c.Kind, Body: c.Body, Rationale: c.Rationale, ParentID: c.Parent,
	})
}

func (s speaker) propose(tx *store.Tx, c AmendmentCall) (int64, error) {
	patch, err := ralph.ParsePatch(c.Patch)
	if err != nil {
		return 0, err
	}
	return tx.Propose(ralph.Amendment{
		TaskID: int64(c.TaskID), SessionID: s.session, Author: s.author, AuthorKind: ralph.ByAgent,
		Patch: patch, Rationale: c.Rationale,
	})
}
