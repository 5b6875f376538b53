package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/internal/worktree"
	"ralph/loop/check"
	"ralph/loop/place"
	"ralph/signals"
	"ralph/store"
)

// A finding is what a look at a session's work found: everything from the work tree and
// the repository that the decision depends on. Later changes there do not affect it.
type finding struct {
	checks    []ralph.Check
	protected []string    // protected files that differ from what people left
	hiding    []string    // why protected cannot be known
	left      check.Sight // the final state of people's files
	evidence  ralph.Evidence
	files     []ralph.FileChange
	commits   []string
	unseen    []string // what else could not be determined, each with the reason

	before, at worktree.Snapshot  // the work tree at the start and now
	made       worktree.Candidate // a slot's candidate, once its done was checked
	moved      bool               // something has landed since the session last saw the target
	conflict   string             // why the candidate cannot be merged with what has landed; "" if it can
	conflicts  []string           // the conflicting files
	merged     []ralph.Check      // or the results of the commands on the merge
}

// missed records what could not be determined.
func (f *finding) missed(what string, err error) {
	f.unseen = append(f.unseen, fmt.Sprintf("%s (%s)", what, Shortly(err)))
}

// An observation is what is seen of a session when it is settled. What could not be determined
// is a fact like any other: only a database error keeps a session from being settled.
type observation struct {
	finding
	blind     bool   // it is unknown whether anything was changed
	unchecked string // why its done could not be checked; "" if it was, or there is none
	stopped   string // the same, if a person or another machine is the reason
}

// observe inspects what the session left behind and checks its done,
// unless that happened while the agent was frozen.
func (s *Session) observe(ctx context.Context) (saw observation) {
	detached, cancel := outlast(ctx)
	defer cancel()
	done, err := s.claimed(detached)
	if err != nil {
		saw.unchecked = "what the session signalled cannot be read: " + Shortly(err)
	}
	if !s.Place.Has(s.Row.Dir) {
		// A check would be about the work tree here, not the session's.
		if done {
			saw.stopped = "lost before its done was accepted, which can only be checked where it worked, " +
				"in another work tree: " + s.Row.Dir
		}
		saw.blind, saw.left.Configuration = true, s.Check.Configured(s.Row.Dir, nil)
		if err := s.rescued(detached); err != nil {
			saw.missed("what was kept of its slot", err)
		}
		return saw
	}
	found := s.found
	if found == nil && done && s.called == "" && ctx.Err() == nil {
		if found, err = s.checkLate(ctx); err != nil && ctx.Err() == nil {
			saw.unchecked = uncheckable + Shortly(err)
		}
	}
	if s.found == nil && done && (s.called != "" || ctx.Err() != nil) && len(s.verify.All()) > 0 {
		saw.stopped = cmp.Or(s.called, runStop).Error() + " before the claim could be checked"
	}
	if found == nil {
		if found, _, _, err = s.look(detached); err != nil {
			found, saw.blind = &finding{left: s.Check.Look()}, true
			found.missed("the work tree", err)
		}
	}
	saw.finding = *found
	s.saveMade(detached, &saw)
	if !done {
		for _, u := range saw.evidence.Untaken {
			saw.unseen = append(saw.unseen, text.Short(u.Path, 100)+" "+text.Short(u.Why, 200))
		}
	}
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
	if err := s.lostWork(detached); err != nil {
		saw.missed("whether files are gone that were not committed", err)
	}
	changed := s.Row.Files
	if s.Place.Slot != nil {
		changed = nil // files in a slot configure no run
	}
	saw.left.Configuration = s.Check.Configured(s.Place.Dir, changed)
	for _, what := range saw.unseen {
		s.Log.Warn("settling a session although something about it is unknown",
			"session", s.Row.ID, "task", s.Row.TaskID, "what", what)
	}
	return saw
}

// lostWork finds the saved files that a session removed.
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

// claimed reports whether the session closed with a done.
func (s *Session) claimed(ctx context.Context) (bool, error) {
	closing, err := s.closing(ctx)
	return err == nil && closing.Payload != nil && closing.Payload.Verb() == ralph.VerbDone, err
}

// checkLate is [Session.check] after the agent has ended, when nothing watches for people's requests
// any more. A person who stops the session meanwhile ends the check; there is no finding then.
func (s *Session) checkLate(ctx context.Context) (*finding, error) {
	s.late = true
	within, stop := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	changed := s.obeyHalt(within, stop) // it may have come since the agent ended
	go func() {
		defer close(watched)
		for within.Err() == nil {
			select {
			case <-changed:
				changed = s.obeyHalt(within, stop)
			case <-within.Done():
			}
		}
	}()
	f, err := s.check(within)
	if errors.Is(context.Cause(within), halted) {
		s.called, f, err = halted, nil, nil
	}
	stop(nil)
	<-watched
	return f, err
}

// obeyHalt stops a check if a person has stopped the session. It is to be called again once the
// channel is closed.
func (s *Session) obeyHalt(ctx context.Context, stop context.CancelCauseFunc) (changed <-chan struct{}) {
	changed = s.Store.Changed()
	by, err := store.Read(ctx, s.Store, func(tx *store.Tx) (string, error) { return tx.Halted(s.Row.ID) })
	if err == nil && by != "" { // if the database is busy, the next change is looked at again
		stop(halted)
	}
	return changed
}

// check inspects the session's work and then runs the verification. The finding is about
// the state before the commands: what they change is not the session's (decision 19).
func (s *Session) check(ctx context.Context) (*finding, error) {
	f, at, now, err := s.look(ctx)
	commands := s.verify.All()
	if err == nil && s.Place.Slot != nil {
		if err = s.candidateOf(ctx, f); err == nil && len(f.evidence.Untaken) == 0 {
			err = s.within(ctx, f)
		}
		if err == nil && len(f.evidence.Untaken) > 0 {
			return f, nil // it is refused, whatever the commands say
		}
	}
	if err != nil || len(commands) == 0 && s.Place.Slot == nil {
		return f, err
	}
	s.Check.Takes(time.Duration(len(commands)) * s.Check.Timeout)
	round := check.Round{
		Dir: s.Place.Dir, Session: s.Row.ID, Log: filepath.Join(s.folder(), "verify.log"),
		Between: func(command string) { s.watchProtected(f, command) },
		Slow:    s.checking,
	}
	defer s.checking("")
	if s.Place.Slot != nil {
		return f, s.apart(ctx, f, round)
	}
	results, err := s.Check.Run(ctx, round, commands)
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		f.checks = append(f.checks, check.Judge(r, s.before, s.verify.Shared, s.Check.Strict))
	}
	if ctx.Err() != nil {
		return f, nil // stopped commands say nothing about the work tree
	}
	if err := s.Check.PutResults(ctx, now.WorkTree, results); err != nil {
		return nil, err
	}
	after, err := s.Place.Tree.Look(ctx, s.scratch())
	if err != nil {
		return nil, fmt.Errorf("look at the work tree after the verification: %w", err)
	}
	if s.reference, err = s.now(ctx, after); err != nil {
		return nil, err
	}
	return f, s.drift(ctx, f, at, after)
}

// checking shows people which command is running; "" for none.
func (s *Session) checking(command string) {
	if s.Row.Checking == command {
		return
	}
	s.Row.Checking = command
	err := s.Store.Tx(context.Background(), func(tx *store.Tx) error { return tx.NoteChecking(s.Row.ID, command) })
	if err != nil {
		s.Log.Warn("cannot record the command that is running", "session", s.Row.ID, "error", err)
	}
}

// inspect looks at the work tree and the repository as they are now.
func (s *Session) inspect(ctx context.Context) (f *finding, at worktree.Snapshot, now hashes, err error) {
	f = &finding{}
	if at, err = s.Place.Look(ctx, s.scratch()); err != nil {
		return nil, at, now, err
	}
	f.left = s.Check.Look()
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
	f.evidence.Untaken = at.Untaken
	if f.evidence.Standing, err = s.Place.Tree.Standing(ctx, begun, at, s.scratch(), theirs.Files); err != nil {
		return nil, at, now, err
	}
	if err := s.spare(ctx, &f.evidence.Standing); err != nil {
		return nil, at, now, err
	}
	if len(signals.Problems(ralph.Evidence{Standing: f.evidence.Standing})) > 0 {
		f.evidence.Since = since
	}
	// If the session's starting state is gone, for example after a power cut,
	// the hashes still tell that something changed, but not which files.
	if f.files, f.commits, err = s.Place.Tree.Changes(ctx, before, at, s.scratch()); err != nil {
		f.missed("which files were changed", err)
	}
	if err := s.own(ctx, f, at); err != nil {
		return nil, at, now, err
	}
	if err := s.saveDiffs(ctx, f, before, at); err != nil { // they are for people to read, and decide nothing
		s.Log.Warn("what the session changed is not kept line by line", "session", s.Row.ID, "error", err)
	}
	f.evidence.Uncontained = s.Row.Worker != "" && s.Row.Origin != ralph.FromHuman
	f.evidence.Drives = signals.Drives(s.verify.Shared, s.verify.Own, names(f.files))
	f.evidence.Drives = f.evidence.Drives[:min(len(f.evidence.Drives), maxEvidence)]
	return f, at, now, nil
}

// saveDiffs saves what the session changed, for people, with secrets masked.
func (s *Session) saveDiffs(ctx context.Context, f *finding, before, at worktree.Snapshot) error {
	d, err := s.Place.Tree.Diffs(ctx, before, at, f.files, f.commits, s.scratch(), s.masked)
	if err != nil || len(d.Files)+len(d.Commits) == 0 {
		return err
	}
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	folder := s.Place.Folder(s.Row.ID)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, place.DiffsFile), b, 0o600)
}

// masked hides the secrets in a text, as in the output of checks.
func (s *Session) masked(said string) (string, error) {
	if s.Check.Through == nil {
		return said, nil
	}
	b, err := io.ReadAll(s.Check.Through(strings.NewReader(said)))
	return string(b), err
}

// since returns the session whose start this one's end is compared with:
// itself, or an earlier session of the task in this run that left something
// to fix. Otherwise the next session would start from that state and miss it.
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

// maxEvidence limits each list of evidence; people read the first few entries.
const maxEvidence = 100

func names(files []ralph.FileChange) []string {
	list := make([]string, len(files))
	for i, f := range files {
		list[i] = f.Path
	}
	return list
}

// watchProtected records the protected files that changed while a command
// ran, as the next command would be checked with them.
func (s *Session) watchProtected(f *finding, command string) {
	now := s.Check.Look()
	for _, path := range f.left.Differs(now) {
		if len(f.evidence.Rewritten) < maxEvidence {
			f.evidence.Rewritten = append(f.evidence.Rewritten, ralph.Touch{File: path, Command: command})
		}
	}
	f.left = now
}

// spare removes from the standing what is not to be counted against the session:
// what earlier sessions made, and what a person who claimed the task did.
func (s *Session) spare(ctx context.Context, at *ralph.Standing) error {
	if s.Place.Slot != nil {
		// Nothing in a slot is people's except copied ignored files. What counts
		// is the candidate, whatever became of the slot's branches.
		at.Git = false // the verdict names what lands
		at.Began, at.Switched, at.Lost, at.Taken, at.Emptied = at.Branch, false, nil, nil, nil
		at.Aside = slices.DeleteFunc(at.Aside, func(a ralph.Aside) bool { return a.Branch == place.TipBranch })
		return nil
	}
	if s.Row.Origin == ralph.FromHuman {
		at.Began, at.Switched, at.Lost, at.Taken, at.Secrets, at.Hidden = at.Branch, false, nil, nil, nil, nil
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
		if !slices.Contains(committed, file) { // else a person changed it afterwards
			is := func(f string) bool { return f == file }
			at.Taken, at.Secrets = slices.DeleteFunc(at.Taken, is), slices.DeleteFunc(at.Secrets, is)
		}
	}
	return nil
}

// own removes from the changed files those that only the verification changed.
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

// drift records what changed in the work tree during the check.
func (s *Session) drift(ctx context.Context, f *finding, at, after worktree.Snapshot) error {
	moved, err := s.Place.Tree.Moved(ctx, at, after, s.scratch())
	if err != nil {
		return err
	}
	changed := names(f.files)
	for _, file := range moved {
		if slices.ContainsFunc(f.evidence.Rewritten, func(t ralph.Touch) bool { return t.File == file }) {
			continue // already recorded
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

// closing returns the session's closing signal so far; its payload is nil if there is none.
func (s *Session) closing(ctx context.Context) (signals.Said, error) {
	return store.Read(ctx, s.Store, func(tx *store.Tx) (signals.Said, error) {
		said, err := tx.SessionSignals(s.Row.ID)
		return signals.Closing(said), err
	})
}

// Shortly returns an error on one line, short enough for a verdict.
func Shortly(err error) string { return text.Short(err.Error(), 300) }
