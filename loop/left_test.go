package loop_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// A worker learns from its next call that a person has taken its task away.
func TestAClaimIsOverOnceAPersonSaysSo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		say  func(tx *store.Tx, session string) error
		want string
	}{
		{"nobody says anything", func(*store.Tx, string) error { return nil }, ""},
		{"the task is called off", func(tx *store.Tx, s string) error { return tx.RequestStop(s, "cancel", "eve") }, "eve cancelled the task"},
		{"it is changed", func(tx *store.Tx, s string) error { return tx.RequestStop(s, "contract", "eve") }, "eve changed the task"},
		{"the session is stopped", func(tx *store.Tx, s string) error { return tx.Halt(s, "eve") }, "eve stopped it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			c := b.claim(b.tree(), b.add(ralph.Task{Title: "A"}), "ann")
			b.tx(func(tx *store.Tx) error { return tt.say(tx, c.SessionID()) })
			err := c.Renew(t.Context())
			s := b.last()
			if tt.want == "" {
				if err != nil || s.Ending != "" {
					t.Errorf("got %v, and it is %s", err, s.Ending)
				}
				return
			}
			var dropped *loop.DroppedError
			if !errors.As(err, &dropped) || dropped.Why != tt.want || s.Ending != ralph.Interrupted || s.Reason != "interrupted: "+tt.want {
				t.Errorf("got %v; it is %s: %s", err, s.Ending, s.Reason)
			}
		})
	}
}

// TestAClaimThatCannotBeReadIsNotRenewed, but it is not over either.
func TestAClaimThatCannotBeReadIsNotRenewed(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	c := b.claim(b.tree(), b.add(ralph.Task{Title: "A"}), "ann")
	b.raw(`UPDATE sessions SET notes = '{'`)
	var dropped *loop.DroppedError
	if err := c.Renew(t.Context()); err == nil || errors.As(err, &dropped) || !strings.Contains(err.Error(), "JSON") {
		t.Errorf("got %v", err)
	}
}

func TestAWorkerHearsEachCommentOnce(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	id := b.add(ralph.Task{Title: "A"})
	c := b.claim(b.tree(), id, "ann")
	b.passed.Add(int64(time.Minute))
	for _, body := range []string{"mind the gap", "and the step"} {
		b.tx(func(tx *store.Tx) error {
			_, err := tx.AddComment(ralph.Comment{TaskID: id, Author: "eve", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: body})
			return err
		})
	}
	said, err := c.Heard(t.Context())
	if err != nil || !strings.Contains(said, "mind the gap") || !strings.Contains(said, "and the step") {
		t.Errorf("got %q, %v", said, err)
	}
	if said, err := c.Heard(t.Context()); err != nil || said != "" {
		t.Errorf("a second time: %q, %v", said, err)
	}
}

// TestReportsAreStored with the session, and its state if it ended midway.
func TestReportsAreStored(t *testing.T) {
	t.Parallel()
	exit := 3
	report := agent.Report{
		Ending: ralph.Finished, Reason: "it ended", Exit: &exit, Model: "small", CostUSD: 0.5, CostKnown: true, Turns: 4,
		Tokens: ralph.Tokens{Input: 1, Output: 2}, LastWords: "half way", StderrTail: "a warning", Denials: []string{"Bash: rm"},
		Leftovers: []string{"12: sleep 600"}, Version: "1.2.3",
	}
	for _, tt := range []struct {
		name   string
		ending ralph.Ending
		say    signals.Payload
		stood  []ralph.Checkpoint
	}{
		{"it ended by itself", ralph.Finished, nil, nil},
		{"it was interrupted", ralph.Interrupted, nil, []ralph.Checkpoint{{
			Source: ralph.CheckpointEnd, Note: "half way", TokensUsed: 700, TokensLimit: ralph.DefaultContextWindow,
		}}},
		{"it was interrupted after it had closed", ralph.Interrupted, halt, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.tree()
			b.add(ralph.Task{Title: "A"})
			want := report
			want.Ending = tt.ending
			_, s := b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
				a.Seen(agent.Event{Kind: agent.Used, Context: 700})
				if tt.say == nil {
					return want, nil
				}
				_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", tt.say)
				return want, err
			}))
			got := agent.Report{
				Ending: s.Ending, Reason: want.Reason, Exit: s.Exit, Model: s.Model, CostUSD: s.CostUSD, CostKnown: s.CostKnown, Turns: s.Turns,
				Tokens: s.Tokens, LastWords: s.LastWords, StderrTail: s.StderrTail, Denials: s.Denials, Leftovers: s.Leftovers, Version: s.AgentVersion,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.stood, b.stood(s.ID), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// stood returns the checkpoints of a session, without the fields that all have.
func (b *workshop) stood(session string) (list []ralph.Checkpoint) {
	b.t.Helper()
	b.tx(func(tx *store.Tx) (err error) {
		list, err = tx.Checkpoints(session)
		return err
	})
	for i := range list {
		list[i].ID, list[i].SessionID, list[i].State, list[i].Created = 0, "", "", ralph.Time{}
	}
	return list
}

// TestWhereAPersonsSessionStood: the chat's last report counts.
func TestWhereAPersonsSessionStood(t *testing.T) {
	t.Parallel()
	reported := ralph.Checkpoint{Source: ralph.CheckpointReported, Iteration: 1, Completed: []string{"a"}, Remaining: []string{"b"}}
	for _, tt := range []struct {
		name             string
		before, progress bool
		after            bool
		want             []ralph.Checkpoint
	}{
		{"nothing was reported", false, false, false, []ralph.Checkpoint{{Source: ralph.CheckpointEnd}}},
		{"how far it is", false, true, false, []ralph.Checkpoint{
			{Source: ralph.CheckpointEnd, Iteration: 2, Note: "half way", TokensUsed: 7, TokensLimit: 9},
		}},
		{"a checkpoint", true, false, false, []ralph.Checkpoint{reported}},
		{"a checkpoint, and how far it is since", true, true, false, []ralph.Checkpoint{
			reported,
			{
				Source: ralph.CheckpointEnd, Iteration: 2, Note: "half way", TokensUsed: 7, TokensLimit: 9,
				Completed: []string{"a"}, Remaining: []string{"b"},
			},
		}},
		{"a checkpoint after that", false, true, true, []ralph.Checkpoint{reported}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.tree()
			id := b.add(ralph.Task{Title: "A"})
			s := b.claimFor(l, id, "ann")
			report := func(do bool) {
				b.passed.Add(int64(time.Minute))
				if do {
					c := reported
					c.SessionID = s.ID
					b.tx(func(tx *store.Tx) error { _, err := tx.AddCheckpoint(c); return err })
				}
			}
			report(tt.before)
			b.passed.Add(int64(time.Minute))
			if tt.progress {
				b.tx(func(tx *store.Tx) error {
					return tx.SetProgress(id, s.ID, ralph.Progress{
						Iteration: 2, Notes: "half way", TokensUsed: 7, TokensLimit: 9, Timestamp: tx.Now(),
					})
				})
			}
			report(tt.after)
			if _, err := l.Sessions().ReleaseFor(t.Context(), id, "ann"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, b.stood(s.ID), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestARemovedStateFolderIsNotMadeAnew: its content would seem to have never existed.
func TestARemovedStateFolderIsNotMadeAnew(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.repository()
	b.add(ralph.Task{Title: "A"})
	l.Agent, l.OnRed, l.Limits = deed(func(context.Context, agent.Assignment) (agent.Report, error) {
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, os.RemoveAll(b.state)
	}), loop.RedGo, ralph.Limits{
		MaxSessions: 1, MaxTasks: 1, MaxSeconds: 3600, MaxCostUSD: 1, MaxDayCostUSD: 1, MaxMonthCostUSD: 1, SessionSeconds: 3600, IdleSeconds: 3600,
		SessionCostUSD: 1, Attempts: 10, StagnantMaximum: 2,
	}
	if _, err := l.Run(t.Context()); err == nil {
		t.Error("nothing is said of it")
	}
	if exists(b.state) {
		t.Error("it is made anew")
	}
}

// TestARefusalThatCannotBeRecordedIsTold in the log: the agent has heard of it.
func TestARefusalThatCannotBeRecordedIsTold(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.repository("test -e never")
	var log bytes.Buffer
	l.Log = slog.New(slog.NewTextHandler(&log, nil))
	b.add(ralph.Task{Title: "A"})
	b.refuse("INSERT", "events", "NEW.type = '"+ralph.EventType(ralph.DoneRefused{})+"'", "the disk is full")
	b.once(l, &speech{b: b, turns: []turn{{write: []string{"made"}, say: finish, answer: "does not hold"}}, ending: ralph.Finished})
	if !strings.Contains(log.String(), "the disk is full") {
		t.Errorf("logged is %q", log.String())
	}
}

// TestATaskOfAPersonsThatIsCalledOff is cancelled, not lost.
func TestATaskOfAPersonsThatIsCalledOff(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	id := b.add(ralph.Task{Title: "A"})
	b.claimFor(l, id, "ann")
	b.tx(func(tx *store.Tx) error { _, err := tx.Cancel(id, "bob"); return err })
	if err := l.Lapse(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := b.last()
	if s.Ending != ralph.Interrupted || s.Reason != "interrupted: its task was called off or amended" {
		t.Errorf("it is %s: %s", s.Ending, s.Reason)
	}
	if !slices.Contains(s.Unchanged, "work_tree") {
		t.Errorf("unchanged are %q", s.Unchanged)
	}
}

// TestRemovedFoldersAreNotMadeAnew: a scan would leave a state folder without a database.
func TestRemovedFoldersAreNotMadeAnew(t *testing.T) {
	t.Parallel()
	pgtest.Files(t)
	b := newWorkshop(t)
	l := b.tree()
	b.add(ralph.Task{Title: "A"})
	l.Limits = ralph.Limits{
		MaxSessions: 1, MaxTasks: 1, MaxSeconds: 3600, MaxCostUSD: 1, MaxDayCostUSD: 1, MaxMonthCostUSD: 1, SessionSeconds: 3600, IdleSeconds: 3600,
		SessionCostUSD: 1, Attempts: 10, StagnantMaximum: 2,
	}
	l.Agent = deed(func(_ context.Context, a agent.Assignment) (agent.Report, error) {
		write(t, filepath.Join(a.Dir, "made"), "x")
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, os.RemoveAll(b.state)
	})
	if _, err := l.Run(t.Context()); !errors.Is(err, store.ErrGone) || exists(b.state) {
		t.Errorf("got %v, and the folder is there: %t", err, exists(b.state))
	}
}
