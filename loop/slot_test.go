package loop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ralph"
	"ralph/internal/worktree"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/landing"
	"ralph/loop/place"
	"ralph/loop/session"
	"ralph/signals"
	"ralph/store"
)

// slots is [workshop.repository] with sessions that work in slots.
func (b *workshop) slots(verify ...string) *loop.Loop {
	b.t.Helper()
	l := b.repository(verify...)
	l.Apart, l.Rules.Bounces = true, 2
	l.Slots = &place.Slots{Here: l.Place, Dir: filepath.Join(b.t.TempDir(), "places"), Name: "project", Env: os.Environ(), Timeout: time.Minute, Log: l.Log}
	l.Lander = &landing.Lander{
		Rules: landing.Rules{
			Into: "main", Bounces: 2, Wait: time.Minute, Message: "{task}: {title}", Timeout: time.Minute, State: b.state,
		},
		Store: b.db, Tree: l.Place.Tree, Line: &landing.Line{}, Log: l.Log, Check: l.Check,
	}
	return l
}

// TestASessionInASlot: its work is checked apart from people's tree, and
// gets there only if it passes.
func TestASessionInASlot(t *testing.T) {
	done := signals.Done{Summary: "made it"}
	for _, tt := range []struct {
		name   string
		verify []string
		turns  []turn
		status ralph.Status
		why    string // the beginning of the reason
		files  string // those of the sessions' files that people have afterwards
	}{
		{"its done lands", []string{"test -f a"}, []turn{{write: []string{"a"}, say: done, answer: "over"}}, ralph.Completed, "done and verified: made it", "a"},
		{"without anything that verifies it, too", nil, []turn{{write: []string{"a"}, say: done, answer: "over"}}, ralph.Completed, "done (nothing is configured to verify it): made it", "a"},
		{"a done that is refused is told, and lands when it is mended", []string{"test -f b"}, []turn{
			{write: []string{"a"}, say: done, answer: "test -f b"}, {write: []string{"b"}, say: done, answer: "over"},
		}, ralph.Completed, "done and verified: made it", "a b"},
		{"what fails with a commit of people during the check is told, and lands when it is mended", []string{
			`if test -e a; then cd "$RALPH_ROOT" && { test -e b || { : >b; git add b; git -c user.name=P -c user.email=p commit -qm b; }; }; fi`, "! test -e a || ! test -e b",
		}, []turn{
			{write: []string{"a"}, say: done, answer: "merged with it the change is refused: `! test -e a || ! test -e b`"},
			{write: []string{"c"}, remove: []string{"a"}, say: done, answer: "over"},
		}, ralph.Completed, "done and verified: made it", "b"},
		{"what it has verified stays where it was verified", []string{"touch b"}, []turn{{write: []string{"a"}, say: done, answer: "over"}}, ralph.Completed, "done and verified: made it", "a"},
		{"wherever it committed that", []string{"test -f a"}, []turn{
			{write: []string{"a"}, git: "checkout -q -b other;add a;commit -q -m one;checkout -q --orphan third", say: done, answer: "over"},
		}, ralph.Completed, "done and verified (1 commit on other is not on third, so it was not verified): made it", "a"},
		{"a repository within that nobody else could get does not", nil, []turn{
			{write: []string{"a"}, git: "init -q sub;-C sub commit -q --allow-empty -m one", say: done, answer: "sub is at "},
		}, ralph.Pending, "done was refused: ", ""},
		{"a part does not land", []string{"test -f a"}, []turn{{write: []string{"a"}, say: signals.Partial{Summary: "half", Remaining: "the rest"}}}, ralph.Pending, "partial: the rest", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.slots(tt.verify...)
			id := b.add(ralph.Task{Title: "A"})
			result, s := b.once(l, &speech{b: b, turns: tt.turns, ending: ralph.Finished})
			if task := b.task(id); task.Status != tt.status || !strings.HasPrefix(s.Reason, tt.why) {
				t.Fatalf("it is %s: %s; the run ended with %q", task.Status, task.StatusReason, result.Reasons)
			}
			var files []string
			for _, name := range []string{"a", "b"} {
				if _, err := os.Stat(filepath.Join(l.Place.Dir, name)); err == nil {
					files = append(files, name)
				}
			}
			if got := strings.Join(files, " "); got != tt.files {
				t.Errorf("people have %q, want %q", got, tt.files)
			}
			if s.Dir == l.Place.Dir {
				t.Error("it worked where people do")
			}
		})
	}
}

// TestWhoGoesOnAfterItsCheckIsWaitedForByNobody: it is not about to land.
func TestWhoGoesOnAfterItsCheckIsWaitedForByNobody(t *testing.T) {
	b := newWorkshop(t)
	l := b.slots()
	b.add(ralph.Task{Title: "A"})
	other := b.add(ralph.Task{Title: "B"})
	b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		report := agent.Report{Ending: ralph.Finished, CostKnown: true}
		if _, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", finish); err != nil {
			return report, err
		}
		if answer := a.TurnEnded(ctx, agent.Turn{}); answer.Over || answer.Text == "" {
			t.Errorf("it is told %+v", answer)
		}
		base := b.git(l.Place.Dir, "rev-parse", "HEAD")
		tree := b.git(l.Place.Dir, "rev-parse", "HEAD^{tree}")
		c := ralph.Change{
			TaskID: other, SessionID: uuid.NewString(), Base: base, Tree: tree,
			Head: b.git(l.Place.Dir, "commit-tree", tree, "-p", base, "-m", "B"),
		}
		err := b.db.Tx(ctx, func(tx *store.Tx) error {
			_, err := tx.StartSession(store.Start{ID: c.SessionID, Task: other, Origin: ralph.FromHuman})
			return err
		})
		within, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if _, terr := l.Lander.Try(within, c, time.Hour); terr != nil {
			err = errors.Join(err, fmt.Errorf("it is waited for: %w", terr))
		}
		if err != nil {
			t.Error(err)
		}
		return report, err
	}))
}

// TestADoneWhoseChangesGitCannotCompareIsNotAccepted: what it commits may name what nobody else could get.
func TestADoneWhoseChangesGitCannotCompareIsNotAccepted(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *'diff-tree -r --raw'*) echo 'fatal: no memory' >&2; exit 128 ;; esac\nexec %s \"$@\"\n", git)
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	b := newWorkshop(t)
	l := b.slots()
	id := b.add(ralph.Task{Title: "A"})
	b.once(l, &speech{b: b, turns: []turn{{write: []string{"a"}, say: finish, answer: "over"}}, ending: ralph.Finished})
	if task := b.task(id); task.Status != ralph.Pending || !strings.Contains(task.StatusReason, "the done could not be checked: ") {
		t.Errorf("it is %s: %s", task.Status, task.StatusReason)
	}
}

// TestASlotWhoseStateCannotBeNotedIsSaid: its work is saved once more by the next session there.
func TestASlotWhoseStateCannotBeNotedIsSaid(t *testing.T) {
	b := newWorkshop(t)
	l := b.slots()
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
	if task := b.task(id); task.Status != ralph.Completed || !strings.Contains(strings.Join(said, "\n"), "cannot note that a slot's work is saved") {
		t.Errorf("it is %s: %s; it says %q", task.Status, task.StatusReason, said)
	}
}

// TestWhatCannotBeSavedFromASlotIsSaid: it is lost with the slot.
func TestWhatCannotBeSavedFromASlotIsSaid(t *testing.T) {
	for _, tt := range []struct {
		taken func(session string) string // a ref that leaves no room for where it was to be saved
		want  string
	}{
		{
			func(session string) string { return ralph.Change{SessionID: session}.Ref() + "/taken" },
			"what it made in its slot, which is kept there (",
		},
		{
			func(session string) string { return "refs/ralph/lost/" + session },
			"what it committed beside what it came to, or stashed (refs/heads/other ",
		},
	} {
		b := newWorkshop(t)
		l := b.slots()
		id := b.add(ralph.Task{Title: "A"})
		b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
			write(t, filepath.Join(a.Dir, "part"), "x")
			b.git(a.Dir, "checkout", "-q", "-b", "other")
			b.git(a.Dir, "commit", "-q", "--allow-empty", "-m", "one")
			b.git(a.Dir, "checkout", "-q", "-")
			b.git(l.Place.Dir, "update-ref", tt.taken(a.SessionID), "HEAD")
			_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", halt)
			return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
		}))
		if task := b.task(id); !strings.Contains(task.StatusReason, tt.want) {
			t.Errorf("it is %s: %s; want %q", task.Status, task.StatusReason, tt.want)
		}
	}
}

// TestAProtectedFileThatASessionChangedInItsSlot stays as it is there, and hinders no other session.
func TestAProtectedFileThatASessionChangedInItsSlot(t *testing.T) {
	b := newWorkshop(t)
	l := b.slots()
	l.Check.Protect = []string{"*.golden"} // no copies are kept of these
	l.Lander.Check = l.Check
	b.add(ralph.Task{Title: "A"})
	result, s := b.once(l, &speech{b: b, turns: []turn{{write: []string{"a.golden"}, say: halt}}, ending: ralph.Finished})
	if result.Status == ralph.ExitWaiting || !exists(filepath.Join(s.Dir, "a.golden")) {
		t.Errorf("exit status %d: %q", result.Status, result.Reasons)
	}
}

// TestADoneInASlotLandsAlthoughTheRunIsStopped: what its session made is not left until the next run.
func TestADoneInASlotLandsAlthoughTheRunIsStopped(t *testing.T) {
	b := newWorkshop(t)
	l := b.slots()
	id := b.add(ralph.Task{Title: "A"})
	stop := make(chan struct{})
	l.Stop, l.Session.Grace = stop, time.Hour
	b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		write(t, filepath.Join(a.Dir, "a"), "x")
		_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", finish)
		close(stop)
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	}))
	if task := b.task(id); task.Status != ralph.Completed || !exists(filepath.Join(l.Place.Dir, "a")) {
		t.Errorf("it is %s: %s", task.Status, task.StatusReason)
	}
}

// TestSessionsInSlotsThatChangeNothingEndARun as others do.
func TestSessionsInSlotsThatChangeNothingEndARun(t *testing.T) {
	b := newWorkshop(t)
	l := b.slots()
	b.add(ralph.Task{Title: "A"})
	began := 0
	l.Agent, l.OnRed, l.Limits = deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		began++
		_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", halt)
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	}), loop.RedGo, ralph.Limits{
		MaxSessions: 2, MaxTasks: 1, MaxSeconds: 3600, MaxCostUSD: 1, MaxDayCostUSD: 1, SessionSeconds: 3600, IdleSeconds: 3600,
		SessionCostUSD: 1, Attempts: 10, StagnantMaximum: 1,
	}
	if result, err := l.Run(t.Context()); err != nil || began != 1 || result.Reasons[0] != "1 sessions in a row changed nothing" {
		t.Errorf("after %d sessions it ended with %q, %v", began, result.Reasons, err)
	}
}

// TestATreeIsVerifiedOnce: the next task starts from the tree that a done was checked with.
func TestATreeIsVerifiedOnce(t *testing.T) {
	for _, apart := range []bool{false, true} {
		b := newWorkshop(t)
		count := filepath.Join(t.TempDir(), "count")
		verify := "echo >> " + count
		l := b.repository(verify)
		if apart {
			l = b.slots(verify)
		}
		b.add(ralph.Task{Title: "A"})
		b.add(ralph.Task{Title: "B"})
		for _, file := range []string{"a", "b"} {
			b.once(l, &speech{b: b, turns: []turn{{write: []string{file}, say: signals.Done{Summary: "made it"}, answer: "over"}}, ending: ralph.Finished})
		}
		ran, err := os.ReadFile(count)
		if err != nil || len(ran) != 3 {
			t.Errorf("in a slot: %t: it was verified %d times, %v: want once before all work, and at each done", apart, len(ran), err)
		}
	}
}

// TestTheNextSessionInASlotGoesOn with what the last session of its task
// left there; another task's session does not see it.
func TestTheNextSessionInASlotGoesOn(t *testing.T) {
	b := newWorkshop(t)
	l := b.slots()
	b.add(ralph.Task{Title: "A"})
	other := b.add(ralph.Task{Title: "B"})
	var found []string
	work := func(name string, say signals.Payload) deed {
		return func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
			had := "nothing"
			if _, err := os.Stat(filepath.Join(a.Dir, "part")); err == nil {
				had = "part"
			}
			found = append(found, had)
			err := os.WriteFile(filepath.Join(a.Dir, name), nil, 0o600)
			if err == nil {
				_, err = b.db.Say(ctx, a.TaskID, a.SessionID, "agent", say)
			}
			return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
		}
	}
	b.once(l, work("part", signals.Partial{Summary: "half", Remaining: "the rest"}))
	l.Task = other
	b.once(l, work("other", signals.Done{Summary: "made it"}))
	l.Task = 0
	b.once(l, work("rest", signals.Done{Summary: "made it"}))
	if got := strings.Join(found, ", "); got != "nothing, nothing, part" {
		t.Errorf("they found %s", got)
	}
	for _, name := range []string{"part", "other", "rest"} {
		if _, err := os.Stat(filepath.Join(l.Place.Dir, name)); err != nil {
			t.Errorf("people do not have it: %v", err)
		}
	}
}

// TestAConflictIsToldWhileTheAgentCanMendIt, even without verification commands.
func TestAConflictIsToldWhileTheAgentCanMendIt(t *testing.T) {
	b := newWorkshop(t)
	l := b.slots()
	id := b.add(ralph.Task{Title: "A"})
	write := func(dir, name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		say := func() agent.Answer {
			if _, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", signals.Done{Summary: "made it"}); err != nil {
				t.Error(err)
			}
			return a.TurnEnded(ctx, agent.Turn{})
		}
		write(a.Dir, "shared", "mine")
		write(l.Place.Dir, "shared", "theirs")
		b.git(l.Place.Dir, "add", "shared")
		b.git(l.Place.Dir, "commit", "-q", "-m", "meanwhile")
		if answer := say(); answer.Over || !strings.Contains(answer.Text, "shared") {
			t.Errorf("it is told %+v", answer)
		}
		b.git(a.Dir, "checkout", "-q", "--force", place.TipBranch)
		write(a.Dir, "own", "mine")
		if answer := say(); !answer.Over {
			t.Errorf("then it is told %+v", answer)
		}
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, nil
	}))
	if task := b.task(id); task.Status != ralph.Completed {
		t.Errorf("it is %s: %s", task.Status, task.StatusReason)
	}
	for name, want := range map[string]string{"shared": "theirs", "own": "mine"} {
		if got, err := os.ReadFile(filepath.Join(l.Place.Dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}

// TestAConflictThatIsNotMended is counted each time, but is not an attempt. A task whose changes
// bounced too often waits for a person, unless something landed that its agent did not hear of.
func TestAConflictThatIsNotMended(t *testing.T) {
	b := newWorkshop(t)
	l := b.slots()
	id := b.add(ralph.Task{Title: "A"})
	for i, tt := range []struct {
		told    bool // it hears of the conflict while it works
		bounces int
		status  ralph.Status
	}{
		{true, 2, ralph.Pending},
		{false, 3, ralph.Pending},
		{true, 5, ralph.Blocked},
	} {
		_, session := b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
			write(t, filepath.Join(a.Dir, "shared"), fmt.Sprint("mine ", i))
			write(t, filepath.Join(l.Place.Dir, "shared"), fmt.Sprint("theirs ", i))
			b.git(l.Place.Dir, "add", "shared")
			b.git(l.Place.Dir, "commit", "-q", "-m", "meanwhile")
			_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", signals.Done{Summary: "made it"})
			if tt.told {
				a.TurnEnded(ctx, agent.Turn{})
			}
			return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
		}))
		task := b.task(id)
		if task.Bounces != tt.bounces || task.Attempts != 0 || task.Status != tt.status || !strings.Contains(session.Reason, "shared") {
			t.Fatalf("after session %d it has come back %d times, with %d attempts, and is %s: %s",
				i+1, task.Bounces, task.Attempts, task.Status, session.Reason)
		}
		b.tx(func(tx *store.Tx) error {
			c, _, err := tx.ChangeOf(id)
			if strings.Join(c.Conflicts, " ") != "shared" {
				t.Errorf("the change conflicts in %q", c.Conflicts)
			}
			return err
		})
	}
}

// TestAConflictIsNotToldForever: if its agent mends nothing, a person is asked.
func TestAConflictIsNotToldForever(t *testing.T) {
	b := newWorkshop(t)
	l := b.slots()
	id := b.add(ralph.Task{Title: "A"})
	told := 0
	b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		write(t, filepath.Join(a.Dir, "shared"), "mine")
		write(t, filepath.Join(l.Place.Dir, "shared"), "theirs")
		b.git(l.Place.Dir, "add", "shared")
		b.git(l.Place.Dir, "commit", "-q", "-m", "meanwhile")
		_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", signals.Done{Summary: "made it"})
		for told < 5 && !a.TurnEnded(ctx, agent.Turn{}).Over {
			told++
		}
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	}))
	if task := b.task(id); told != 2 || task.Status != ralph.Blocked {
		t.Errorf("it was told %d times; the task is %s: %s", told, task.Status, task.StatusReason)
	}
}

// TestWhatFailsOnlyMergedIsToldSo: otherwise the agent would look for the cause in vain.
func TestWhatFailsOnlyMergedIsToldSo(t *testing.T) {
	b := newWorkshop(t)
	l := b.slots("! { test -f theirs && test -f mine; }")
	b.add(ralph.Task{Title: "A"})
	const merged = "merged with what has landed since you began: that is the branch ralph/main here"
	var told []bool
	b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		write(t, filepath.Join(a.Dir, "mine"), "")
		write(t, filepath.Join(l.Place.Dir, "theirs"), "")
		b.git(l.Place.Dir, "add", "theirs")
		b.git(l.Place.Dir, "commit", "-q", "-m", "meanwhile")
		for range 2 {
			if _, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", signals.Done{Summary: "made it"}); err != nil {
				t.Error(err)
			}
			told = append(told, strings.Contains(a.TurnEnded(ctx, agent.Turn{}).Text, merged))
			b.git(a.Dir, "rev-parse", "--verify", "-q", place.TipBranch)
		}
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, nil
	}))
	if !slices.Equal(told, []bool{true, false}) {
		t.Errorf("it is told so: %v", told)
	}
}

// TestALostSessionWhoseSlotIsGone, because people removed it or another
// session began there before it was settled: its done is not checked against
// the present content, and the next session of its task continues its work.
func TestALostSessionWhoseSlotIsGone(t *testing.T) {
	for _, way := range []string{"removed", "used"} {
		b := newWorkshop(t)
		l := b.slots("true")
		id := b.add(ralph.Task{Title: "A"})
		lost := uuid.NewString()
		slot := b.lose(l, id, lost)
		if _, err := b.db.Say(t.Context(), id, lost, "agent", signals.Done{Summary: "made it"}); err != nil {
			t.Fatal(err)
		}
		write(t, slot.Path("part"), "x")
		var err error
		if way == "used" {
			_, err = slot.Begin(t.Context(), slot.Slot.Base, "")
		}
		if err = errors.Join(err, slot.Release()); way == "removed" && err == nil {
			err = l.Slots.Remove(t.Context(), "1")
		}
		if err != nil {
			t.Fatal(err)
		}
		found := false
		b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
			found = exists(filepath.Join(a.Dir, "part"))
			b.tx(func(tx *store.Tx) error {
				kept, ok, err := tx.ChangeOf(id)
				if !ok || kept.SessionID != lost || kept.Base != slot.Slot.Base || kept.Head == kept.Base {
					t.Errorf("%s: what it kept is %+v", way, kept)
				}
				return err
			})
			_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", signals.Done{Summary: "made it"})
			return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
		}))
		if task := b.task(id); !found || task.Status != ralph.Completed || !exists(filepath.Join(l.Place.Dir, "part")) {
			t.Errorf("%s: found by the next session: %t; it is %s: %s", way, found, task.Status, task.StatusReason)
		}
		b.tx(func(tx *store.Tx) error {
			s, err := tx.Session(lost)
			if err == nil && !strings.HasPrefix(s.Reason, "lost before its done was accepted") {
				t.Errorf("%s: the lost one is %s", way, s.Reason)
			}
			return err
		})
	}
}

// TestALostSessionOfWhoseSlotNothingIsKept has left no change.
func TestALostSessionOfWhoseSlotNothingIsKept(t *testing.T) {
	b := newWorkshop(t)
	l := b.slots()
	id, lost := b.add(ralph.Task{Title: "A"}), uuid.NewString()
	b.tx(func(tx *store.Tx) error {
		_, err := tx.StartSession(store.Start{ID: lost, Task: id, Dir: filepath.Join(l.Slots.Dir, "1", "tree")})
		return err
	})
	l.Agent = deed(nil)
	if _, err := l.Run(t.Context()); err != nil { // no session of its own: none is allowed
		t.Fatal(err)
	}
	b.tx(func(tx *store.Tx) error {
		if kept, ok, err := tx.ChangeOf(id); ok || err != nil {
			t.Errorf("it has left %+v, %v", kept, err)
		}
		s, err := tx.Session(lost)
		if s.Ending != ralph.Lost || strings.Contains(s.Reason, "could not be looked at") {
			t.Errorf("it is %s: %s", s.Ending, s.Reason)
		}
		return err
	})
}

// lose leaves a session in a slot as if its ralph had been killed, except that the slot is still locked.
func (b *workshop) lose(l *loop.Loop, task int64, session string) *place.Place {
	b.t.Helper()
	return b.loseIn(l, 1, task, session)
}

func (b *workshop) loseIn(l *loop.Loop, number int, task int64, session string) *place.Place {
	b.t.Helper()
	slot, err := l.Slots.Take(b.t.Context(), number, false)
	if err != nil {
		b.t.Fatal(err)
	}
	tip, err := l.Lander.Tip(b.t.Context())
	if err == nil {
		_, err = slot.Begin(b.t.Context(), tip, "")
	}
	if err == nil {
		err = slot.Begun(ralph.Change{SessionID: session}.Ref())
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.tx(func(tx *store.Tx) error {
		_, err := tx.StartSession(store.Start{ID: session, Task: task, Dir: slot.Dir, Snapshot: worktree.Snapshot{Head: tip}})
		return err
	})
	return slot
}

// TestLostSessionsDoNotWaitForEachOther to land, as nothing lands while they are settled.
func TestLostSessionsDoNotWaitForEachOther(t *testing.T) {
	b := newWorkshop(t)
	l := b.slots("true")
	l.Lander.Wait = time.Hour
	var tasks []int64
	for i, name := range []string{"a", "b"} {
		id, lost := b.add(ralph.Task{Title: name}), uuid.NewString()
		slot := b.loseIn(l, i+1, id, lost)
		write(t, slot.Path(name), "x")
		if _, err := b.db.Say(t.Context(), id, lost, "agent", finish); err != nil {
			t.Fatal(err)
		}
		if err := slot.Release(); err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, id)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b.onceWithin(ctx, l, &speech{b: b, ending: ralph.Finished})
	for _, id := range tasks {
		if task := b.task(id); task.Status != ralph.Completed {
			t.Errorf("TASK-%d is %s: %s", id, task.Status, task.StatusReason)
		}
	}
}

// TestTheSlotOfALostSessionIsUsedAgain by the run that has settled it.
func TestTheSlotOfALostSessionIsUsedAgain(t *testing.T) {
	b := newWorkshop(t)
	l := b.slots()
	id, lost := b.add(ralph.Task{Title: "A"}), uuid.NewString()
	if err := b.lose(l, id, lost).Release(); err != nil {
		t.Fatal(err)
	}
	b.passed.Add(int64(time.Minute))
	_, s := b.once(l, &speech{b: b, turns: []turn{{write: []string{"a"}, say: finish, answer: "over"}}, ending: ralph.Finished})
	if task := b.task(id); s.ID == lost || s.Dir != filepath.Join(l.Slots.Dir, "1", "tree") || task.Status != ralph.Completed {
		t.Errorf("it worked in %s; the task is %s: %s", s.Dir, task.Status, task.StatusReason)
	}
}

// TestWhatIsLeftInASlotIsNotLost: a session's work there is saved once, with the
// session. Other work, left by a killed ralph or by somebody else, is saved separately.
func TestWhatIsLeftInASlotIsNotLost(t *testing.T) {
	b := newWorkshop(t)
	l := b.slots()
	session := func(file string) {
		b.add(ralph.Task{Title: "A"})
		b.once(l, &speech{b: b, turns: []turn{{write: []string{file}, say: signals.Done{Summary: "made it"}, answer: "over"}}, ending: ralph.Finished})
	}
	lost := func() string {
		refs, err := l.Place.Tree.Refs(t.Context(), "refs/ralph/lost/")
		if err != nil {
			t.Fatal(err)
		}
		touched, err := l.Place.Tree.Touched(t.Context(), slices.Collect(maps.Values(refs)))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(slices.Concat(slices.Collect(maps.Values(touched))...), " ")
	}
	session("a")
	session("b")
	if got := lost(); got != "" {
		t.Errorf("kept once more is %q", got)
	}
	write(t, filepath.Join(l.Slots.Dir, "1", "tree", "mine"), "x")
	session("c")
	if got := lost(); got != "b mine" {
		t.Errorf("kept is %q, want what somebody made in the slot", got)
	}
	// A commit that git does not take over, because it is none that git makes, is kept as it is.
	odd := b.add(ralph.Task{Title: "Odd commit"})
	b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		write(t, filepath.Join(a.Dir, "unsound"), "x")
		below := b.git(a.Dir, "-c", `alias.bad=!git cat-file commit HEAD | sed "/^parent/d; s/^tree.*/&\nparent $(git rev-parse HEAD)/; s/^author.*/author x/" | `+
			"git hash-object -t commit -w --stdin --literally", "bad")
		b.git(a.Dir, "update-ref", "HEAD", b.git(a.Dir, "commit-tree", "-m", "better", "-p", below, "HEAD^{tree}"))
		_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", signals.Done{Summary: "made it"})
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	}))
	b.tx(func(tx *store.Tx) error {
		c, kept, err := tx.ChangeOf(odd)
		if why := b.task(odd).StatusReason; !strings.Contains(why, "cannot commit what the session made in its slot") || kept {
			t.Errorf("it is %s; kept is %+v", why, c)
		}
		return err
	})
	l.Task = b.add(ralph.Task{Title: "After"})
	session("after")
	l.Task = 0
	if found, err := filepath.Glob(filepath.Join(l.Slots.Dir, "lost-1-*", "unsound")); err != nil || len(found) != 1 {
		t.Errorf("kept is %q, %v", found, err)
	}
	// If .git is gone, git can save nothing.
	tree := filepath.Join(l.Slots.Dir, "1", "tree")
	write(t, filepath.Join(tree, "odd"), "x")
	if err := os.RemoveAll(filepath.Join(tree, ".git")); err != nil {
		t.Fatal(err)
	}
	session("d")
	if found, err := filepath.Glob(filepath.Join(l.Slots.Dir, "lost-1-*", "odd")); err != nil || len(found) != 1 || !exists(filepath.Join(l.Place.Dir, "d")) {
		t.Errorf("kept is %q, %v", found, err)
	}
}

// TestTheTaskThatLandsAloneIsBegunFirst: until it has had a session nothing else lands.
func TestTheTaskThatLandsAloneIsBegunFirst(t *testing.T) {
	for _, parallel := range []int{1, 2} {
		b := newWorkshop(t)
		l := b.slots()
		l.Parallel, l.Limits.MaxSessions = parallel, 1
		b.add(ralph.Task{Title: "A", Priority: 1})
		alone := b.add(ralph.Task{Title: "B", Priority: 3})
		if err := b.db.Tx(t.Context(), func(tx *store.Tx) error {
			bounced := ralph.Session{TaskID: alone}
			return errors.Join(tx.NoteBounce(bounced, "a conflict", nil), tx.NoteBounce(bounced, "a conflict", nil))
		}); err != nil {
			t.Fatal(err)
		}
		done := turn{write: []string{"b"}, say: signals.Done{Summary: "made it"}, answer: "over"}
		if _, s := b.once(l, &speech{b: b, turns: []turn{done}, ending: ralph.Finished}); s.TaskID != alone {
			t.Errorf("of %d lanes the first is at TASK-%d, want TASK-%d", parallel, s.TaskID, alone)
		}
	}
}

// TestTheQueueRestsUntilSomethingHappens: also what happens while a landing ends is looked at.
func TestTheQueueRestsUntilSomethingHappens(t *testing.T) {
	for _, happens := range []bool{false, true} {
		b := newWorkshop(t)
		l := b.slots()
		l.Parallel = 2
		waiting := ralph.Change{TaskID: b.add(ralph.Task{Title: "A"}), SessionID: "s", State: ralph.Queued}
		if err := b.db.Tx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.AddChange(waiting)
			return errors.Join(err, tx.PauseMerging("somebody looks"))
		}); err != nil {
			t.Fatal(err)
		}
		waits, rests, err := loop.Lands(t.Context(), l, func() {
			if happens {
				b.add(ralph.Task{Title: "B"})
			}
		})
		if err != nil || waits == "" || rests == happens {
			t.Errorf("something happens: %t; it rests: %t, waits for %q (%v)", happens, rests, waits, err)
		}
	}
}

// TestAWorkersEmptySlotIsAskedAboutOnce: it may have worked elsewhere.
func TestAWorkersEmptySlotIsAskedAboutOnce(t *testing.T) {
	b := newWorkshop(t)
	c := b.claim(b.slots("true"), b.add(ralph.Task{Title: "A"}), "ann")
	dir, _ := c.Slot()
	b.say(c, signals.Done{Summary: "made it"})
	if again, _, err := c.Close(t.Context()); err != nil || !strings.Contains(again, "nothing has changed in your folder") || !strings.Contains(again, dir) {
		t.Fatalf("it is told %q, %v", again, err)
	}
	b.say(c, signals.Done{Summary: "there was nothing to do"})
	if again, d, err := c.Close(t.Context()); err != nil || again != "" || d.Status != ralph.Completed {
		t.Errorf("it is told %q, and the task is %s, %v", again, d.Status, err)
	}
}

// TestAWorkersSlotIsFreeOnceItsClaimIsOver, however it ends, and not before.
func TestAWorkersSlotIsFreeOnceItsClaimIsOver(t *testing.T) {
	dropped := func(c *session.Claim, why string) error {
		var gone *session.DroppedError
		if err := c.Held(t.Context()); !errors.As(err, &gone) || !strings.Contains(err.Error(), why) {
			return fmt.Errorf("it is told %w, want %q", err, why)
		}
		return nil
	}
	for name, end := range map[string]func(b *workshop, l *loop.Loop, c *session.Claim) error{
		"closed": func(b *workshop, _ *loop.Loop, c *session.Claim) error {
			dir, _ := c.Slot()
			write(t, filepath.Join(dir, "made"), "x")
			b.say(c, signals.Done{Summary: "made it"})
			_, d, err := c.Close(t.Context())
			if d.Status != ralph.Completed {
				t.Errorf("the task is %s: %s", d.Status, d.StatusReason)
			}
			return err
		},
		"given back": func(_ *workshop, _ *loop.Loop, c *session.Claim) error {
			_, err := c.Release(t.Context())
			return err
		},
		"called off": func(b *workshop, _ *loop.Loop, c *session.Claim) error {
			b.tx(func(tx *store.Tx) error { return tx.RequestStop(c.SessionID(), "cancel", "Eva") })
			return dropped(c, "Eva cancelled the task")
		},
		"stopped": func(b *workshop, _ *loop.Loop, c *session.Claim) error {
			b.tx(func(tx *store.Tx) error { return tx.Halt(c.SessionID(), "Eva") })
			return dropped(c, "Eva stopped it")
		},
		"lapsed": func(b *workshop, l *loop.Loop, c *session.Claim) error {
			b.passed.Store(int64(session.Lease + time.Second))
			if err := l.Lapse(t.Context()); err != nil {
				return err
			}
			return dropped(c, "it has lapsed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.slots()
			c := b.claim(l, b.add(ralph.Task{Title: "A"}), "ann")
			if _, err := l.Slots.TakeNow(t.Context(), place.FirstWorker); !errors.Is(err, place.ErrTaken) {
				t.Errorf("its slot can be taken: %v", err)
			}
			if err := end(b, l, c); err != nil {
				t.Fatal(err)
			}
			p, err := l.Slots.TakeNow(t.Context(), place.FirstWorker)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Release(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestASessionThatGetsNoSlotIsNotBegunElsewhere, such as where people work.
func TestASessionThatGetsNoSlotIsNotBegunElsewhere(t *testing.T) {
	b := newWorkshop(t)
	l := b.slots()
	write(t, l.Slots.Dir, "no folder")
	id := b.add(ralph.Task{Title: "A"})
	l.OnRed, l.Limits = loop.RedGo, ralph.Limits{
		MaxSessions: 1, MaxTasks: 1, MaxSeconds: 3600, MaxCostUSD: 1, MaxDayCostUSD: 1, SessionSeconds: 3600, IdleSeconds: 3600,
		SessionCostUSD: 1, Attempts: 10, StagnantMaximum: 2,
	}
	l.Agent = deed(func(context.Context, agent.Assignment) (agent.Report, error) {
		t.Error("it is begun")
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, nil
	})
	if result, err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), l.Slots.Dir) || b.task(id).Status != ralph.Pending {
		t.Errorf("the run ended with %q, %v; the task is %s", result.Reasons, err, b.task(id).Status)
	}
}

// TestWhatAWorkerIsToldOfWorkThatIsAccepted: it is merged, or says what it waits for.
func TestWhatAWorkerIsToldOfWorkThatIsAccepted(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(b *workshop, l *loop.Loop)
		want   ralph.Status
		says   string // its end
		logged bool
	}{
		"it is merged": {func(*workshop, *loop.Loop) {}, ralph.Completed, ": made it", false},
		"merging is paused": {func(b *workshop, _ *loop.Loop) {
			b.tx(func(tx *store.Tx) error { return tx.PauseMerging("by Eva") })
		}, ralph.Merging, "; not merged yet: merging is paused: by Eva", false},
		"merging fails": {func(_ *workshop, l *loop.Loop) {
			if err := os.Mkdir(filepath.Join(l.Place.State, "merge.lock"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, ralph.Merging, "merge.lock: is a directory", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.slots()
			logged := false
			l.Log = slog.New(witness{slog.NewTextHandler(io.Discard, nil), func(message string) {
				logged = logged || message == "cannot land a worker's change now; it stays queued"
			}})
			id := b.add(ralph.Task{Title: "A"})
			c := b.claim(l, id, "ann")
			dir, _ := c.Slot()
			write(t, filepath.Join(dir, "made"), "x")
			b.say(c, signals.Done{Summary: "made it"})
			tt.before(b, l)
			_, d, err := c.Close(t.Context())
			if err != nil || d.Status != tt.want || b.task(id).Status != tt.want || !strings.HasSuffix(d.StatusReason, tt.says) || logged != tt.logged {
				t.Errorf("it is %s: %s, %v; logged: %t", d.Status, d.StatusReason, err, logged)
			}
		})
	}
}

// TestASessionWhoseEndIsNotLocked: a claim that lapsed is not settled then, and a worker's slot
// is given back all the same. Without a slot its worker needs no lock.
func TestASessionWhoseEndIsNotLocked(t *testing.T) {
	for _, apart := range []bool{false, true} {
		b := newWorkshop(t)
		l := b.slots()
		said := ""
		l.Apart, l.Log = apart, slog.New(witness{slog.NewTextHandler(io.Discard, nil), func(message string) { said += message + "\n" }})
		c := b.claim(l, b.add(ralph.Task{Title: "A"}), "ann")
		if err := os.Mkdir(filepath.Join(l.Place.Folder(c.SessionID()), "ending.lock"), 0o700); err != nil {
			t.Fatal(err)
		}
		b.passed.Store(int64(session.Lease + time.Second))
		if err := l.Lapse(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.tx(func(tx *store.Tx) error {
			list, err := tx.Unsettled()
			if len(list) != 1 || !strings.HasPrefix(list[0].Why, "lock of the session: ") {
				t.Errorf("in a slot: %t: doctor is told %+v", apart, list)
			}
			return err
		})
		if _, err := c.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(said, "cannot give back a worker's slot in order") != apart {
			t.Errorf("in a slot: %t: it says %q", apart, said)
		}
		p, err := l.Slots.TakeNow(t.Context(), place.FirstWorker)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Release(); err != nil {
			t.Error(err)
		}
	}
}

// TestAClaimThatCannotBeEndedIsNotCalledOver.
func TestAClaimThatCannotBeEndedIsNotCalledOver(t *testing.T) {
	b := newWorkshop(t)
	c := b.claim(b.slots(), b.add(ralph.Task{Title: "A"}), "ann")
	b.say(c, signals.Stuck{Reason: "no idea"})
	b.tx(func(tx *store.Tx) error { return tx.RequestStop(c.SessionID(), "cancel", "Eva") })
	b.garble(c.SessionID())
	var gone *session.DroppedError
	if err := c.Held(t.Context()); err == nil || errors.As(err, &gone) {
		t.Errorf("its worker is told %v", err)
	}
}

// TestWhatCannotBeReadOfALostSlotIsSaid: the work that it kept is not looked for elsewhere.
func TestWhatCannotBeReadOfALostSlotIsSaid(t *testing.T) {
	b := newWorkshop(t)
	l := b.slots()
	id, lost := b.add(ralph.Task{Title: "A"}), uuid.NewString()
	slot := b.lose(l, id, lost)
	write(t, slot.Path("part"), "x")
	if _, err := slot.Begin(t.Context(), slot.Slot.Base, ""); err != nil {
		t.Fatal(err)
	}
	if err := slot.Release(); err != nil {
		t.Fatal(err)
	}
	b.raw(`UPDATE sessions SET snapshot_before = '{"Head": 1}' WHERE id = $1`, lost)
	b.once(l, &speech{b: b, turns: []turn{{write: []string{"a"}, say: finish, answer: "over"}}, ending: ralph.Finished})
	b.tx(func(tx *store.Tx) error {
		s, err := tx.Session(lost)
		if !strings.Contains(s.Reason, "what was kept of its slot (") {
			t.Errorf("it is %s", s.Reason)
		}
		return err
	})
}
