package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"ralph"
	"ralph/store"
)

// claimTries is how often a prompt is rebuilt because somebody edited or
// commented on the task meanwhile. Each try takes milliseconds.
const claimTries = 10

// Open claims the task and records the session before anything is launched, so that
// after a crash the next run finds it. The caller sets the claim's part of start; Open
// fills in the rest. The error wraps [ralph.ErrConflict] if somebody else was faster.
//
// Open first scans the work tree, which takes seconds. Then it reads the prompt
// and the verification, and claims the task only if nobody has changed them since.
func (n Needs) Open(ctx context.Context, start store.Start, task int64) (s *Session, err error) {
	s = &Session{Needs: n, Row: ralph.Session{ID: uuid.NewString(), TaskID: task}}
	folder := s.folder()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("folder of the session's transcript: %w", err)
	}
	defer func() {
		if err != nil { // somebody may have been faster, so there is no session
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	if lock, err := n.Workspace.Tree.Unlock(); err != nil {
		n.Log.Warn("cannot remove git's index lock, which no process holds", "error", err)
	} else if lock != "" {
		n.Log.Warn("removed git's index lock, which a killed git had left behind", "file", lock)
	}
	snapshot, err := n.Workspace.Snapshot(ctx, s.scratch())
	if err != nil {
		return nil, err
	}
	began := snapshot
	if start.Origin == ralph.FromHuman {
		if began, err = n.Workspace.Mark(ctx, ralph.Change{SessionID: s.Row.ID}.Ref()); err != nil {
			return nil, err
		}
	}
	files := n.Workspace.Files()
	start.ID, start.Task, start.Snapshot, start.Dir = s.Row.ID, task, began, n.Workspace.Dir
	start.CostLimitUSD = n.Limits.CostUSD
	if start.Origin == ralph.FromHuman {
		start.Branch = n.Workspace.Tree.Branch(ctx)
	}
	for try := range claimTries {
		basis, err := s.read(ctx, &start)
		if err != nil {
			return nil, fmt.Errorf("prompt of TASK-%d: %w", task, err)
		}
		if err := os.WriteFile(filepath.Join(folder, "prompt.md"), []byte(s.prompt), 0o600); err != nil {
			return nil, err
		}
		stale := false
		err = n.Store.Tx(ctx, func(tx *store.Tx) (err error) {
			if n.Begin != nil {
				if s.Limits.CostUSD, err = n.Begin(tx, try > 0); err != nil {
					return err
				}
				start.CostLimitUSD = s.Limits.CostUSD
			}
			last, err := tx.LastEventOf(task)
			if err != nil {
				return err
			}
			if s.reference, err = hash(tx, task, snapshot, files); err != nil {
				return err
			}
			now := store.Basis{Definitions: s.reference.Definitions, Event: last}
			if stale = now != basis; stale {
				return nil
			}
			start.Hashes = s.reference
			row, err := tx.StartSession(start)
			if err == nil { // else it is tried again, or what has changed meanwhile is read
				s.Row = row
			}
			return err
		})
		if err == nil && !stale {
			err = n.Workspace.Begun(ralph.Change{SessionID: s.Row.ID}.Ref())
		}
		if err != nil || !stale {
			return s, err
		}
	}
	return nil, ralph.Conflict("TASK-%d keeps changing while it is being claimed", task)
}

// read reads the prompt and the verification in one view, and returns the mark that
// detects later changes.
func (s *Session) read(ctx context.Context, start *store.Start) (store.Basis, error) {
	return store.Read(ctx, s.Store, func(tx *store.Tx) (basis store.Basis, err error) {
		if s.Task, err = tx.Task(s.Row.TaskID); err != nil {
			return basis, err
		}
		if basis, err = tx.Basis(s.Task); err != nil {
			return basis, err
		}
		if err := tx.Claimable(s.Task); err != nil {
			return basis, err
		}
		if err := s.prepare(tx); err != nil {
			return basis, err
		}
		if s.Who != nil {
			c, err := s.Who(tx, s.Task)
			if err != nil {
				return basis, err
			}
			s.Agent, start.Agent, start.Model = c.Agent, c.Name, c.Model
		}
		s.prompt, err = s.Prompt(tx, s.Task, s.Agent)
		return basis, err
	})
}
