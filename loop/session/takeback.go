package session

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/worktree"
	"ralph/signals"
	"ralph/store"
)

// failed tells whether nobody goes on with what a session left: it got stuck, its done
// was refused, it was lost or its time was up. The next one begins with what a partial
// left; whom somebody stopped and whom the agent's service refused did not fail, and a
// done that could not be checked may be good.
func failed(row ralph.Session, d signals.Decision, unchecked bool) bool {
	switch {
	case row.Origin != ralph.FromLoop || row.Worker != "" || unchecked || d.Accepted || d.Closing == ralph.VerbPartial:
		return false
	case row.Ending == ralph.Lost:
		return true
	}
	return (row.Ending == ralph.Finished || row.Ending == ralph.TimedOut) && d.Closing != ""
}

// afterFailure saves what a session left that failed, and takes it back if that is
// wanted (after_failure).
func (s *Session) afterFailure(ctx context.Context, saw observation, d signals.Decision) error {
	if !s.Place.Saves && !s.Place.TakesBack || !failed(s.Row, d, saw.unchecked != "" || saw.stopped != "") {
		return nil
	}
	var shared bool
	if err := s.Store.View(ctx, func(tx *store.Tx) error {
		row, err := tx.Session(s.Row.ID)
		shared = row.Shared
		return err
	}); err != nil {
		return err
	}
	if saw.blind {
		if !s.Place.TakesBack {
			return nil
		}
		return s.note(ctx, "what it changed is not taken back: it could not be looked at", ralph.SessionRestored{})
	}
	tree := s.Place.Tree
	ignored, err := tree.Ignored(ctx)
	if err != nil {
		return err
	}
	saved, _, err := tree.Save(ctx, saw.at, ignored, s.scratch(),
		fmt.Sprintf("after attempt on TASK-%d, session %.8s, which failed", s.Row.TaskID, s.Row.ID))
	if err != nil || !s.Place.TakesBack {
		return err
	}
	if shared {
		return s.note(ctx, "what it changed is not taken back: others worked in its work tree", ralph.SessionRestored{})
	}
	spare := func(path string) bool { // these have rules of their own
		_, protected := saw.left.Protected[path]
		_, configures := saw.left.Configuration[s.Place.Path(path)]
		return protected || configures || slices.Contains(saw.protected, path)
	}
	// What was changed after the last sign of a session that nobody saw end may be
	// somebody else's.
	last := lastSign(s.folder())
	others := func(path string) bool {
		info, err := os.Lstat(s.Place.Path(path))
		return s.reopened && err == nil && info.ModTime().After(last)
	}
	back, err := tree.TakeBack(ctx, saw.before, saw.at, s.scratch(), spare, others)
	if err != nil {
		return err
	}
	note := takenBack(back, saved.ID, s.Row.Commits)
	if note == "" {
		return nil
	}
	return s.note(ctx, note, ralph.SessionRestored{SnapshotID: saved.ID, Files: back.Files, Left: back.Left})
}

// note tells people of what became of a session's changes.
func (s *Session) note(ctx context.Context, note string, e ralph.SessionRestored) error {
	e.Note = note
	return s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.NoteRestored(s.Row.ID, e) })
}

// lastSign is when the newest of a session's records was written.
func lastSign(folder string) (last time.Time) {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if info, ierr := e.Info(); err == nil && ierr == nil && info.Mode().IsRegular() && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// takenBack says in a sentence what was taken back, and what stays; "" for nothing.
func takenBack(r worktree.TakenBack, snapshot int64, commits []string) string {
	var parts []string
	if n := len(r.Files); n > 0 {
		what := "what it changed is taken back (" + signals.FileList(r.Files) + ")"
		if snapshot > 0 {
			what += fmt.Sprintf("; `ralph snapshot restore %d` brings it back", snapshot)
		}
		parts = append(parts, what)
	}
	if len(r.Left) > 0 {
		parts = append(parts, "not as it left them any more, and so left alone: "+signals.FileList(r.Left))
	}
	if len(r.Within) > 0 {
		parts = append(parts, "repositories within stay as it left them: "+signals.FileList(r.Within))
	}
	if len(commits) > 0 {
		short := make([]string, len(commits))
		for i, c := range commits {
			short[i] = fmt.Sprintf("%.7s", c)
		}
		parts = append(parts, "its commits stay: "+signals.FileList(short))
	}
	return strings.Join(parts, "; ")
}
