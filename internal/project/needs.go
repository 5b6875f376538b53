package project

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ralph/internal/state"
	"ralph/internal/worktree"
	"ralph/loop"
	"ralph/store"
)

// examineTime limits the examination of the repository before a run; facts still unknown then do not prevent the
// run.
const examineTime = 3 * time.Second

// Stores reports why a run could not store its events: it writes a file and a row, and looks for room.
func (p *Project) Stores(ctx context.Context, db *store.DB) error {
	if err := state.Writable(p.State); err != nil {
		return err
	}
	return db.Tx(ctx, (*store.Tx).Touch)
}

// Whole names missing objects of the repository that it finds within some seconds.
func Whole(ctx context.Context, tree *worktree.Tree) error {
	if lacks := tree.Broken(ctx, examineTime); lacks != "" {
		return errors.New(lacks)
	}
	return nil
}

// HowToMend has the remedy for a broken repository.
const HowToMend = "`git fsck` names the lost objects; fetch them from a remote or another clone, or clone anew"

// needs checks the needs of every run, as `ralph doctor` does.
func (p *Project) needs(ctx context.Context, l *loop.Loop) error {
	if err := p.Stores(ctx, l.Store); err != nil {
		return fmt.Errorf("nothing that happens could be stored: %w", err)
	}
	if err := Whole(ctx, l.Here.Tree); err != nil {
		return fmt.Errorf("the repository is broken: %w; %s", err, HowToMend)
	}
	return nil
}

// LogHindrance logs that changes cannot be stored, or nil that they can again.
func (p *Project) LogHindrance(err error) {
	if err == nil {
		p.Log.Warn("changes can be stored again")
		return
	}
	p.Log.Error("nothing can be stored now; sessions that need it end", "state", p.State, "error", err)
}
