package forge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

// A pull request is read if its modification time changed, and while a check runs or may still begin. A forge's times
// have a resolution of seconds, so a pull request that has just changed is read once more. The pauses between two
// reads grow with the time since the change, because some checks never end.
const (
	quiet       = 30 * time.Second
	checksBegin = 10 * time.Minute
	pauseShare  = 10 // of the time since the last change
)

// pulls opens a pull request for each change whose branch was pushed, and follows the open ones. It reads them from the
// forge only if read is set.
func (s *Syncer) pulls(ctx context.Context, read bool) error {
	if s.Git == nil {
		return nil
	}
	if read {
		if err := s.changed(ctx); err != nil {
			return err
		}
	}
	var review []ralph.Change
	var list []store.ForgePull
	status := map[int64]ralph.Status{}
	if err := s.Store.View(ctx, func(tx *store.Tx) (err error) {
		review, err = tx.ToPropose()
		return err
	}); err != nil {
		return err
	}
	for _, c := range review {
		if err := s.tolerate(ctx, c.TaskID, s.propose(ctx, c)); err != nil {
			return err
		}
	}
	if err := s.Store.View(ctx, func(tx *store.Tx) (err error) {
		list, err = tx.ForgePulls()
		for _, p := range list {
			t, terr := tx.Task(p.TaskID)
			status[p.TaskID], err = t.Status, errors.Join(err, terr)
		}
		return err
	}); err != nil {
		return err
	}
	for _, p := range list {
		due := read && p.Settled.IsZero() && !s.Now().Before(s.due[p.Number])
		if !due && (!p.Open || status[p.TaskID] != ralph.Cancelled) {
			continue
		}
		if err := s.tolerate(ctx, p.TaskID, s.follow(ctx, p)); err != nil {
			return err
		}
	}
	return nil
}

// tolerate returns an error that ends the look, and notes one about a single pull request.
func (s *Syncer) tolerate(ctx context.Context, task int64, err error) error {
	if store.Failed(err) || ctx.Err() != nil {
		return err
	}
	if errors.As(err, new(*Error)) {
		return s.alone(ctx, fmt.Sprintf("TASK-%d", task), err)
	}
	if err != nil {
		s.Log.Warn("a pull request is not followed", "task", task, "error", err)
	}
	return nil
}

// changed marks the pull requests to read again: with a request all that the forge reports as changed, and without one
// all that conflict with a target that has moved.
func (s *Syncer) changed(ctx context.Context) error {
	var since ralph.Time
	var known []store.ForgePull
	if err := s.Store.View(ctx, func(tx *store.Tx) (err error) {
		if since, err = tx.ForgeSettled(); err == nil {
			known, err = tx.ForgePulls()
		}
		return err
	}); err != nil || since.IsZero() { // all are read anyway
		return err
	}
	list, err := s.Forge.Changed(ctx, since.Time)
	if err != nil {
		return err
	}
	var again []int64
	if tip, err := s.Git.Tip(ctx); err != nil {
		s.Log.Debug("the target is not known", "error", err) // the remote is away: the merge queue says so
	} else if tip != s.tip {
		for _, p := range known {
			if conflicts, err := s.Git.Conflicts(ctx, p.Branch, false); err == nil && conflicts && p.Open {
				again = append(again, p.Number)
			}
		}
		s.tip = tip
	}
	return s.Store.Tx(ctx, func(tx *store.Tx) error {
		for _, n := range list {
			p, ok, err := tx.ForgePull(n.Number)
			switch {
			case err != nil:
				return err
			case !ok || !n.Updated.After(p.Settled.Time):
				continue
			case p.Open || n.Open:
				again = append(again, n.Number)
				continue
			}
			p.Settled = ralph.At(n.Updated)
			if err := tx.PutForgePull(p); err != nil {
				return err
			}
		}
		return tx.UnsettleForge(again)
	})
}

// propose opens the pull request of a change, or notes that the change was pushed to an open one.
func (s *Syncer) propose(ctx context.Context, c ralph.Change) error {
	var t ralph.Task
	var p store.ForgePull
	var issue store.ForgeIssue
	var ok, has bool
	var body string
	if err := s.Store.View(ctx, func(tx *store.Tx) (err error) {
		if t, err = tx.Task(c.TaskID); err != nil {
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
		return err
	}
	if ok && p.Open && p.Branch == c.Branch {
		p.ChangeID, p.Settled = c.ID, ralph.Time{}
		s.touch(t.ID)
		return s.Store.Tx(ctx, func(tx *store.Tx) error {
			return errors.Join(tx.PutForgePull(p), tx.AnswerRemarks(p.Number, "Commit "+ralph.ShortID(c.To)+" answers this."))
		})
	}
	title := text.Clip(Plain(t.Title), 200)
	if c.Undo == ralph.Cancelled {
		title = "Undo: " + title
		body = Plain(c.Reason) + "\n"
	} else if has {
		body += fmt.Sprintf("\nCloses #%d\n", issue.Number)
	}
	body = fmt.Sprintf("%s\n**TASK-%d.** %s", mark(fmt.Sprintf("TASK-%d pull", t.ID), s.queue), t.ID, body)
	// A request whose answer was lost may have opened it.
	number, err := s.Forge.PullOf(ctx, c.Branch)
	if err == nil && number == 0 {
		number, err = s.Forge.Open(ctx, Proposal{
			Title: s.Mask(title), Body: text.Clip(s.Mask(body), maxPost), Branch: c.Branch, Into: s.Into,
		})
	}
	if err != nil {
		return err
	}
	pull, err := s.Forge.Pull(ctx, number)
	if err != nil {
		return err
	}
	s.touch(t.ID)
	p = store.ForgePull{Number: number, TaskID: t.ID, ChangeID: c.ID, Branch: c.Branch, URL: pull.URL, Open: true}
	return s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.PutForgePull(p) })
}

// follow reads a pull request and does the next step.
func (s *Syncer) follow(ctx context.Context, p store.ForgePull) error {
	pull, err := s.Forge.Pull(ctx, p.Number)
	if err != nil {
		return err
	}
	for _, c := range pull.Comments {
		if err := s.comment(ctx, p.TaskID, store.ForgeReply{ID: conversation + c.ID, Number: p.Number}, c); err != nil {
			return err
		}
	}
	var t ralph.Task
	var c ralph.Change
	if err := s.Store.View(ctx, func(tx *store.Tx) (err error) {
		if t, err = tx.Task(p.TaskID); err == nil {
			c, err = tx.Change(p.ChangeID)
		}
		return err
	}); err != nil {
		return err
	}
	news, err := s.news(ctx, t, c, p, pull)
	if err != nil {
		return err
	}
	since := s.Now().Sub(pull.Updated)
	s.due = with(s.due, p.Number, s.Now().Add(since/pauseShare))
	before := p.Settled
	p.Settled = ralph.Time{}
	if pull.Closed || !news.Pending && since > quiet && (len(pull.Checks) > 0 || since > checksBegin) {
		p.Settled = ralph.At(pull.Updated)
	}
	s.touch(t.ID)
	put := func(tx *store.Tx) error { return tx.PutForgePull(p) }
	switch Follow(news) {
	case Done:
		return s.merged(ctx, t, p, pull)
	case Drop:
		why, err := s.closed(ctx, p)
		if err != nil {
			return err
		}
		return s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.ReviewClosed(p, why) })
	case Resume:
		return s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.ReviewReopened(p) })
	case Withdraw:
		return s.withdraw(ctx, t, p, pull)
	case Work, Ask:
		return s.round(ctx, c, p, news)
	case MergeNow:
		p.Settled = ralph.Time{}
		if err := s.Store.Tx(ctx, put); err != nil {
			return err
		}
		queued, err := s.Forge.Merge(ctx, p.Number, pull.Head)
		if err != nil || !queued {
			return err
		}
		return s.Store.Tx(ctx, func(tx *store.Tx) error {
			_, err := tx.TakeForgeComment(store.ForgeReply{ID: inQueue(pull), Number: p.Number})
			return err
		})
	}
	if before == p.Settled {
		return nil
	}
	return s.Store.Tx(ctx, put)
}

// inQueue records that a commit was put into the merge queue. If the queue drops it, a person decides.
func inQueue(p Pull) string { return fmt.Sprintf("queue %d %s", p.Number, p.Head) }

// with returns a map with one more entry.
func with[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	if m == nil {
		m = map[K]V{}
	}
	m[key] = value
	return m
}

// merged completes the task of a merged pull request, and deletes its branch.
func (s *Syncer) merged(ctx context.Context, t ralph.Task, p store.ForgePull, pull Pull) error {
	base, files, err := s.Git.Landed(ctx, pull.Into, p.Branch, pull.Merged, pull.Head)
	if err != nil {
		return err
	}
	if t.Status != ralph.InProgress {
		if err := s.Git.DropBranch(ctx, p.Branch, pull.Head); err != nil {
			s.Log.Warn("the branch of a merged pull request stays", "branch", p.Branch, "error", err)
		}
	}
	return s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.ReviewMerged(p, pull.Merged, base, pull.Into, files) })
}

// closed returns why a pull request was closed: the last comment of a person.
func (s *Syncer) closed(ctx context.Context, p store.ForgePull) (string, error) {
	why := fmt.Sprintf("pull request #%d, which was closed", p.Number)
	list, err := s.Forge.Said(ctx, p.Number)
	if err != nil {
		return "", err
	}
	for _, c := range slices.Backward(list) {
		if _, ours := Marked(c.Body); ours {
			continue
		}
		if ok, err := s.person(ctx, c.Author); err != nil {
			return "", err
		} else if ok {
			return why + ": " + text.Line(s.Mask(c.Body), 300), nil
		}
	}
	return why, nil
}

// withdraw closes the pull request of a task that is not wanted any more, with a comment.
func (s *Syncer) withdraw(ctx context.Context, t ralph.Task, p store.ForgePull, pull Pull) error {
	why := "Closed: " + Plain(text.Clip(t.StatusReason, 1000))
	if err := s.tell(ctx, p.Number, "", fmt.Sprintf("TASK-%d closed", t.ID), why); err != nil {
		return err
	}
	if err := s.Forge.Close(ctx, p.Number); err != nil && KindOf(err) != Gone {
		return err
	}
	p.Open, p.Settled = false, ralph.At(pull.Updated)
	return s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.PutForgePull(p) })
}

// news gathers the facts about a pull request. From reviews and remarks it takes the new ones by
// people with the right to write.
func (s *Syncer) news(
	ctx context.Context, t ralph.Task, c ralph.Change, p store.ForgePull, pull Pull,
) (n News, err error) {
	n = News{
		Open: p.Open, Closed: pull.Closed, Merged: pull.Merged != "", Reviewing: c.State == ralph.Reviewing,
		Unwanted: t.Status == ralph.Cancelled || c.Undo != "" && c.State == ralph.Dropped,
		Rounds:   p.Rounds, Most: s.Rounds, Auto: s.Auto,
	}
	if n.Closed || n.Unwanted || !n.Reviewing {
		return n, nil
	}
	queued, err := store.Read(ctx, s.Store, func(tx *store.Tx) (bool, error) { return tx.TookForgeComment(inQueue(pull)) })
	if err != nil {
		return n, err
	}
	here := pull.Into == s.Into // else a person has chosen another branch, and merges it
	n.Auto = n.Auto && !queued && !pull.Draft && here
	if here {
		if n.Conflict, err = s.Git.Conflicts(ctx, p.Branch, true); err != nil {
			return n, err
		}
	}
	for _, c := range pull.Checks {
		if n.Pending = n.Pending || !c.Done; c.Red {
			n.Red = append(n.Red, c)
		}
	}
	return n, s.opinions(ctx, pull, &n)
}

// opinions adds the reviews and remarks that count.
func (s *Syncer) opinions(ctx context.Context, pull Pull, n *News) error {
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
			return err
		}
		this := r.Commit == "" || r.Commit == pull.Head // an approval is of what the reviewer saw
		n.Approved, n.Objects = n.Approved || ok && r.Approves && this, n.Objects || ok && r.Objects
		if fresh, err := counts(onReview+r.ID, r.Author); err != nil {
			return err
		} else if fresh && !r.Approves && (r.Objects || strings.TrimSpace(r.Body) != "") {
			n.Reviews = append(n.Reviews, r)
		}
	}
	for _, m := range pull.Remarks {
		if _, ours := Marked(m.Body); ours {
			continue
		}
		if fresh, err := counts(m.key(), m.Author); err != nil {
			return err
		} else if fresh {
			n.Remarks = append(n.Remarks, m)
		}
	}
	return nil
}

// key names a remark in the database.
func (m Remark) key() string { return onThread + m.Thread + "/" + m.ID }

// round sends the task to a session on the branch's present commit, with the words of people and
// checks.
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
	if p.Rounds++; c.Undo != "" { // the undo is over, and its pull request is closed next
		p.Settled = ralph.Time{}
	}
	return s.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.PutForgePull(p); err != nil {
			return err
		}
		for _, r := range n.Reviews {
			said := r.Body
			if strings.TrimSpace(said) == "" {
				said = "requests changes, without words"
			}
			if err := s.take(tx, p, onReview+r.ID, r.Author, said); err != nil {
				return err
			}
		}
		for _, m := range n.Remarks {
			said := m.Body
			if m.File != "" {
				said = fmt.Sprintf("On %s, line %d: %s", m.File, m.Line, m.Body)
			}
			if err := s.take(tx, p, m.key(), m.Author, said); err != nil {
				return err
			}
		}
		return tx.ReviewRound(c, head, tree, reason, blocked, nil)
	})
}

// take turns a review or a remark into a comment of its author on the task. The next session's
// prompt has it.
func (s *Syncer) take(tx *store.Tx, p store.ForgePull, id, by, said string) error {
	taken, err := tx.TakeForgeComment(store.ForgeReply{ID: id, Number: p.Number})
	if err != nil || !taken {
		return err
	}
	return say(tx, p.TaskID, fmt.Sprintf("Review of pull request #%d. %s", p.Number, s.Mask(text.Clip(said, 16000))), by)
}

// why describes the purpose of a round.
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
