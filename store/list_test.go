package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// TestAVeryLongBlockerNamesNoTask: a very long blocker names no task, and its session can be
// decided.
func TestAVeryLongBlockerNamesNoTask(t *testing.T) {
	db, s := working(t)
	id, err := db.Say(t.Context(), s.TaskID, s.ID, "agent", signals.Blocked{On: strings.Repeat("lorem ", 10_000), Kind: "upstream_task"})
	if err != nil {
		t.Fatal(err)
	}
	write(t, db, func(tx *store.Tx) error {
		f, err := tx.Facts(s.ID)
		if n := len(f.Upstream[id].Matches); n != 0 {
			t.Errorf("it names %d tasks", n)
		}
		return err
	})
}

func TestTasksAreFoundAndListedInParts(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	write(t, db, func(tx *store.Tx) error {
		for _, title := range []string{"Parse URLs", "100% done", "a_b", "axb", `back\slash`} {
			if _, err := tx.AddTask(ralph.Task{Title: title}, "human"); err != nil {
				return err
			}
		}
		return nil
	})
	for _, c := range []struct {
		filter store.TaskFilter
		want   []int64
	}{
		{store.TaskFilter{Text: "urls"}, []int64{1}},
		{store.TaskFilter{Text: "%"}, []int64{2}},
		{store.TaskFilter{Text: "A_B"}, []int64{3}},
		{store.TaskFilter{Text: `\`}, []int64{5}},
		{store.TaskFilter{Text: "nothing"}, nil},
		{store.TaskFilter{Limit: 2, Skip: 1}, []int64{2, 3}},
		{store.TaskFilter{Latest: true, Limit: 2}, []int64{5, 4}},
	} {
		write(t, db, func(tx *store.Tx) error {
			list, err := tx.Tasks(c.filter)
			var got []int64
			for _, task := range list {
				got = append(got, task.ID)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%+v: %v, want %v", c.filter, got, c.want)
			}
			return err
		})
	}
}

// TestWordsAreFilteredAndCountedAsTheyAreShown: the database knows the rule of [ralph.Task.Word].
func TestWordsAreFilteredAndCountedAsTheyAreShown(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	want := map[string][]int64{
		"queued": {1}, "waiting": {2}, "needs you": {3, 6}, "merging": {4}, "in review": {5}, "cancelled": {7},
	}
	write(t, db, func(tx *store.Tx) error {
		if err := tx.PutFeature(ralph.Feature{Name: "F"}); err != nil {
			return err
		}
		for range 7 {
			if _, err := tx.AddTask(ralph.Task{Title: "A", Feature: "F"}, "human"); err != nil {
				return err
			}
		}
		for id := int64(3); id <= 6; id += 3 { // one of them depends on another task, too
			c := ralph.Comment{TaskID: id, Author: "a", AuthorKind: ralph.ByHuman, Kind: ralph.Blocker, Body: "b", Rationale: "r"}
			if _, err := tx.AddComment(c); err != nil {
				return err
			}
		}
		_, err := tx.Cancel(7, "ann")
		return errors.Join(err, tx.AddDependency(2, 1, "human"), tx.AddDependency(6, 1, "human"), merges(tx, 4), merges(tx, 5))
	})
	write(t, db, func(tx *store.Tx) error {
		c, _, err := tx.ChangeOf(5)
		c.To = c.Head
		return errors.Join(err, tx.BeginMove(c), tx.BeginReview(c))
	})
	err := db.View(t.Context(), func(tx *store.Tx) error {
		tally, err := tx.Tally()
		of, ferr := tx.Progress("F")
		for _, word := range ralph.Words {
			list, lerr := tx.Tasks(store.TaskFilter{Words: []string{word}})
			var got []int64
			for _, task := range list {
				if got = append(got, task.ID); task.Word() != word || task.State != ralph.KeyOf(word) {
					t.Errorf("TASK-%d is %s (%s), not %s", task.ID, task.Word(), task.State, word)
				}
			}
			slices.Sort(got)
			n := len(want[word])
			if !slices.Equal(got, want[word]) || tally[ralph.KeyOf(word)] != n || of.Tasks[ralph.KeyOf(word)] != n {
				t.Errorf("%s: %v, %d of all, %d of the feature, want %v", word, got, tally[word], of.Tasks[word], want[word])
			}
			err = errors.Join(err, lerr)
		}
		n, cerr := tx.CountTasks(store.TaskFilter{Words: []string{"in review", "needs you", "queued"}})
		if n != 4 {
			t.Errorf("%d tasks with one of three words, want 4", n)
		}
		return errors.Join(err, ferr, cerr)
	})
	if err != nil {
		t.Error(err)
	}
}

// merges has a session of a task end with an accepted change.
func merges(tx *store.Tx, task int64) error {
	id := fmt.Sprintf("00000000-0000-4000-8000-%012d", task)
	if _, err := tx.StartSession(store.Start{ID: id, Task: task, Origin: ralph.FromLoop}); err != nil {
		return err
	}
	s, err := tx.Session(id)
	if err != nil {
		return err
	}
	s.Change, s.Ending = &ralph.Change{Base: "base", Head: fmt.Sprintf("%040d", task), Tree: "tree"}, ralph.Finished
	return tx.Apply(s, signals.Facts{}, signals.Decision{
		Accepted: true, Status: ralph.Merging, Mover: ralph.Verdict, StatusReason: "done", Attempts: 1,
		Outcome: ralph.OutcomeSuccess,
	})
}

// TestAPartOfATimelineIsItsEnd: a part of a timeline is its end, in chronological order.
func TestAPartOfATimelineIsItsEnd(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	write(t, db, func(tx *store.Tx) error {
		if _, err := tx.AddTask(ralph.Task{Title: "A"}, "human"); err != nil {
			return err
		}
		for i := range 5 {
			if _, err := tx.AddComment(ralph.Comment{TaskID: 1, Author: "ann", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: fmt.Sprint(i)}); err != nil {
				return err
			}
		}
		for skip, want := range map[int]string{0: "34", 2: "12", 4: "0"} {
			list, err := tx.Timeline(1, store.CommentFilter{Limit: 2, Skip: skip})
			got := ""
			for _, c := range list {
				got += c.Body
			}
			if got != want || err != nil {
				t.Errorf("without the last %d: %q, %v; want %q", skip, got, err, want)
			}
		}
		said, err := tx.Said(1)
		if said[""] != 5 {
			t.Errorf("said %v", said)
		}
		return err
	})
}

// TestTheInboxIsReadInParts: the parts make up the whole, and the counts match.
func TestTheInboxIsReadInParts(t *testing.T) {
	db, s := working(t)
	for _, q := range []string{"red?", "blue?", "green?"} {
		if _, err := db.Say(t.Context(), s.TaskID, s.ID, "agent", signals.Ask{Question: q, Options: []string{"yes"}, Blocking: new(true)}); err != nil {
			t.Fatal(err)
		}
	}
	write(t, db, func(tx *store.Tx) error {
		for _, title := range []string{"B", "C"} {
			if _, err := tx.AddTask(ralph.Task{Title: title, Status: ralph.Proposed}, "human"); err != nil {
				return err
			}
		}
		inbox, err := tx.Inbox()
		if err != nil {
			return err
		}
		counts, err := tx.InboxCounts()
		if err != nil || len(inbox) != 5 || counts["question"] != 3 || counts["proposal"] != 2 || counts["failed"] != 0 {
			t.Errorf("%d are listed, %v counted, %v", len(inbox), counts, err)
		}
		for limit := 1; limit <= 6; limit++ {
			var parts []store.InboxItem
			for skip := 0; skip <= len(inbox); skip += limit {
				part, err := tx.InboxPart(nil, limit, skip)
				if err != nil {
					return err
				}
				parts = append(parts, part...)
			}
			if d := cmp.Diff(inbox, parts); d != "" {
				t.Errorf("in parts of %d: %s", limit, d)
			}
		}
		one, err := tx.InboxPart([]string{"proposal"}, 9, 1)
		if len(one) != 1 || one[0].Title != "C" {
			t.Errorf("the second proposal is %+v", one)
		}
		return err
	})
}

// TestTheLastMergeIsFirst, whatever else happened to a task since.
func TestTheLastMergeIsFirst(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ralph.db"), store.Options{Now: func() time.Time {
		now = now.Add(time.Minute)
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for id := int64(1); id <= 3; id++ {
		write(t, db, func(tx *store.Tx) error {
			_, err := tx.AddTask(ralph.Task{Title: fmt.Sprint("Task ", id)}, "human")
			if err == nil && id < 3 {
				err = tx.Move(id, ralph.Completed, ralph.Importer, "imported")
			}
			return err
		})
	}
	write(t, db, func(tx *store.Tx) error { return tx.UpdateTask(ralph.Task{ID: 1, Title: "Another title"}) })
	write(t, db, func(tx *store.Tx) error {
		list, err := tx.Tasks(store.TaskFilter{Merged: true, Limit: 3})
		if len(list) != 2 || list[0].ID != 2 || list[1].ID != 1 {
			t.Errorf("it lists %v", list)
		}
		return err
	})
}
