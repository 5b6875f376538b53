package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"ralph"
	"ralph/loop/agent"
	"ralph/loop/order"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// Recover decides on a session whose process or machine stopped. It processes the session's signals, once, and kills
// processes that it left running.
func (p Parts) Recover(ctx context.Context, at Place, row ralph.Session) (signals.Decision, error) {
	killed, err := at.Workspace.Sweep(row.ID)
	if err != nil {
		return signals.Decision{}, err
	}
	if err := os.RemoveAll(workspace.Channel(row.ID)); err != nil {
		p.Log.Warn("cannot remove the channel of a lost session", "session", row.ID, "error", err)
	}
	s, err := p.reopen(ctx, at, row)
	if err != nil {
		return signals.Decision{}, err
	}
	report, err := s.salvage()
	if err != nil {
		if !p.Store.OtherMachine(row) { // otherwise the other machine has the workspace
			p.Log.Warn("cannot read the transcript of a lost session", "session", row.ID, "error", err)
		}
		report.Began = true // its cost is unknown, which is not zero
	}
	report.Ending, report.Reason = ralph.Lost, "lost: ralph or its machine stopped while it was running"
	for _, k := range killed {
		report.Leftovers = append(report.Leftovers, fmt.Sprintf("%d %s", k.Pid, k.Command))
	}
	return s.Decide(ctx, report)
}

// salvage reads the report from the session's folder. A missing folder
// yields an error and is created again.
func (s *Session) salvage() (agent.Report, error) {
	folder := s.folder()
	if _, err := os.Stat(folder); err != nil {
		return agent.Report{}, errors.Join(err, os.MkdirAll(folder, 0o700))
	}
	return s.Agent.Salvage(folder, agent.Unseen)
}

// reopen loads an open session that another process started.
func (p Parts) reopen(ctx context.Context, at Place, row ralph.Session) (*Session, error) {
	s := &Session{Parts: p, Place: at, Row: row, reopened: true}
	return s, p.Store.View(ctx, func(tx *store.Tx) (err error) {
		if s.Task, err = tx.Task(row.TaskID); err != nil {
			return err
		}
		if s.Order, err = order.Of(tx, p.Config, s.Task, row); err != nil {
			return err
		}
		var snapshot struct{}
		_, err = tx.Beginning(row.ID, &snapshot, &s.reference)
		return err
	})
}

// Lease is the duration of a worker's claim after its last call (decision 13).
const Lease = 30 * time.Minute

// Lapse decides on a claim whose lease has expired. Its task goes back to the queue,
// and its signals count, but a done is judged only in the worker's own work tree.
// It also decides on a person's session whose task was cancelled or amended.
func (p Parts) Lapse(ctx context.Context, at Place, row ralph.Session) error {
	how, why := ralph.Lost, fmt.Sprintf("lost: its worker %s is gone, or has not called for %s", row.Worker, Lease)
	if row.Origin == ralph.FromHuman {
		how, why = ralph.Interrupted, "interrupted: its task was called off or amended"
	}
	s, err := p.reopen(ctx, at, row)
	if err != nil {
		return err
	}
	unlock, err := s.tryEnding()
	if unlock == nil {
		return err
	}
	// The worker may have ended the session before the lock was taken. Then another session may use the workspace,
	// whose files must not be judged as this session's.
	err = s.Store.View(ctx, func(tx *store.Tx) error { return tx.CheckLapsed(row.ID) })
	if err == nil {
		err = p.loseReviewsOf(ctx, at, row.TaskID)
	}
	if err == nil {
		_, err = s.Decide(ctx, Ended(how, why))
	}
	if errors.Is(err, ralph.ErrConflict) { // the worker has just called
		err = nil
	}
	return errors.Join(err, unlock())
}

// LoseReview closes a review whose ralph or worker is gone, with the cost from its transcript. The change is reviewed
// again.
func (p Parts) LoseReview(ctx context.Context, at Place, row ralph.Session) error {
	v := &Session{Parts: p, Place: at, Row: row, reopened: true}
	v.Agent, v.Limits.CostUSD = p.Named(row), row.CostLimitUSD
	if _, err := at.Workspace.Sweep(row.ID); err != nil {
		return err
	}
	report, err := v.salvage()
	if err != nil {
		p.Log.Warn("cannot read the transcript of a lost review", "session", row.ID, "error", err)
		report.Began = true // its cost is unknown, which is not zero
	}
	report.Ending = ralph.Lost
	if err := v.take(report); err != nil {
		return err
	}
	return p.Store.Tx(ctx, func(tx *store.Tx) error {
		return tx.EndReview(v.Row, ralph.Review{
			Session: row.ID, Agent: row.Agent, For: row.Agent, Model: row.Model, None: "ralph or its machine stopped meanwhile",
		})
	})
}

// loseReviewsOf closes the open reviews of a task whose worker is gone.
func (p Parts) loseReviewsOf(ctx context.Context, at Place, task int64) error {
	open, err := store.Read(ctx, p.Store, func(tx *store.Tx) ([]ralph.Session, error) { return tx.OpenReviewsOf(task) })
	for _, row := range open {
		err = errors.Join(err, p.LoseReview(ctx, at, row))
	}
	return err
}

// Keep saves the workspace of a session that was decided elsewhere, unless the decider saved it, which another machine
// cannot. where describes the place in words; "" if there is nothing to save.
func (s *Session) Keep(ctx context.Context) (where string) {
	if s.Workspace.Clone == nil {
		return ""
	}
	ref := ralph.Change{SessionID: s.Row.ID}.Ref()
	kept, err := s.repository().Ref(ctx, ref)
	if err == nil && kept == "" {
		_, _, err = s.Workspace.Candidate(ctx, ref, "What was made under a claim that lapsed\n")
	}
	if err != nil { // the next use of the workspace will save it
		s.Log.Warn("cannot keep what is in a worker's workspace now", "session", s.Row.ID, "error", err)
		return ""
	}
	return " as " + ref
}

// GiveBack releases the workspace of a worker's session once no decision needs it. The claim has ended, even if this
// fails.
func (s *Session) GiveBack() {
	lock, err := s.endingLock()
	if err == nil {
		err = lock.Lock()
	}
	if err = errors.Join(err, s.Workspace.Release(), lock.Unlock()); err != nil {
		s.Log.Warn("cannot give back a worker's workspace in order", "session", s.Row.ID, "error", err)
	}
}
