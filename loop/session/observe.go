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
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/internal/worktree"
	"ralph/loop/check"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// A finding is the result of a look at a session's work, with all facts for the decision. It is about one commit: later
// changes in the workspace do not affect it.
type finding struct {
	checks    []ralph.Check
	protected []string // protected files that it changed
	guarded   []string // changed files that configure runs or steer agents
	evidence  ralph.Evidence
	files     []ralph.FileChange
	commits   []string
	unseen    []string // undetermined facts, each with the reason

	at        worktree.Snapshot  // the workspace at the time
	made      worktree.Candidate // the workspace's contents, as a commit
	moved     bool               // the target has moved since the session last saw it
	conflict  string             // why the candidate conflicts with merged work; "" if it does not
	conflicts []string           // the conflicting files
	marks     []string           // files that still have ralph's conflict markers
	merged    []ralph.Check      // results of the commands on the merge, if it was checked
	gateFrom  string             // target and merge of the evidence's gate; "" if there is none
	gateTo    string
}

// missed records an undetermined fact.
func (f *finding) missed(what string, err error) {
	f.unseen = append(f.unseen, fmt.Sprintf("%s (%s)", what, Shortly(err)))
}

// An observation holds the facts about a session at its decision. An undetermined fact is a fact like any other: only
// a database error prevents the decision.
type observation struct {
	finding
	blind     bool   // it is unknown whether anything changed
	unchecked string // reason why its done could not be checked; "" if it was, or there is none
	stopped   string // the same reason, if it is a person or another machine
}

// observe inspects the session's work and checks its done, unless both happened while its agent waited.
func (s *Session) observe(ctx context.Context) (saw observation) {
	detached, cancel := outlast(ctx)
	defer cancel()
	done, err := s.Claimed(detached)
	if err != nil {
		saw.unchecked = "the session's signals cannot be read: " + Shortly(err)
	}
	if s.HandedOver {
		s.Row.Notes = append(s.Row.Notes, s.Row.Machine+
			" was lost before it told what it found of the done: another machine checked the change that it had handed over")
	} else if !s.Workspace.Has(s.Row.Dir) || s.Store.OtherMachine(s.Row) {
		// A check here would examine the work tree, not the session's work.
		if done {
			saw.stopped = "lost before its done was accepted, which can only be checked where it worked, " +
				"in another work tree: " + s.Row.Dir
		}
		saw.blind = true
		if err := s.rescued(detached); err != nil {
			saw.missed("what was kept of its workspace", err)
		}
		return saw
	}
	saw.finding = *s.lastFinding(ctx, detached, done, &saw)
	s.saveMade(detached, &saw)
	if !done {
		for _, u := range saw.evidence.Untaken {
			saw.unseen = append(saw.unseen, signals.NotTaken(u))
		}
	}
	if done && saw.blind && saw.unchecked == "" {
		saw.unchecked = uncheckable + saw.unseen[0]
	}
	s.Row.Verify, s.Row.Files, s.Row.Commits = saw.checks, saw.files, saw.commits
	if !saw.blind {
		s.Row.Unchanged = s.changed.missing()
	}
	for _, what := range saw.unseen {
		s.Log.Warn("deciding on a session although something about it is unknown",
			"session", s.Row.ID, "task", s.Row.TaskID, "unknown", what)
	}
	return saw
}

// lastFinding returns the finding of the agent's last turn, or that of a check or a look now. Work that continues after
// ctx has ended uses detached.
func (s *Session) lastFinding(ctx, detached context.Context, done bool, saw *observation) *finding {
	if s.found != nil {
		return s.found
	}
	var found *finding
	var err error
	if done && s.called == "" && ctx.Err() == nil {
		if found, err = s.checkLate(ctx); err != nil && ctx.Err() == nil {
			saw.unchecked = uncheckable + Shortly(err)
		}
	}
	if done && (s.called != "" || ctx.Err() != nil) && s.isChecked(detached) {
		saw.stopped = cmp.Or(s.called, runStop).Error() + " before the claim could be checked"
	}
	if found != nil {
		return found
	}
	if found, err = s.inspect(detached); err != nil {
		found, saw.blind = &finding{}, true
		found.missed("what it made in its workspace, which is kept there", err)
	}
	return found
}

// isChecked reports whether commands or reviewers decide on the session's done.
func (s *Session) isChecked(ctx context.Context) bool {
	if len(s.Verify.All())+len(s.Verify.Hidden) > 0 {
		return true
	}
	wanted, err := s.reviewWanted(ctx)
	return wanted || err != nil
}

// uncheckable begins the reason why a done was not judged.
const uncheckable = "the done could not be checked: "

// Claimed reports whether the session closed with a done.
func (s *Session) Claimed(ctx context.Context) (bool, error) {
	closing, err := s.closing(ctx)
	return err == nil && closing.Payload != nil && closing.Payload.Verb() == ralph.VerbDone, err
}

// checkLate is [Session.checkDone] after the agent has ended, when nobody else watches for people's requests. A
// person's stop ends the check, without a finding.
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
	f, err := s.checkDone(within)
	if errors.Is(context.Cause(within), halted) {
		s.called, f, err = halted, nil, nil
	}
	stop(nil)
	<-watched
	return f, err
}

// obeyHalt stops a check if a person has stopped the session. Call it again once the channel is closed.
func (s *Session) obeyHalt(ctx context.Context, stop context.CancelCauseFunc) (changed <-chan struct{}) {
	changed = s.Store.Changed()
	row, err := store.Read(ctx, s.Store, func(tx *store.Tx) (ralph.Session, error) { return tx.Session(s.Row.ID) })
	if err == nil && row.HaltedBy != "" { // if the database is busy, the next change is looked at again
		stop(halted)
	}
	return changed
}

// checkDone inspects the session's work and then runs the verification on that commit, in a workspace without another
// user.
func (s *Session) checkDone(ctx context.Context) (*finding, error) {
	f, err := s.inspect(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.within(ctx, f); err != nil || len(f.evidence.Untaken) > 0 {
		return f, err // it is refused, even if the commands pass
	}
	if len(f.marks) > 0 {
		f.conflict, f.conflicts = "conflict marks are left in "+signals.FileList(f.marks), f.marks
		return f, nil
	}
	s.takes(s.Check.Longest(len(s.Verify.All())))
	round := check.Round{Session: s.Row.ID, Log: filepath.Join(s.folder(), "verify.log"), Slow: s.checking}
	defer s.checking("")
	if s.Workspace.Clone == nil {
		return f, errors.Join(s.checkAlone(ctx, f, round), s.hidden(ctx, f, "", f.made.Head, round))
	}
	return f, s.checkMerged(ctx, f, round)
}

// CheckTime returns the longest time that checking a done may take.
func (s *Session) CheckTime() time.Duration {
	return s.Check.Longest(len(s.Verify.All())) + s.reviewTime()
}

// takes announces how long the next step may take.
func (s *Session) takes(d time.Duration) {
	s.Progress.Busy(d)
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

// inspect commits the session's work so far and looks at that commit.
func (s *Session) inspect(ctx context.Context) (f *finding, err error) {
	f = &finding{}
	if err := s.candidate(ctx, f); err != nil {
		return nil, err
	}
	now, err := s.now(ctx, f.at)
	if err != nil {
		return nil, err
	}
	s.changed = s.changed.or(now.differ(s.reference))
	from, base, err := s.from(ctx, f.made)
	if err != nil {
		return nil, err
	}
	if f.files, err = s.repository().Changes(ctx, from, f.made.Head); err != nil {
		f.missed("which files were changed", err)
	}
	commits, err := s.repository().Commits(ctx, f.made.Head, from)
	if err != nil {
		f.missed("which commits were made", err)
	}
	for _, c := range commits {
		f.commits = append(f.commits, c.ID)
	}
	if f.protected, f.guarded, err = s.Check.Changed(ctx, s.repository(), base, f.made.Head); err != nil {
		return nil, err
	}
	if s.Workspace.Clone != nil {
		if f.evidence.Aside, f.evidence.Stashes, err = s.Workspace.Aside(ctx, f.made.Head); err == nil {
			err = s.maskAll(f.evidence.Stashes)
		}
		if err != nil {
			f.missed("what it left on branches of its own", err)
		}
		if f.evidence.Commits, err = s.commitNotes(ctx, f.made.Head, from); err != nil {
			f.missed("the authors, dates and words of its commits", err)
		}
		merges := f.files // includes work of the task's earlier sessions
		if from != base {
			if merges, err = s.repository().Changes(ctx, base, f.made.Head); err != nil {
				f.missed("whether a secret was committed", err)
			}
		}
		f.evidence.Secrets = s.secrets(merges)
		if f.marks, err = s.Workspace.Marks(ctx, f.made.Head); err != nil {
			return nil, err
		}
	}
	if err := s.saveDiffs(ctx, f, from, commits); err != nil { // they are for people and decide nothing
		s.Log.Warn("what the session changed is not kept line by line", "session", s.Row.ID, "error", err)
	}
	f.evidence.Uncontained = s.Row.Worker != "" && s.Row.Origin != ralph.FromHuman
	f.evidence.Drives = signals.Drives(s.Verify.Shared, s.Verify.Own, names(f.files))
	f.evidence.Drives = f.evidence.Drives[:min(len(f.evidence.Drives), maxEvidence)]
	return f, nil
}

// commitNotes lists the session's commits with a foreign author, date or words, with secrets masked.
func (s *Session) commitNotes(ctx context.Context, head, from string) ([]ralph.CommitNote, error) {
	list, err := s.repository().CommitNotes(ctx, head, from, s.Row.StartedAt.Time,
		ralph.Trailers(s.Row.TaskID, s.Row.ID))
	list = list[:min(len(list), maxEvidence)]
	for i := range list {
		list[i].Words = list[i].Words[:min(len(list[i].Words), maxEvidence)]
		if err := s.maskAll(list[i].Words); err != nil {
			return nil, err
		}
	}
	return list, err
}

// repository returns the people's repository, which has all candidates.
func (s *Session) repository() *worktree.Tree { return s.Workspace.Here().Tree }

// from returns the commits to compare the session's own work and the whole change with: its base, and the target at
// that time. If the session has merged later work, it is the target that the session saw.
func (s *Session) from(ctx context.Context, made worktree.Candidate) (from, base string, err error) {
	var before worktree.Snapshot
	err = s.Store.View(ctx, func(tx *store.Tx) error {
		var started hashes
		_, err := tx.Beginning(s.Row.ID, &before, &started)
		return err
	})
	before.Head = cmp.Or(before.Head, made.Base) // the session was recorded without a head
	shown, base := s.shown, before.Head
	if s.Workspace.Clone != nil {
		base = s.Workspace.Clone.Base
	} else if err == nil {
		shown, err = s.Merger.Tip(ctx)
	}
	if err != nil || shown == "" {
		return before.Head, base, err
	}
	newer, err := s.Merger.Tree.Ancestor(ctx, before.Head, shown)
	if err == nil && newer {
		newer, err = s.Merger.Tree.Ancestor(ctx, shown, made.Head)
	}
	if err != nil || !newer {
		return before.Head, base, err
	}
	return shown, shown, nil
}

// secrets returns the added files that look like secrets and that the person's git ignores.
func (s *Session) secrets(files []ralph.FileChange) (list []string) {
	for _, f := range files {
		if f.Status == "added" && exists(s.Workspace.Here().Path(f.Path)) && s.Workspace.Tree.SecretFile(f.Path) {
			list = append(list, f.Path)
		}
	}
	return list
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// saveDiffs saves the session's difference for people, with secrets masked.
func (s *Session) saveDiffs(ctx context.Context, f *finding, from string, commits []ralph.Commit) error {
	d, err := s.repository().Diffs(ctx, from, f.made.Head, f.files, commits, s.masked)
	if err != nil || len(d.Files)+len(d.Commits) == 0 {
		return err
	}
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	folder := s.Workspace.Folder(s.Row.ID)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, workspace.DiffsFile), b, 0o600)
}

// masked hides the secrets in a text, as for check output.
func (s *Session) masked(said string) (string, error) {
	if s.Check.Through == nil {
		return said, nil
	}
	b, err := io.ReadAll(s.Check.Through(strings.NewReader(said)))
	return string(b), err
}

// maskAll masks secrets in lists of an agent's own words, which the verdict repeats.
func (s *Session) maskAll(lists ...[]string) (err error) {
	for _, list := range lists {
		for i := range list {
			if list[i], err = s.masked(list[i]); err != nil {
				return err
			}
		}
	}
	return nil
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

// closing returns the session's closing signal so far; its payload is nil if there is none. It is called at the end of
// a turn or of the session, and records the signal as the checked one.
func (s *Session) closing(ctx context.Context) (_ signals.Said, err error) {
	s.closed, err = store.Read(ctx, s.Store, func(tx *store.Tx) (signals.Said, error) {
		said, err := tx.SessionSignals(s.Row.ID)
		return signals.Closing(said), err
	})
	return s.closed, err
}

// Shortly returns an error on one line, short enough for a verdict.
func Shortly(err error) string { return text.Short(err.Error(), 300) }
