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

// taskID is a task's number, also as "12", "#12" or "TASK-12".
type taskID int64

// UnmarshalJSON takes a number or a text.
func (t *taskID) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil // as if it were left out
	}
	id, err := ralph.ParseTaskID(strings.Trim(string(b), `"`))
	*t = taskID(id)
	return err
}

// onTask is the input of tools that need no more than a task, 0 if it is left out.
type onTask struct {
	TaskID taskID `json:"task_id"`
}

// A discussion is how agents and people speak about tasks (discussion, "MCP tools").
type discussion interface {
	// resolve settles a comment of an agent's; people's are theirs to settle.
	resolve(ctx context.Context, comment int64, decision string) error
	comments(ctx context.Context, task int64, kind ralph.CommentKind, openOnly bool) ([]ralph.Comment, error)
	amendments(ctx context.Context, task int64) ([]ralph.Amendment, error)
}

// addDiscussion serves the tools by which agents discuss a task; nil leaves one out.
func addDiscussion(server *mcp.Server, comment func(context.Context, CommentCall) (int64, error),
	propose func(context.Context, AmendmentCall) (int64, error),
) {
	if comment != nil {
		serve(server, "comment_on_task", spoken, func(
			ctx context.Context, _ *mcp.CallToolRequest, c CommentCall,
		) (any, error) {
			id, err := comment(ctx, c)
			return fmt.Sprintf("Recorded comment %d on TASK-%d.", id, c.TaskID), err
		})
	}
	if propose != nil {
		serve(server, "propose_task_amendment", spoken,
			func(ctx context.Context, _ *mcp.CallToolRequest, c AmendmentCall) (any, error) {
				id, err := propose(ctx, c)
				return fmt.Sprintf("Proposed amendment %d of TASK-%d; a person decides.", id, c.TaskID), err
			})
	}
}

// addReading serves the tools that settle and list what is discussed.
func addReading(server *mcp.Server, d discussion) {
	type settling struct {
		CommentID int64  `json:"comment_id"`
		Decision  string `json:"decision"`
	}
	serve(server, "resolve_comment", spoken, func(ctx context.Context, _ *mcp.CallToolRequest, in settling) (any, error) {
		return fmt.Sprintf("Resolved comment %d.", in.CommentID), d.resolve(ctx, in.CommentID, in.Decision)
	})
	type reading struct {
		TaskID   taskID            `json:"task_id"`
		Kind     ralph.CommentKind `json:"kind"`
		OpenOnly bool              `json:"open_only"`
	}
	serve(server, "list_task_comments", listed, func(
		ctx context.Context, _ *mcp.CallToolRequest, in reading,
	) (any, error) {
		list, err := d.comments(ctx, int64(in.TaskID), in.Kind, in.OpenOnly)
		return append([]ralph.Comment{}, list...), err
	})
	serve(server, "list_pending_amendments", listed, func(
		ctx context.Context, _ *mcp.CallToolRequest, in onTask,
	) (any, error) {
		list, err := d.amendments(ctx, int64(in.TaskID))
		return append([]ralph.Amendment{}, list...), err
	})
}

// A speaker is the agent on whose behalf a server adds to the discussion.
type speaker struct {
	session string // "" if it holds no task
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

// commentsOf lists what was said on a task.
func commentsOf(
	ctx context.Context, db *store.DB, task int64, kind ralph.CommentKind, openOnly bool,
) (list []ralph.Comment, err error) {
	err = db.View(ctx, func(tx *store.Tx) error {
		if _, err := tx.Task(task); err != nil {
			return err
		}
		list, err = tx.Timeline(task, store.CommentFilter{Open: openOnly})
		list = slices.DeleteFunc(list, func(c ralph.Comment) bool { return kind != "" && c.Kind != kind })
		return err
	})
	return list, err
}

// proposedFor lists the changes of a task that wait for a person; 0 is of all tasks.
func proposedFor(ctx context.Context, db *store.DB, task int64) (list []ralph.Amendment, err error) {
	err = db.View(ctx, func(tx *store.Tx) error {
		if err := tx.CheckTask(task); err != nil {
			return err
		}
		list, err = tx.Amendments(store.AmendmentFilter{Task: task, Status: ralph.AmendmentProposed})
		return err
	})
	return list, err
}
