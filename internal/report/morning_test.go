package report

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"ralph"
)

// TestChangesOfAReport: it names commits where they were merged, or where the session worked. Unmerged ones do not
// count as merged.
func TestChangesOfAReport(t *testing.T) {
	const id = "0123456789012345678901234567890123456789"
	files := []ralph.FileChange{{Path: "a.go", Added: 3, Removed: 1}, {Path: "b.go", Added: 2}}
	said := ralph.Session{ID: "s", Commits: []string{id}, Files: files}
	for _, tt := range []struct {
		name     string
		sessions []ralph.Session
		change   *ralph.Change
		want     string
	}{
		{"nothing", []ralph.Session{{}}, nil, ""},
		{"commits without a change", []ralph.Session{said}, nil, "1 commit (0123456), 2 files (+5 −1)"},
		{
			"the same files twice",
			[]ralph.Session{said, {Commits: []string{id}, Files: files}},
			nil,
			"2 commits (0123456, 0123456), 2 files (+10 −2)",
		},
		{
			"merged, by several sessions",
			[]ralph.Session{{Files: files, Commits: []string{"x", "y"}}, {Files: files[:1]}},
			&ralph.Change{State: ralph.Merged, To: "batch", Commit: id, Files: append(files, ralph.FileChange{Path: "c", Added: 1})},
			"1 commit on trunk (0123456), 3 files (+6 −1)",
		},
		{"the branch had it already", []ralph.Session{{Files: files}}, &ralph.Change{State: ralph.Merged, To: id}, ""},
		{
			"not merged",
			[]ralph.Session{{Files: files}},
			&ralph.Change{State: ralph.Held, SessionID: "s"},
			"not merged: 2 files",
		},
		{"dropped", []ralph.Session{{Files: files}}, &ralph.Change{State: ralph.Dropped, SessionID: "s"}, ""},
		{
			"many commits are counted", []ralph.Session{{Commits: []string{id, id, id, id}}}, nil, "4 commits",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c Changed
			for _, s := range tt.sessions {
				c.add(s, tt.change, "trunk", false)
			}
			if got := c.String(); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestTheSumOfChanges counts unmerged changes separately, and a file of two tasks once.
func TestTheSumOfChanges(t *testing.T) {
	at := func(paths ...string) (files []ralph.FileChange) {
		for _, p := range paths {
			files = append(files, ralph.FileChange{Path: p, Added: 1})
		}
		return files
	}
	tasks := make([]Changed, 3)
	tasks[0].add(ralph.Session{}, &ralph.Change{State: ralph.Merged, To: "2", Commit: "1", Files: at("a", "b")}, "main", false)
	tasks[1].add(ralph.Session{}, &ralph.Change{State: ralph.Merged, To: "2", Commit: "2", Files: at("b")}, "main", true)
	tasks[2].add(ralph.Session{Files: at("b", "c")}, &ralph.Change{State: ralph.SentBack, SessionID: "s"}, "main", false)
	var sum Changed
	for _, task := range tasks {
		sum.merge(task)
	}
	if got, want := tasks[1].String(), "1 commit passed, not on main yet (2), 1 file (+1 −0)"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	want := "2 commits on main, 1 of them not yet (1, 2), 2 files (+3 −0), not merged: 2 files"
	if got := sum.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestResultsOfChanges: the start of a later session's work is a part of that session's change.
func TestResultsOfChanges(t *testing.T) {
	list := []ralph.Change{ // the newest first
		{TaskID: 1, SessionID: "6", State: ralph.Held},
		{SessionID: "5", State: ralph.Merged, To: "m"},
		{SessionID: "4", State: ralph.Dropped, Reason: ralph.Superseded},
		{SessionID: "3", State: ralph.SentBack},
		{SessionID: "2", State: ralph.Dropped, Reason: "dropped by ann"},
		{SessionID: "1", State: ralph.Dropped, Reason: ralph.Superseded},
	}
	for i, want := range []string{"6", "5", "5", "5", "2", "2"} {
		if got := becameOf(list)[list[i].SessionID].SessionID; got != want {
			t.Errorf("the change of session %s became a part of %s's, want %s", list[i].SessionID, got, want)
		}
	}
}

// TestFigures counts each task in one group, and each merged task by one proof.
func TestFigures(t *testing.T) {
	receipt := func(status ralph.Status, w ralph.Waits, p *ralph.Proof) Receipt {
		return Receipt{Status: status, Waits: w, Sessions: 1, Changed: Changed{Proof: p}}
	}
	none := ralph.Waits{}
	list := []Receipt{
		receipt(ralph.Completed, none, &ralph.Proof{Proved: []string{"TestA"}, Tests: true}),
		receipt(ralph.Completed, none, &ralph.Proof{Tests: true}),
		receipt(ralph.Completed, none, &ralph.Proof{}),
		receipt(ralph.Completed, none, &ralph.Proof{Unknown: "too slow"}),
		receipt(ralph.Completed, none, nil),
		receipt(ralph.Failed, none, nil),
		receipt(ralph.NeedsInput, ralph.Waits{Questions: 1}, nil),
		receipt(ralph.Blocked, ralph.Waits{Blockers: 1, Tasks: []int64{3}}, nil),
		receipt(ralph.Proposed, none, nil),
		receipt(ralph.Blocked, ralph.Waits{Tasks: []int64{3}}, nil),
		receipt(ralph.Pending, none, nil),
		receipt(ralph.InProgress, none, nil),
		receipt(ralph.Merging, none, nil),
		receipt(ralph.Cancelled, none, &ralph.Proof{Proved: []string{"TestB"}}),
		receipt(ralph.Rejected, none, nil),
	}
	f := figuresOf(list)
	want := Figures{
		Tasks: 15, Merged: 5, Failed: 1, NeedsYou: 3, Undone: 2, Unfinished: 4, Sessions: 15,
		Proved: 1, ByCommands: 1, Unproved: 1, Unknown: 2,
	}
	if f != want {
		t.Errorf("got  %+v\nwant %+v", f, want)
	}
	if sum := f.Merged + f.Failed + f.NeedsYou + f.Undone + f.Unfinished; sum != f.Tasks {
		t.Errorf("the groups add up to %d of %d", sum, f.Tasks)
	}
	if sum := f.Proved + f.ByCommands + f.Unproved + f.Unknown; sum != f.Merged {
		t.Errorf("the proofs add up to %d of %d", sum, f.Merged)
	}
	for _, s := range ralph.Statuses { // none is forgotten
		if f := figuresOf([]Receipt{{Status: s}}); f.Merged+f.Failed+f.NeedsYou+f.Undone+f.Unfinished != 1 {
			t.Errorf("%s: %+v", s, f)
		}
	}
}

// TestTheMorning has the figures first, then why it ended, then the changes.
func TestTheMorning(t *testing.T) {
	at := func(s int) ralph.Time { return ralph.At(time.Date(2026, 6, 1, 6, 0, s, 0, time.UTC)) }
	status := 3
	r := Report{
		Since: at(0), Until: at(75), ExitStatus: &status, Reason: "failed: TASK-2", CostUSD: 1.5, CostKnown: true,
		Tasks: []Receipt{
			{Status: ralph.Completed, Changed: Changed{Proof: &ralph.Proof{Proved: []string{"TestA"}}}},
			{Status: ralph.Completed},
			{Status: ralph.Failed},
			{Status: ralph.Merging},
			{Status: ralph.NeedsInput},
		},
		Changed: Changed{Files: 1, Added: 4},
	}
	r.Figures = figuresOf(r.Tasks)
	want := "5 tasks, 1 min 15 s, $1.50: 2 merged (1 proved, 1 not looked at), 1 failed, 1 needs you, 1 not finished\n" +
		"changed: 1 file (+4 −0)"
	if got := strings.Join(r.Morning(), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := strings.Join((Report{}).Morning(), "\n"); got != "0 tasks, $0.00" {
		t.Errorf("of nothing: %s", got)
	}
}

// TestTheBranchesOfAReport: branches of tasks are named, or counted if there are many.
func TestTheBranchesOfAReport(t *testing.T) {
	var sum Changed
	for _, tt := range []struct{ branch, want string }{
		{"ralph/TASK-1-a", "1 commit on ralph/TASK-1-a (1)"},
		{"ralph/TASK-2-b", "2 commits on ralph/TASK-1-a, ralph/TASK-2-b (1, 2)"},
		{"ralph/TASK-1-a", "3 commits on ralph/TASK-1-a, ralph/TASK-2-b (1, 2, 3)"},
		{"ralph/TASK-3-c", "4 commits on ralph/TASK-1-a, ralph/TASK-2-b, ralph/TASK-3-c"},
		{"ralph/TASK-4-d", "5 commits on 4 branches"},
	} {
		var task Changed
		task.add(ralph.Session{}, &ralph.Change{State: ralph.Merged, Commit: strconv.Itoa(len(sum.Commits) + 1)}, tt.branch, false)
		sum.merge(task)
		if got := sum.String(); got != tt.want || sum.Branch != tt.branch {
			t.Errorf("with %s: %q, the last on %s; want %q", tt.branch, got, sum.Branch, tt.want)
		}
	}
}

// TestNight: runs are of one night while little time lies between them.
func TestNight(t *testing.T) {
	at := func(hour int) ralph.Time { return ralph.At(time.Date(2026, 11, 25, hour, 0, 0, 0, time.UTC)) }
	run := func(from, to int) ralph.Run { return ralph.Run{StartedAt: at(from), EndedAt: at(to)} }
	going := ralph.Run{StartedAt: at(12)}
	for name, tt := range map[string]struct {
		runs []ralph.Run
		want int
	}{
		"none":                   {nil, 0},
		"one":                    {[]ralph.Run{run(1, 2)}, 1},
		"a short while":          {[]ralph.Run{run(8, 9), run(1, 4)}, 2},
		"a day between":          {[]ralph.Run{run(9, 10), run(1, 4), run(0, 1)}, 1},
		"one goes on":            {[]ralph.Run{going, run(3, 9), run(0, 1)}, 3},
		"what was lost counts":   {[]ralph.Run{run(14, 15), going, run(8, 10)}, 3},
		"lost long ago is apart": {[]ralph.Run{run(20, 21), going}, 1},
	} {
		if got := len(Night(tt.runs)); got != tt.want {
			t.Errorf("%s: %d runs, want %d", name, got, tt.want)
		}
	}
}

// TestTheMorningOfSeveralRuns names their time and number, and the spending of sessions in progress.
func TestTheMorningOfSeveralRuns(t *testing.T) {
	r := New([]ralph.Session{
		{TaskID: 1, CostUSD: 1, CostKnown: true, CompletedAt: ralph.At(time.Now())},
		{TaskID: 1, CostUSD: 1, CostKnown: true, CompletedAt: ralph.At(time.Now()), Role: ralph.RoleReview},
	}, map[int64]ralph.Task{1: {ID: 1, Status: ralph.Completed}}, nil, func(ralph.Session) bool { return true })
	r.named, r.runs, r.spending = "since 22:04", 5, 0.9
	if got, want := r.Morning()[0], "since 22:04, 5 runs: 1 task, $2.00 and about $0.90 in progress: 1 merged"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
