package merging

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/worktree"
	"ralph/loop/check"
	"ralph/store"
)

// The reasons of conflicts.
const (
	failsMerged = "main has moved, and merged with it the change is refused: `! {"
	inA         = "main has moved, and the change conflicts in a with TASK-"
)

// TestWhatIsMergedDuringACheck is verified with the change during its session, once, if there is time to
// spare; a failure then counts as a conflict. Else, and if more is merged, that is left to the queue, but
// for a change that cannot be merged.
func TestWhatIsMergedDuringACheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		merges   []string // files that other changes write during a verification, one each time
		spare    time.Duration
		conflict string
		checked  int
	}{
		{"what goes together", []string{"b"}, time.Hour, "", 2},
		{"what fails merged", []string{"c"}, time.Hour, failsMerged, 2},
		{"what is merged again", []string{"b", "c"}, time.Hour, "", 2},
		{"what conflicts when it is merged again", []string{"b", "a"}, time.Hour, inA, 2},
		{"what fails merged, without time to spare", []string{"c"}, 0, "", 1},
		{"what conflicts, without time to spare", []string{"a"}, 0, inA, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			y := newYard(t, "! { grep -q new a && grep -q new c; }")
			y.Wait = time.Hour
			mine := y.work("Mine", map[string]string{"a": "new\n"})
			y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.SetChange(mine.ID, ralph.Queued, ralph.Dropped) }))
			var merge func()
			merge = func() {
				if len(tt.merges) > 0 {
					name := tt.merges[0]
					tt.merges = tt.merges[1:]
					was := y.checked
					y.work(name, map[string]string{name: "new " + name + "\n"})
					y.merge()
					y.checked = was
				}
				y.during = merge
			}
			y.during = merge
			a, err := y.Try(t.Context(), mine, tt.spare)
			if err != nil || a.Refused != "" || !strings.HasPrefix(a.Conflict, tt.conflict) || (a.Conflict == "") != (tt.conflict == "") {
				t.Errorf("%q, %q, %v", a.Conflict, a.Refused, err)
			}
			if len(y.checked) != tt.checked || (len(a.Merged) > 0) != (tt.conflict == failsMerged) {
				t.Errorf("verified %d times; merged %v", len(y.checked), a.Merged)
			}
		})
	}
}

// goesOn has a session's agent go on after its check, of which something is noted.
func (y *yard) goesOn(session string) {
	y.Line.Leave(session)
	y.no(y.Store.Tx(y.t.Context(), func(tx *store.Tx) error { return tx.SetTarget("main") }))
}

// TestWhatIsAboutToBeMerged from another session is waited for if a change conflicts with it, and if there
// is time to spare to verify both together.
func TestWhatIsAboutToBeMerged(t *testing.T) {
	t.Parallel()
	var y *yard
	var before ralph.Change
	tx := func(f func(*store.Tx) error) { y.no(y.Store.Tx(t.Context(), f)) }
	merges := func() { y.merge() }
	withdrawn := func() { tx(func(tx *store.Tx) error { return tx.DropChange(before.TaskID, "ann") }) }
	goesOn := func() { y.goesOn(before.SessionID) }
	paused := func() { tx(func(tx *store.Tx) error { return tx.PauseMerging("a person looks") }) }
	for _, tt := range []struct {
		name     string
		file     string // that the change before it is of
		alone    int64  // the task that is to be merged before all others: 1 is that before it, 2 its own
		spare    time.Duration
		waits    []func() // what happens each time it waits
		conflict string
		checked  int
	}{
		{"a conflict", "a", 0, 0, []func(){merges}, inA, 1},
		{"a conflict with what is withdrawn", "a", 0, 0, []func(){withdrawn}, "", 1},
		{"a conflict while nothing is merged", "a", 0, 0, []func(){paused}, "", 1},
		{"a conflict with what its agent works on", "a", 0, 0, []func(){goesOn}, "", 1},
		{"a conflict with what is merged alone", "a", 1, 0, []func(){merges}, inA, 1},
		{"a conflict with what is merged after it, as it is merged alone", "a", 2, 0, nil, "", 1},
		{"a conflict while another task is to be merged alone", "a", 3, 0, nil, "", 1},
		{"other files", "b", 0, 0, nil, "", 1},
		{"other files, which fail merged", "c", 0, time.Hour, []func(){merges}, failsMerged, 2},
		{"other files, which are withdrawn", "c", 0, time.Hour, []func(){withdrawn}, "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			y = newYard(t, "! { grep -q new a && grep -q new c; }")
			y.Wait = time.Hour
			base := y.git("rev-parse", "main")
			before = y.workOn(base, "Before", map[string]string{tt.file: "new " + tt.file + "\n"})
			mine := y.workOn(base, "Mine", map[string]string{"a": "new\n"})
			tx(func(tx *store.Tx) error {
				if _, err := tx.AddTask(ralph.Task{Title: "Third", Priority: 2}, "human"); err != nil {
					return err
				}
				for range 2 * min(tt.alone, 1) {
					if err := tx.NoteSentBack(ralph.Session{TaskID: tt.alone}, "it conflicts", nil); err != nil {
						return err
					}
				}
				return tx.SetChange(mine.ID, ralph.Queued, ralph.Dropped)
			})
			if a, err := y.Try(t.Context(), before, 0); err != nil || a.Conflict != "" {
				t.Fatalf("%q, %v", a.Conflict, err)
			}
			waits := tt.waits
			y.after = func(point string) {
				if point == "waits" && len(waits) == 0 {
					t.Fatal("it waits")
				} else if point == "waits" {
					waits[0]()
					waits = waits[1:]
				}
			}
			y.checked = nil
			a, err := y.Try(t.Context(), mine, tt.spare)
			if err != nil || a.Refused != "" || !strings.HasPrefix(a.Conflict, tt.conflict) || (a.Conflict == "") != (tt.conflict == "") {
				t.Errorf("%q, %q, %v", a.Conflict, a.Refused, err)
			}
			if len(waits) > 0 || len(y.checked) != tt.checked {
				t.Errorf("verified %d times, and %d waits are missing", len(y.checked), len(waits))
			}
		})
	}
}

// TestBranchesOfTheirOwn are moved by no other change: nobody waits for what is about to be merged.
func TestBranchesOfTheirOwn(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	y.Branch, y.Wait = true, time.Hour
	base := y.git("rev-parse", "main")
	y.after = func(point string) { t.Fatalf("it %s", point) }
	for _, task := range []string{"One", "Two"} {
		a, err := y.Try(t.Context(), y.workOn(base, task, map[string]string{"a": task + "\n"}), time.Hour)
		if err != nil || a.Conflict != "" || a.Refused != "" {
			t.Errorf("%s: %+v, %v", task, a, err)
		}
	}
}

// TestWhoHasNoTimeToWait is about to be merged all the same, and others see it.
func TestWhoHasNoTimeToWait(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	base := y.git("rev-parse", "main")
	for i, task := range []string{"One", "Two"} {
		waits := 0
		y.after = func(point string) {
			if point == "waits" {
				waits++
				y.goesOn(fmt.Sprintf("00000000-0000-4000-8000-%012d", 1))
			}
		}
		a, err := y.Try(t.Context(), y.workOn(base, task, map[string]string{"a": task + "\n"}), time.Hour)
		if err != nil || a.Conflict != "" || waits != i {
			t.Errorf("%s: %q, %v; it waits %d times", task, a.Conflict, err, waits)
		}
		y.Wait = time.Hour
	}
}

// TestATargetThatGoesDuringACheck after something has been merged into it is told to people by the queue.
func TestATargetThatGoesDuringACheck(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	y.Wait = time.Hour
	mine := y.made(y.git("rev-parse", "main"), "Mine", map[string]string{"a": "new\n"})
	other := y.work("Other", map[string]string{"b": "new\n"})
	mine.TaskID = other.TaskID
	y.during = func() {
		y.merge()
		y.git("update-ref", "-d", "refs/heads/main")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if a, err := y.Try(ctx, mine, 0); err != nil || ctx.Err() != nil || !a.Verified || a.Conflict != "" {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestWhatIsBeingCheckedIsVerifiedWithWhatWaits: what has passed when that ends is merged at once. What comes to
// nothing meanwhile holds nobody up.
func TestWhatIsBeingCheckedIsVerifiedWithWhatWaits(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	var y *yard
	var other ralph.Change
	passes := func() { y.end("Second", other) }
	goesOn := func() { y.Line.Leave(other.SessionID) }
	nothing := func() {}
	for _, tt := range []struct {
		name    string
		line    inLine
		began   time.Duration // when the other's check began, or when it passed
		file    string        // that the other writes
		took    time.Duration
		wait    time.Duration
		squash  bool
		during  func() // what happens while both are verified
		waits   func() // what happens when that is waited for; nil if nothing is
		checked int
		merges  int
	}{
		{"one that passes meanwhile", inLine{}, 0, "b", hour, hour, false, passes, nil, 1, 2},
		{"one that passes later", inLine{}, 0, "b", hour, hour, false, nothing, passes, 1, 2},
		{"one that has passed", inLine{passed: true}, 0, "b", hour, hour, false, nothing, passes, 1, 2},
		{"one that passed long ago, and is not queued", inLine{passed: true}, -hour, "b", hour, hour, false, nil, nil, 1, 1},
		{"one whose agent goes on meanwhile", inLine{}, 0, "b", hour, hour, false, goesOn, nil, 2, 1},
		{"one whose agent goes on later", inLine{}, 0, "b", hour, hour, false, nothing, goesOn, 2, 1},
		{"one that fails merged", inLine{}, 0, "c", hour, hour, false, nothing, nil, 2, 1},
		{"one that conflicts", inLine{}, 0, "a", hour, hour, false, nothing, nil, 1, 1},
		{"one that conflicts, and goes on meanwhile", inLine{}, 0, "a", hour, hour, false, goesOn, nil, 1, 1},
		{"one that takes longer than the last", inLine{}, -2 * hour, "b", hour, hour, false, nil, nil, 1, 1},
		{"one where nothing was verified yet", inLine{}, 0, "b", 0, hour, false, nil, nil, 1, 1},
		{"one that nobody waits for", inLine{}, 0, "b", hour, 0, false, nil, nil, 1, 1},
		{"one of those that are merged one by one", inLine{}, 0, "b", hour, hour, true, nil, nil, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			y = newYard(t, "! { grep -q new a && grep -q new c; }")
			y.Squash = tt.squash
			base := y.git("rev-parse", "main")
			y.workOn(base, "First", map[string]string{"a": "new\n"})
			other = y.start("Second", y.made(base, "Second", map[string]string{tt.file: "new " + tt.file + "\n"}))
			y.Line.took, y.Wait = tt.took, tt.wait
			tt.line.change, tt.line.since = other, time.Now().Add(tt.began)
			y.Line.put(other.SessionID, tt.line)
			y.during = func() {
				if tt.during != nil {
					tt.during()
				} else if both, err := y.Tree.Files(t.Context(), base, y.checked[0]); err != nil || len(both) != 1 {
					t.Errorf("%v are verified together, %v", both, err)
				}
			}
			waits := tt.waits
			y.after = func(point string) {
				if point != "gathers" {
					return
				}
				if waits == nil {
					t.Fatal("it waits")
				}
				waits()
				waits = nil
			}
			y.merge()
			merged, err := store.Read(t.Context(), y.Store, (*store.Tx).Merged)
			if y.no(err); len(merged) != tt.merges || len(y.checked) != tt.checked || waits != nil {
				t.Errorf("%d merged; verified %d times; it is to wait: %t", len(merged), len(y.checked), waits != nil)
			}
		})
	}
}

// TestWhatIsBeingCheckedIsVerifiedBeforeAnythingWaits, once for each check that begins, unless its own check
// is about the same.
func TestWhatIsBeingCheckedIsVerifiedBeforeAnythingWaits(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	base := y.git("rev-parse", "main")
	told := 0
	y.Line.Tell(func() { told++ })
	y.Early, y.Line.took, y.Wait = true, time.Hour, time.Hour
	var list []ralph.Change
	check := func(title, file string) {
		t.Helper()
		c := y.start(title, y.made(base, title, map[string]string{file: "new\n"}))
		list = append(list, c)
		on, err := y.target(t.Context())
		y.no(err)
		y.Line.noteChecking(c, on)
		if !y.Line.News() || told != len(list) {
			t.Errorf("news: %t, told %d times", y.Line.News(), told)
		}
	}
	merges := func(checked int) {
		t.Helper()
		y.Line.took = time.Hour
		for range 2 {
			y.merge()
		}
		if len(y.checked) != checked || y.Line.News() {
			t.Errorf("verified %d times, news: %t", len(y.checked), y.Line.News())
		}
	}
	y.after = func(point string) {
		if point == "gathers" {
			for _, c := range list {
				y.end("", c)
			}
			list = nil
		}
	}
	check("One", "a")
	merges(0)
	check("Two", "b")
	merges(1)
	merged, err := store.Read(t.Context(), y.Store, (*store.Tx).Merged)
	if y.no(err); len(merged) != 2 || len(list) != 0 {
		t.Errorf("%d merged", len(merged))
	}
}

// TestWhatBeginsBeforeTheTargetMoves is verified with what has been merged since.
func TestWhatBeginsBeforeTheTargetMoves(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	base := y.git("rev-parse", "main")
	y.workOn(base, "Mine", map[string]string{"a": "new\n"})
	other := y.start("Other", y.made(base, "Other", map[string]string{"b": "new\n"}))
	on, err := y.target(t.Context())
	y.no(err)
	y.Line.noteChecking(other, on) // nothing was verified yet
	y.Early, y.Wait = true, time.Hour
	y.after = func(point string) {
		switch point {
		case "moved":
			y.Line.took = time.Hour
		case "gathers":
			y.end("Other", other)
		}
	}
	y.merge()
	merged, err := store.Read(t.Context(), y.Store, (*store.Tx).Merged)
	if y.no(err); len(merged) != 2 || len(y.checked) != 2 {
		t.Errorf("%d merged; verified %d times", len(merged), len(y.checked))
	}
}

// TestWhoseCheckIsAboutToBegin is waited for, but not for long.
func TestWhoseCheckIsAboutToBegin(t *testing.T) {
	t.Parallel()
	for _, comes := range []bool{true, false} {
		y := newYard(t, "true")
		base := y.git("rev-parse", "main")
		y.workOn(base, "First", map[string]string{"a": "new\n"})
		other := y.start("Second", y.made(base, "Second", map[string]string{"b": "new\n"}))
		y.Line.took, y.Wait = 20*time.Millisecond, time.Hour
		if comes {
			y.Line.took = time.Hour
		}
		y.Line.Enter(other.SessionID)
		waited := 0
		y.after = func(point string) {
			if point == "gathers" {
				waited++
				if comes {
					y.Line.noteChecking(other, Target{})
				}
			}
		}
		y.during = func() {
			if comes {
				y.end("Second", other)
			}
		}
		y.merge()
		merged, err := store.Read(t.Context(), y.Store, (*store.Tx).Merged)
		if y.no(err); comes && (waited != 1 || len(merged) != 2) || len(y.checked) != 1 || len(y.Line.coming) != 0 {
			t.Errorf("comes: %t; waited %d times, %d merged; verified %d times", comes, waited, len(merged), len(y.checked))
		}
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

// TestACheckThatHangsHoldsUpNobody for long: the verification with it is ended.
func TestACheckThatHangsHoldsUpNobody(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	base := y.git("rev-parse", "main")
	first := y.workOn(base, "First", map[string]string{"a": "new\n"})
	hangs := y.start("Hangs", y.made(base, "Hangs", map[string]string{"b": "new\n"}))
	y.Line.took, y.Wait = time.Second, time.Hour
	y.Workspace = &spy{yard: y, do: func(ctx context.Context, n int) {
		if n == 1 {
			<-ctx.Done()
		}
	}}
	y.Line.noteChecking(hangs, Target{})
	y.merge()
	if c := y.change(first.ID); c.State != ralph.Merged {
		t.Errorf("the change is %s", c.State)
	}
}

// A breaker fails its first merge.
type breaker struct {
	Git
	failed bool
}

func (b *breaker) MergeTree(ctx context.Context, ours, theirs string) (worktree.Merge, error) {
	if !b.failed {
		b.failed = true
		return worktree.Merge{}, errors.New("no space left on device")
	}
	return b.Git.MergeTree(ctx, ours, theirs)
}

// TestWhatCannotBeVerifiedEarlyHoldsUpNobody: what is queued is merged by itself.
func TestWhatCannotBeVerifiedEarlyHoldsUpNobody(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	base := y.git("rev-parse", "main")
	first := y.workOn(base, "First", map[string]string{"a": "new\n"})
	other := y.start("Other", y.made(base, "Other", map[string]string{"b": "new\n"}))
	y.Line.took, y.Wait = time.Hour, time.Hour
	y.Line.noteChecking(other, Target{})
	y.Tree = &breaker{Git: y.Tree}
	y.merge()
	if c := y.change(first.ID); c.State != ralph.Merged || len(y.checked) != 1 {
		t.Errorf("the change is %s; verified %d times", c.State, len(y.checked))
	}
}

// A leaver calls a function while changes are merged.
type leaver struct {
	Git
	do func()
}

func (l *leaver) Whole(ctx context.Context, commit string) (string, error) {
	l.do()
	return l.Git.Whole(ctx, commit)
}

// TestWhoGoesOnDuringTheMerge is not verified with the others, either.
func TestWhoGoesOnDuringTheMerge(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	base := y.git("rev-parse", "main")
	first := y.workOn(base, "First", map[string]string{"a": "new\n"})
	other := y.start("Other", y.made(base, "Other", map[string]string{"b": "new\n"}))
	y.Line.took, y.Wait = time.Hour, time.Hour
	y.Line.noteChecking(other, Target{})
	y.Tree = &leaver{y.Tree, func() { y.Line.Leave(other.SessionID) }}
	y.merge()
	if c := y.change(first.ID); c.State != ralph.Merged || len(y.checked) != 1 {
		t.Errorf("the change is %s; verified %d times", c.State, len(y.checked))
	}
}

// TestWhoIsRefusedIsNotInLine, whether or not its agent can go on.
func TestWhoIsRefusedIsNotInLine(t *testing.T) {
	t.Parallel()
	y := newYard(t, "! test -e bad")
	base := y.git("rev-parse", "main")
	for _, file := range []string{"bad", "a"} {
		a, err := y.Try(t.Context(), y.start(file, y.made(base, file, map[string]string{file: "new\n"})), 0)
		if err != nil || (a.Refused != "") != (file == "bad") || (len(y.Line.list) == 0) != (file == "bad") {
			t.Errorf("%s: %q, %v; %d are in line", file, a.Refused, err, len(y.Line.list))
		}
	}
}

// TestWhatNeedsNoVerificationWaitsForNobody: it is merged at once.
func TestWhatNeedsNoVerificationWaitsForNobody(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	mine := y.work("Mine", map[string]string{"a": "new\n"})
	if a, err := y.Try(t.Context(), mine, 0); err != nil || a.Refused+a.Conflict != "" {
		t.Fatalf("%q, %q, %v", a.Refused, a.Conflict, err)
	}
	other := y.start("Other", y.made(y.git("rev-parse", "main"), "Other", map[string]string{"b": "new\n"}))
	y.Line.put(other.SessionID, inLine{change: other, passed: true})
	y.Line.took, y.Wait = time.Hour, time.Hour
	y.after = func(point string) {
		if point == "gathers" {
			t.Fatal("it waits")
		}
	}
	y.merge()
	if c := y.change(mine.ID); c.State != ralph.Merged {
		t.Errorf("the change is %s", c.State)
	}
}
