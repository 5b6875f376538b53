package store_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/signals"
	"ralph/store"
)

// clocked is like [working], at a time that the test sets.
func clocked(t *testing.T) (*store.DB, ralph.Session, *time.Time) {
	t.Helper()
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db, begun(t, db), &now
}

// says stores signals of a session, and returns their comments' ids.
func says(t *testing.T, db *store.DB, s ralph.Session, list ...signals.Payload) (ids []int64) {
	t.Helper()
	for _, p := range list {
		id, err := db.Say(t.Context(), s.TaskID, s.ID, "agent", p)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// facts returns the facts of a session.
func facts(t *testing.T, db *store.DB, s ralph.Session) (f signals.Facts) {
	t.Helper()
	write(t, db, func(tx *store.Tx) (err error) { f, err = tx.Facts(s.ID); return err })
	return f
}

// apply decides a session, by the verdict and as a failure unless d says otherwise.
func apply(tx *store.Tx, s ralph.Session, d signals.Decision) error {
	d.Mover, d.Outcome = cmp.Or(d.Mover, ralph.Verdict), cmp.Or(d.Outcome, ralph.OutcomeFailure)
	return tx.Apply(s, signals.Facts{Ending: s.Ending}, d)
}

// addTasks adds tasks with titles, and returns an error of the first that cannot be added.
func addTasks(tx *store.Tx, titles ...string) error {
	for _, title := range titles {
		if _, err := tx.AddTask(ralph.Task{Title: title}, "human"); err != nil {
			return err
		}
	}
	return nil
}

// TestFactsAreReadFromTheDatabase, including those that earlier sessions and people left.
func TestFactsAreReadFromTheDatabase(t *testing.T) {
	db, first := working(t)
	flag := says(t, db, first, signals.Flag{What: "it leaks", Severity: "blocking", Category: "bug"},
		signals.Flag{What: "it is slow", Severity: "warning", Category: "bug"})[0]
	second := first
	second.ID = "22222222-2222-4222-8222-222222222222"
	write(t, db, func(tx *store.Tx) error {
		if err := apply(tx, first, signals.Decision{
			Status: ralph.NeedsInput, Approval: &ralph.Approval{Protected: []string{"ci.sh"}},
		}); err != nil {
			return err
		}
		all, err := tx.Timeline(first.TaskID, store.CommentFilter{})
		if err != nil {
			return err
		}
		if err := tx.Approve(all[len(all)-1].ID, "", "ann"); err != nil {
			return err
		}
		if err := tx.RetryCompleted(first.TaskID, "once more"); err != nil {
			return err
		}
		if _, err := tx.StartSession(store.Start{ID: second.ID, Task: first.TaskID}); err != nil {
			return err
		}
		_, err = tx.AddComment(ralph.Comment{TaskID: 1, Author: "ann", AuthorKind: ralph.ByHuman, Kind: ralph.Blocker, Body: "wait", Rationale: "why"})
		return errors.Join(err, addTasks(tx, "B", "C"), tx.AddDependency(1, 2, "human"), tx.AddDependency(1, 3, "human"))
	})
	said := says(t, db, second, signals.Flag{What: "mine", Severity: "blocking", Category: "bug"}, signals.Stuck{Reason: "no idea"})
	f := facts(t, db, second)
	if f.Task.ID != 1 || f.Waits.Questions != 0 || f.Waits.Blockers != 1 || !slices.Equal(f.Waits.Tasks, []int64{2, 3}) || f.Void || f.CancelledBy != "" {
		t.Errorf("got %+v", f)
	}
	if len(f.Said) != 2 || f.Said[0].ID != said[0] || f.Said[1].ID != said[1] || !slices.Equal(f.OpenFlags, []int64{flag}) {
		t.Errorf("it said %+v, and flagged is %d", f.Said, f.OpenFlags)
	}
	if len(f.Approvals) != 1 || !slices.Equal(f.Approvals[0].Protected, []string{"ci.sh"}) {
		t.Errorf("approved is %+v", f.Approvals)
	}
	err := db.View(t.Context(), func(tx *store.Tx) error { _, err := tx.Facts("nobody"); return err })
	if !errors.Is(err, ralph.ErrNotFound) || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("of an unknown session: %v", err)
	}
}

// TestAStopIsAFact: a done does not count after its task was changed, and one of a cancelled task names the person.
func TestAStopIsAFact(t *testing.T) {
	for _, tt := range []struct {
		request string
		void    bool
		by      string
	}{{"", false, ""}, {"contract", true, ""}, {"cancel", false, "ann"}} {
		db, s := working(t)
		if tt.request != "" {
			write(t, db, func(tx *store.Tx) error { return tx.RequestStop(s.ID, tt.request, "ann") })
		}
		if f := facts(t, db, s); f.Void != tt.void || f.CancelledBy != tt.by {
			t.Errorf("%q: void %v, cancelled by %q", tt.request, f.Void, f.CancelledBy)
		}
	}
}

// TestUpstreamTasks are those that a text names.
func TestUpstreamTasks(t *testing.T) {
	db, s := working(t) // TASK-1
	write(t, db, func(tx *store.Tx) error {
		if err := addTasks(tx, "Parse the header", "Parse the body", "Paint #2 doors", "Old thing", "Depends", "Parse the header",
			"#3", "Ninth", "Tenth", "Eleventh"); err != nil {
			return err
		}
		return errors.Join(tx.Move(3, ralph.InProgress, ralph.Loop, ""), tx.Move(3, ralph.Completed, ralph.Verdict, ""),
			tx.Move(5, ralph.Cancelled, ralph.Person, ""), tx.AddDependency(6, 1, "human"), tx.Move(7, ralph.Cancelled, ralph.Person, ""))
	})
	long := strings.Repeat("x", 60_000) // longer than a pattern may be
	tests := []struct {
		on   string
		want signals.Upstream
	}{
		{"#2", signals.Upstream{Matches: []int64{2}}},
		{"task 2", signals.Upstream{Matches: []int64{2}}},
		{"TASK-2.", signals.Upstream{Matches: []int64{2}}},
		{"first #3, then #2 and #3", signals.Upstream{Matches: []int64{3, 2}}},
		{"#3", signals.Upstream{Matches: []int64{3}, Completed: true}},
		{"#1", signals.Upstream{Matches: []int64{1}}},
		{"#6", signals.Upstream{Matches: []int64{6}, Cycle: true}},
		{"#2, #2 and #3", signals.Upstream{Matches: []int64{2, 3}}},
		{"#10", signals.Upstream{Matches: []int64{10}}},
		{"#99", signals.Upstream{Matches: []int64{}}},
		{"#99999999999999999999", signals.Upstream{Matches: []int64{}}},
		{"parse the HEADER!", signals.Upstream{Matches: []int64{2}}},
		{"Paint #2 doors", signals.Upstream{Matches: []int64{4}}},
		{"the header", signals.Upstream{Matches: []int64{2}}},
		{"until parse the body is there", signals.Upstream{Matches: []int64{3}, Completed: true}},
		{"Parse the", signals.Upstream{Matches: []int64{2, 3}}},
		{"Old thing", signals.Upstream{}},
		{"nothing of the kind", signals.Upstream{}},
		{"...", signals.Upstream{Matches: []int64{}}},
		{long, signals.Upstream{}},
		{long + " depends on it", signals.Upstream{Matches: []int64{6}, Cycle: true}},
	}
	for _, tt := range tests {
		id := says(t, db, s, signals.Blocked{On: tt.on, Kind: "upstream_task"})[0]
		if got := facts(t, db, s).Upstream[id]; got.Completed != tt.want.Completed || got.Cycle != tt.want.Cycle || !slices.Equal(got.Matches, tt.want.Matches) {
			t.Errorf("%.40q names %+v, want %+v", tt.on, got, tt.want)
		}
	}
	if f := facts(t, db, s); len(f.Upstream) != len(tests) {
		t.Errorf("%d of %d were looked up", len(f.Upstream), len(tests))
	}
}

// TestFactsOfASuggestion: whether an open task has its title, its feature exists, and how many entered the queue today.
func TestFactsOfASuggestion(t *testing.T) {
	db, s, now := clocked(t)
	write(t, db, func(tx *store.Tx) error {
		if err := errors.Join(addTasks(tx, "Tidy up", "Gone"), tx.PutFeature(ralph.Feature{Name: "url"}), tx.Move(3, ralph.Cancelled, ralph.Person, "")); err != nil {
			return err
		}
		return nil
	})
	says(t, db, s, signals.Suggest{Kind: "new_task", What: "TIDY up.\nAll of it", Why: "w", Feature: "url"},
		signals.Suggest{Kind: "new_task", What: "Gone", Why: "w", Feature: "none"})
	f := facts(t, db, s)
	if !maps.Equal(f.Titles, map[string]bool{"tidy up": true, "gone": false}) || !maps.Equal(f.Features, map[string]bool{"url": true, "none": false}) {
		t.Errorf("taken are %v, and features there %v", f.Titles, f.Features)
	}
	if f.Approved != 0 {
		t.Errorf("%d were approved by nobody", f.Approved)
	}
	write(t, db, func(tx *store.Tx) error {
		return apply(tx, s, signals.Decision{Status: ralph.Pending, Propose: []signals.Proposal{
			{Comment: 1, Title: "Queued", Description: "d", Feature: "url", Status: ralph.Pending},
			{Comment: 2, Title: "Waits", Status: ralph.Proposed},
		}})
	})
	write(t, db, func(tx *store.Tx) error {
		queued, err := tx.Task(4)
		waits, werr := tx.Task(5)
		if queued.Title != "Queued" || queued.Description != "d" || queued.Feature != "url" || queued.Status != ralph.Pending ||
			queued.Origin != ralph.ByAgent || queued.Priority != ralph.DefaultPriority || waits.Status != ralph.Proposed {
			t.Errorf("got %+v and %+v", queued, waits)
		}
		for id, want := range map[int64]string{4: "1 1", 5: "2 0"} {
			var comment, auto int
			if err := tx.QueryRowContext(t.Context(), `SELECT source_comment, auto_approved FROM tasks WHERE id = $1`, id).Scan(&comment, &auto); err != nil {
				return err
			}
			if got := fmt.Sprint(comment, auto); got != want {
				t.Errorf("TASK-%d comes from comment and was approved by nobody: %s, want %s", id, got, want)
			}
		}
		_, serr := tx.StartSession(store.Start{ID: "22222222-2222-4222-8222-222222222222", Task: 1})
		return errors.Join(err, werr, serr)
	})
	s.ID = "22222222-2222-4222-8222-222222222222"
	says(t, db, s, signals.Suggest{Kind: "new_task", What: "More", Why: "w"})
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {24 * time.Hour, 1}, {time.Minute, 0}} {
		*now = now.Add(tt.after)
		if f := facts(t, db, s); f.Approved != tt.want {
			t.Errorf("at %s %d were approved by nobody, want %d", now, f.Approved, tt.want)
		}
	}
}

// TestKnownLearnings are those of the learning's scope, and of the task itself.
func TestKnownLearnings(t *testing.T) {
	db, s := working(t)
	write(t, db, func(tx *store.Tx) error {
		learn := func(text, scope string) signals.Learn {
			return signals.Learn{Text: text, Kind: "discovery", Scope: scope, Comments: []int64{1}}
		}
		if _, err := tx.AddComment(ralph.Comment{TaskID: 1, Author: "ann", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: "b"}); err != nil {
			return err
		}
		if err := apply(tx, s, signals.Decision{Status: ralph.Pending, Learn: []signals.Learn{
			learn("of the project", ralph.ScopeProject), learn("of the feature", ralph.ScopeFeature), learn("of the task", ralph.ScopeTask),
		}}); err != nil {
			return err
		}
		_, err := tx.StartSession(store.Start{ID: "22222222-2222-4222-8222-222222222222", Task: 1})
		return err
	})
	s.ID = "22222222-2222-4222-8222-222222222222"
	known := func() (texts []string) {
		for _, l := range facts(t, db, s).Known {
			texts = append(texts, l.Text)
		}
		return texts
	}
	if got := known(); got != nil {
		t.Errorf("it learned nothing, and %q is known", got)
	}
	says(t, db, s, signals.Learned{Text: "x", Kind: "discovery", Scope: ralph.ScopeProject})
	if got := known(); !slices.Equal(got, []string{"of the project", "of the task"}) {
		t.Errorf("got %q", got)
	}
	says(t, db, s, signals.Learned{Text: "y", Kind: "discovery"})
	if got := known(); !slices.Equal(got, []string{"of the project", "of the feature", "of the task"}) {
		t.Errorf("got %q", got)
	}
}

// TestADecisionIsCarriedOutWhole: the database has all of its parts, and the session's results.
func TestADecisionIsCarriedOutWhole(t *testing.T) {
	db, s := working(t)
	ids := says(t, db, s, signals.Ask{Question: "which?", Blocking: new(bool)}, signals.Flag{What: "it leaks", Severity: "blocking", Category: "bug"})
	ask, flag := ids[0], ids[1]
	if _, err := db.AddPermission(t.Context(), ralph.Permission{TaskID: 1, SessionID: s.ID, Tool: "Bash", Input: "{}", Decision: "ask"}); err != nil {
		t.Fatal(err)
	}
	s.Ending, s.CostUSD, s.CostKnown, s.Turns, s.Model, s.LastWords = ralph.Finished, 1.5, true, 7, "opus", "bye"
	s.Tokens, s.Files = ralph.Tokens{Input: 3, Output: 4}, []ralph.FileChange{{Path: "a.go", Status: "added"}}
	s.Commits, s.Verify, s.Leftovers = []string{"abc"}, []ralph.Check{{Command: "make test", Passed: true}}, []string{"sleep 1"}
	d := signals.Decision{
		Closing: ralph.VerbPartial, Status: ralph.NeedsInput, StatusReason: "waits", Reason: "it waits",
		Attempts: 2, StuckCount: 1, VerifyFailures: 3, PromptTooLong: 4, LostCount: 1, Blocker: "look at it",
		Holds: []signals.Hold{{Comment: ask, Why: "names nothing"}}, DependsOn: []int64{2, 3}, Answered: []int64{flag}, Announce: []int64{flag},
	}
	var last int64
	write(t, db, func(tx *store.Tx) (err error) {
		if err = errors.Join(addTasks(tx, "B", "C"), tx.RecordAttempt(s, "ralph task edit 1"), tx.RecordStranger(s, "{}")); err == nil {
			last, err = tx.LastEvent()
		}
		return err
	})
	other := s
	other.TaskID = 2
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return apply(tx, other, d) }); !errors.Is(err, ralph.ErrNotFound) {
		t.Errorf("a session decides on another task: %v", err)
	}
	write(t, db, func(tx *store.Tx) error { return apply(tx, s, d) })
	write(t, db, func(tx *store.Tx) error {
		task, err := tx.Task(1)
		if task.Status != ralph.NeedsInput || task.StatusReason != "waits" || task.Attempts != 2 || task.StuckCount != 1 || task.VerifyFailures != 3 ||
			task.PromptTooLong != 4 || task.LostCount != 1 || task.NotBefore.IsZero() || task.ClaimedBy != "" || !slices.Equal(task.DependsOn, []int64{2, 3}) {
			t.Errorf("the task is %+v", task)
		}
		held, herr := tx.Comment(ask)
		answered, aerr := tx.Comment(flag)
		if !held.Holding || held.HoldReason != "names nothing" || answered.ResolvedAt.IsZero() || answered.ResolvedBy != "agent" {
			t.Errorf("got %+v and %+v", held, answered)
		}
		blockers, berr := tx.Blockers(1)
		if len(blockers) != 1 || blockers[0].Body != "look at it" {
			t.Errorf("blockers: %+v", blockers)
		}
		asked, perr := tx.Permissions(s.ID)
		if len(asked) != 1 || asked[0].Decision != "deny" || asked[0].DecidedAt.IsZero() {
			t.Errorf("permissions: %+v", asked)
		}
		run, rerr := tx.Run(s.RunID)
		if run.CostUSD != 1.5 {
			t.Errorf("the run cost $%g", run.CostUSD)
		}
		return errors.Join(err, herr, aerr, berr, perr, rerr)
	})
	write(t, db, func(tx *store.Tx) error {
		got, err := tx.Session(s.ID)
		if got.Ending != ralph.Finished || got.CostUSD != 1.5 || got.Turns != 7 || got.Model != "opus" || got.LastWords != "bye" || got.Tokens.Input != 3 ||
			len(got.Files) != 1 || len(got.Commits) != 1 || len(got.Verify) != 1 || len(got.Leftovers) != 1 || got.State != ralph.PhaseFailed ||
			got.Outcome != ralph.OutcomeFailure || got.Reason != "it waits" || got.CompletedAt.IsZero() || got.ClosingVerb != ralph.VerbPartial {
			t.Errorf("the session is %+v", got)
		}
		want := []string{"it tried `ralph task edit 1`, which only people may do", ralph.StrangersRefused(1)}
		if !slices.Equal(got.Notes, want) {
			t.Errorf("its notes are %q", got.Notes)
		}
		end := got.History[len(got.History)-1]
		if end.State != ralph.PhaseFailed || end.Metadata["error"] != "it waits" {
			t.Errorf("it ended as %+v", end)
		}
		was, decided, derr := tx.DecidedFrom(got)
		if was.Ending != ralph.Finished || decided.Blocker != "look at it" {
			t.Errorf("it is decided from %+v as %+v", was, decided)
		}
		stored, serr := store.Decided(got)
		if stored.StatusReason != "waits" {
			t.Errorf("decided was %+v", stored)
		}
		return errors.Join(err, derr, serr)
	})
	write(t, db, func(tx *store.Tx) error {
		events, err := tx.Events(last, 100)
		var ended ralph.SessionEnded
		if err := json.Unmarshal(events[len(events)-1].Payload, &ended); err != nil {
			return err
		}
		if ended.Status != ralph.NeedsInput || ended.CostUSD != 1.5 || ended.Tokens != 7 || ended.Files != 1 || !slices.Equal(ended.Announce, []int64{flag}) || len(ended.Notes) != 2 {
			t.Errorf("told is %+v", ended)
		}
		return err
	})
	if _, err := store.Decided(ralph.Session{ID: "x"}); !errors.Is(err, ralph.ErrConflict) {
		t.Errorf("of a session that was not decided: %v", err)
	}
}

// TestHowASessionsWorkIsStored: queued if its done was accepted, sent back if it conflicts, else held for the next one.
func TestHowASessionsWorkIsStored(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    signals.Decision
		want ralph.ChangeState
		sent int // how often it was sent back then
	}{
		{"accepted", signals.Decision{Status: ralph.Merging, Outcome: ralph.OutcomeSuccess}, ralph.Queued, 0},
		{"partial", signals.Decision{Status: ralph.Pending, Outcome: ralph.OutcomeSuccess}, ralph.Held, 0},
		{"in conflict", signals.Decision{Status: ralph.Pending, SentBack: "it conflicts", Conflicts: []string{"a.go"}, TimesSentBack: 1}, ralph.SentBack, 1},
		{"in conflict, and told of it", signals.Decision{Status: ralph.Pending, SentBack: "it conflicts"}, ralph.SentBack, 0},
	} {
		db, s := working(t)
		s.Change = &ralph.Change{Base: "b", Head: "h", Tree: "t"}
		write(t, db, func(tx *store.Tx) error { return apply(tx, s, tt.d) })
		write(t, db, func(tx *store.Tx) error {
			c, ok, err := tx.ChangeOf(1)
			task, terr := tx.Task(1)
			got, serr := tx.Session(s.ID)
			if !ok || c.State != tt.want || c.Reason != tt.d.SentBack || !slices.Equal(c.Conflicts, tt.d.Conflicts) || task.TimesSentBack != tt.sent {
				t.Errorf("%s: got %+v, sent back %d times", tt.name, c, task.TimesSentBack)
			}
			if done := got.State == ralph.PhaseDone; done != (tt.d.Outcome == ralph.OutcomeSuccess) {
				t.Errorf("%s: the session is %s", tt.name, got.State)
			}
			return errors.Join(err, terr, serr)
		})
	}
}

// TestATaskThatSomebodyElseMoved while its session worked is in progress again before the session is decided, and its
// dependents wait again.
func TestATaskThatSomebodyElseMoved(t *testing.T) {
	db, s := working(t)
	write(t, db, func(tx *store.Tx) error {
		_, err := tx.AddTask(ralph.Task{Title: "B", DependsOn: []int64{1}}, "human")
		return errors.Join(err, tx.Move(1, ralph.Completed, ralph.Verdict, "made up"))
	})
	var last int64
	write(t, db, func(tx *store.Tx) (err error) { last, err = tx.LastEvent(); return err })
	write(t, db, func(tx *store.Tx) error {
		return apply(tx, s, signals.Decision{Status: ralph.Pending, StatusReason: "partial"})
	})
	write(t, db, func(tx *store.Tx) error {
		task, err := tx.Task(1)
		waits, werr := tx.Task(2)
		got, serr := tx.Session(s.ID)
		if task.Status != ralph.Pending || !task.CompletedAt.IsZero() || waits.Status != ralph.Blocked {
			t.Errorf("the task is %s, the one behind it %s", task.Status, waits.Status)
		}
		const why = "its task was made completed outside of ralph, which does not count"
		if !slices.Equal(got.Notes, []string{why}) {
			t.Errorf("its notes are %q", got.Notes)
		}
		events, err2 := tx.Events(last, 1)
		var moved ralph.TaskStatusChanged
		if err := json.Unmarshal(events[0].Payload, &moved); err != nil {
			return err
		}
		if moved.From != ralph.Completed || moved.To != ralph.InProgress || moved.Reason != why {
			t.Errorf("told is %+v", moved)
		}
		return errors.Join(err, werr, serr, err2)
	})
}

// TestLateCosts count once, as the difference to the charge at the decision.
func TestLateCosts(t *testing.T) {
	db, s := working(t)
	s.CostUSD = 2
	write(t, db, func(tx *store.Tx) error {
		return apply(tx, s, signals.Decision{Status: ralph.Pending})
	})
	for range 2 {
		write(t, db, func(tx *store.Tx) error { return tx.BookLate(s.ID, 5, true, ralph.Tokens{Input: 9}, "it came back") })
		write(t, db, func(tx *store.Tx) error {
			got, err := tx.Session(s.ID)
			run, rerr := tx.Run(s.RunID)
			if got.CostUSD != 5 || !got.CostKnown || got.Tokens.Input != 9 || !slices.Equal(got.Notes, []string{"it came back"}) || run.CostUSD != 5 {
				t.Errorf("the session cost $%g (%v), the run $%g; notes %q", got.CostUSD, got.CostKnown, run.CostUSD, got.Notes)
			}
			return errors.Join(err, rerr)
		})
	}
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return tx.BookLate("nobody", 1, true, ralph.Tokens{}, "n") }); !errors.Is(err, ralph.ErrNotFound) {
		t.Errorf("of an unknown session: %v", err)
	}
}

// TestATaskIsLeftAloneWhileItsSessionsAreLost: longer after each, and not any more once one ends otherwise.
func TestATaskIsLeftAloneWhileItsSessionsAreLost(t *testing.T) {
	db, s, now := clocked(t)
	for i, tt := range []struct {
		lost int
		wait time.Duration // 0: it is tried at once
	}{{1, signals.LostWait(1)}, {2, signals.LostWait(2)}, {2, signals.LostWait(2) - time.Second}, {0, 0}, {0, 0}, {1, signals.LostWait(1)}, {0, 0}} {
		if i > 0 {
			s.ID = fmt.Sprintf("%08d-2222-4222-8222-222222222222", i)
			write(t, db, func(tx *store.Tx) error {
				_, err := tx.StartSession(store.Start{ID: s.ID, Task: 1, Run: s.RunID})
				return err
			})
		}
		write(t, db, func(tx *store.Tx) error {
			return apply(tx, s, signals.Decision{Status: ralph.Pending, LostCount: tt.lost})
		})
		write(t, db, func(tx *store.Tx) error {
			task, err := tx.Task(1)
			until := ralph.Time{}
			if tt.wait != 0 {
				until = ralph.At(now.Add(tt.wait))
			}
			if task.LostCount != tt.lost || !task.NotBefore.Equal(until.Time) {
				t.Errorf("session %d: %d were lost, and it waits until %s, want %s", i, task.LostCount, task.NotBefore, until)
			}
			events, eerr := tx.Events(0, 100)
			var ended ralph.SessionEnded
			if err := json.Unmarshal(events[len(events)-1].Payload, &ended); err != nil {
				return err
			}
			if ended.Seconds != 0 {
				t.Errorf("session %d took %g s", i, ended.Seconds)
			}
			return errors.Join(err, eerr)
		})
		*now = now.Add(time.Second)
		s.StartedAt = ralph.At(*now)
	}
}
