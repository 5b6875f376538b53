package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/worktree"
	"ralph/signals"
	"ralph/store"
)

// greet looks at what is people's before a session, and before what verifies its task
// is run for the first time: protected files and configuration that are not as the
// last session left them were changed by people. What a session left of protected
// files is put back first.
func (l *Loop) greet(ctx context.Context) error {
	if err := l.putBack(ctx); err != nil {
		return err
	}
	now, unseen := digestProtected(l.Dir, l.Verification.Protect)
	config := l.digestConfiguration(l.Dir, nil)
	var files []store.ProtectedFile
	var configuration []store.ConfigurationFile
	needed := map[string]bool{}
	if err := l.Store.View(ctx, func(tx *store.Tx) error {
		known, err := l.protectedFiles(tx)
		if err != nil {
			return err
		}
		rows, err := tx.ConfigurationFiles()
		if err != nil {
			return err
		}
		working, err := tx.AgentsWork()
		if err != nil {
			return err
		}
		for _, p := range known {
			needed[sumOf(p.Approved)] = true
		}
		for _, c := range rows {
			needed[sumOf(c.Approved)] = true
		}
		files = welcome(known, assumed(known, now, unseen))
		if working { // it may have been another session
			files = slices.DeleteFunc(files, func(p store.ProtectedFile) bool { _, ok := known[p.Path]; return ok })
		}
		for path, digest := range config {
			row, ok := rows[path]
			switch {
			case ok && (row.Seen == digest || working):
			case ok && worktree.StillLeft(row.Approved, row.Seen, digest):
				row.Seen = digest
				configuration = append(configuration, row)
			default:
				configuration = append(configuration, store.ConfigurationFile{Path: path, Approved: digest, Seen: digest})
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for path, digest := range now {
		needed[sumOf(digest)] = true
		if err := l.Kept.keep(filepath.Join(l.Dir, filepath.FromSlash(path)), digest); err != nil {
			return fmt.Errorf("copy of the protected file %s: %w", path, err)
		}
	}
	for path, digest := range config {
		needed[sumOf(digest)] = true
		if err := l.Kept.keep(path, digest); err != nil {
			return fmt.Errorf("copy of %s: %w", path, err)
		}
	}
	if err := l.Kept.forget(needed); err != nil {
		return fmt.Errorf("old copies of protected files: %w", err)
	}
	if len(files)+len(configuration) == 0 {
		return nil
	}
	return l.Store.Tx(ctx, func(tx *store.Tx) error {
		return errors.Join(tx.KeepProtectedFiles(files), tx.KeepConfigurationFiles(configuration))
	})
}

// unreadable stands for the digest of a file that cannot be read, which nobody left so
// for a run to start with.
const unreadable = "unreadable"

// digestConfiguration takes the digests of the files by which runs in a work tree are
// configured, and of further ones there that would configure a run below it.
func (l *Loop) digestConfiguration(dir string, changed []ralph.FileChange) map[string]string {
	digests := map[string]string{}
	add := func(path string) {
		var err error
		if digests[path], err = ConfigurationDigest(path); err != nil {
			digests[path] = unreadable
		}
	}
	for _, path := range l.Configuration {
		if rel, err := filepath.Rel(l.Dir, path); err == nil && filepath.IsLocal(rel) {
			path = filepath.Join(dir, rel)
		}
		add(path)
	}
	for _, f := range changed {
		if strings.HasSuffix("/"+f.Path, "/ralph.yaml") {
			add(filepath.Join(dir, filepath.FromSlash(f.Path)))
		}
	}
	return digests
}

// leaveTaking notes what a session left of what is people's, and says so in its record.
// Nothing is put back yet: that is done when the decision is durable.
func (s *session) leaveTaking(tx *store.Tx, saw observation, d signals.Decision) error {
	if s.row.Origin == ralph.FromHuman {
		return nil // people stand for what they do with a chat
	}
	rows, err := tx.ConfigurationFiles()
	if err != nil {
		return err
	}
	var left []store.ConfigurationFile
	for _, path := range slices.Sorted(maps.Keys(saw.config)) {
		row, now := rows[path], saw.config[path]
		if row.Seen == now {
			continue
		}
		left = append(left, store.ConfigurationFile{Path: path, Approved: row.Approved, Seen: now, Session: s.row.ID})
		if row.Approved != now {
			s.row.Notes = append(s.row.Notes, s.unapproved(path, row.Approved, now))
		}
	}
	if err := tx.KeepConfigurationFiles(left); err != nil || saw.digests == nil {
		return err
	}
	known, err := s.protectedFiles(tx)
	if err != nil {
		return err
	}
	now := assumed(known, saw.digests, saw.hidden)
	if err := tx.KeepProtectedFiles(farewell(known, now)); err != nil || d.Accepted {
		return err
	}
	back := slices.DeleteFunc(tampered(known, now), s.configures)
	lost := slices.Clone(back)
	back = slices.DeleteFunc(back, func(path string) bool { return !s.Kept.has(known[path].Approved) })
	lost = slices.DeleteFunc(lost, func(path string) bool { return slices.Contains(back, path) })
	if len(lost) > 0 {
		s.row.Notes = append(s.row.Notes, "it changed protected files that ralph cannot put back, for want of a copy: "+strings.Join(lost, ", "))
	}
	if len(back) > 0 {
		s.row.Notes = append(s.row.Notes, "it changed protected files, which are put back as people left them: "+strings.Join(back, ", ")+"; no session begins before that")
	}
	return nil
}

// unapproved says that a session has changed what only people may, and what follows.
func (l *Loop) unapproved(path, was, now string) string {
	if !worktree.IsSettings(path) {
		return fmt.Sprintf("it changed %s, by which runs are configured: the next run starts only after "+
			"`ralph approve config`, or with the file put back", l.named(path))
	}
	names, _ := worktree.ChangedSettings(path, was, now)
	return fmt.Sprintf("it changed %s (%s), which no git of ralph's obeys, but yours does: "+
		"the next run starts only after `ralph approve config`, or with it taken back (`ralph doctor` says how)",
		l.named(path), signals.FileList(names))
}

// named is a path for people.
func (l *Loop) named(path string) string {
	if rel, err := filepath.Rel(l.Dir, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// configures tells whether a file of the work tree configures runs: such a file is
// never put back, it waits for approval.
func (l *Loop) configures(path string) bool {
	return slices.Contains(l.Configuration, filepath.Join(l.Dir, filepath.FromSlash(path)))
}

// putBack puts protected files back as people left them that are as a session left
// them and that nobody is asked to approve. What it takes away is kept. The error is
// a [StuckError] where that cannot be done.
func (l *Loop) putBack(ctx context.Context) error {
	var known map[string]store.ProtectedFile
	var waiting map[string]bool
	if err := l.Store.View(ctx, func(tx *store.Tx) (err error) {
		if known, err = l.protectedFiles(tx); err != nil {
			return err
		}
		waiting, err = tx.UnderReview()
		return err
	}); err != nil {
		return err
	}
	maps.DeleteFunc(known, func(path string, p store.ProtectedFile) bool {
		return p.Approved == p.Seen || waiting[path] || l.configures(path)
	})
	if len(known) == 0 {
		return nil
	}
	var done []store.ProtectedFile
	var stuck StuckError
	order := slices.Sorted(maps.Keys(known))
	slices.Reverse(order) // what is new goes first, and in a folder before the folder
	slices.SortStableFunc(order, func(a, b string) int { return min(len(known[a].Approved), 1) - min(len(known[b].Approved), 1) })
	for _, path := range order {
		p := known[path]
		file := filepath.Join(l.Dir, filepath.FromSlash(path))
		now, err := digestOne(file)
		if err == nil && now != p.Seen {
			continue // somebody has changed it since
		}
		if err == nil {
			err = l.Kept.keep(file, p.Seen)
		}
		if err == nil {
			err = l.Kept.restore(l.Dir, path, p.Approved)
		}
		if err == nil {
			if now, err = digestOne(file); err == nil && now != p.Approved {
				err = errors.New("it is still not as it was: it is a link, and what that leads to was changed")
			}
		}
		if err != nil {
			stuck.Files = append(stuck.Files, fmt.Sprintf("%s (%v)", path, err))
			continue
		}
		l.Log.Info("put a protected file back as people left it", "file", path, "copy_of_what_was_there", l.Kept.Copy(p.Seen))
		done = append(done, store.ProtectedFile{Path: path, Approved: p.Approved, Seen: p.Approved})
	}
	if err := l.Store.Tx(ctx, func(tx *store.Tx) error { return tx.KeepProtectedFiles(done) }); err != nil {
		return err
	}
	if len(stuck.Files) > 0 {
		return &stuck
	}
	return nil
}

// leftConfiguration are the files that configure runs and that earlier sessions on the
// session's own task left as they are, without anybody's approval.
func (s *session) leftConfiguration(tx *store.Tx) (map[string]bool, error) {
	rows, err := tx.ConfigurationFiles()
	if err != nil {
		return nil, err
	}
	mine := map[string]bool{}
	for path, row := range rows {
		if row.Approved == row.Seen || row.Session == "" {
			continue
		}
		by, err := tx.Session(row.Session)
		if err != nil {
			return nil, err
		}
		mine[path] = by.TaskID == s.row.TaskID
	}
	return mine, nil
}
