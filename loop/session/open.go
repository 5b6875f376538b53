package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"ralph"
	"ralph/loop/order"
	"ralph/loop/workspace"
	"ralph/store"
)

// Open prepares a session on a task: it makes its folder and scans the work tree, which takes seconds. Start names
// the claimant. The caller then claims the task with [Session.Claim], and calls [Session.Begun].
func (p Parts) Open(ctx context.Context, at *workspace.Workspace, start store.Start, task int64) (*Session, error) {
	s := &Session{
		Parts: p, Place: Place{Workspace: at}, Row: ralph.Session{ID: uuid.NewString(), TaskID: task}, start: start,
	}
	if err := os.MkdirAll(s.folder(), 0o700); err != nil {
		return nil, fmt.Errorf("folder of the session's transcript: %w", err)
	}
	if err := s.scan(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.folder()))
	}
	return s, nil
}

// scan records the state of the session's workspace.
func (s *Session) scan(ctx context.Context) (err error) {
	ws := s.Workspace
	if lock, err := ws.Tree.Unlock(); err != nil {
		s.Log.Warn("cannot remove git's index lock, which no process holds", "error", err)
	} else if lock != "" {
		s.Log.Warn("removed git's index lock, which a killed git had left behind", "file", lock)
	}
	s.start.ID, s.start.Task, s.start.Dir = s.Row.ID, s.Row.TaskID, ws.Dir
	snapshot, err := ws.Snapshot(ctx, s.scratch())
	if err != nil {
		return err
	}
	s.reference.Head, s.reference.WorkTree = snapshot.Head, snapshot.Content
	s.reference.Files, s.start.Snapshot = ws.Files(), snapshot
	if s.start.Origin == ralph.FromHuman {
		s.start.Branch = ws.Tree.Branch(ctx)
		s.start.Snapshot, err = ws.Mark(ctx, ralph.Change{SessionID: s.Row.ID}.Ref())
	}
	return err
}

// Claim claims the task and records the session with its order, in one transaction, before anything starts: after a
// crash the next run finds it. The error wraps [ralph.ErrConflict] if another process was faster.
func (s *Session) Claim(tx *store.Tx, t ralph.Task, o order.Order) (err error) {
	s.Task, s.Order = t, o
	if s.reference.Definitions, err = tx.Definitions(t.ID); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.folder(), "prompt.md"), []byte(o.Prompt), 0o600); err != nil {
		return err
	}
	s.start.Agent, s.start.Model, s.start.CostLimitUSD, s.start.Hashes = o.Name, o.Model, o.Limits.CostUSD, s.reference
	row, err := tx.StartSession(s.start)
	if err == nil { // otherwise it may be retried
		s.Row = row
	}
	return err
}

// Begun ends the opening of a session. An error means that the claim failed, and that there is no session.
func (s *Session) Begun(err error) error {
	if err == nil {
		err = s.Workspace.Begun(ralph.Change{SessionID: s.Row.ID}.Ref())
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(s.folder()))
	}
	return err
}
