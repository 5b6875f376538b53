package project

import (
	"context"
	"errors"

	"ralph/internal/state"
	"ralph/loop"
	"ralph/store"
)

// AfterRun checks that the run has kept its repository and its database, and cleans up; err is the run's error.
func (p *Project) AfterRun(ctx context.Context, db *store.DB, l *loop.Loop, err error) error {
	if lost := state.After(err, l.Here.Tree.Intact); lost != nil {
		err = lost
	} else if merr := p.Make(ctx); merr != nil { // a session may have removed the project's id
		err = errors.Join(err, merr)
	}
	if gone := db.Intact(); errors.Is(gone, store.ErrGone) {
		if errors.Is(err, store.ErrGone) {
			err = nil // it is contained in lost, with advice
		}
		return errors.Join(err, p.Lost(ctx, db, gone))
	}
	if kerr := p.Tidy(ctx, db); kerr != nil {
		l.Log.Warn("cannot clean up old transcripts", "error", kerr)
	}
	if kerr := errors.Join(p.Backup(ctx, db), db.Merge(ctx)); kerr != nil {
		l.Log.Warn("there is no copy of the queue as this run left it", "error", kerr)
	}
	return err
}
