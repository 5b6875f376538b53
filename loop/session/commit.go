package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/text"
	"ralph/signals"
	"ralph/store"
)

// Commit commits what a completed task's sessions left uncommitted. It leaves alone files
// that were uncommitted before the first session, as they hold a person's work too.
func (s *Session) Commit(ctx context.Context) error {
	closing, err := s.closing(ctx)
	if err != nil {
		return err
	}
	own, err := s.made(ctx, s.Task.ID)
	if err != nil {
		return err
	}
	var files, left []string
	for _, path := range slices.Sorted(maps.Keys(own)) {
		if own[path] {
			files = append(files, path)
		} else {
			left = append(left, path)
		}
	}
	id, filtered, err := s.Place.Tree.Commit(ctx, files, commitMessage(s, closing.Payload))
	if len(filtered) > 0 {
		s.Log.Warn("left files uncommitted that need a git filter (.gitattributes), as ralph runs none",
			"task", s.Task.ID, "files", strings.Join(filtered, ", "))
	}
	if err != nil {
		return err
	}
	if len(left) > 0 {
		s.Log.Warn("left files uncommitted that were uncommitted before the task",
			"task", s.Task.ID, "files", strings.Join(left, ", "))
	}
	if id == "" {
		return nil
	}
	return s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.AddCommit(s.Row.ID, id) })
}

// CommitApproved is [Session.Commit] for a session whose work a person has approved since.
func (n Needs) CommitApproved(ctx context.Context, row ralph.Session) error {
	s, err := n.reopen(ctx, row)
	if err != nil {
		return err
	}
	return s.Commit(ctx)
}

// commitMessage names the task and the session in trailers, where programs find them.
func commitMessage(s *Session, closing signals.Payload) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", text.Flat(s.Task.Title))
	if done, ok := closing.(signals.Done); ok {
		fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(done.Summary))
	}
	return b.String() + ralph.Trailers(s.Task.ID, s.Row.ID)
}
