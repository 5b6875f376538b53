package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ralph/internal/text"
	"ralph/signals"
	"ralph/store"
)

// Commit commits what a completed task's sessions left uncommitted. Files that
// were not committed before its first session hold a person's work too and are
// left alone.
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
		s.Log.Warn("files that belong to a filter of git's (.gitattributes), which ralph does not run, are left uncommitted",
			"task", s.Task.ID, "files", strings.Join(filtered, ", "))
	}
	if err != nil {
		return err
	}
	if len(left) > 0 {
		s.Log.Warn("files that were not committed before the task are left uncommitted",
			"task", s.Task.ID, "files", strings.Join(left, ", "))
	}
	if id == "" {
		return nil
	}
	return s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.AddCommit(s.Row.ID, id) })
}

// commitMessage names the task, in the trailers so that programs find it.
func commitMessage(s *Session, closing signals.Payload) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", text.Flat(s.Task.Title))
	if done, ok := closing.(signals.Done); ok {
		fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(done.Summary))
	}
	fmt.Fprintf(&b, "Ralph-Task: TASK-%d\nRalph-Session: %s\n", s.Task.ID, s.Row.ID)
	return b.String()
}
