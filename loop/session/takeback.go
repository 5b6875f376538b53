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

// failed reports whether nobody continues a session's work: it got stuck, its
// done was refused, it was lost or timed out. After a partial, the next
// session continues. A session that somebody stopped, or whose agent's service
// failed, did not fail, and a done that could not be checked may be good.
func failed(row ralph.Session, d signals.Decision, unchecked bool) bool {
	switch {
	case row.Origin != ralph.FromLoop || row.Worker != "" || unchecked || d.Accepted || d.Closing == ralph.VerbPartial:
		return false
	case row.Ending == ralph.Lost:
		return true
	}
	return (row.Ending == ralph.Finished || row.Ending == ralph.TimedOut) && d.Closing != ""
}

// afterFailure saves the changes of a failed session, and takes them back
// if the configuration says so (after_failure).
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
	spare := func(path string) bool { // these have rules of their own, or were not saved
		_, protected := saw.left.Protected[path]
		_, configures := saw.left.Configuration[s.Place.Path(path)]
		return protected || configures || slices.Contains(saw.protected, path) || slices.Contains(saved.Omitted, path)
	}
	// If nobody saw the session end, files that changed after its last sign of
	// life may be somebody else's.
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

// note records for people what became of a session's changes.
func (s *Session) note(ctx context.Context, note string, e ralph.SessionRestored) error {
	e.Note = note
	return s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.NoteRestored(s.Row.ID, e) })
}

// lastSign returns when the newest file in the session's folder was written.
func lastSign(folder string) (last time.Time) {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if info, ierr := e.Info(); err == nil && ierr == nil && info.Mode().IsRegular() && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// takenBack says in a sentence what was taken back and what stays; "" for nothing.
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
