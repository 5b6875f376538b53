package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/internal/worktree"
	"ralph/loop/check"
	"ralph/loop/merging"
	"ralph/signals"
	"ralph/store"
)

// candidate commits the present contents of the workspace. This commit is checked, merged or continued, even if the
// workspace changes later. If git refuses the workspace's .git, the commit has the files without it, and the finding
// reports that.
func (s *Session) candidate(ctx context.Context, f *finding) error {
	ref, message := ralph.Change{SessionID: s.Row.ID}.Ref(), commitMessage(s, s.closed.Payload)
	take := func() (err error) {
		limited, cancel := worktree.Limited(ctx)
		defer cancel()
		f.at, f.made, err = s.Workspace.Candidate(limited, ref, message, s.Task.Files...)
		f.evidence.Untaken, f.evidence.Debris = f.at.Untaken, f.at.Debris
		return err
	}
	known := ""
	if s.reopened && s.Workspace.Clone != nil { // in a person's own folder the present state counts
		var err error
		if known, err = s.Merger.Tree.Ref(ctx, ref); err != nil {
			return err
		}
	}
	why := take()
	if why == nil {
		return s.same(ctx, f, ref, known)
	}
	why = fmt.Errorf("cannot commit the session's work: %w", why)
	if s.Workspace.Clone == nil || ctx.Err() != nil || !worktree.Refused(why) {
		return why
	}
	if err := s.Workspace.Renew(ctx, why); err != nil {
		return errors.Join(why, err)
	}
	err := take()
	f.evidence.Untaken = append(f.evidence.Untaken, refusedBy(why))
	return err
}

// same reuses the session's earlier commit if the content is equal: the commit may have been handed over before its
// ralph was lost, and another machine may be checking it.
func (s *Session) same(ctx context.Context, f *finding, ref, known string) error {
	if known == "" || known == f.made.Head || f.made.Head == f.made.Base {
		return nil
	}
	tree, err := s.Merger.Tree.Whole(ctx, known)
	if err != nil || tree != f.made.Tree {
		return err
	}
	on, err := s.Merger.Tree.Ancestor(ctx, f.made.Base, known)
	if err != nil || !on {
		return err
	}
	f.made.Head = known
	return s.Merger.Tree.SetRef(ctx, ref, known)
}

// commitMessage names the task and the session in trailers, where programs find them.
func commitMessage(s *Session, closing signals.Payload) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", text.Flat(s.Task.Title))
	if done, ok := closing.(signals.Done); ok {
		fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(text.Clean(done.Summary)))
	}
	return b.String() + ralph.Trailers(s.Task.ID, s.Row.ID)
}

// checkAlone checks a person's candidate unmerged: they merge it themselves.
func (s *Session) checkAlone(ctx context.Context, f *finding, round check.Round) error {
	if len(s.Verify.All()) == 0 {
		return nil
	}
	at := s.checker(round)
	compare := func(o check.Outcome) ralph.Check { return check.Compare(o, s.Before, s.Verify, s.Check.Strict) }
	results, err := s.verified(ctx, at, f.made.Head, s.Verify.All(), compare)
	for _, r := range results {
		f.checks = append(f.checks, compare(r))
	}
	f.evidence.Rewritten = check.Rewritten(results)
	return err
}

// verified runs commands on a commit, and repeats those with refused results.
func (s *Session) verified(
	ctx context.Context, at *check.Checker, commit string, commands []string, compare func(check.Outcome) ralph.Check,
) ([]check.Outcome, error) {
	results, err := at.Verify(ctx, commit, commands)
	if err != nil || ctx.Err() != nil {
		return results, err
	}
	return s.Check.Again(results, compare, func(again []string) ([]check.Outcome, error) {
		return at.Verify(ctx, commit, again)
	})
}

// checker returns the verifier of the session's candidates.
func (s *Session) checker(round check.Round) *check.Checker {
	return &check.Checker{Rules: s.Check, Pool: s.Pool, Of: s.Workspace, Width: s.Width(), Round: round}
}

// refusedBy names the refused part of a workspace's .git.
func refusedBy(why error) ralph.Untaken {
	return worktree.Renewed("has something that git refuses (" + Shortly(why) + ")")
}

// lastLook is the time limit of a look after the run is stopped. The next use of the workspace saves the rest.
const lastLook = 5 * time.Second

// outlast returns a context that ends [lastLook] after ctx.
func outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastLook, cancel) })
	return within, func() { stop(); cancel() }
}

// checkMerged checks the session's candidate in another workspace, merged with newly merged work and the
// changes ahead in the line. A conflict sends it back.
func (s *Session) checkMerged(ctx context.Context, f *finding, round check.Round) error {
	merger := s.Merger.In(s.checker(round))
	if s.late {
		merger.Wait = 0 // no agent can hear of it, and this process may have to merge the other changes
	}
	change := ralph.Change{
		TaskID: s.Row.TaskID, SessionID: s.Row.ID, Base: f.made.Base, Head: f.made.Head, Tree: f.made.Tree,
	}
	tried, err := merger.Try(ctx, change)
	f.checks, f.evidence.Rewritten = append(f.checks, tried.Checks...), tried.Rewritten
	f.conflict, f.conflicts, f.merged = tried.Conflict, tried.Conflicts, tried.Merged
	if err == nil && ctx.Err() == nil && tried.Conflict == "" && tried.Refused == "" {
		if err := s.hidden(ctx, f, tried.Onto, tried.Commit, round); err != nil {
			return err
		}
		if err := s.gate(ctx, f, merger, tried.Own()); err != nil || ctx.Err() != nil {
			return err
		}
		held := len(s.Done)
		if err := s.review(ctx, f); err != nil || ctx.Err() != nil || len(s.Done) == held || s.refusal(f).Any() {
			return err
		}
		if tried, err = s.Merger.Rejoin(ctx, change, tried.Target); err != nil || tried.Conflict == "" {
			return err
		}
		f.conflict, f.conflicts = tried.Conflict, tried.Conflicts
	}
	if err != nil {
		return err
	}
	known, err := s.Merger.Tree.Ancestor(ctx, tried.Target.Tip, cmp.Or(s.shown, s.Workspace.Clone.Base))
	if err != nil || known && tried.Conflict == "" {
		return err
	}
	f.moved, s.shown = !known, tried.Target.Tip
	return s.Workspace.ShowTip(s.shown)
}

// leaveLine takes the session's change out of the merge line.
func (s *Session) leaveLine(ctx context.Context) {
	if s.Workspace.Clone != nil {
		s.Merger.Leave(ctx, s.Row.ID)
	}
}

// gate finds the change's effect on gate files, after its check has passed. People vouch for their own work.
func (s *Session) gate(ctx context.Context, f *finding, merger *merging.Merger, b merging.Built) error {
	if s.Row.Origin == ralph.FromHuman || b.Target.Gone != "" {
		return nil
	}
	g, err := merger.Gate(ctx, ralph.Change{
		TaskID: s.Row.TaskID, SessionID: s.Row.ID, Base: f.made.Base, Head: f.made.Head, Tree: f.made.Tree,
	}, b, f.checks, f.guarded)
	if err != nil || ctx.Err() != nil {
		return err
	}
	// Without a change, the results of this check become the target's: earlier failures were fixed elsewhere.
	g.Unchanged = g.Unchanged && !slices.ContainsFunc(s.Before, func(o check.Outcome) bool { return !o.Check.Passed })
	if done, ok := s.closed.Payload.(signals.Done); ok {
		g.Reason = done.TestsChanged
	}
	f.evidence.Gate, f.gateFrom, f.gateTo = g, b.Target.Tip, b.Commit
	return nil
}

// within finds nested repositories, such as submodules, at commits that nobody else could fetch, which would make the
// merged change useless to others. It asks only known addresses. It also finds symbolic links that lead out of the
// repository.
func (s *Session) within(ctx context.Context, f *finding) error {
	if s.Row.Origin != ralph.FromHuman {
		leading, err := s.repository().Leading(ctx, f.made.Base, f.made.Head)
		if err != nil {
			return err
		}
		f.evidence.Untaken = append(f.evidence.Untaken, leading...)
	}
	links, err := s.Merger.Tree.Links(ctx, f.made.Base, f.made.Head)
	if err != nil {
		return err
	}
	for _, l := range links {
		at := fmt.Sprintf("%s is at %.12s, ", l.Path, l.Commit)
		if l.URL == "" {
			f.evidence.Within = append(f.evidence.Within, at+"a commit of a repository of its own that has no remote")
			continue
		}
		if !l.Known {
			f.evidence.Untaken = append(f.evidence.Untaken, ralph.Untaken{Path: l.Path, Why: "is a repository at " + l.URL +
				", which nobody has committed before this session, so ralph does not ask there for " + l.Commit[:12] +
				": have its files be the project's own, or call stuck for a person to add it"})
			continue
		}
		has, err := worktree.Offers(ctx, filepath.Join(s.Merger.State, "modules.git"), l, s.Merger.AfterEnv)
		if err != nil {
			f.missed(fmt.Sprintf("whether the remote of %s has its commit", l.Path), err)
		} else if !has {
			f.evidence.Within = append(f.evidence.Within, at+"which its remote lacks ("+l.URL+")")
		} else {
			f.evidence.Modules = append(f.evidence.Modules, l.Path)
		}
	}
	return ctx.Err()
}

// rescued sets the row's change to the saved work of the session's workspace, if that was removed or prepared for
// another session.
func (s *Session) rescued(ctx context.Context) error {
	c := ralph.Change{TaskID: s.Row.TaskID, SessionID: s.Row.ID}
	var err error
	if c.Head, err = s.Merger.Obtain(ctx, c); err != nil || c.Head == "" {
		return err
	}
	var before worktree.Snapshot
	if c.Tree, err = s.Merger.Tree.Whole(ctx, c.Head); err == nil {
		before, err = store.Read(ctx, s.Store, func(tx *store.Tx) (before worktree.Snapshot, err error) {
			var started hashes
			_, err = tx.Beginning(s.Row.ID, &before, &started)
			return before, err
		})
	}
	c.Base = before.Head
	if err == nil {
		s.Row.Change = &c
	}
	return err
}

// handOverTime is how long handing a change over may take.
const handOverTime = 30 * time.Second

// handOver pushes the session's change for other machines, before they learn of it. If that fails, a done is not
// judged, and its task goes back.
func (s *Session) handOver(ctx context.Context, saw *observation) {
	if s.Row.Change == nil || saw.blind || !s.Merger.Travels() {
		return
	}
	ours := func(tx *store.Tx) error { return tx.CheckSession(s.Row.TaskID, s.Row.ID) }
	if err := s.Store.View(ctx, ours); errors.Is(err, ralph.ErrConflict) {
		return // others have decided on it, perhaps with an earlier version
	}
	c := *s.Row.Change
	c.TaskID, c.SessionID = s.Row.TaskID, s.Row.ID
	limited, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	err := s.Merger.HandOver(limited, c)
	for wait := time.Second; err != nil && limited.Err() == nil; wait *= 2 {
		select {
		case <-time.After(wait):
			err = s.Merger.HandOver(limited, c)
		case <-limited.Done():
		}
	}
	if err == nil {
		return
	}
	saw.missed("whether other machines have its change", err)
	if done, cerr := s.Claimed(ctx); done || cerr != nil {
		saw.stopped = cmp.Or(saw.stopped, "its change could not be handed over: "+Shortly(err))
	}
}

// saveMade sets the row's change to the session's work in its workspace.
func (s *Session) saveMade(ctx context.Context, saw *observation) {
	if s.Workspace.Clone == nil || saw.blind {
		return
	}
	if err := s.Workspace.SaveLoose(ctx, s.Row.ID, saw.made.Head); err != nil {
		saw.missed("what it committed beside what it came to, or stashed", err)
	}
	if saw.made.Head != saw.made.Base {
		s.Row.Change = &ralph.Change{
			Base: saw.made.Base, Head: saw.made.Head, Tree: saw.made.Tree, Conflicts: saw.marks,
		}
	}
}
