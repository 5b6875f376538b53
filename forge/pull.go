package forge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

// pulls opens a pull request for each change whose branch was pushed, and follows those that are open.
func (s *Syncer) pulls(ctx context.Context) error {
	if s.Git == nil {
		return nil
	}
	list, err := store.Read(ctx, s.Store, (*store.Tx).InReview)
	if err != nil {
		return err
	}
	for _, c := range list {
		p, ok, err := s.pullFor(ctx, c)
		if err == nil && ok {
			err = s.follow(ctx, c, p)
		}
		if e, ok := errors.AsType[*Error](err); ok && e.Kind.Passes() || store.Failed(err) || ctx.Err() != nil {
			return err
		}
		if err != nil {
			s.Log.Warn("a pull request is not followed", "task", c.TaskID, "error", err)
		}
	}
	return nil
}

// pullFor returns the pull request of a change; it opens one if there is none. ok is false if it was opened just now.
func (s *Syncer) pullFor(ctx context.Context, c ralph.Change) (p store.ForgePull, ok bool, err error) {
	var t ralph.Task
	var issue store.ForgeIssue
	var has bool
	var body, branch string
	if err := s.Store.View(ctx, func(tx *store.Tx) (err error) {
		if t, err = tx.Task(c.TaskID); err != nil {
			return err
		}
		if branch, err = tx.BranchOf(c.ID); err != nil {
			return err
		}
		if p, ok, err = tx.ForgePullOf(t.ID); err != nil {
			return err
		}
		if issue, has, err = tx.ForgeIssueOf(t.ID); err != nil {
			return err
		}
		body, err = receipt(tx, t.ID)
		return err
	}); err != nil {
		return p, false, err
	}
	if ok && p.Open && p.Branch == branch {
		if p.ChangeID != c.ID {
			p.ChangeID = c.ID
			err = s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.PutForgePull(p) })
		}
		return p, true, err
	}
	title := text.Clip(Plain(t.Title), 200)
	if c.Undo == ralph.Cancelled {
		title = "Undo: " + title
		body = Plain(c.Reason) + "\n"
	} else if has {
		body += fmt.Sprintf("\nCloses #%d\n", issue.Number)
	}
	body = fmt.Sprintf("%s\n**TASK-%d.** %s", mark(fmt.Sprintf("TASK-%d pull", t.ID)), t.ID, body)
	// A try that has arrived although nobody heard of it has left one.
	number, err := s.Forge.PullOf(ctx, branch)
	if err == nil && number == 0 {
		number, err = s.Forge.Open(ctx, Proposal{Title: s.Mask(title), Body: s.Mask(body), Branch: branch, Into: s.Into})
	}
	if err != nil {
		return p, false, err
	}
	pull, err := s.Forge.Pull(ctx, number)
	if err != nil {
		return p, false, err
	}
	p = store.ForgePull{Number: number, TaskID: t.ID, ChangeID: c.ID, Branch: branch, URL: pull.URL, Open: true}
	return p, false, s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.PutForgePull(p) })
}

// follow does what follows from a pull request.
func (s *Syncer) follow(ctx context.Context, c ralph.Change, p store.ForgePull) error {
	pull, err := s.Forge.Pull(ctx, p.Number)
	if err != nil {
		return err
	}
	news, err := s.news(ctx, p, pull)
	if err != nil {
		return err
	}
	switch Follow(news) {
	case Done:
		files, err := s.Git.Landed(ctx, pull.Merged)
		if err != nil {
			return err
		}
		return s.Store.Tx(ctx, func(tx *store.Tx) error {
			if p.Open = false; c.State != ralph.Reviewing {
				return nil
			}
			return first(tx.PutForgePull(p), func() error { return tx.ReviewMerged(c, pull.Merged, s.Into, files) })
		})
	case Drop:
		return s.Store.Tx(ctx, func(tx *store.Tx) error {
			p.Open = false
			return first(tx.PutForgePull(p), func() error {
				_, err := tx.Cancel(p.TaskID, fmt.Sprintf("pull request #%d, which was closed", p.Number))
				return err
			})
		})
	case Work, Ask:
		return s.round(ctx, c, p, news)
	case MergeNow:
		return s.Forge.Merge(ctx, p.Number, pull.Head)
	}
	return nil
}

// first returns an error, or else that of the next step.
func first(err error, next func() error) error {
	if err != nil {
		return err
	}
	return next()
}

// news is what a pull request has that the decision depends on: of people with the right, and not taken yet.
func (s *Syncer) news(ctx context.Context, p store.ForgePull, pull Pull) (n News, err error) {
	n = News{
		Closed: pull.Closed, Merged: pull.Merged != "", Conflict: pull.Conflict, Rounds: p.Rounds, Most: s.Rounds,
		Auto: s.Auto,
	}
	if n.Conflict {
		if n.Conflict, err = s.Git.Conflicts(ctx, p.Branch); err != nil {
			return n, err
		}
	}
	for _, c := range pull.Checks {
		if n.Pending = n.Pending || !c.Done; c.Red {
			n.Red = append(n.Red, c)
		}
	}
	counts := func(id, author string) (bool, error) {
		if ok, err := s.person(ctx, author); err != nil || !ok {
			return false, err
		}
		took, err := store.Read(ctx, s.Store, func(tx *store.Tx) (bool, error) { return tx.TookForgeComment(id) })
		return !took, err
	}
	for _, r := range pull.Reviews {
		if _, ours := Marked(r.Body); ours {
			continue
		}
		ok, err := s.person(ctx, r.Author)
		if err != nil {
			return n, err
		}
		n.Approved, n.Objects = n.Approved || ok && r.Approves, n.Objects || ok && r.Objects
		if fresh, err := counts("r"+r.ID, r.Author); err != nil {
			return n, err
		} else if fresh && !r.Approves && (r.Objects || strings.TrimSpace(r.Body) != "") {
			n.Reviews = append(n.Reviews, r)
		}
	}
	for _, m := range pull.Remarks {
		if fresh, err := counts("m"+m.ID, m.Author); err != nil {
			return n, err
		} else if fresh {
			n.Remarks = append(n.Remarks, m)
		}
	}
	return n, nil
}

// round has a session of the task go on, on the branch as it is now, with what people and checks say.
func (s *Syncer) round(ctx context.Context, c ralph.Change, p store.ForgePull, n News) error {
	head, tree, err := s.Git.Pull(ctx, c, p.Branch)
	if err != nil {
		return err
	}
	if head == "" {
		return fmt.Errorf("the branch %s is gone from the remote", p.Branch)
	}
	reason, blocked := why(p.Number, n), ""
	if Follow(n) == Ask {
		blocked = fmt.Sprintf("%s; that was after %s, the most (limits.review_rounds): resolve this to have "+
			"another session work on it", text.Line(reason, 300), text.Count(p.Rounds, "round"))
	}
	p.Rounds++
	return s.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.PutForgePull(p); err != nil {
			return err
		}
		for _, r := range n.Reviews {
			said := r.Body
			if strings.TrimSpace(said) == "" {
				said = "requests changes, without words"
			}
			if err := s.take(tx, p, "r"+r.ID, r.Author, said); err != nil {
				return err
			}
		}
		for _, m := range n.Remarks {
			said := fmt.Sprintf("On %s, line %d: %s", m.File, m.Line, m.Body)
			if err := s.take(tx, p, "m"+m.ID, m.Author, said); err != nil {
				return err
			}
		}
		return tx.ReviewRound(c, head, tree, reason, blocked, nil)
	})
}

// take makes a review or a remark a comment of its author on the task, which the next session is told.
func (s *Syncer) take(tx *store.Tx, p store.ForgePull, id, by, said string) error {
	taken, err := tx.TakeForgeComment(store.ForgeReply{ID: id, Number: p.Number})
	if err != nil || !taken {
		return err
	}
	return say(tx, p.TaskID, fmt.Sprintf("Review of pull request #%d. %s", p.Number, s.Mask(text.Clip(said, 16000))), by)
}

// why says in words what a round is for.
func why(number int64, n News) string {
	var parts []string
	if len(n.Reviews)+len(n.Remarks) > 0 {
		parts = append(parts, text.Count(len(n.Reviews)+len(n.Remarks), "review comment"))
	}
	if n.Conflict {
		parts = append(parts, "it conflicts with its base")
	}
	var names []string
	for _, c := range n.Red {
		names = append(names, text.Line(c.Name, 80))
	}
	if len(names) > 0 {
		slices.Sort(names)
		parts = append(parts, "these checks failed: "+strings.Join(names, ", "))
	}
	said := fmt.Sprintf("pull request #%d: %s", number, strings.Join(parts, "; "))
	for _, c := range n.Red {
		if c.Log != "" {
			said += fmt.Sprintf("\n\nThe end of %s:\n%s", text.Line(c.Name, 80), text.Tail(text.Clean(c.Log), maxLog))
		}
	}
	return said
}
