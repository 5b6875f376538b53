package session

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/internal/worktree"
	"ralph/loop/check"
	"ralph/signals"
	"ralph/store"
)

// A finding is what a session's work came to when it was looked at: all that a
// decision takes from the work tree and the repository. What happens there later
// changes nothing of it.
type finding struct {
	checks    []ralph.Check
	protected []string    // protected files that are not as people left them
	hiding    []string    // why that cannot be told
	left      check.Sight // of what is people's, in the end
	evidence  ralph.Evidence
	files     []ralph.FileChange
	commits   []string
	unseen    []string // what else could not be looked at, each with the reason

	before, at worktree.Snapshot // the work tree as the session found it, and as it is
}

// missed notes what could not be looked at.
func (f *finding) missed(what string, err error) {
	f.unseen = append(f.unseen, fmt.Sprintf("%s (%s)", what, Shortly(err)))
}

// An observation is what is seen of a session when it is settled. What could not be
// looked at is a fact like any other: nothing keeps a session from being settled but
// the database.
type observation struct {
	finding
	blind     bool   // it cannot be told whether anything was changed
	unchecked string // why its done could not be checked; "" if it was, or there is none
	stopped   string // the same, where a person or another machine is the reason
}

// observe looks at what the session left behind and has its done checked, unless that
// was done while the agent stood still.
func (s *Session) observe(ctx context.Context) (saw observation) {
	keep := context.WithoutCancel(ctx)
	done, err := s.claimed(keep)
	if err != nil {
		saw.unchecked = "what the session signalled cannot be read: " + Shortly(err)
	}
	if !s.Place.Has(s.Row.Dir) {
		// The checks would say something of the work tree here, and not of that one.
		if done {
			saw.stopped = "lost before its done was accepted, which can only be checked where it worked, " +
				"in another work tree: " + s.Row.Dir
		}
		saw.blind, saw.left.Configuration = true, s.Check.Configured(s.Row.Dir, nil)
		return saw
	}
	found := s.found
	if found == nil && done && s.called == "" && ctx.Err() == nil {
		if found, err = s.check(ctx); err != nil && ctx.Err() == nil {
			saw.unchecked = uncheckable + Shortly(err)
		}
	}
	if s.found == nil && done && (s.called != "" || ctx.Err() != nil) && len(s.verify.All()) > 0 {
		saw.stopped = cmp.Or(s.called, runStop).Error() + " before the claim could be checked"
	}
	if found == nil {
		if found, _, _, err = s.inspect(keep); err != nil {
			found, saw.blind = &finding{left: s.Check.Look()}, true
			found.missed("the work tree", err)
		}
	}
	saw.finding = *found
	if done && len(saw.hiding) > 0 {
		saw.unchecked = uncheckable + "it cannot be told whether protected files were changed in " +
			strings.Join(saw.hiding, ", ")
	}
	if done && saw.blind && saw.unchecked == "" {
		saw.unchecked = uncheckable + saw.unseen[0]
	}
	s.Row.Verify, s.Row.Files, s.Row.Commits = saw.checks, saw.files, saw.commits
	if !saw.blind {
		s.Row.Unchanged = s.changed.missing()
	}
	if err := s.lostWork(keep); err != nil {
		saw.missed("whether files are gone that were not committed", err)
	}
	saw.left.Configuration = s.Check.Configured(s.Place.Dir, s.Row.Files)
	for _, what := range saw.unseen {
		s.Log.Warn("a session is settled without what could not be looked at",
			"session", s.Row.ID, "task", s.Row.TaskID, "what", what)
	}
	return saw
}

// lostWork finds the saved files that a session has removed.
func (s *Session) lostWork(ctx context.Context) error {
	found, err := store.Read(ctx, s.Store, func(tx *store.Tx) (store.Uncommitted, error) {
		return tx.Uncommitted(s.Row.ID)
	})
	if err != nil || found.Snapshot == 0 {
		return err
	}
	gone, ok, err := s.Place.Gone(ctx, found.Snapshot)
	if ok {
		s.Row.SnapshotID, s.Row.Gone = found.Snapshot, gone
	}
	return err
}

// uncheckable begins the reason why a done is not judged.
const uncheckable = "the done could not be checked: "

// claimed reports whether the session was closed by a done.
func (s *Session) claimed(ctx context.Context) (bool, error) {
	closing, err := s.closing(ctx)
	return err == nil && closing.Payload != nil && closing.Payload.Verb() == ralph.VerbDone, err
}

// check looks at what the session did and then runs the verification. The finding is
// of the state before the commands: what they change counts as theirs (decision 19).
func (s *Session) check(ctx context.Context) (*finding, error) {
	f, at, now, err := s.inspect(ctx)
	commands := s.verify.All()
	if err != nil || len(commands) == 0 {
		return f, err
	}
	s.Check.Takes(time.Duration(len(commands)) * s.Check.Timeout)
	results, err := s.Check.Run(ctx, check.Round{
		Dir: s.Place.Dir, Session: s.Row.ID, Log: filepath.Join(s.folder(), "verify.log"),
		Between: func(command string) { s.watchProtected(f, command) },
	}, commands)
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		f.checks = append(f.checks, check.Judge(r, s.before, s.verify.Shared, s.Check.Strict))
	}
	if ctx.Err() != nil {
		return f, nil // commands that were stopped say nothing of the work tree
	}
	if err := s.Check.Keep(ctx, now.WorkTree, results); err != nil {
		return nil, err
	}
	after, err := s.Place.Tree.Look(ctx, s.scratch())
	if err != nil {
		return nil, fmt.Errorf("state of the work tree after the verification: %w", err)
	}
	if s.reference, err = s.now(ctx, after); err != nil {
		return nil, err
	}
	return f, s.drift(ctx, f, at, after)
}

// inspect looks at the work tree and the repository as they are now.
func (s *Session) inspect(ctx context.Context) (f *finding, at worktree.Snapshot, now hashes, err error) {
	f = &finding{}
	f.left = s.Check.Look()
	if at, err = s.Place.Look(ctx, s.scratch()); err != nil {
		return nil, at, now, err
	}
	if now, err = s.now(ctx, at); err != nil {
		return nil, at, now, err
	}
	s.changed = s.changed.or(now.differ(s.reference))
	var before, begun worktree.Snapshot
	var theirs store.Uncommitted
	var since string
	if err := s.Store.View(ctx, func(tx *store.Tx) (err error) {
		if f.protected, f.hiding, err = s.Check.Tampered(tx, s.Row.TaskID, f.left, s.hidden); err != nil {
			return err
		}
		if since, err = s.since(tx); err != nil {
			return err
		}
		var started hashes
		if _, err := tx.Beginning(s.Row.ID, &before, &started); err != nil {
			return err
		}
		if begun = before; since != s.Row.ID {
			begun = worktree.Snapshot{}
			if _, err := tx.Beginning(since, &begun, &started); err != nil {
				return err
			}
		}
		theirs, err = tx.Uncommitted(since)
		return err
	}); err != nil {
		return nil, at, now, err
	}
	s.began, f.before, f.at = begun, before, at
	if f.evidence.Standing, err = s.Place.Tree.Standing(ctx, begun, at, s.scratch(), theirs.Files); err != nil {
		return nil, at, now, err
	}
	if err := s.spare(ctx, &f.evidence.Standing); err != nil {
		return nil, at, now, err
	}
	if len(signals.Problems(ralph.Evidence{Standing: f.evidence.Standing})) > 0 {
		f.evidence.Since = since
	}
	// Where what the session began with is gone, as after a power cut, it is known by
	// the hashes that it changed something, and not which files.
	if f.files, f.commits, err = s.Place.Tree.Changes(ctx, before, at, s.scratch()); err != nil {
		f.missed("which files were changed", err)
	}
	if err := s.own(ctx, f, at); err != nil {
		return nil, at, now, err
	}
	f.evidence.Uncontained = s.Row.Worker != "" && s.Row.Origin != ralph.FromHuman
	f.evidence.Drives = signals.Drives(s.verify.Shared, s.verify.Own, names(f.files))
	f.evidence.Drives = f.evidence.Drives[:min(len(f.evidence.Drives), maxEvidence)]
	return f, at, now, nil
}

// since is the session with whose beginning this one's end is compared: its own, or
// that of an earlier one of the task in this run which left something to mend. Otherwise
// the next session would begin with it, and be none the wiser.
func (s *Session) since(tx *store.Tx) (string, error) {
	list, err := tx.Sessions(store.SessionFilter{Task: s.Row.TaskID, Limit: 2})
	if err != nil || len(list) < 2 || list[0].ID != s.Row.ID {
		return s.Row.ID, err
	}
	last := list[1]
	if last.RunID != s.Row.RunID || last.Dir != s.Row.Dir || last.Decision == "" {
		return s.Row.ID, nil
	}
	d, err := store.Decided(last)
	return cmp.Or(d.Evidence.Since, s.Row.ID), err
}

// maxEvidence bounds each list of what was seen, of which people read the first few.
const maxEvidence = 100

func names(files []ralph.FileChange) []string {
	list := make([]string, len(files))
	for i, f := range files {
		list[i] = f.Path
	}
	return list
}

// watchProtected notes the protected files that were changed while a command ran: the
// next one would be checked by them.
func (s *Session) watchProtected(f *finding, command string) {
	now := s.Check.Look()
	for _, path := range f.left.Differs(now) {
		if len(f.evidence.Rewritten) < maxEvidence {
			f.evidence.Rewritten = append(f.evidence.Rewritten, ralph.Touch{File: path, Command: command})
		}
	}
	f.left = now
}

// spare takes from where a session left the repository what is not to be held against
// it: what earlier sessions made, and what a person who has claimed the task does.
func (s *Session) spare(ctx context.Context, at *ralph.Standing) error {
	if s.Row.Origin == ralph.FromHuman {
		at.Began, at.Switched, at.Lost, at.Taken, at.Secrets = at.Branch, false, nil, nil, nil
	}
	if len(at.Lost) == 0 && len(at.Taken) == 0 {
		return nil
	}
	var made map[string]bool
	var makers map[string]store.Maker
	err := s.Store.View(ctx, func(tx *store.Tx) (err error) {
		ids := make([]string, len(at.Lost))
		for i, c := range at.Lost {
			ids[i] = c.ID
		}
		if made, err = tx.CommitsOfSessions(ids); err != nil {
			return err
		}
		makers, err = tx.Makers(s.Row.ID, at.Taken)
		return err
	})
	if err != nil {
		return err
	}
	at.Lost = slices.DeleteFunc(at.Lost, func(c ralph.Commit) bool { return made[c.ID] })
	for file, maker := range makers {
		committed, err := s.Place.Tree.FilesOf(ctx, maker.Commits)
		if err != nil {
			return err
		}
		if !slices.Contains(committed, file) { // else a person has changed it since
			is := func(f string) bool { return f == file }
			at.Taken, at.Secrets = slices.DeleteFunc(at.Taken, is), slices.DeleteFunc(at.Secrets, is)
		}
	}
	return nil
}

// own leaves out of the changed files those that only the verification has changed.
func (s *Session) own(ctx context.Context, f *finding, at worktree.Snapshot) error {
	if len(s.checkMade) == 0 {
		return nil
	}
	moved, err := s.Place.Tree.Moved(ctx, s.checked, at, s.scratch())
	for _, file := range moved { // since then
		delete(s.checkMade, file)
	}
	f.files = slices.DeleteFunc(f.files, func(c ralph.FileChange) bool { return s.checkMade[c.Path] })
	return err
}

// drift notes what changed in the work tree while it was checked.
func (s *Session) drift(ctx context.Context, f *finding, at, after worktree.Snapshot) error {
	moved, err := s.Place.Tree.Moved(ctx, at, after, s.scratch())
	if err != nil {
		return err
	}
	changed := names(f.files)
	for _, file := range moved {
		if slices.ContainsFunc(f.evidence.Rewritten, func(t ralph.Touch) bool { return t.File == file }) {
			continue // that is said already
		}
		if len(f.evidence.Drift) < maxEvidence {
			f.evidence.Drift = append(f.evidence.Drift, file)
		}
		if !slices.Contains(changed, file) {
			if s.checkMade == nil {
				s.checkMade = map[string]bool{}
			}
			s.checkMade[file] = true
		}
	}
	s.checked = after
	return nil
}

// closing is the session's closing signal so far; its payload is nil if there is
// none.
func (s *Session) closing(ctx context.Context) (signals.Said, error) {
	return store.Read(ctx, s.Store, func(tx *store.Tx) (signals.Said, error) {
		said, err := tx.SessionSignals(s.Row.ID)
		return signals.Closing(said), err
	})
}

// Shortly is an error on one line, of a length that fits into a verdict.
func Shortly(err error) string { return text.Short(err.Error(), 300) }
