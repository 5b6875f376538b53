package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// Claimed is a task that a person has claimed, with data for the chat.
type Claimed struct {
	TaskID    int64       `json:"task_id"`
	SessionID string      `json:"session_id"`
	ClaimedAt ralph.Time  `json:"claimed_at"`
	Branch    string      `json:"branch"`
	MCP       *Background `json:"mcp"` // null if not requested, or if it could not be started
	Prompt    string      `json:"prompt"`
}

// Claim claims a task for a person. If tools is set, it also makes ralph's tools
// available to the chat. Failures apart from the claim itself are only warnings.
func (c *Chats) Claim(ctx context.Context, id int64, person string, tools bool) (v Claimed, err error) {
	if err := c.Loop.Lapse(ctx); err != nil { // the task may belong to a worker that is gone
		return v, err
	}
	err = c.Store.View(ctx, func(tx *store.Tx) error {
		t, err := tx.Task(id)
		if err != nil {
			return err
		}
		return tx.Claimable(t)
	})
	if err != nil {
		return v, err
	}
	if tools {
		// This comes before the scan of the work tree, so that the change does not count as the chat's.
		if _, err := Register(c.Root); err != nil {
			fmt.Fprintf(c.Warn, "warning: ralph's tools are not registered: %v\n", err)
		}
	}
	s, prompt, err := c.Loop.ClaimFor(ctx, id, person)
	if err != nil {
		return v, err
	}
	v = Claimed{TaskID: id, SessionID: s.ID, ClaimedAt: s.StartedAt, Branch: s.Branch, Prompt: prompt}
	if tools {
		if v.MCP, err = c.Start(ctx); err != nil {
			fmt.Fprintf(c.Warn, "warning: the server for chats is not started: %v\n", err)
		}
	}
	c.WriteMirror()
	return v, nil
}

// Release gives a claimed task back.
func (c *Chats) Release(ctx context.Context, id int64, person string) (signals.Decision, error) {
	d, err := c.Loop.Sessions().ReleaseFor(ctx, id, person)
	if err == nil {
		c.WriteMirror()
	}
	return d, err
}

// Clear releases the tasks claimed in this work tree, or only one task. It
// removes session.json if nothing is claimed elsewhere.
func (c *Chats) Clear(ctx context.Context, only int64, person string) (released []int64, err error) {
	released = []int64{}
	var claims []ralph.Session
	err = c.Store.View(ctx, func(tx *store.Tx) (err error) {
		if only != 0 {
			s, err := tx.ClaimOfPerson(only)
			claims = []ralph.Session{s}
			return err
		}
		claims, err = tx.ClaimsOfPeople()
		return err
	})
	if err != nil {
		return nil, err
	}
	left := 0
	for _, s := range claims {
		if only == 0 && s.Dir != c.Root {
			left++
			continue
		}
		if _, err := c.Release(ctx, s.TaskID, person); err != nil {
			return released, err
		}
		released = append(released, s.TaskID)
	}
	if left > 0 || only != 0 {
		return released, nil
	}
	if err := os.Remove(c.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return released, err
	}
	return released, nil
}
