package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"ralph"
	"ralph/store"
)

// claimTries is how often a prompt is built anew because somebody had a word on the
// task while it was. Each takes milliseconds.
const claimTries = 10

// Open claims the task and records the session, before anything is launched: a
// crash from here on leaves a session that the next run finds. What start says of
// the claim is given; the rest of it is filled in. The error wraps
// [ralph.ErrConflict] if somebody else was faster.
//
// The work tree, which takes seconds, is looked at first. What the agent is told and
// how its done is checked is read after that, and only claimed with if nobody has
// changed it since.
func (n Needs) Open(ctx context.Context, start store.Start, task int64) (s *Session, err error) {
	s = &Session{Needs: n, Row: ralph.Session{ID: uuid.NewString(), TaskID: task}}
	folder := s.folder()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("folder of the session's transcript: %w", err)
	}
	defer func() {
		if err != nil { // somebody may have been faster: there is no such session
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	if lock, err := n.Place.Tree.Unlock(); err != nil {
		n.Log.Warn("git's lock of the index is there, and nobody holds it; remove it", "error", err)
	} else if lock != "" {
		n.Log.Warn("removed git's lock of the index, which a git that was killed had left", "file", lock)
	}
	snapshot, ignored, err := n.Place.Snapshot(ctx, s.scratch())
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("before attempt on TASK-%d, session %.8s", task, s.Row.ID)
	uncommitted, err := n.Place.Save(ctx, snapshot, ignored, s.scratch(), name)
	if err != nil {
		return nil, fmt.Errorf("uncommitted files before TASK-%d (git.snapshot: false leaves them alone): %w", task, err)
	}
	s.hidden = slices.Sorted(maps.Keys(n.Check.Look().Hidden))
	files := n.Place.Files()
	start.ID, start.Task, start.Snapshot, start.Uncommitted, start.Dir = s.Row.ID, task, snapshot, uncommitted, n.Place.Dir
	start.CostLimitUSD = n.Limits.CostUSD
	if start.Origin == ralph.FromHuman {
		start.Branch = strings.TrimPrefix(snapshot.Branch, "refs/heads/")
	}
	strange, err := n.strange(ctx, task, uncommitted.Files)
	if err != nil {
		return nil, err
	}
	for try := range claimTries {
		basis, err := s.read(ctx, &start, strange)
		if err != nil {
			return nil, fmt.Errorf("prompt of TASK-%d: %w", task, err)
		}
		if err := os.WriteFile(filepath.Join(folder, "prompt.md"), []byte(s.prompt), 0o600); err != nil {
			return nil, err
		}
		stale := false
		err = n.Store.Tx(ctx, func(tx *store.Tx) error {
			if n.Begin != nil {
				if err := n.Begin(tx, try > 0); err != nil {
					return err
				}
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
			s.reference.Hidden = s.hidden
			start.Hashes = s.reference
			s.Row, err = tx.StartSession(start)
			return err
		})
		if err != nil || !stale {
			return s, err
		}
	}
	return nil, fmt.Errorf("TASK-%d is changed again and again while it is being taken: %w", task, ralph.ErrConflict)
}

// read reads in one view what the agent is told and how its done is checked, and the
// mark by which a change of that is known. strange are the uncommitted files that are
// not the agent's.
func (s *Session) read(ctx context.Context, start *store.Start, strange []string) (store.Basis, error) {
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
		var discipline ralph.Discipline
		if s.Task.Discipline != "" {
			if discipline, err = tx.Discipline(s.Task.Discipline); err != nil {
				return basis, err
			}
		}
		if s.Model != nil {
			start.Model = s.Model(s.Task, discipline)
		}
		s.prompt, err = s.Prompt(tx, s.Task, strange)
		return basis, err
	})
}
