package loop_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/proc"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// TestADoneOfARunThatIsStoppedIsNotJudgedBlindly, even if it needs no command.
func TestADoneOfARunThatIsStoppedIsNotJudgedBlindly(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.repository()
	id := b.add(ralph.Task{Title: "A"})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l.OnRed, l.Limits = loop.RedGo, ralph.Limits{
		MaxSessions: 1, MaxTasks: 1, MaxSeconds: 3600, MaxCostUSD: 1, MaxDayCostUSD: 1, MaxMonthCostUSD: 1, SessionSeconds: 3600, IdleSeconds: 3600,
		SessionCostUSD: 1, Attempts: 10, StagnantMaximum: 2,
	}
	l.Agent = deed(func(_ context.Context, a agent.Assignment) (agent.Report, error) {
		err := os.RemoveAll(a.Dir)
		_, serr := b.db.Say(t.Context(), a.TaskID, a.SessionID, "agent", finish)
		stop()
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, errors.Join(err, serr)
	})
	if _, err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if task := b.task(id); !strings.Contains(task.StatusReason, "the done could not be checked: what it made in its workspace") {
		t.Errorf("it is %s: %s", task.Status, task.StatusReason)
	}
}

// TestUnreadableWorkIsNotJudged: the done is not judged, other signals count.
func TestUnreadableWorkIsNotJudged(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		say  signals.Payload
		gone string // in the workspace
		want string
	}{
		{finish, "", "the done could not be checked: "},
		{halt, "", "partial: the rest; could not be looked at: what it made in its workspace, which is kept there ("},
		{halt, ".git", "stopped; changed nothing: a part; could not be looked at: .git was removed"},
	} {
		b := newWorkshop(t)
		id := b.add(ralph.Task{Title: "A"})
		b.once(b.repository("true"), deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
			err := os.RemoveAll(filepath.Join(a.Dir, tt.gone))
			_, serr := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", tt.say)
			return agent.Report{Ending: ralph.Finished, CostKnown: true}, errors.Join(err, serr)
		}))
		if task := b.task(id); task.Status != ralph.Pending || task.VerifyFailures != 0 || !strings.HasPrefix(task.StatusReason, tt.want) {
			t.Errorf("it is %s: %s", task.Status, task.StatusReason)
		}
	}
}

// TestADoneIsNotJudgedByACheckThatCannotBeRun, or whose traces cannot be
// read: it found nothing against the done.
func TestADoneIsNotJudgedByACheckThatCannotBeRun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, command string
		breaks        bool // the agent puts a folder where the check's log belongs
		want          string
	}{
		{"it cannot be logged", "false", true, "log of the verification: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.repository(tt.command)
			id := b.add(ralph.Task{Title: "A"})
			b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
				write(t, filepath.Join(a.Dir, "made"), "x")
				_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", finish)
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

// TestADoneOfARunThatIsStoppedShowsItsCheck as far as it got.
func TestADoneOfARunThatIsStoppedShowsItsCheck(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	running := filepath.Join(t.TempDir(), "running")
	l := b.tree("[ ! -e made ] || { echo > " + running + "; sleep 600; }") // only once there is something to check
	id := b.add(ralph.Task{Title: "A"})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l.OnRed, l.Limits = loop.RedGo, ralph.Limits{
		MaxSessions: 1, MaxTasks: 1, MaxSeconds: 3600, MaxCostUSD: 1, MaxDayCostUSD: 1, MaxMonthCostUSD: 1, SessionSeconds: 3600, IdleSeconds: 3600,
		SessionCostUSD: 1, Attempts: 10, StagnantMaximum: 2,
	}
	l.Agent = deed(func(_ context.Context, a agent.Assignment) (agent.Report, error) {
		write(t, filepath.Join(a.Dir, "made"), "x")
		_, err := b.db.Say(t.Context(), a.TaskID, a.SessionID, "agent", finish)
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

// TestADoneOfASessionIsCheckedOnce: the check at the end of its turn counts, and so does the work of that time.
// If a person stops the session, or calls its task off, the done is not checked afterwards.
func TestADoneOfASessionIsCheckedOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		stop   func(tx *store.Tx, a agent.Assignment) error // nil: nobody does
		ending ralph.Ending
		want   ralph.Status
		reason string
	}{
		{"it holds", nil, ralph.Finished, ralph.Completed, "done and verified"},
		{"a person stops the session meanwhile", func(tx *store.Tx, a agent.Assignment) error {
			return tx.Halt(a.SessionID, "eve")
		}, ralph.Interrupted, ralph.Pending, "a person stopped it before the claim could be checked"},
		{"a person calls its task off meanwhile", func(tx *store.Tx, a agent.Assignment) error {
			_, err := tx.Cancel(a.TaskID, "eve")
			return err
		}, ralph.Interrupted, ralph.Cancelled, "cancelled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			running := filepath.Join(t.TempDir(), "running")
			ran := func() string { text, _ := os.ReadFile(running); return string(text) }
			wait := map[bool]string{true: "sleep 2", false: "true"}[tt.stop != nil]
			l := b.tree("[ ! -e made ] || { echo x >> " + running + "; " + wait + "; }")
			id := b.add(ralph.Task{Title: "A"})
			b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
				write(t, filepath.Join(a.Dir, "made"), "x")
				_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", finish)
				over := make(chan bool)
				go func() { over <- a.TurnEnded(ctx, agent.Turn{}).Over }()
				if tt.stop != nil {
					until(t, "the check", func() bool { return ran() == "x\n" })
					err = errors.Join(err, b.db.Tx(t.Context(), func(tx *store.Tx) error { return tt.stop(tx, a) }))
				}
				if !<-over {
					t.Error("it may go on")
				}
				write(t, filepath.Join(a.Dir, "late"), "x")
				return agent.Report{Ending: tt.ending, CostKnown: true}, err
			}))
			task := b.task(id)
			if runs := ran(); runs != "x\n" || task.Status != tt.want || !strings.Contains(task.StatusReason, tt.reason) {
				t.Errorf("it is %s: %s; checked %q", task.Status, task.StatusReason, runs)
			}
			if exists(filepath.Join(l.Here.Dir, "late")) {
				t.Error("people have what was not checked")
			}
		})
	}
}

// TestAnAgentWhoseDoneIsChecked loses the processes that it has started, and learns which. It is killed once its done is
// accepted, and not before.
func TestAnAgentWhoseDoneIsChecked(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.repository("test -e made")
	id := b.add(ralph.Task{Title: "A"})
	b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		report := agent.Report{Ending: ralph.Finished, CostKnown: true}
		p, err := proc.Start(proc.Spec{Args: []string{"sh", "-c", "sleep 601 & exec sleep 602"}, Env: os.Environ()})
		if err != nil {
			return report, err
		}
		running := func(command string) bool {
			members, err := p.Members()
			return err == nil && slices.ContainsFunc(members, func(m proc.Member) bool { return m.Command == command })
		}
		until(t, "its processes", func() bool { return running("sleep 601") && running("sleep 602") })
		done := func() agent.Answer {
			if _, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", finish); err != nil {
				t.Error(err)
			}
			return a.TurnEnded(ctx, agent.Turn{Process: p, Keep: func(m proc.Member) bool { return m.Pid == p.Pid() }})
		}
		if answer := done(); !strings.Contains(answer.Text, "does not hold") || !strings.HasSuffix(answer.Text, "\n- sleep 601\n") || !running("sleep 602") {
			t.Errorf("it is told %+v; it runs: %t", answer, running("sleep 602"))
		}
		write(t, filepath.Join(a.Dir, "made"), "x")
		if answer := done(); !answer.Over {
			t.Errorf("then it is told %+v", answer)
			err = p.Kill()
		}
		_, werr := p.Wait() // or until the test's time limit
		return report, errors.Join(err, werr)
	}))
	if task := b.task(id); task.Status != ralph.Completed || !strings.Contains(task.StatusReason, "killed: sleep 601") {
		t.Errorf("it is %s: %s", task.Status, task.StatusReason)
	}
}

// TestADoneOfASessionThatIsRefusedIsNoted with the reason, while its agent goes on.
func TestADoneOfASessionThatIsRefusedIsNoted(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.repository("test -e made")
	b.add(ralph.Task{Title: "A"})
	b.once(l, &speech{b: b, ending: ralph.Finished, turns: []turn{
		{say: finish, answer: "does not hold"},
		{write: []string{"made"}, say: finish, answer: "over"},
	}})
	var why []string
	b.tx(func(tx *store.Tx) error {
		list, err := tx.Events(0, 1000)
		for _, e := range list {
			if e.Type == ralph.EventType(ralph.DoneRefused{}) {
				why = append(why, string(e.Payload))
			}
		}
		return err
	})
	if len(why) != 1 || !strings.Contains(why[0], "`test -e made` exits 1") {
		t.Errorf("noted are %q", why)
	}
}
