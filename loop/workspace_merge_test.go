package loop_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"ralph"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// TestNobodyWaitsForAContinuedSession: it is not about to be merged.
func TestNobodyWaitsForAContinuedSession(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	b.add(ralph.Task{Title: "A"})
	b.once(b.tree(), deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		_, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", finish)
		if answer := a.TurnEnded(ctx, agent.Turn{}); answer.Over || answer.Text == "" {
			t.Errorf("it is told %+v", answer)
		}
		if line, lerr := store.Read(ctx, b.db, (*store.Tx).Line); lerr != nil || len(line) > 0 {
			t.Errorf("in the line are %+v, %v", line, lerr)
		}
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	}))
}

// TestTheNextSessionInAWorkspaceGoesOn with the files of the last session of its task; another task's session does not
// see them.
func TestTheNextSessionInAWorkspaceGoesOn(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
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
		if _, err := os.Stat(filepath.Join(l.Here.Dir, name)); err != nil {
			t.Errorf("people do not have it: %v", err)
		}
	}
}

// TestADoneOfEarlierWorkIsMerged: a session that changes nothing is not asked to confirm its done if the task's earlier
// session left work to merge.
func TestADoneOfEarlierWorkIsMerged(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	id := b.add(ralph.Task{Title: "A"})
	half := signals.Partial{Summary: "half", Remaining: "a look"}
	b.once(l, &speech{b: b, turns: []turn{{write: []string{"part"}, say: half, answer: ""}}, ending: ralph.Finished})
	looked := signals.Done{Summary: "it is all there"}
	b.once(l, &speech{b: b, turns: []turn{{say: looked, answer: "over"}}, ending: ralph.Finished})
	if task := b.task(id); task.Status != ralph.Completed {
		t.Errorf("it is %s: %s", task.Status, task.StatusReason)
	}
	if _, err := os.Stat(filepath.Join(l.Here.Dir, "part")); err != nil {
		t.Errorf("people do not have it: %v", err)
	}
}

// A clash is a task whose session and a person write the same file. Its agent knows no git.
type clash struct {
	*workshop
	l  *loop.Loop
	id int64
}

func newClash(t *testing.T) clash {
	b := newWorkshop(t)
	return clash{b, b.tree(), b.add(ralph.Task{Title: "A"})}
}

// theirs has a person commit another version of the file.
func (c clash) theirs(text string) {
	write(c.t, filepath.Join(c.l.Here.Dir, "shared"), text)
	c.git(c.l.Here.Dir, "add", "shared")
	c.git(c.l.Here.Dir, "commit", "-q", "-m", "meanwhile")
}

// works has a session do it, which gets the content of the file, and a function by which it says done.
func (c clash) works(do func(file, was string, say func() agent.Answer)) (ralph.Task, ralph.Session) {
	_, session := c.once(c.l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		file := filepath.Join(a.Dir, "shared")
		was, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			c.t.Error(err)
		}
		do(file, string(was), func() agent.Answer {
			if _, err := c.db.Say(ctx, a.TaskID, a.SessionID, "agent", signals.Done{Summary: "made it"}); err != nil {
				c.t.Error(err)
			}
			return a.TurnEnded(ctx, agent.Turn{})
		})
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, nil
	}))
	return c.task(c.id), session
}

// marked returns the two sides between the conflict marks of a text.
func marked(text string) string {
	return regexp.MustCompile(`(?m)^(<<<<<<< |=======|>>>>>>> ).*\n?`).ReplaceAllString(text, "")
}

// TestAConflictIsMergedIntoTheWorkspace while the agent can mend it, even without verification commands.
func TestAConflictIsMergedIntoTheWorkspace(t *testing.T) {
	t.Parallel()
	c := newClash(t)
	task, _ := c.works(func(file, _ string, say func() agent.Answer) {
		write(t, file, "mine\n")
		write(t, filepath.Join(filepath.Dir(file), "own"), "mine")
		c.theirs("theirs\n")
		if answer := say(); answer.Over || !strings.Contains(answer.Text, "- shared\n") {
			t.Errorf("it is told %+v", answer)
		}
		text, err := os.ReadFile(file)
		if err != nil || marked(string(text)) != "theirs\nmine\n" {
			t.Errorf("the file has %q, %v", text, err)
		}
		write(t, file, marked(string(text)))
		if answer := say(); !answer.Over {
			t.Errorf("then it is told %+v", answer)
		}
	})
	if task.Status != ralph.Completed {
		t.Errorf("it is %s: %s", task.Status, task.StatusReason)
	}
	for name, want := range map[string]string{"shared": "theirs\nmine\n", "own": "mine"} {
		if got, err := os.ReadFile(filepath.Join(c.l.Here.Dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}

// TestAConflictThatIsNotMended makes the task begin again: with its work and its markers, then once more without. No
// session counts as an attempt.
func TestAConflictThatIsNotMended(t *testing.T) {
	t.Parallel()
	for _, last := range []struct {
		name          string
		meanwhile     bool // it conflicts again
		status        ralph.Status
		timesSentBack int
		attempts      int
	}{
		{"without its work it fits", false, ralph.Completed, 0, 1},
		{"then a person is asked", true, ralph.Blocked, 3, 0},
	} {
		t.Run(last.name, func(t *testing.T) {
			c := newClash(t)
			leaves := func(say func() agent.Answer, told int) {
				t.Helper()
				for range told {
					if answer := say(); answer.Over {
						t.Error("it is not told")
					}
				}
				if answer := say(); !answer.Over {
					t.Errorf("it is told %+v", answer)
				}
			}
			wants := func(task ralph.Task, session ralph.Session, timesSentBack, attempts int, status ralph.Status) {
				t.Helper()
				if task.TimesSentBack != timesSentBack || task.Attempts != attempts || task.Status != status {
					t.Fatalf("it was sent back %d times, with %d attempts, and is %s: %s", task.TimesSentBack, task.Attempts, task.Status, session.Reason)
				}
			}
			task, session := c.works(func(file, _ string, say func() agent.Answer) {
				write(t, file, "mine\n")
				c.theirs("theirs\n")
				leaves(say, 1)
			})
			wants(task, session, 1, 0, ralph.Pending)
			if want := "conflict marks are left in shared"; session.Reason != want {
				t.Errorf("it ended since %s", session.Reason)
			}
			task, session = c.works(func(_, was string, say func() agent.Answer) {
				if marked(was) != "theirs\nmine\n" || !strings.HasPrefix(was, "<<<<<<< ") {
					t.Errorf("the next one finds %q", was)
				}
				leaves(say, 0)
			})
			wants(task, session, 2, 0, ralph.Pending)
			task, session = c.works(func(file, was string, say func() agent.Answer) {
				if was != "theirs\n" {
					t.Errorf("the last one finds %q", was)
				}
				write(t, file, was+"anew\n")
				if last.meanwhile {
					c.theirs("others\n")
					leaves(say, 1)
				} else {
					leaves(say, 0)
				}
			})
			wants(task, session, last.timesSentBack, last.attempts, last.status)
		})
	}
}

// TestAnAgentThatFailsWithMergedWorkGetsThatWork, and learns of it once: it could not find the cause without it.
func TestAnAgentThatFailsWithMergedWorkGetsThatWork(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree("! { test -f theirs && test -f mine; }")
	b.add(ralph.Task{Title: "A"})
	const merged = "together with the work merged since you began"
	var told []bool
	b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		write(t, filepath.Join(a.Dir, "mine"), "")
		write(t, filepath.Join(l.Here.Dir, "theirs"), "")
		b.git(l.Here.Dir, "add", "theirs")
		b.git(l.Here.Dir, "commit", "-q", "-m", "meanwhile")
		for range 2 {
			if _, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", signals.Done{Summary: "made it"}); err != nil {
				t.Error(err)
			}
			told = append(told, strings.Contains(a.TurnEnded(ctx, agent.Turn{}).Text, merged))
			b.git(a.Dir, "rev-parse", "--verify", "-q", workspace.TipBranch)
			if _, err := os.Stat(filepath.Join(a.Dir, "theirs")); err != nil {
				t.Errorf("its folder does not have the merged work: %v", err)
			}
		}
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, nil
	}))
	if !slices.Equal(told, []bool{true, false}) {
		t.Errorf("it is told so: %v", told)
	}
}

// TestTheTaskThatIsMergedAloneIsBegunFirst: until it has had a session nothing else is merged.
func TestTheTaskThatIsMergedAloneIsBegunFirst(t *testing.T) {
	t.Parallel()
	for _, parallel := range []int{1, 2} {
		b := newWorkshop(t)
		l := b.tree()
		l.Parallel, l.Limits.MaxSessions = parallel, 1
		b.add(ralph.Task{Title: "A", Priority: 1})
		alone := b.add(ralph.Task{Title: "B", Priority: 3})
		if err := b.db.Tx(t.Context(), func(tx *store.Tx) error {
			sentBack := ralph.Session{TaskID: alone}
			return errors.Join(tx.NoteSentBack(sentBack, "a conflict", nil), tx.NoteSentBack(sentBack, "a conflict", nil))
		}); err != nil {
			t.Fatal(err)
		}
		done := turn{write: []string{"b"}, say: signals.Done{Summary: "made it"}, answer: "over"}
		if _, s := b.once(l, &speech{b: b, turns: []turn{done}, ending: ralph.Finished}); s.TaskID != alone {
			t.Errorf("of %d sessions the first is at TASK-%d, want TASK-%d", parallel, s.TaskID, alone)
		}
	}
}

// TestTheQueueRestsUntilSomethingHappens: events at the end of a merge count too.
func TestTheQueueRestsUntilSomethingHappens(t *testing.T) {
	t.Parallel()
	for _, happens := range []bool{false, true} {
		b := newWorkshop(t)
		l := b.tree()
		l.Parallel = 2
		waiting := ralph.Change{TaskID: b.add(ralph.Task{Title: "A"}), SessionID: "s", State: ralph.Queued}
		if err := b.db.Tx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.AddChange(waiting)
			return errors.Join(err, tx.PauseMerging("somebody looks"))
		}); err != nil {
			t.Fatal(err)
		}
		waits, rests, err := loop.Merges(t.Context(), l, func() {
			if happens {
				b.add(ralph.Task{Title: "B"})
			}
		})
		if err != nil || waits == "" || rests == happens {
			t.Errorf("something happens: %t; it rests: %t, waits for %q (%v)", happens, rests, waits, err)
		}
	}
}

// TestChecksBesideEachOtherAreVerifiedTogether as soon as they have begun, before one of them has passed: here
// they pass only when that has happened.
func TestChecksBesideEachOtherAreVerifiedTogether(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	both := filepath.Join(t.TempDir(), "both")
	l := b.tree(fmt.Sprintf(`if test -e A && test -e B; then touch %[1]s; elif test -e A || test -e B; then
		i=0; until test -e %[1]s || test $((i+=1)) = 1000; do sleep 0.01; done; test -e %[1]s
		elif test -e First; then sleep 2; fi`, both))
	l.Parallel, l.Limits = 2, ninefold
	first := b.add(ralph.Task{Title: "First"})
	b.add(ralph.Task{Title: "A", DependsOn: []int64{first}})
	b.add(ralph.Task{Title: "B", DependsOn: []int64{first}})
	var begun sync.WaitGroup
	begun.Add(2)
	begins := []func(){sync.OnceFunc(begun.Done), sync.OnceFunc(begun.Done)}
	l.Agent = deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
		title := "First"
		if a.TaskID != first {
			title = string("AB"[a.TaskID-first-1])
			begins[a.TaskID-first-1]()
			begun.Wait()
		}
		err := os.WriteFile(filepath.Join(a.Dir, title), nil, 0o600)
		if err == nil {
			_, err = b.db.Say(ctx, a.TaskID, a.SessionID, "agent", finish)
		}
		return agent.Report{Ending: ralph.Finished, CostKnown: true}, err
	})
	result, err := l.Run(t.Context())
	if err != nil || result.Status != ralph.ExitOK {
		t.Errorf("exit status %d: %q, %v", result.Status, result.Reasons, err)
	}
}
