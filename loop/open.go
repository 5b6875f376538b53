package loop

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

// errHeld says that a person has stopped or paused the run before a session began.
var errHeld = errors.New("the run is to begin no session now")

// open claims the task and records the session, before anything is launched: a
// crash from here on leaves a session that the next run finds. What start says of
// the claim is given; the rest of it is filled in. The error wraps
// [ralph.ErrConflict] if somebody else was faster.
//
// The work tree, which takes seconds, is looked at first. What the agent is told and
// how its done is checked is read after that, and only claimed with if nobody has
// changed it since.
func (l *Loop) open(ctx context.Context, start store.Start, task ralph.Task) (s *session, err error) {
	s = &session{Loop: l, task: task, maxCost: start.CostLimitUSD, row: ralph.Session{ID: uuid.NewString(), TaskID: task.ID}}
	folder := s.logDir()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("folder of the session's transcript: %w", err)
	}
	defer func() {
		if err != nil { // somebody may have been faster: there is no such session
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	if lock, err := l.Tree.Unlock(); err != nil {
		l.Log.Warn("git's lock of the index is there, and nobody holds it; remove it", "error", err)
	} else if lock != "" {
		l.Log.Warn("removed git's lock of the index, which a git that was killed had left", "file", lock)
	}
	snapshot, ignored, err := l.look(ctx, s)
	if err != nil {
		return nil, untold(err)
	}
	uncommitted, err := l.saveWork(ctx, s, snapshot, ignored)
	if err != nil {
		return nil, &treeError{fmt.Errorf("uncommitted files before TASK-%d (git.snapshot: false leaves them alone): %w", task.ID, err)}
	}
	_, unseen := digestProtected(l.Dir, l.Verification.Protect)
	s.hidden = slices.Sorted(maps.Keys(unseen))
	files := digestFiles(l.Dir, l.StagnationFiles)
	start.ID, start.Task, start.Snapshot, start.Uncommitted, start.Dir = s.row.ID, task.ID, snapshot, uncommitted, l.Dir
	if start.Origin == ralph.FromHuman {
		start.Branch = strings.TrimPrefix(snapshot.Branch, "refs/heads/")
	}
	strange, err := l.strange(ctx, task.ID, uncommitted.Files)
	if err != nil {
		return nil, err
	}
	for try := range claimTries {
		if try > 0 && start.Run != 0 && l.Task == 0 {
			if err := l.stillNext(ctx, task.ID); err != nil {
				return nil, err
			}
		}
		basis, discipline, err := s.read(ctx, start.Origin, strange)
		if err != nil {
			return nil, fmt.Errorf("prompt of TASK-%d: %w", task.ID, err)
		}
		if err := os.WriteFile(filepath.Join(folder, "prompt.md"), []byte(s.prompt), 0o600); err != nil {
			return nil, err
		}
		if start.Origin != ralph.FromHuman { // a person's chat has a model of its own
			start.Model = l.chooseModel(s.task, discipline)
		}
		if l.claiming != nil {
			l.claiming()
		}
		stale := false
		err = l.Store.Tx(ctx, func(tx *store.Tx) error {
			if err := l.mayBegin(tx, start.Run); err != nil {
				return err
			}
			last, err := tx.LastEventOf(task.ID)
			if err != nil {
				return err
			}
			if s.reference, err = hash(tx, task.ID, snapshot, files); err != nil {
				return err
			}
			now := store.Basis{Definitions: s.reference.Definitions, Event: last}
			if stale = now != basis; stale {
				return nil
			}
			s.reference.Hidden = s.hidden
			start.Hashes = s.reference
			s.row, err = tx.StartSession(start)
			return err
		})
		if err != nil || !stale {
			return s, err
		}
	}
	return nil, fmt.Errorf("TASK-%d is changed again and again while it is being taken: %w", task.ID, ralph.ErrConflict)
}

// read reads in one view what the agent is told and how its done is checked, and the
// mark by which a change of that is known. strange are the uncommitted files that are
// not the agent's.
func (s *session) read(
	ctx context.Context, origin string, strange []string,
) (basis store.Basis, discipline ralph.Discipline, err error) {
	err = s.Store.View(ctx, func(tx *store.Tx) (err error) {
		if s.task, err = tx.Task(s.row.TaskID); err != nil {
			return err
		}
		if basis, err = tx.Basis(s.task); err != nil {
			return err
		}
		if err := tx.Claimable(s.task); err != nil {
			return err
		}
		if err = s.prepare(tx); err != nil {
			return err
		}
		if s.task.Discipline != "" {
			if discipline, err = tx.Discipline(s.task.Discipline); err != nil {
				return err
			}
		}
		if origin == ralph.FromHuman {
			built, err := s.ChatPrompt(tx, s.task)
			s.prompt = built.Text
			return err
		}
		built, err := s.BuildPrompt(tx, s.task, strange...)
		if s.prompt = built.Text; err == nil {
			err = beginsWith(tx, s.task.ID, built)
		}
		return err
	})
	return basis, discipline, err
}

// stillNext reports that a change of a picked task has moved another one before it.
func (l *Loop) stillNext(ctx context.Context, task int64) error {
	return l.Store.View(ctx, func(tx *store.Tx) error {
		next, ok, err := tx.Next()
		if err == nil && (!ok || next.ID != task) {
			err = fmt.Errorf("TASK-%d is not the first of the queue any more: %w", task, ralph.ErrConflict)
		}
		return err
	})
}

// mayBegin reports that a person has stopped or paused a run meanwhile. A worker's
// and a person's sessions belong to none.
func (l *Loop) mayBegin(tx *store.Tx, run int64) error {
	if run == 0 {
		return nil
	}
	if closed(l.Stop) {
		return errHeld
	}
	control, err := tx.RunControl(run)
	if err == nil && control != ralph.ControlNone {
		err = errHeld
	}
	return err
}
