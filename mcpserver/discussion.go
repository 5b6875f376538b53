package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
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

// whichTool tells a model which way of saying something is the right one; in this
// order (discussion, "Which one to use").
const whichTool = "Which one to use, the first that fits: the task is broken or impossible → kind blocker, with the rationale; it should not exist → nack, with the rationale; " +
	"a requirement is unclear → question; you found something useful → note; another task or document belongs here → reference; " +
	"the task's text must change → propose_task_amendment. More than two sentences are usually an amendment."

func textField(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: description}
}

// closed is the schema of an object without other fields.
func closed(required []string, properties map[string]*jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object", Required: required, Properties: properties, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
}

// A discussion is how agents and people speak about tasks (discussion, "MCP tools").
type discussion interface {
	// resolve settles a comment of an agent's; people's are theirs to settle.
	resolve(ctx context.Context, comment int64, decision string) error
	comments(ctx context.Context, task int64, kind ralph.CommentKind, openOnly bool) ([]ralph.Comment, error)
	amendments(ctx context.Context, task int64) ([]ralph.Amendment, error)
}

// addDiscussion serves the tools by which agents discuss a task.
func addDiscussion(server *mcp.Server, o Options) {
	task := &jsonschema.Schema{Types: []string{"integer", "string"}, Description: "The task: 12, #12 or TASK-12."}
	if o.Comment != nil {
		var kinds []any
		for _, k := range ralph.CommentKinds {
			kinds = append(kinds, string(k))
		}
		add(server, "comment_on_task", "Comment on the task that you work on; a person sees it, and later sessions do. An open blocker holds the task back until it is resolved. "+whichTool,
			closed([]string{"task_id", "kind", "body"}, map[string]*jsonschema.Schema{
				"task_id": task, "kind": {Type: "string", Enum: kinds, Description: "What sort of comment it is."},
				"body":              textField("What there is to say."),
				"rationale":         textField("Why; a blocker and a nack need it."),
				"parent_comment_id": {Type: "integer", Description: "The comment that this is a reply to; replies go one level deep."},
			}), func(ctx context.Context, c CommentCall) (string, error) {
				id, err := o.Comment(ctx, c)
				return fmt.Sprintf("Recorded comment %d on TASK-%d.", id, c.TaskID), err
			})
	}
	if o.Propose != nil {
		list := func(what string) *jsonschema.Schema {
			return &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string"}, Description: what + " They replace those that there are."}
		}
		add(server, "propose_task_amendment", "Propose a change of what the task asks for. A person decides; until then the task stays as it is. A newer proposal replaces an older one. "+whichTool,
			closed([]string{"task_id", "patch", "rationale"}, map[string]*jsonschema.Schema{
				"task_id": task, "rationale": textField("Why the task must change."),
				"patch": func() *jsonschema.Schema {
					s := closed(nil, map[string]*jsonschema.Schema{
						"title": textField("A new title, one line."), "description": textField("A new description."),
						"priority":  {Type: "integer", Description: "0 (highest) to 4 (lowest)."},
						"contracts": closed(nil, map[string]*jsonschema.Schema{"acceptance": list("Criteria in words."), "verify": list("Shell commands that must exit 0.")}),
					})
					s.Description = "What is to change; what is left out stays."
					return s
				}(),
			}), func(ctx context.Context, c AmendmentCall) (string, error) {
				id, err := o.Propose(ctx, c)
				return fmt.Sprintf("Proposed amendment %d of TASK-%d; a person decides.", id, c.TaskID), err
			})
	}
}

// add serves a tool whose input is a T. Everything that is wrong with a call is a
// tool error, which the model can read and mend.
func add[T any](server *mcp.Server, name, description string, schema *jsonschema.Schema, call func(context.Context, T) (string, error)) {
	no := false
	server.AddTool(&mcp.Tool{
		Name: name, Description: description, InputSchema: schema, Annotations: &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no},
	}, func(ctx context.Context, req *mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
		defer func() {
			if r := recover(); r != nil {
				result, err = failure(fmt.Errorf("internal error: %v", r)), nil
			}
		}()
		var in T
		if err := arguments(schema, req.Params.Arguments, &in); err != nil {
			return failure(err), nil
		}
		said, err := call(context.WithoutCancel(ctx), in)
		if err != nil {
			return failure(err), nil
		}
		return told(said), nil
	})
}

// addReading serves the tools that settle and list what is discussed.
func addReading(server *mcp.Server, d discussion, task *jsonschema.Schema) {
	add(server, "resolve_comment", "Settle a comment of an agent's, such as a blocker, with what was decided.",
		closed([]string{"comment_id", "decision"}, map[string]*jsonschema.Schema{
			"comment_id": {Type: "integer", Description: "The comment."}, "decision": textField("What was decided."),
		}),
		func(ctx context.Context, in struct {
			CommentID int64  `json:"comment_id"`
			Decision  string `json:"decision"`
		},
		) (string, error) {
			return fmt.Sprintf("Resolved comment %d.", in.CommentID), d.resolve(ctx, in.CommentID, in.Decision)
		})
	var kinds []any
	for _, k := range ralph.CommentKinds {
		kinds = append(kinds, string(k))
	}
	add(server, "list_task_comments", "List what was said on a task, oldest first.",
		closed([]string{"task_id"}, map[string]*jsonschema.Schema{
			"task_id": task, "kind": {Type: "string", Enum: kinds, Description: "Only comments of this kind."},
			"open_only": {Type: "boolean", Description: "Only those that nobody has settled."},
		}),
		func(ctx context.Context, in struct {
			TaskID   taskID            `json:"task_id"`
			Kind     ralph.CommentKind `json:"kind"`
			OpenOnly bool              `json:"open_only"`
		},
		) (string, error) {
			list, err := d.comments(ctx, int64(in.TaskID), in.Kind, in.OpenOnly)
			return asJSON(list, err)
		})
	add(server, "list_pending_amendments", "List the proposed changes of tasks that wait for a person's decision.",
		closed(nil, map[string]*jsonschema.Schema{"task_id": task}),
		func(ctx context.Context, in struct {
			TaskID taskID `json:"task_id"`
		},
		) (string, error) {
			list, err := d.amendments(ctx, int64(in.TaskID))
			return asJSON(list, err)
		})
}

// asJSON is a list as the text of a reply.
func asJSON[T any](list []T, err error) (string, error) {
	if err != nil {
		return "", err
	}
	b, err := json.MarshalIndent(append([]T{}, list...), "", "  ")
	return string(b), err
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
func commentsOf(ctx context.Context, db *store.DB, task int64, kind ralph.CommentKind, openOnly bool) (list []ralph.Comment, err error) {
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
