package loop_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ralph/loop/agent"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ralph"
	"ralph/loop"
	"ralph/loop/session"
	"ralph/signals"
	"ralph/store"
)

// A worker is told at its next call that a person has taken its task away.
func TestAClaimIsOverOnceAPersonSaysSo(t *testing.T) {
	for _, tt := range []struct {
		name string
		say  func(tx *store.Tx, session string) error
		want string
	}{
		{"nobody says anything", func(*store.Tx, string) error { return nil }, ""},
		{"the task is called off", func(tx *store.Tx, s string) error { return tx.RequestStop(s, "cancel", "eve") }, "eve cancelled the task"},
		{"it is changed", func(tx *store.Tx, s string) error { return tx.RequestStop(s, "contract", "eve") }, "eve changed what the task asks for"},
		{"the session is stopped", func(tx *store.Tx, s string) error { return tx.Halt(s, "eve") }, "eve stopped it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			c := b.claim(b.tree(), b.add(ralph.Task{Title: "A"}), "ann")
			b.tx(func(tx *store.Tx) error { return tt.say(tx, c.SessionID()) })
			err := c.Held(t.Context())
			s := b.last()
			if tt.want == "" {
				if err != nil || s.Ending != "" {
					t.Errorf("got %v, and it is %s", err, s.Ending)
				}
				return
			}
			var dropped *session.DroppedError
			if !errors.As(err, &dropped) || dropped.Why != tt.want || s.Ending != ralph.Interrupted || s.Reason != "interrupted: "+tt.want {
				t.Errorf("got %v; it is %s: %s", err, s.Ending, s.Reason)
			}
		})
	}
}

// TestAClaimThatCannotBeReadIsNotHeld: nor is it over.
func TestAClaimThatCannotBeReadIsNotHeld(t *testing.T) {
	b := newWorkshop(t)
	c := b.claim(b.tree(), b.add(ralph.Task{Title: "A"}), "ann")
	b.raw(`UPDATE sessions SET notes = '{'`)
	var dropped *session.DroppedError
	if err := c.Held(t.Context()); err == nil || errors.As(err, &dropped) || !strings.Contains(err.Error(), "JSON") {
		t.Errorf("got %v", err)
	}
}

func TestAWorkerHearsOnceWhatPeopleSay(t *testing.T) {
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

// TestWhatAnAgentReportsIsKept with its session, and where the session stood if it ended
// in the middle.
func TestWhatAnAgentReportsIsKept(t *testing.T) {
	exit := 3
	report := agent.Report{
		Ending: ralph.Finished, Reason: "it ended", Exit: &exit, Model: "small", CostUSD: 0.5, CostKnown: true, Turns: 4,
		Tokens: ralph.Tokens{Input: 1, Output: 2}, LastWords: "half way", StderrTail: "a warning", Denials: []string{"Bash: rm"},
		Leftovers: []string{"12: sleep 600"},
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
				_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", "", tt.say)
				return want, err
			}))
			got := agent.Report{
				Ending: s.Ending, Reason: want.Reason, Exit: s.Exit, Model: s.Model, CostUSD: s.CostUSD, CostKnown: s.CostKnown, Turns: s.Turns,
				Tokens: s.Tokens, LastWords: s.LastWords, StderrTail: s.StderrTail, Denials: s.Denials, Leftovers: s.Leftovers,
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

// stood are the checkpoints of a session, without what every one has.
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

// TestWhereAPersonsSessionStood: what the chat reported last stands.
func TestWhereAPersonsSessionStood(t *testing.T) {
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
			if _, err := l.ReleaseFor(t.Context(), id, "ann"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, b.stood(s.ID), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFilesOfPeopleThatASessionRemovedAreNamed where they were saved before it.
func TestFilesOfPeopleThatASessionRemovedAreNamed(t *testing.T) {
	for _, saved := range []bool{true, false} {
		b := newWorkshop(t)
		l := b.repository()
		l.Place.Saves = saved
		write(t, filepath.Join(l.Place.Dir, "mine"), "x")
		b.add(ralph.Task{Title: "A"})
		_, s := b.once(l, &speech{b: b, turns: []turn{{remove: []string{"mine"}, say: halt}}, ending: ralph.Finished})
		if got := strings.Join(s.Gone, " "); got != map[bool]string{true: "mine", false: ""}[saved] || (s.SnapshotID != 0) != saved {
			t.Errorf("saved %t: %q are gone, and kept in %d", saved, got, s.SnapshotID)
		}
	}
}

// TestFilesOfPeopleThatConfigureRunsAreNamed where a session has changed them: the next run
// would be another one.
func TestFilesOfPeopleThatConfigureRunsAreNamed(t *testing.T) {
	b := newWorkshop(t)
	b.add(ralph.Task{Title: "A"})
	_, s := b.once(b.repository(), &speech{b: b, turns: []turn{{write: []string{"ralph.yaml"}, say: halt}}, ending: ralph.Finished})
	if notes := strings.Join(s.Notes, "\n"); !strings.Contains(notes, "ralph.yaml, by which runs are configured: the next run starts only after") {
		t.Errorf("noted is %q", notes)
	}
}

// TestFilesOfPeopleThatCannotBeLookedFor are not taken to be there: the reason says so, and
// the log.
func TestFilesOfPeopleThatCannotBeLookedFor(t *testing.T) {
	b := newWorkshop(t)
	l := b.repository()
	var log bytes.Buffer
	l.Log = slog.New(slog.NewTextHandler(&log, nil))
	l.Place.Saves = true
	folder := filepath.Join(l.Place.Dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "mine"), "x")
	id := b.add(ralph.Task{Title: "A"})
	b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", "", halt)
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, errors.Join(err, os.RemoveAll(folder), os.Symlink("folder", folder))
	}))
	const what = "whether files are gone that were not committed ("
	if task := b.task(id); !strings.Contains(task.StatusReason, what) || !strings.Contains(log.String(), what) {
		t.Errorf("it is %s: %s\n%s", task.Status, task.StatusReason, log.String())
	}
}

// TestFilesOfPeopleThatAreNotKnown any more are not taken for none.
func TestFilesOfPeopleThatAreNotKnown(t *testing.T) {
	b := newWorkshop(t)
	l := b.repository()
	id := b.add(ralph.Task{Title: "A"})
	b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", "", halt)
		b.raw(`UPDATE sessions SET uncommitted = '{'`)
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	}))
	if task := b.task(id); !strings.Contains(task.StatusReason, "whether files are gone that were not committed (") {
		t.Errorf("it is %s: %s", task.Status, task.StatusReason)
	}
}

// TestADoneIsNotJudgedWhereProtectedFilesAreHidden from ralph since the session began.
func TestADoneIsNotJudgedWhereProtectedFilesAreHidden(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before bool // they were hidden before as well
		say    signals.Payload
		want   string
	}{
		{"a done", false, finish, "it cannot be told whether protected files were changed in x\x00 (invalid argument)"},
		{"a done, where they were before", true, finish, "done and verified"},
		{"a partial", false, halt, "partial: the rest"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.tree("true")
			const never = "x\x00/*" // no system lets anybody look there
			l.Check.Protect = []string{"data/*"}
			if tt.before {
				l.Check.Protect[0] = never
			}
			id := b.add(ralph.Task{Title: "A"})
			b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
				l.Check.Protect[0] = never
				write(t, filepath.Join(a.Dir, "made"), "x")
				_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", "", tt.say)
				return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
			}))
			if task := b.task(id); !strings.Contains(task.StatusReason, tt.want) {
				t.Errorf("it is %s: %s", task.Status, task.StatusReason)
			}
		})
	}
}

// TestADoneOfARunThatIsStoppedIsNotJudgedBlindly, even where nothing has to be run for it.
func TestADoneOfARunThatIsStoppedIsNotJudgedBlindly(t *testing.T) {
	b := newWorkshop(t)
	l := b.repository()
	id := b.add(ralph.Task{Title: "A"})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l.OnRed, l.Limits = loop.RedGo, ralph.Limits{
		MaxSessions: 1, MaxTasks: 1, MaxSeconds: 3600, MaxCostUSD: 1, MaxDayCostUSD: 1, SessionSeconds: 3600, IdleSeconds: 3600,
		SessionCostUSD: 1, Attempts: 10, StagnantMaximum: 2,
	}
	l.Agent = deed(func(_ context.Context, a agent.Assignment) (agent.Report, error) {
		write(t, filepath.Join(a.Dir, ".git", "index"), "x")
		_, err := b.db.Say(t.Context(), a.TaskID, a.SessionID, "agent", "", finish)
		stop()
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	})
	if _, err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if task := b.task(id); !strings.Contains(task.StatusReason, "the done could not be checked: the work tree (git cannot tell") {
		t.Errorf("it is %s: %s", task.Status, task.StatusReason)
	}
}

// TestADoneIsNotJudgedByACheckThatCannotBeRun, or whose traces cannot be seen: that found
// nothing against it.
func TestADoneIsNotJudgedByACheckThatCannotBeRun(t *testing.T) {
	for _, tt := range []struct {
		name, command string
		breaks        bool // the agent puts a folder where the log of the check is to be
		want          string
	}{
		{"it cannot be logged", "false", true, "log of the verification: "},
		{"it breaks git's index", "test ! -e made || echo x > .git/index", false, "state of the work tree after the verification: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.repository(tt.command)
			id := b.add(ralph.Task{Title: "A"})
			b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
				write(t, filepath.Join(a.Dir, "made"), "x")
				_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", "", finish)
				if tt.breaks {
					err = errors.Join(err, os.Mkdir(filepath.Join(a.LogDir, "verify.log"), 0o700))
				}
				return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
			}))
			task := b.task(id)
			if task.Status != ralph.Pending || task.VerifyFailures != 0 || !strings.HasPrefix(task.StatusReason, "the done could not be checked: "+tt.want) {
				t.Errorf("it is %s: %s", task.Status, task.StatusReason)
			}
		})
	}
}

// TestADoneOfARunThatIsStoppedShowsItsCheck as far as it came.
func TestADoneOfARunThatIsStoppedShowsItsCheck(t *testing.T) {
	b := newWorkshop(t)
	running := filepath.Join(t.TempDir(), "running")
	l := b.tree("[ ! -e made ] || { echo > " + running + "; sleep 600; }") // not before there is something to check
	id := b.add(ralph.Task{Title: "A"})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l.OnRed, l.Limits = loop.RedGo, ralph.Limits{
		MaxSessions: 1, MaxTasks: 1, MaxSeconds: 3600, MaxCostUSD: 1, MaxDayCostUSD: 1, SessionSeconds: 3600, IdleSeconds: 3600,
		SessionCostUSD: 1, Attempts: 10, StagnantMaximum: 2,
	}
	l.Agent = deed(func(_ context.Context, a agent.Assignment) (agent.Report, error) {
		write(t, filepath.Join(a.Dir, "made"), "x")
		_, err := b.db.Say(t.Context(), a.TaskID, a.SessionID, "agent", "", finish)
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	})
	ended := make(chan error)
	go func() { _, err := l.Run(ctx); ended <- err }()
	until(t, "the check", func() bool { return exists(running) })
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	task, s := b.task(id), b.last()
	if !strings.Contains(task.StatusReason, "before the claim could be checked") || len(s.Verify) != 1 || s.Verify[0].Error != "was stopped with the run" {
		t.Errorf("it is %s: %s; checks %+v", task.Status, task.StatusReason, s.Verify)
	}
}

// TestADoneOfASessionIsCheckedOnce: what held when its turn ended is what counts, and whom a
// person stops is not checked after all.
func TestADoneOfASessionIsCheckedOnce(t *testing.T) {
	for _, tt := range []struct {
		name   string
		halted bool
		ending ralph.Ending
		want   ralph.Status
		reason string
	}{
		{"it holds", false, ralph.Finished, ralph.Completed, "done and verified"},
		{"a person stops the session meanwhile", true, ralph.Interrupted, ralph.Pending, "a person stopped it before the claim could be checked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			running := filepath.Join(t.TempDir(), "running")
			wait := map[bool]string{true: "sleep 2", false: "true"}[tt.halted]
			l := b.tree("[ ! -e made ] || { echo x >> " + running + "; " + wait + "; }")
			id := b.add(ralph.Task{Title: "A"})
			b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
				write(t, filepath.Join(a.Dir, "made"), "x")
				_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", "", finish)
				over := make(chan bool)
				go func() { over <- a.TurnEnded(ctx, agent.Turn{}).Over }()
				if tt.halted {
					until(t, "the check", func() bool { return exists(running) })
					err = errors.Join(err, b.db.Tx(t.Context(), func(tx *store.Tx) error { return tx.Halt(a.SessionID, "eve") }))
				}
				if !<-over {
					t.Error("it may go on")
				}
				return agent.Report{Ending: tt.ending, CostKnown: true}, err
			}))
			task := b.task(id)
			runs, err := os.ReadFile(running)
			if err != nil || string(runs) != "x\n" || task.Status != tt.want || !strings.Contains(task.StatusReason, tt.reason) {
				t.Errorf("it is %s: %s; checked %q, %v", task.Status, task.StatusReason, runs, err)
			}
		})
	}
}

// TestADoneOfASessionThatIsRefusedIsNoted with why, while its agent goes on.
func TestADoneOfASessionThatIsRefusedIsNoted(t *testing.T) {
	b := newWorkshop(t)
	l := b.tree("test -e made")
	b.add(ralph.Task{Title: "A"})
	b.once(l, &speech{b: b, ending: ralph.Finished, turns: []turn{
		{say: finish, answer: "does not hold"},
		{write: []string{"made"}, say: finish, answer: "over"},
	}})
	var why []string
	b.tx(func(tx *store.Tx) error {
		list, err := tx.Events(0, 1000)
		for _, e := range list {
			if e.Type == ralph.EventDoneRefused {
				why = append(why, string(e.Payload))
			}
		}
		return err
	})
	if len(why) != 1 || !strings.Contains(why[0], "`test -e made` exits 1") {
		t.Errorf("noted are %q", why)
	}
}

// TestWhatIsTakenAwayCannotBeCompared: that which files were changed is not known any more
// is said, and not read as that none was.
func TestWhatIsTakenAwayCannotBeCompared(t *testing.T) {
	b := newWorkshop(t)
	l := b.repository()
	id := b.add(ralph.Task{Title: "A"})
	write(t, filepath.Join(l.Place.Dir, "mine"), "x")
	b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		write(t, filepath.Join(a.Dir, "made"), "x")
		_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", "", halt)
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, errors.Join(err, os.RemoveAll(filepath.Join(a.LogDir, "objects")))
	}))
	if task := b.task(id); !strings.Contains(task.StatusReason, "could not be looked at: which files were changed (") {
		t.Errorf("it is %s: %s", task.Status, task.StatusReason)
	}
}

// TestATaskOfAPersonsThatIsCalledOff ends as what it is: nobody was lost.
func TestATaskOfAPersonsThatIsCalledOff(t *testing.T) {
	b := newWorkshop(t)
	l := b.tree()
	id := b.add(ralph.Task{Title: "A"})
	b.claimFor(l, id, "ann")
	b.tx(func(tx *store.Tx) error { _, err := tx.Cancel(id, "bob"); return err })
	if err := l.Lapse(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := b.last(); s.Ending != ralph.Interrupted || s.Reason != "interrupted: its task was called off or amended" {
		t.Errorf("it is %s: %s", s.Ending, s.Reason)
	}
}

// TestAPersonIsNotHeldToWhatWasHidden from ralph when the task was claimed.
func TestAPersonIsNotHeldToWhatWasHidden(t *testing.T) {
	b := newWorkshop(t)
	l := b.tree("true")
	l.Check.Protect = []string{"x\x00/*"} // no system lets anybody look there
	id := b.add(ralph.Task{Title: "A"})
	b.claimFor(l, id, "ann")
	refused, _, err := l.Complete(t.Context(), id, session.Completion{Author: "ann", Summary: "made it"})
	if task := b.task(id); err != nil || refused != "" || task.Status != ralph.Completed {
		t.Errorf("it is %s: %q, %v", task.Status, refused, err)
	}
}

// TestWhatIsTakenAwayIsNotMadeAnew: a look at the work tree would leave a state without
// a database.
func TestWhatIsTakenAwayIsNotMadeAnew(t *testing.T) {
	b := newWorkshop(t)
	l := b.tree()
	b.add(ralph.Task{Title: "A"})
	l.Limits = ralph.Limits{
		MaxSessions: 1, MaxTasks: 1, MaxSeconds: 3600, MaxCostUSD: 1, MaxDayCostUSD: 1, SessionSeconds: 3600, IdleSeconds: 3600,
		SessionCostUSD: 1, Attempts: 10, StagnantMaximum: 2,
	}
	l.Agent = deed(func(context.Context, agent.Assignment) (agent.Report, error) {
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, os.RemoveAll(b.state)
	})
	if _, err := l.Run(t.Context()); !errors.Is(err, store.ErrGone) || exists(b.state) {
		t.Errorf("got %v, and the folder is there: %t", err, exists(b.state))
	}
}
