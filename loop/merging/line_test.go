package merging

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/loop/check"
	"ralph/signals"
	"ralph/store"
)

// The reasons of conflicts.
const (
	failsMerged = "main has moved, and merged with it the change is refused: `! {"
	inA         = "main has moved, and the change conflicts in a with TASK-"
)

// file returns the text that a session writes into a file.
func file(name string) map[string]string { return map[string]string{name: "new " + name + "\n"} }

// begun returns a change of a session on main that has said done.
func (y *yard) begun(name string, files map[string]string) ralph.Change {
	y.t.Helper()
	return y.start(name, y.made(y.git("rev-parse", "main"), name, files))
}

// passed checks a change of a session, which passes and is not decided yet.
func (y *yard) passed(name string, files map[string]string) ralph.Change {
	y.t.Helper()
	c := y.begun(name, files)
	if a, err := y.Try(y.t.Context(), c); err != nil || a.Refused+a.Conflict != "" {
		y.t.Fatalf("%s: %q, %q, %v", name, a.Refused, a.Conflict, err)
	}
	return c
}

// goesOn has a session's agent go on after its check.
func (y *yard) goesOn(c ralph.Change) { y.Leave(y.t.Context(), c.SessionID) }

// tx does something to the database.
func (y *yard) tx(f func(tx *store.Tx) error) {
	y.t.Helper()
	y.no(y.Store.Tx(y.t.Context(), f))
}

// waits has something happen each time that somebody waits, and fails the test if nobody should.
func (y *yard) waits(what ...func()) (left func() int) {
	never := len(what) == 0
	y.after = func(point string) {
		switch {
		case point != "waits":
		case never:
			panic("it waits")
		case len(what) > 0: // on a server it may be woken although nothing has happened
			what[0]()
			what = what[1:]
		}
	}
	return func() int { return len(what) }
}

// line returns the tasks in the line.
func (y *yard) line() (tasks []int64) {
	y.t.Helper()
	y.tx(func(tx *store.Tx) error {
		list, err := tx.Line()
		for _, c := range list {
			tasks = append(tasks, c.TaskID)
		}
		return err
	})
	return tasks
}

// TestChangesBesideOthersAreVerifiedOnce: each on the changes ahead of it. It becomes a commit of the target as it is,
// whoever merges it, whenever.
func TestChangesBesideOthersAreVerifiedOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		squash bool
		end    []int // the order of decisions; decided changes are merged
	}{
		{"one after the other", false, []int{0, 1, 2}},
		{"the last one first", false, []int{2, 1, 0}},
		{"squashed", true, []int{1, 0, 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			y := newYard(t, "test -s a")
			y.Squash, y.Wait = tt.squash, time.Hour
			var list []ralph.Change
			for i := range 3 {
				y.Links = &Links{} // as another process
				list = append(list, y.passed(fmt.Sprint("Task ", i), file(fmt.Sprint("f", i))))
			}
			ended := 0
			next := func() {
				list[tt.end[ended]] = y.end("", list[tt.end[ended]])
				ended++
			}
			y.Links = &Links{}
			next()
			y.waits(next, next, next)
			y.merge()
			for ended < len(list) {
				next()
				y.merge()
			}
			for _, c := range list {
				y.merged(c)
			}
			if len(y.checked) != 3 {
				t.Errorf("verified %d times", len(y.checked))
			}
			log := y.git("log", "--first-parent", "--format=%s", "main")
			if want := "TASK-3: Task 2\nTASK-2: Task 1\nTASK-1: Task 0\nBegin"; log != want {
				t.Errorf("got\n%s\nwant\n%s", log, want)
			}
			for i, c := range list {
				if c = y.change(c.ID); len(c.Files) != 1 || c.Files[0].Path != fmt.Sprint("f", i) || c.To != c.Commit {
					t.Errorf("it changed %+v, by %s of %s", c.Files, c.Commit, c.To)
				}
			}
		})
	}
}

// TestOneAheadComesToNothing: those behind it are verified together, as they are then.
func TestOneAheadComesToNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		happens func(y *yard, first ralph.Change)
	}{
		{"its agent goes on", func(y *yard, c ralph.Change) { y.goesOn(c) }},
		{"its session ends without it", func(y *yard, c ralph.Change) {
			y.tx(func(tx *store.Tx) error {
				s, err := tx.Session(c.SessionID)
				s.Ending = ralph.Lost
				return errors.Join(err, tx.Apply(s, signals.Facts{}, signals.Decision{
					Status: ralph.Pending, Mover: ralph.Verdict, StatusReason: "lost", Outcome: ralph.OutcomeFailure,
				}))
			})
		}},
		{"it is withdrawn", func(y *yard, c ralph.Change) {
			y.end("", c)
			y.tx(func(tx *store.Tx) error { return tx.DropChange(c.TaskID, "ann") })
		}},
		{"what it is for is edited", func(y *yard, c ralph.Change) {
			y.end("", c)
			y.tx(func(tx *store.Tx) error {
				task, err := tx.Task(c.TaskID)
				if err != nil {
					return err
				}
				task.Acceptance = []string{"it holds"}
				return tx.UpdateTask(task)
			})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			y := newYard(t, "test -s a")
			y.Wait = time.Hour
			first := y.passed("First", file("f1"))
			var list []ralph.Change
			for i := range 3 {
				list = append(list, y.passed(fmt.Sprint("Task ", i), file(fmt.Sprint("f", 2+i))))
			}
			for i, c := range list {
				list[i] = y.end("", c)
			}
			left := y.waits(func() { tt.happens(y, first) })
			y.merge()
			for _, c := range list {
				y.merged(c)
			}
			if len(y.checked) != 5 || left() > 0 {
				t.Errorf("verified %d times; it does not wait %d times", len(y.checked), left())
			}
			if got := y.git("log", "--first-parent", "--format=%s", "main"); got != "Merge TASK-2, TASK-3, TASK-4\nBegin" {
				t.Error(got)
			}
		})
	}
}

// TestPeopleCommitMeanwhile: a change that passed before is verified with their commit.
func TestPeopleCommitMeanwhile(t *testing.T) {
	t.Parallel()
	y := newYard(t, "! { test -e f1 && test -e theirs; }")
	y.Wait = time.Hour
	var list []ralph.Change
	for i := range 3 {
		list = append(list, y.passed(fmt.Sprint("Task ", i), file(fmt.Sprint("f", i))))
	}
	y.write("theirs", "x\n")
	y.git("add", ".")
	y.git("commit", "-q", "-m", "Theirs")
	for i, c := range list {
		list[i] = y.end("", c)
	}
	y.merge()
	y.merged(list[0])
	y.merged(list[2])
	if c := y.change(list[1].ID); c.State != ralph.SentBack {
		t.Errorf("the change is %s", c.State)
	}
	for _, commit := range strings.Split(y.git("rev-list", "--first-parent", "main"), "\n") {
		if out, err := y.try(y.dir, "ls-tree", "--name-only", commit); err != nil || strings.Contains(out, "f1") && strings.Contains(out, "theirs") {
			t.Errorf("%s is red (%v)", commit, err)
		}
	}
}

// TestOneThatIsCheckedForLong holds up changes behind it only for a while, and is then verified with them.
func TestOneThatIsCheckedForLong(t *testing.T) {
	t.Parallel()
	y := newYard(t, "test -s a")
	y.Wait = time.Hour
	slow := y.begun("Slow", file("f1"))
	y.during = func() {
		y.Wait = 0
		quick := y.end("", y.passed("Quick", file("f2")))
		y.merge()
		y.merged(quick)
		y.Wait = time.Hour
	}
	if a, err := y.Try(t.Context(), slow); err != nil || a.Refused+a.Conflict != "" {
		t.Fatalf("%q, %q, %v", a.Refused, a.Conflict, err)
	}
	slow = y.end("", slow)
	y.merge()
	y.merged(slow)
	if len(y.checked) != 3 { // the slow one, both, and the quick one alone
		t.Errorf("verified %d times", len(y.checked))
	}
}

// TestMergesDuringACheck are verified with the change while there is time; then a failure counts as a conflict.
// Otherwise the queue verifies them, except for a change that cannot be merged.
func TestMergesDuringACheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		merges   []string // files that people commit during a verification, one each time
		wait     time.Duration
		conflict string
		checked  int
	}{
		{"what goes together", []string{"b"}, time.Hour, "", 2},
		{"what fails merged", []string{"c"}, time.Hour, failsMerged, 3}, // and the tip
		{"what fails when more is merged", []string{"b", "c"}, time.Hour, failsMerged, 4},
		{"what conflicts", []string{"a"}, time.Hour, "main has moved, and the change conflicts with it in a", 1},
		{"what fails merged, where nobody can wait", []string{"c"}, 0, "", 1},
		{"what conflicts, where nobody can wait", []string{"a"}, 0, "main has moved, and the change conflicts with it in a", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			y := newYard(t, "! { grep -q new a && grep -q new c; }")
			y.Wait = tt.wait
			mine := y.begun("Mine", file("a"))
			var commit func()
			commit = func() {
				if len(tt.merges) > 0 {
					y.write(tt.merges[0], "new, theirs\n")
					y.git("commit", "-qam", "Theirs")
					tt.merges = tt.merges[1:]
				}
				y.during = commit
			}
			y.during = commit
			a, err := y.Try(t.Context(), mine)
			if err != nil || a.Refused != "" || !strings.HasPrefix(a.Conflict, tt.conflict) || (a.Conflict == "") != (tt.conflict == "") {
				t.Errorf("%q, %q, %v", a.Conflict, a.Refused, err)
			}
			if len(y.checked) != tt.checked || (len(a.Merged) > 0) != (tt.conflict == failsMerged) {
				t.Errorf("verified %d times; merged %v", len(y.checked), a.Merged)
			}
			if in := len(y.line()) > 0; in != (tt.conflict == "") {
				t.Errorf("it is in the line: %t", in)
			}
		})
	}
}

// TestChangesAhead: if a change conflicts or fails with them, it waits for them as long as they may be merged.
func TestChangesAhead(t *testing.T) {
	t.Parallel()
	var y *yard
	var before ralph.Change
	merges := func() { y.end("", before); y.merge() }
	withdrawn := func() {
		y.end("", before)
		y.tx(func(tx *store.Tx) error { return tx.DropChange(before.TaskID, "ann") })
	}
	goesOn := func() { y.goesOn(before) }
	paused := func() { y.tx(func(tx *store.Tx) error { return tx.PauseMerging("a person looks") }) }
	news := func() { y.tx(func(tx *store.Tx) error { return tx.SetTarget("main", false) }) }
	late := func() { time.Sleep(20 * time.Millisecond) }
	for _, tt := range []struct {
		name     string
		file     string // that the change before it is of
		alone    int64  // the task that is to be merged before all others: 1 is that before it, 2 its own
		wait     time.Duration
		waits    []func() // what happens each time it waits
		conflict string
		checked  int
	}{
		{"a conflict", "a", 0, time.Hour, []func(){news, merges}, inA, 0},
		{"a conflict with what is withdrawn", "a", 0, time.Hour, []func(){withdrawn}, "", 1},
		{"a conflict while nothing is merged", "a", 0, time.Hour, []func(){paused}, "", 1},
		{"a conflict with what its agent works on", "a", 0, time.Hour, []func(){goesOn}, "", 1},
		{"a conflict with what takes too long", "a", 0, 10 * time.Millisecond, []func(){late}, "", 1},
		{"a conflict that nobody waits for", "a", 0, 0, nil, "", 1},
		{"a conflict with what is merged alone", "a", 1, time.Hour, []func(){merges}, inA, 0},
		{"a conflict with what is merged after it, as it is merged alone", "a", 2, time.Hour, nil, "", 1},
		{"a conflict while another task is to be merged alone", "a", 3, time.Hour, nil, "", 1},
		{"other files", "b", 0, time.Hour, nil, "", 1},
		{"other files, which fail merged", "c", 0, time.Hour, []func(){news, merges}, failsMerged, 3}, // both, the tip, it alone
		{"other files, which fail merged and are withdrawn", "c", 0, time.Hour, []func(){withdrawn}, "", 3},
		{"other files, which fail merged while nothing is merged", "c", 0, time.Hour, []func(){paused}, "", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			y = newYard(t, "! { grep -q new a && grep -q new c; }")
			y.Wait = time.Hour
			before = y.passed("Before", file(tt.file))
			mine := y.begun("Mine", map[string]string{"a": "new, mine\n"})
			y.tx(func(tx *store.Tx) error {
				if _, err := tx.AddTask(ralph.Task{Title: "Third", Priority: 2}, "human"); err != nil {
					return err
				}
				for range 2 * min(tt.alone, 1) {
					if err := tx.NoteSentBack(ralph.Session{TaskID: tt.alone}, "it conflicts", nil); err != nil {
						return err
					}
				}
				return nil
			})
			y.checked, y.Wait = nil, tt.wait
			left := y.waits(tt.waits...)
			a, err := y.Try(t.Context(), mine)
			if err != nil || a.Refused != "" || !strings.HasPrefix(a.Conflict, tt.conflict) || (a.Conflict == "") != (tt.conflict == "") {
				t.Errorf("%q, %q, %v", a.Conflict, a.Refused, err)
			}
			if left() > 0 || len(y.checked) != tt.checked {
				t.Errorf("verified %d times, and %d waits are missing", len(y.checked), left())
			}
			if tip := y.git("rev-parse", "main"); a.Target.Tip != tip {
				t.Errorf("it was tried on %s, and main is at %s", a.Target.Tip, tip)
			}
			if in := slices.Contains(y.line(), mine.TaskID); in != (tt.conflict == "") {
				t.Errorf("it is in the line: %t", in)
			}
		})
	}
}

// TestAChangeThatFailsAloneIsRefused, whatever is ahead of it.
func TestAChangeThatFailsAloneIsRefused(t *testing.T) {
	t.Parallel()
	y := newYard(t, "! test -e bad")
	y.Wait = time.Hour
	y.passed("Before", file("b"))
	bad := y.begun("Bad", file("bad"))
	a, err := y.Try(t.Context(), bad)
	if err != nil || a.Refused == "" || a.Conflict != "" || len(y.checked) != 4 { // with it, alone, and the tip twice
		t.Errorf("%q, %q, %v; verified %d times", a.Refused, a.Conflict, err, len(y.checked))
	}
	if got := y.line(); !slices.Equal(got, []int64{1}) {
		t.Errorf("the line has %d", got)
	}
}

// TestAChangeWaitsForTheVerificationAhead: the gate compares with its results.
func TestAChangeWaitsForTheVerificationAhead(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	y.Wait = time.Hour
	first := y.begun("First", file("a"))
	y.tx(func(tx *store.Tx) error { return tx.JoinLine(first) })
	left := y.waits(func() {
		y.after = nil
		if _, err := y.Try(t.Context(), first); err != nil {
			t.Error(err)
		}
	})
	second := y.passed("Second", file("b"))
	if got := y.line(); left() > 0 || len(y.checked) != 2 || !slices.Equal(got, []int64{first.TaskID, second.TaskID}) {
		t.Errorf("verified %d times; the line has %d", len(y.checked), got)
	}
}

// TestBranchesOfTheirOwn are moved by no other change: no change waits for another one.
func TestBranchesOfTheirOwn(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	y.Branch, y.Wait = true, time.Hour
	y.waits()
	var list []ralph.Change
	for _, task := range []string{"One", "Two"} {
		list = append(list, y.passed(task, map[string]string{"a": task + "\n"}))
	}
	second := y.end("", list[1])
	y.merge()
	if c := y.change(second.ID); c.State != ralph.Merged || len(y.checked) != 2 {
		t.Errorf("it is %s; verified %d times", c.State, len(y.checked))
	}
}

// TestATargetThatGoesDuringACheck after something has been merged into it is told to people by the queue.
func TestATargetThatGoesDuringACheck(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	y.Wait = time.Hour
	mine := y.begun("Mine", file("a"))
	y.during = func() {
		y.Wait = 0
		y.work("Other", file("b"))
		y.merge()
		y.Wait = time.Hour
		y.git("update-ref", "-d", "refs/heads/main")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if a, err := y.Try(ctx, mine); err != nil || ctx.Err() != nil || a.Commit == "" || a.Conflict != "" {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestACheckThatIsStopped leaves the line.
func TestACheckThatIsStopped(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	ctx, cancel := context.WithCancel(t.Context())
	y.during = cancel
	if _, err := y.Try(ctx, y.begun("Mine", file("a"))); len(y.line()) > 0 {
		t.Errorf("the line has %d (%v)", y.line(), err)
	}
}

// A spy calls a function in each verification of a yard, with its number from 1.
type spy struct {
	*yard
	n  int
	do func(ctx context.Context, n int)
}

func (s *spy) Verify(ctx context.Context, commit string, commands []string) ([]check.Outcome, error) {
	s.n++
	s.do(ctx, s.n)
	return s.yard.Verify(ctx, commit, commands)
}

// TestOneAheadLeavesDuringACheck: a check with it is of no use any more, and begins again.
func TestOneAheadLeavesDuringACheck(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	y.Wait = time.Hour
	first := y.passed("First", file("a"))
	y.checked = nil
	y.Workspace = &spy{yard: y, do: func(ctx context.Context, n int) {
		if n == 1 {
			y.goesOn(first)
			<-ctx.Done()
		}
	}}
	second := y.passed("Second", file("b"))
	second = y.end("", second)
	y.merge()
	y.merged(second)
	last := y.checked[len(y.checked)-1]
	if out, err := y.try(y.dir, "diff", "--name-only", "main", last); err != nil || out != "" {
		t.Errorf("main differs from what was verified in %q (%v)", out, err)
	}
}

// TestOwnCommandsBehindOthers: if a task's own command failed where its session began, it proves the change on any
// target.
func TestOwnCommandsBehindOthers(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	y.Wait, y.Check.Proof = time.Hour, check.ProofRequire
	y.passed("First", file("f1"))
	base := y.git("rev-parse", "main")
	c := y.made(base, "Second", file("f2"))
	y.tx(func(tx *store.Tx) (err error) {
		c.TaskID, err = tx.AddTask(ralph.Task{Title: "Second", Priority: 2, Verify: []string{"test -e f2"}}, "human")
		return err
	})
	c = y.start("", c)
	before, err := y.run(t.Context(), base, y.git("rev-parse", "main^{tree}"), []string{"test -e f2"}) // as at its start
	if y.no(err); !failed(before) {
		t.Fatal(before)
	}
	a, err := y.Try(t.Context(), c)
	if err != nil || a.Refused+a.Conflict != "" || a.Onto == base {
		t.Fatalf("%q, %q, %v", a.Refused, a.Conflict, err)
	}
	if g, err := y.Gate(t.Context(), c, a.Own(), a.Checks, nil); err != nil || g.Unproved {
		t.Errorf("%+v, %v", g, err)
	}
	if pairs, err := y.Tree.Pairs(t.Context(), a.Own().Target.Tip, a.Commit); err != nil || len(pairs) != 1 {
		t.Errorf("the gate looks at %v, %v", pairs, err)
	}
}

// TestACandidateThatGitHasRemoved is made again: no ref has it.
func TestACandidateThatGitHasRemoved(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	y.Wait = time.Hour
	one, two := y.passed("One", file("f1")), y.passed("Two", file("f2"))
	one, two = y.end("", one), y.end("", two)
	y.git("gc", "--quiet", "--prune=now")
	if _, err := y.Merge(t.Context()); err == nil {
		t.Fatal("git has it still")
	}
	y.merge()
	y.merged(one)
	y.merged(two)
	if len(y.checked) != 2 {
		t.Errorf("verified %d times", len(y.checked))
	}
}

// rewriting is a yard whose check changes a protected file where both f1 and f2 are.
type rewriting struct{ *yard }

func (r rewriting) Verify(ctx context.Context, commit string, commands []string) ([]check.Outcome, error) {
	list, err := r.yard.Verify(ctx, commit, commands)
	if names := r.git("ls-tree", "--name-only", commit); strings.Contains(names, "f1\nf2") {
		list[0].Wrote = []string{"a"}
	}
	return list, err
}

// TestAProtectedFileThatChangesWithOneAhead refuses the candidate, although its commands pass: the queue does not take
// their results for a pass.
func TestAProtectedFileThatChangesWithOneAhead(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	y.Workspace = rewriting{y}
	first := y.passed("First", file("f1"))
	second := y.passed("Second", file("f2")) // alone
	first, second = y.end("", first), y.end("", second)
	y.merge()
	y.merged(first)
	if c := y.change(second.ID); c.State != ralph.SentBack || !strings.Contains(c.Reason, "refused") {
		t.Errorf("the change is %s: %q", c.State, c.Reason)
	}
}
