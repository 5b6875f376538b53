package loop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/session"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// TestASessionInAWorkspace: its work is checked apart from people's tree, and
// gets there only if it passes.
func TestASessionInAWorkspace(t *testing.T) {
	t.Parallel()
	done := signals.Done{Summary: "made it"}
	for _, tt := range []struct {
		name   string
		verify []string
		turns  []turn
		status ralph.Status
		why    string // the beginning of the reason
		files  string // those of the sessions' files that people have afterwards
	}{
		{"its done is merged", []string{"test -f a"}, []turn{{write: []string{"a"}, say: done, answer: "over"}}, ralph.Completed, "done and verified: made it", "a"},
		{"without anything that verifies it, too", nil, []turn{{write: []string{"a"}, say: done, answer: "over"}}, ralph.Completed, "done (nothing is configured to verify it): made it", "a"},
		{"a done that is refused is told, and is merged when it is mended", []string{"test -f b"}, []turn{
			{write: []string{"a"}, say: done, answer: "test -f b"}, {write: []string{"b"}, say: done, answer: "over"},
		}, ralph.Completed, "done and verified: made it", "a b"},
		{"what fails with a commit of people during the check is told, and is merged when it is mended", []string{
			`if test -e a; then cd "$RALPH_ROOT" && { test -e b || { : >b; git add b; git -c user.name=P -c user.email=p commit -qm b; }; }; fi`, "! test -e a || ! test -e b",
		}, []turn{
			{write: []string{"a"}, say: done, answer: "merged with it the change is refused: `! test -e a || ! test -e b`"},
			{write: []string{"c"}, remove: []string{"a"}, say: done, answer: "over"},
		}, ralph.Completed, "done and verified: made it", "b"},
		{"what it has verified stays where it was verified", []string{"touch b"}, []turn{{write: []string{"a"}, say: done, answer: "over"}}, ralph.Completed, "done and verified: made it", "a"},
		{"wherever it committed that", []string{"test -f a"}, []turn{
			{write: []string{"a"}, git: "checkout -q -b other;add a;commit -q -m one;checkout -q --orphan third", say: done, answer: "over"},
		}, ralph.Completed, "done and verified (1 commit on other is not part of the work, so it was not verified): made it", "a"},
		{"a repository within that nobody else could get does not", nil, []turn{
			{write: []string{"a"}, git: "init -q sub;-C sub commit -q --allow-empty -m one", say: done, answer: "sub is at "},
		}, ralph.Pending, "done was refused: ", ""},
		{"a part is not merged", []string{"test -f a"}, []turn{{write: []string{"a"}, say: signals.Partial{Summary: "half", Remaining: "the rest"}}}, ralph.Pending, "partial: the rest", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.tree(tt.verify...)
			id := b.add(ralph.Task{Title: "A"})
			result, s := b.once(l, &speech{b: b, turns: tt.turns, ending: ralph.Finished})
			if task := b.task(id); task.Status != tt.status || !strings.HasPrefix(s.Reason, tt.why) {
				t.Fatalf("it is %s: %s; the run ended with %q", task.Status, task.StatusReason, result.Reasons)
			}
			var files []string
			for _, name := range []string{"a", "b"} {
				if _, err := os.Stat(filepath.Join(l.Here.Dir, name)); err == nil {
					files = append(files, name)
				}
			}
			if got := strings.Join(files, " "); got != tt.files {
				t.Errorf("people have %q, want %q", got, tt.files)
			}
			if s.Dir == l.Here.Dir {
				t.Error("it worked where people do")
			}
		})
	}
}

// TestWhatGitCannotTellIsReported: the reason names what is unknown of a session. A done is not accepted if its commit may
// name objects that nobody else could get.
func TestWhatGitCannotTellIsReported(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	fails := filepath.Join(bin, "fails")
	script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *\"$(cat %s)\"*) echo 'fatal: no memory' >&2; exit 128 ;; esac\nexec %s \"$@\"\n", fails, git)
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, tt := range []struct {
		fails  string // part of git's arguments; a space at the end stands for the target
		before *turn  // of an earlier session
		turn   turn
		want   string
	}{
		{"diff-tree --ignore-submodules=none -r --raw", nil, turn{say: finish, answer: "over"}, "the done could not be checked: "},
		{"--raw --numstat", nil, turn{say: halt}, "partial: the rest; could not be looked at: which files were changed ("},
		{"%H%x1f%an%x1f%s", nil, turn{say: halt}, "partial: the rest; could not be looked at: which commits were made ("},
		{"trailers:only", nil, turn{say: halt}, "partial: the rest; could not be looked at: the authors, dates and words of its commits ("},
		{
			"rev-list --count", nil,
			turn{git: "checkout -q -b x;commit -q --allow-empty -m x;checkout -q -", say: halt},
			"partial: the rest; could not be looked at: what it left on branches of its own (",
		},
		{"--raw --numstat ", &turn{write: []string{"part"}, say: halt}, turn{say: halt}, "partial: the rest; could not be looked at: whether a secret was committed ("},
	} {
		t.Run(tt.want, func(t *testing.T) {
			write(t, fails, "nothing")
			b := newWorkshop(t)
			l := b.tree("test ! -e a || echo nothing > " + fails)                               // a check would have git work again
			if err := os.Mkdir(filepath.Join(l.Here.Dir, ".git/reftable"), 0o700); err != nil { // what go-git cannot read
				t.Fatal(err)
			}
			id := b.add(ralph.Task{Title: "A"})
			if tt.before != nil {
				b.once(l, &speech{b: b, turns: []turn{*tt.before}, ending: ralph.Finished})
			}
			if strings.HasSuffix(tt.fails, " ") {
				tt.fails += b.git(l.Here.Dir, "rev-parse", "HEAD")
			}
			write(t, fails, tt.fails)
			tt.turn.write = []string{"a"}
			b.once(l, &speech{b: b, turns: []turn{tt.turn}, ending: ralph.Finished})
			if task := b.task(id); task.Status != ralph.Pending || !strings.HasPrefix(task.StatusReason, tt.want) {
				t.Errorf("it is %s: %s", task.Status, task.StatusReason)
			}
		})
	}
}

// TestAnUndoGoesWhereThePersonWanted: not back, because another person was faster.
func TestAnUndoGoesWhereThePersonWanted(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree("true")
	id := b.add(ralph.Task{Title: "A"})
	b.once(l, &speech{b: b, turns: []turn{{write: []string{"a"}, say: finish, answer: "over"}}, ending: ralph.Finished})
	for _, tt := range []struct {
		to       ralph.Status
		conflict bool
		is       ralph.Status
	}{{ralph.Completed, true, ralph.Completed}, {ralph.Cancelled, false, ralph.Merging}} {
		_, err := l.Undo(t.Context(), id, loop.Undoing{By: "ann", To: tt.to})
		if task := b.task(id); errors.Is(err, ralph.ErrConflict) != tt.conflict || task.Status != tt.is {
			t.Errorf("undo to %s: %v; it is %s: %s", tt.to, err, task.Status, task.StatusReason)
		}
	}
}

// TestAWorkspaceWhoseStateCannotBeNotedIsSaid: its work is saved once more by the next session there.
func TestAWorkspaceWhoseStateCannotBeNotedIsSaid(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	var said []string
	l.Log = slog.New(witness{slog.NewTextHandler(io.Discard, nil), func(message string) { said = append(said, message) }})
	id := b.add(ralph.Task{Title: "A"})
	b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		write(t, filepath.Join(a.Dir, "a"), "x")
		note := filepath.Join(filepath.Dir(a.Dir), "left")
		if err := errors.Join(os.Remove(note), os.Mkdir(note, 0o700)); err != nil {
			t.Error(err)
		}
		_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", finish)
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	}))
	if task := b.task(id); task.Status != ralph.Completed || !strings.Contains(strings.Join(said, "\n"), "cannot note that a workspace's work is saved") {
		t.Errorf("it is %s: %s; it says %q", task.Status, task.StatusReason, said)
	}
}

// TestUnsavedWorkOfAWorkspaceIsReported: it is lost with the workspace.
func TestUnsavedWorkOfAWorkspaceIsReported(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		taken func(session string) string // a ref that leaves no room for where it was to be saved
		want  string
	}{
		{
			func(session string) string { return ralph.Change{SessionID: session}.Ref() + "/taken" },
			"what it made in its workspace, which is kept there (",
		},
		{
			func(session string) string { return "refs/ralph/lost/" + session },
			"what it committed beside what it came to, or stashed (refs/heads/other ",
		},
	} {
		b := newWorkshop(t)
		l := b.tree()
		id := b.add(ralph.Task{Title: "A"})
		b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
			write(t, filepath.Join(a.Dir, "part"), "x")
			b.git(a.Dir, "checkout", "-q", "-b", "other")
			b.git(a.Dir, "commit", "-q", "--allow-empty", "-m", "one")
			b.git(a.Dir, "checkout", "-q", "-")
			b.git(l.Here.Dir, "update-ref", tt.taken(a.SessionID), "HEAD")
			_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", halt)
			return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
		}))
		if task := b.task(id); !strings.Contains(task.StatusReason, tt.want) {
			t.Errorf("it is %s: %s; want %q", task.Status, task.StatusReason, tt.want)
		}
	}
}

// TestAProtectedFileThatASessionChangedInItsWorkspace stays as it is there, and hinders no other session.
func TestAProtectedFileThatASessionChangedInItsWorkspace(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	l.Check.Protect = []string{"*.golden"} // no copies are kept of these
	l.Merger.Check = l.Check
	b.add(ralph.Task{Title: "A"})
	result, s := b.once(l, &speech{b: b, turns: []turn{{write: []string{"a.golden"}, say: halt}}, ending: ralph.Finished})
	if result.Status == ralph.ExitWaiting || !exists(filepath.Join(s.Dir, "a.golden")) {
		t.Errorf("exit status %d: %q", result.Status, result.Reasons)
	}
}

// TestAPlanKeepsNoChange, whatever its session changed in its workspace.
func TestAPlanKeepsNoChange(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	id := b.add(ralph.Task{Title: "A", Role: ralph.RolePlan})
	b.once(b.tree(), deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		write(t, filepath.Join(a.Dir, "made"), "x")
		_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", halt)
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	}))
	b.tx(func(tx *store.Tx) error {
		c, kept, err := tx.ChangeOf(id)
		if kept {
			t.Errorf("kept is %+v", c)
		}
		return err
	})
}

// TestADoneInAWorkspaceIsMergedAlthoughTheRunIsStopped: its work does not wait for the next run.
func TestADoneInAWorkspaceIsMergedAlthoughTheRunIsStopped(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	id := b.add(ralph.Task{Title: "A"})
	stop := make(chan struct{})
	l.Stop, l.Session.Grace = stop, time.Hour
	b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		write(t, filepath.Join(a.Dir, "a"), "x")
		_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", finish)
		close(stop)
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	}))
	if task := b.task(id); task.Status != ralph.Completed || !exists(filepath.Join(l.Here.Dir, "a")) {
		t.Errorf("it is %s: %s", task.Status, task.StatusReason)
	}
}

// TestSessionsInWorkspacesThatChangeNothingEndARun as others do.
func TestSessionsInWorkspacesThatChangeNothingEndARun(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	b.add(ralph.Task{Title: "A"})
	began := 0
	l.Agent, l.OnRed, l.Limits = deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		began++
		_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", halt)
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	}), loop.RedGo, ralph.Limits{
		MaxSessions: 2, MaxTasks: 1, MaxSeconds: 3600, MaxCostUSD: 1, MaxDayCostUSD: 1, MaxMonthCostUSD: 1, SessionSeconds: 3600, IdleSeconds: 3600,
		SessionCostUSD: 1, Attempts: 10, StagnantMaximum: 1,
	}
	if result, err := l.Run(t.Context()); err != nil || began != 1 || result.Reasons[0] != "the sessions of 1 task in a row changed nothing" {
		t.Errorf("after %d sessions it ended with %q, %v", began, result.Reasons, err)
	}
}

// TestATreeIsVerifiedOnce: the next task starts from the tree that a done was checked with.
func TestATreeIsVerifiedOnce(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	count := filepath.Join(t.TempDir(), "count")
	l := b.tree("echo >> " + count)
	b.add(ralph.Task{Title: "A"})
	b.add(ralph.Task{Title: "B"})
	for _, file := range []string{"a", "b"} {
		b.once(l, &speech{b: b, turns: []turn{{write: []string{file}, say: signals.Done{Summary: "made it"}, answer: "over"}}, ending: ralph.Finished})
	}
	ran, err := os.ReadFile(count)
	if err != nil || len(ran) != 3 {
		t.Errorf("it was verified %d times, %v: want once before all work, and at each done", len(ran), err)
	}
}

// TestAWorkersEmptyWorkspaceIsAskedAboutOnce: it may have worked elsewhere. If the task's checks passed before, a
// person decides then.
func TestAWorkersEmptyWorkspaceIsAskedAboutOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		verify []string
		want   ralph.Status
	}{{nil, ralph.Completed}, {[]string{"true"}, ralph.NeedsInput}} {
		b := newWorkshop(t)
		c := b.claim(b.tree(tt.verify...), b.add(ralph.Task{Title: "A"}), "ann")
		dir, _ := c.Workspace()
		b.say(c, signals.Done{Summary: "made it"})
		if again, _, err := c.Close(t.Context()); err != nil || !strings.Contains(again, "nothing has changed in your folder") || !strings.Contains(again, dir) {
			t.Fatalf("it is told %q, %v", again, err)
		}
		b.say(c, signals.Done{Summary: "there was nothing to do"})
		if again, d, err := c.Close(t.Context()); err != nil || again != "" || d.Status != tt.want {
			t.Errorf("verified by %q: it is told %q, and the task is %s, want %s, %v", tt.verify, again, d.Status, tt.want, err)
		}
	}
}

// TestAWorkersWorkspaceIsFreeOnceItsClaimIsOver, however it ends, and not before.
func TestAWorkersWorkspaceIsFreeOnceItsClaimIsOver(t *testing.T) {
	t.Parallel()
	dropped := func(c *loop.Claim, why string) error {
		var gone *loop.DroppedError
		if err := c.Renew(t.Context()); !errors.As(err, &gone) || !strings.Contains(err.Error(), why) {
			return fmt.Errorf("it is told %w, want %q", err, why)
		}
		return nil
	}
	for name, end := range map[string]func(b *workshop, l *loop.Loop, c *loop.Claim) error{
		"closed": func(b *workshop, _ *loop.Loop, c *loop.Claim) error {
			dir, _ := c.Workspace()
			write(t, filepath.Join(dir, "made"), "x")
			b.say(c, signals.Done{Summary: "made it"})
			_, d, err := c.Close(t.Context())
			if d.Status != ralph.Completed {
				t.Errorf("the task is %s: %s", d.Status, d.StatusReason)
			}
			return err
		},
		"given back": func(_ *workshop, _ *loop.Loop, c *loop.Claim) error {
			_, err := c.Release(t.Context())
			return err
		},
		"called off": func(b *workshop, _ *loop.Loop, c *loop.Claim) error {
			b.tx(func(tx *store.Tx) error { return tx.RequestStop(c.SessionID(), "cancel", "Eva") })
			return dropped(c, "Eva cancelled the task")
		},
		"stopped": func(b *workshop, _ *loop.Loop, c *loop.Claim) error {
			b.tx(func(tx *store.Tx) error { return tx.Halt(c.SessionID(), "Eva") })
			return dropped(c, "Eva stopped it")
		},
		"lapsed": func(b *workshop, l *loop.Loop, c *loop.Claim) error {
			b.passed.Store(int64(session.Lease + time.Second))
			if err := l.Lapse(t.Context()); err != nil {
				return err
			}
			write(t, filepath.Join(workspaceOf(c), "more"), "x")
			ref := ralph.Change{SessionID: c.SessionID()}.Ref()
			return errors.Join(dropped(c, "it has lapsed"), dropped(c, "your work stays as "+ref))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.tree()
			c := b.claim(l, b.add(ralph.Task{Title: "A"}), "ann")
			if _, err := l.Pool.TakeNow(t.Context(), workspace.FirstWorker); !errors.Is(err, workspace.ErrTaken) {
				t.Errorf("its workspace can be taken: %v", err)
			}
			if err := end(b, l, c); err != nil {
				t.Fatal(err)
			}
			p, err := l.Pool.TakeNow(t.Context(), workspace.FirstWorker)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Release(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestASessionThatGetsNoWorkspaceIsNotBegunElsewhere, such as where people work.
func TestASessionThatGetsNoWorkspaceIsNotBegunElsewhere(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	write(t, l.Pool.Dir, "no folder")
	id := b.add(ralph.Task{Title: "A"})
	l.OnRed, l.Limits = loop.RedGo, ralph.Limits{
		MaxSessions: 1, MaxTasks: 1, MaxSeconds: 3600, MaxCostUSD: 1, MaxDayCostUSD: 1, MaxMonthCostUSD: 1, SessionSeconds: 3600, IdleSeconds: 3600,
		SessionCostUSD: 1, Attempts: 10, StagnantMaximum: 2,
	}
	l.Agent = deed(func(context.Context, agent.Assignment) (agent.Report, error) {
		t.Error("it is begun")
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, nil
	})
	if result, err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), l.Pool.Dir) || b.task(id).Status != ralph.Pending {
		t.Errorf("the run ended with %q, %v; the task is %s", result.Reasons, err, b.task(id).Status)
	}
}

// TestAnswersToAClosedClaim: the merge of an accepted done, or the reason to wait.
func TestAnswersToAClosedClaim(t *testing.T) {
	t.Parallel()
	fails := func(_ *workshop, l *loop.Loop) {
		if err := os.Mkdir(filepath.Join(l.Here.State, "merge.lock"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		say    signals.Payload
		before func(b *workshop, l *loop.Loop)
		want   ralph.Status
		says   string // its end
		logged bool
	}{
		"it is merged": {finish, func(*workshop, *loop.Loop) {}, ralph.Completed, ": made it", false},
		"merging is paused": {finish, func(b *workshop, _ *loop.Loop) {
			b.tx(func(tx *store.Tx) error { return tx.PauseMerging("by Eva") })
		}, ralph.Merging, "; not merged yet: merging is paused: by Eva", false},
		"merging fails":     {finish, fails, ralph.Merging, "merge.lock: is a directory", true},
		"nothing is merged": {halt, fails, ralph.Pending, "partial: the rest", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.tree()
			logged := false
			l.Log = slog.New(witness{slog.NewTextHandler(io.Discard, nil), func(message string) {
				logged = logged || message == "cannot merge a worker's change now; it stays queued"
			}})
			id := b.add(ralph.Task{Title: "A"})
			c := b.claim(l, id, "ann")
			dir, _ := c.Workspace()
			write(t, filepath.Join(dir, "made"), "x")
			b.say(c, tt.say)
			tt.before(b, l)
			_, d, err := c.Close(t.Context())
			if err != nil || d.Status != tt.want || b.task(id).Status != tt.want || !strings.HasSuffix(d.StatusReason, tt.says) || logged != tt.logged {
				t.Errorf("it is %s: %s, %v; logged: %t", d.Status, d.StatusReason, err, logged)
			}
		})
	}
}

// TestASessionWhoseEndIsNotLocked: a claim that lapsed is not decided then, and a worker's workspace
// is given back all the same.
func TestASessionWhoseEndIsNotLocked(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	said := ""
	l.Log = slog.New(witness{slog.NewTextHandler(io.Discard, nil), func(message string) { said += message + "\n" }})
	c := b.claim(l, b.add(ralph.Task{Title: "A"}), "ann")
	if err := os.Mkdir(filepath.Join(l.Here.Folder(c.SessionID()), "ending.lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.passed.Store(int64(session.Lease + time.Second))
	if err := l.Lapse(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.tx(func(tx *store.Tx) error {
		list, err := tx.Undecided()
		if len(list) != 1 || !strings.HasPrefix(list[0].Why, "lock of the session: ") {
			t.Errorf("doctor is told %+v", list)
		}
		return err
	})
	if _, err := c.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, "cannot give back a worker's workspace in order") {
		t.Errorf("it says %q", said)
	}
	p, err := l.Pool.TakeNow(t.Context(), workspace.FirstWorker)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Release(); err != nil {
		t.Error(err)
	}
}

// TestAClaimThatCannotBeEndedIsNotCalledOver.
func TestAClaimThatCannotBeEndedIsNotCalledOver(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	c := b.claim(b.tree(), b.add(ralph.Task{Title: "A"}), "ann")
	b.say(c, signals.Stuck{Reason: "no idea"})
	b.tx(func(tx *store.Tx) error { return tx.RequestStop(c.SessionID(), "cancel", "Eva") })
	b.garble(c.SessionID())
	var gone *loop.DroppedError
	if err := c.Renew(t.Context()); err == nil || errors.As(err, &gone) {
		t.Errorf("its worker is told %v", err)
	}
}

// ninefold are limits that a few sessions do not reach.
var ninefold = ralph.Limits{
	MaxSessions: 9, MaxTasks: 9, MaxSeconds: 3600, MaxCostUSD: 100, MaxDayCostUSD: 100, MaxMonthCostUSD: 100, SessionSeconds: 3600, IdleSeconds: 3600,
	SessionCostUSD: 10, Attempts: 10, StagnantMaximum: 9,
}

// TestAWorkspaceThatIsNotNeededYetIsFree, although it was checked out: a lost session may have worked in it.
func TestAWorkspaceThatIsNotNeededYetIsFree(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree("true")
	l.Parallel = 2
	b.add(ralph.Task{Title: "A"})
	b.add(ralph.Task{Title: "B"})
	l.Agent = deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		ws, err := l.Pool.Take(ctx, 2, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := ws.Release(); err != nil {
			t.Error(err)
		}
		_, err = b.db.Say(ctx, a.TaskID, a.SessionID, "agent", finish)
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	})
	l.Limits = ninefold
	l.Limits.MaxTasks = 1
	if result, err := l.Run(t.Context()); err != nil || result.Status != ralph.ExitLimit {
		t.Errorf("exit status %d: %q, %v", result.Status, result.Reasons, err)
	}
}
