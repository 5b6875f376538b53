package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/worktree"
	"ralph/loop/agent"
	"ralph/prompt"
	"ralph/signals"
	"ralph/store"
)

// A session gets at most maxNotices notices on other tasks, each once.
const (
	maxNotices  = 5
	noticeEvery = 5 * time.Second // minimum time between two looks, and before the first
)

// A notice is a message to a session about an event in another task.
type notice struct{ key, text string }

// pendingNotices returns the notices that have not been given yet.
func (s *Session) pendingNotices(ctx context.Context) ([]notice, error) {
	if len(s.told) >= maxNotices {
		return nil, nil
	}
	e, err := store.Read(ctx, s.Store, func(tx *store.Tx) (store.Elsewhere, error) { return tx.Elsewhere(s.Row) })
	if err != nil {
		return nil, err
	}
	// Look at the session's own changes only if a notice depends on them.
	news := func(key string) bool { return !s.told[key] && !s.passedBy[key] }
	var touched []string
	for _, l := range e.Merged {
		if news(mergedKey(l)) && len(touched) == 0 {
			if touched, err = s.touched(ctx); err != nil {
				return nil, err
			}
		}
	}
	for _, f := range e.Blocking {
		if news(flagKey(f)) && len(touched) == 0 {
			if touched, err = s.touched(ctx); err != nil {
				return nil, err
			}
		}
	}
	list := notices(e, touched, s.Merger.Name())
	for _, l := range e.Merged { // if the session touches those files later, its own merge will report it
		s.passedBy[mergedKey(l)] = true
	}
	list = slices.DeleteFunc(list, func(n notice) bool { return s.told[n.key] })
	return list[:min(len(list), maxNotices-len(s.told))], nil
}

// touched returns the files that the session has changed so far.
func (s *Session) touched(ctx context.Context) ([]string, error) {
	var before worktree.Snapshot
	var began hashes
	err := s.Store.View(ctx, func(tx *store.Tx) error {
		_, err := tx.Beginning(s.Row.ID, &before, &began)
		return err
	})
	if err != nil {
		return nil, err
	}
	now, err := s.Workspace.Snapshot(ctx, s.idleScratch())
	if err != nil {
		return nil, err
	}
	return s.Workspace.Tree.Moved(ctx, s.idleScratch(), before.Content, now.Content)
}

func mergedKey(l store.MergedTask) string { return fmt.Sprintf("merged %d", l.TaskID) }
func flagKey(c ralph.Comment) string      { return fmt.Sprintf("flag %d", c.ID) }

// notices returns the notices for a session that has changed the touched files.
func notices(e store.Elsewhere, touched []string, target string) (list []notice) {
	add := func(key, format string, args ...any) { list = append(list, notice{key, fmt.Sprintf(format, args...)}) }
	for _, l := range e.Merged {
		both := slices.DeleteFunc(slices.Clone(l.Files), func(f string) bool { return !slices.Contains(touched, f) })
		if len(both) > 0 {
			add(mergedKey(l), "TASK-%d has merged into %s meanwhile and changed %s, which you have changed too. "+
				"What you do is merged with it when you call done.", l.TaskID, target, signals.FileList(both))
		}
	}
	for _, f := range e.Blocking {
		named := slices.ContainsFunc(touched, func(file string) bool { return strings.Contains(f.Body, file) })
		if named {
			add(flagKey(f), "Somebody who works on TASK-%d has flagged a blocking problem with a file that you have "+
				"changed.\n\n%s", f.TaskID, prompt.Quoted("what was flagged", f.Body))
		}
	}
	for _, a := range e.Answers {
		add(fmt.Sprintf("answer %d %s", a.TaskID, a.Question), "A question of this feature (TASK-%d) was answered.\n\n%s",
			a.TaskID, prompt.Quoted("question and answer", a.Question+"\n\n"+a.Answer))
	}
	for _, l := range e.Learned {
		add(fmt.Sprintf("learned %d", l.ID), "Another session has found a %s for the whole project.\n\n%s",
			l.Kind, prompt.Quoted("what it says", l.Text))
	}
	return list
}

// tell gives the agent its notices, if it accepts them now.
func (s *Session) tell(ctx context.Context, say chan<- agent.Message) {
	if s.Width() == 1 || s.desk != nil || time.Since(s.noticedAt) < noticeEvery {
		return
	}
	s.noticedAt = time.Now()
	list, err := s.pendingNotices(ctx)
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("cannot tell a session what happens elsewhere", "session", s.Row.ID, "error", err)
	}
	for _, n := range list {
		if !s.send(ctx, agent.Message{Text: n.text, Delivered: func() {}}, say) {
			return
		}
		s.told[n.key] = true
	}
}

// send gives the agent a message. It returns false if the agent is busy with another one.
func (s *Session) send(ctx context.Context, m agent.Message, say chan<- agent.Message) bool {
	select {
	case say <- m:
		return true
	case <-ctx.Done():
	case <-time.After(pollSession): // the agent is busy with another message
	}
	return false
}

// Heard returns people's comments since the claim, for a worker, and
// marks them as delivered; "" if there are none.
func (s *Session) Heard(ctx context.Context) (said string, err error) {
	err = s.Store.Tx(ctx, func(tx *store.Tx) error {
		said = ""
		comments, err := tx.Undelivered(s.Row.TaskID, s.Row.StartedAt)
		for _, comment := range comments {
			said += "\n\n" + steering(comment)
			err = errors.Join(err, tx.MarkDelivered(comment.ID, s.Row.ID))
		}
		return err
	})
	return said, err
}
