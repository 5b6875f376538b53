package forge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/store"
)

// TestALookWithoutNews costs two requests, however many issues and pull requests there are.
func TestALookWithoutNews(t *testing.T) {
	w := newWorld(t)
	for n := range 10000 {
		w.issue(guest, fmt.Sprint("Issue ", n), "x")
	}
	for n := range 5 {
		w.label(dev, w.issue(dev, fmt.Sprint("Own ", n), "y"), "ralph", true)
	}
	var tasks []int64
	for range 100 {
		id, _ := w.works(0)
		tasks = append(tasks, id)
	}
	w.look()
	for _, id := range tasks {
		w.changes(w.pullOf(id).Number, func(p *fakePull) { p.Checks = []Check{{Name: "ci", Done: true}} })
	}
	w.look()
	w.look()
	for range 3 {
		w.requests = 0
		if w.look(); w.requests > 2 {
			t.Errorf("a look without news cost %d requests", w.requests)
		}
	}
	// News of one issue costs only the requests for it.
	w.changes(w.pullOf(tasks[7]).Number, func(p *fakePull) { p.Reviews = []Review{{ID: "1", Author: dev, Objects: true, Body: "no"}} })
	w.requests = 0
	if w.look(); w.requests > 6 {
		t.Errorf("one review cost %d requests", w.requests)
	}
	if is := w.task(tasks[7]); is.Status != ralph.Pending {
		t.Errorf("TASK-%d is %s", is.ID, is.Status)
	}
	// So does a conflict, which nobody tells: the target has moved.
	w.git.tip, w.git.conflicts[w.pullOf(tasks[8]).Branch] = "another", true
	w.look()
	if is := w.task(tasks[8]); is.Status != ralph.Pending || !strings.Contains(is.StatusReason, "conflicts") {
		t.Errorf("TASK-%d is %s: %s", is.ID, is.Status, is.StatusReason)
	}
}

// TestAFirstLookThatIsInterrupted goes on where it was.
func TestAFirstLookThatIsInterrupted(t *testing.T) {
	w := newWorld(t)
	for n := range 950 {
		w.issue(guest, fmt.Sprint("Issue ", n), "x")
	}
	last := w.issue(dev, "Own", "y")
	w.label(dev, last, "ralph", true)
	w.now = w.now.Add(time.Hour)
	pages := 0
	w.before = func(op string) error {
		if op == "issues" {
			if pages++; pages == 6 {
				return &Error{Kind: Away, Said: "no"}
			}
		}
		return nil
	}
	if err := w.s.Once(t.Context()); KindOf(err) != Away {
		t.Fatal(err)
	}
	w.restart()
	pages = 100
	w.look()
	if n := pages - 100; n > 6 {
		t.Errorf("%d pages were read again", n)
	}
	if is := w.task(1); is.ExternalID != fmt.Sprint(last) {
		t.Errorf("TASK-1 is of issue %s", is.ExternalID)
	}
}

// TestPullRequests follows pull requests through all events.
func TestPullRequests(t *testing.T) {
	type situation struct {
		*world
		id int64
		c  ralph.Change
		n  int64 // the pull request
	}
	pull := func(s *situation, how func(p *fakePull)) { s.changes(s.n, how) }
	status := func(is ralph.Status) func(*situation) error {
		return func(s *situation) error {
			if got := s.task(s.id); got.Status != is {
				return fmt.Errorf("the task is %s (%s), want %s", got.Status, got.StatusReason, is)
			}
			return nil
		}
	}
	merged := func(s *situation) {
		pull(s, func(p *fakePull) { p.Closed, p.Merged = true, strings.Repeat("a", 40) })
	}
	shut := func(s *situation) { pull(s, func(p *fakePull) { p.Closed = true }) }
	objects := func(s *situation) {
		pull(s, func(p *fakePull) { p.Reviews = []Review{{ID: "1", Author: dev, Objects: true, Body: "no"}} })
	}
	starts := func(s *situation) {
		s.tx(func(tx *store.Tx) error {
			_, err := tx.StartSession(store.Start{ID: "00000000-0000-4000-9000-000000000001", Task: s.id, Origin: ralph.FromLoop})
			return err
		})
	}
	cancel := func(s *situation) {
		s.tx(func(tx *store.Tx) error { _, err := tx.Cancel(s.id, "ann"); return err })
	}
	open := func(is bool) func(*situation) error {
		return func(s *situation) error {
			if p := s.pullOf(s.id); p.Number == s.n && p.Open != is || !s.pulls[s.n].Closed != is {
				return fmt.Errorf("open is %v here and %v there, want %v", p.Open, !s.pulls[s.n].Closed, is)
			}
			return nil
		}
	}
	for name, steps := range map[string][]any{
		"merged": {merged, status(ralph.Completed), open(false), func(s *situation) error {
			var c ralph.Change
			s.tx(func(tx *store.Tx) (err error) { c, err = tx.Change(s.c.ID); return err })
			if c.Onto != "base" || c.Commit != strings.Repeat("a", 40) || !slices.Contains(s.git.dropped, s.pullOf(s.id).Branch) {
				return fmt.Errorf("%+v, deleted %q", c, s.git.dropped)
			}
			return nil
		}},
		"merged while its task waits for a session": {objects, status(ralph.Pending), merged, status(ralph.Completed), open(false)},
		"merged while a session works":              {objects, starts, merged, status(ralph.InProgress), open(false)},
		"merged after its task was cancelled":       {func(s *situation) { cancel(s); merged(s) }, status(ralph.Completed), open(false)},
		"closed":                                    {shut, status(ralph.Cancelled), open(false)},
		"closed with a reason": {func(s *situation) {
			s.says(guest, s.n, "nonsense")
			s.says(dev, s.n, "we do this by hand")
			s.says(guest, s.n, "please")
			shut(s)
		}, status(ralph.Cancelled), func(s *situation) error {
			if why := s.task(s.id).StatusReason; !strings.HasSuffix(why, ", which was closed: we do this by hand") {
				return errors.New(why)
			}
			return nil
		}},
		"closed and reopened": {shut, status(ralph.Cancelled), func(s *situation) {
			pull(s, func(p *fakePull) { p.Closed = false })
		}, status(ralph.Merging), open(true), merged, status(ralph.Completed)},
		"closed, and its task tried again": {shut, status(ralph.Cancelled), func(s *situation) {
			s.tx(func(tx *store.Tx) error { return tx.Retry(s.id, "ann") })
			s.works(s.id)
		}, status(ralph.Merging), func(s *situation) error {
			if p := s.pullOf(s.id); p.Number == s.n || !p.Open || p.Branch == s.pulls[s.n].Branch {
				return fmt.Errorf("%+v", p)
			}
			return nil
		}},
		"its task is cancelled": {cancel, open(false), status(ralph.Cancelled), func(s *situation) error {
			if n := s.marks(s.n)[fmt.Sprintf("TASK-%d closed", s.id)]; n != 1 {
				return fmt.Errorf("%d comments say why", n)
			}
			return nil
		}},
		"its task is cancelled in a round": {objects, status(ralph.Pending), cancel, open(false)},
		"a review":                         {objects, status(ralph.Pending), open(true), func(s *situation) { s.works(s.id) }, status(ralph.Merging), open(true)},
		"a review by a stranger": {func(s *situation) {
			pull(s, func(p *fakePull) { p.Reviews = []Review{{ID: "1", Author: guest, Objects: true, Body: "no"}} })
		}, status(ralph.Merging)},
		"red checks": {func(s *situation) {
			pull(s, func(p *fakePull) { p.Checks = []Check{{Name: "ci", Done: true, Red: true, Log: "boom"}} })
		}, status(ralph.Pending), func(s *situation) error {
			if why := s.task(s.id).StatusReason; !strings.Contains(why, "boom") {
				return errors.New(why)
			}
			return nil
		}},
		"red checks that nobody told": {func(s *situation) { // a check changes no pull request
			pull(s, func(p *fakePull) { p.Checks = []Check{{Name: "ci"}} })
		}, status(ralph.Merging), func(s *situation) {
			s.pulls[s.n].Checks = []Check{{Name: "ci", Done: true, Red: true}}
		}, status(ralph.Pending)},
		"remarks": {func(s *situation) {
			pull(s, func(p *fakePull) {
				p.Remarks = []Remark{
					{ID: "1", Thread: "7", Author: dev, Body: "why?"},
					{ID: "2", Thread: "8", Author: dev, Body: "no"},
					{ID: "3", Thread: "9", Author: guest, Body: "evil"},
				}
			})
		}, status(ralph.Pending), func(s *situation) { s.works(s.id) }, status(ralph.Merging), func(s *situation) error {
			for thread, want := range map[string]int{"7": 1, "8": 1, "9": 0} {
				if got := s.pulls[s.n].threads[thread]; len(got) != want || want > 0 && !strings.Contains(got[0], "answers this") {
					return fmt.Errorf("thread %s has %q", thread, got)
				}
			}
			return nil
		}},
		"remarks on a forge without threads": {func(s *situation) {
			pull(s, func(p *fakePull) {
				p.Remarks = []Remark{{ID: "1", Author: dev, Body: "why?"}, {ID: "2", Author: dev, Body: "no"}}
			})
		}, status(ralph.Pending), func(s *situation) { s.works(s.id) }, status(ralph.Merging), func(s *situation) error {
			if len(s.pulls[s.n].comments) != 1 {
				return fmt.Errorf("%q", s.pulls[s.n].comments)
			}
			return nil
		}},
		"more rounds than the limit": {
			objects, func(s *situation) { s.works(s.id) }, func(s *situation) {
				pull(s, func(p *fakePull) { p.Reviews = []Review{{ID: "2", Author: dev, Objects: true, Body: "no"}} })
			}, func(s *situation) { s.works(s.id) }, func(s *situation) {
				pull(s, func(p *fakePull) { p.Reviews = []Review{{ID: "3", Author: dev, Objects: true, Body: "no"}} })
			}, func(s *situation) { s.works(s.id) }, status(ralph.Merging), func(s *situation) {
				pull(s, func(p *fakePull) { p.Reviews = []Review{{ID: "4", Author: dev, Objects: true, Body: "no"}} })
			}, status(ralph.Blocked), func(s *situation) error {
				if why := s.task(s.id); !strings.Contains(why.StatusReason, "blocker") {
					return errors.New(why.StatusReason)
				}
				return nil
			}, merged, status(ralph.Completed),
		},
		"approved and green, with merge.auto": {func(s *situation) { s.s.Auto = true }, func(s *situation) {
			pull(s, func(p *fakePull) {
				p.Checks, p.Reviews = []Check{{Name: "ci", Done: true}}, []Review{{ID: "1", Author: dev, Approves: true}}
			})
		}, open(false), func(*situation) {}, status(ralph.Completed)},
		"approved by a stranger, with merge.auto": {func(s *situation) { s.s.Auto = true }, func(s *situation) {
			pull(s, func(p *fakePull) { p.Reviews = []Review{{ID: "1", Author: guest, Approves: true}} })
		}, open(true), status(ralph.Merging)},
		"approved, and red, with merge.auto": {func(s *situation) { s.s.Auto = true }, func(s *situation) {
			pull(s, func(p *fakePull) {
				p.Checks, p.Reviews = []Check{{Name: "ci", Done: true, Red: true}}, []Review{{ID: "1", Author: dev, Approves: true}}
			})
		}, open(true), status(ralph.Pending)},
		"approved before its last commit, with merge.auto": {func(s *situation) { s.s.Auto = true }, func(s *situation) {
			pull(s, func(p *fakePull) { p.Reviews = []Review{{ID: "1", Author: dev, Approves: true, Commit: "before"}} })
		}, open(true), func(s *situation) {
			pull(s, func(p *fakePull) { p.Reviews = []Review{{ID: "2", Author: dev, Approves: true, Commit: "head"}} })
		}, open(false), func(*situation) {}, status(ralph.Completed)},
		"a draft, with merge.auto": {func(s *situation) { s.s.Auto = true }, func(s *situation) {
			pull(s, func(p *fakePull) { p.Draft, p.Reviews = true, []Review{{ID: "1", Author: dev, Approves: true}} })
		}, open(true), func(s *situation) { pull(s, func(p *fakePull) { p.Draft = false }) }, open(false)},
		"into another branch": {func(s *situation) { s.s.Auto = true }, func(s *situation) {
			s.git.conflicts[s.pullOf(s.id).Branch] = true // with the target, which is none of its business any more
			pull(s, func(p *fakePull) {
				p.Pull.Into, p.Reviews = "release", []Review{{ID: "1", Author: dev, Approves: true}}
			})
		}, open(true), status(ralph.Merging), merged, status(ralph.Completed), func(s *situation) error {
			if why := s.task(s.id).StatusReason; !strings.Contains(why, "into release") {
				return errors.New(why)
			}
			return nil
		}},
		"a merge that the forge refuses is tried again": {func(s *situation) { s.s.Auto = true }, func(s *situation) {
			s.before = func(op string) error {
				if op == "merge" {
					return &Error{Kind: Invalid, Status: 405, Said: "not mergeable"}
				}
				return nil
			}
			pull(s, func(p *fakePull) { p.Reviews = []Review{{ID: "1", Author: dev, Approves: true}} })
		}, open(true), func(s *situation) { s.before = nil }, open(false)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &situation{world: newWorld(t)}
			s.id, s.c = s.works(0)
			s.look()
			s.n = s.pullOf(s.id).Number
			for at, step := range steps {
				switch do := step.(type) {
				case func(*situation):
					do(s)
					for range 3 { // each look is like the others
						s.look()
					}
				case func(*situation) error:
					if err := do(s); err != nil {
						t.Fatalf("step %d: %v", at, err)
					}
				}
			}
		})
	}
}

// TestTheEndOfAnIssue while its pull request is open.
func TestTheEndOfAnIssue(t *testing.T) {
	for name, tt := range map[string]struct {
		does func(w *world, issue, pull int64)
		want ralph.Status
	}{
		"a person closes it":             {func(w *world, issue, _ int64) { w.closes(dev, issue, true) }, ralph.Cancelled},
		"a person takes the label away":  {func(w *world, issue, _ int64) { w.label(dev, issue, "ralph", false) }, ralph.Cancelled},
		"a stranger closes it":           {func(w *world, issue, _ int64) { w.closes(guest, issue, true) }, ralph.Merging},
		"a person cancels by a comment":  {func(w *world, issue, _ int64) { w.says(dev, issue, "/cancel") }, ralph.Cancelled},
		"a merge closes it":              {func(w *world, issue, pull int64) { w.mergeBy(dev, issue, pull) }, ralph.Completed},
		"closed by mistake and reopened": {func(w *world, issue, _ int64) { w.closes(dev, issue, true); w.closes(dev, issue, false) }, ralph.Merging},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			issue := w.issue(dev, "Own", "y")
			w.label(dev, issue, "ralph", true)
			w.look()
			id, _ := w.works(1)
			w.look()
			pull := w.pullOf(id).Number
			tt.does(w, issue, pull)
			for range 3 {
				w.look()
			}
			if is := w.task(id); is.Status != tt.want {
				t.Errorf("the task is %s: %s", is.Status, is.StatusReason)
			}
			if open := !w.pulls[pull].Closed; open != (tt.want == ralph.Merging) {
				t.Errorf("open is %v", open)
			}
		})
	}
}

// mergeBy merges a pull request, which closes the issue after a look has read the pull requests.
func (w *world) mergeBy(as string, issue, pull int64) {
	w.before = func(op string) error {
		if op == "issues" && !w.issues[issue].Closed {
			w.changes(pull, func(p *fakePull) { p.Closed, p.Merged = true, strings.Repeat("a", 40) })
			w.closes(as, issue, true)
		}
		return nil
	}
}

func TestDependentsWait(t *testing.T) {
	w := newWorld(t)
	first, second := w.issue(dev, "First", "y"), w.issue(dev, "Second", "x")
	w.label(dev, first, "ralph", true)
	w.look()
	w.issues[second].Body = fmt.Sprintf("Depends on #%d", first)
	w.label(dev, second, "ralph", true)
	w.look()
	w.works(1)
	w.look()
	if is := w.task(2); is.Status != ralph.Blocked {
		t.Errorf("it is %s: %s", is.Status, is.StatusReason)
	}
	w.changes(w.pullOf(1).Number, func(p *fakePull) { p.Closed, p.Merged = true, strings.Repeat("a", 40) })
	w.look()
	if is := w.task(2); is.Status != ralph.Pending {
		t.Errorf("it is %s: %s", is.Status, is.StatusReason)
	}
}

// TestALimitIsWaitedFor: no request is made before it ends, and the state says so.
func TestALimitIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	until := w.now.Add(10 * time.Minute)
	w.before = func(string) error { return &Error{Kind: Limited, Status: 429, Said: "slow down", Until: until} }
	if err := w.s.Once(t.Context()); KindOf(err) != Limited {
		t.Fatal(err)
	}
	w.before = nil
	asked := w.requests
	for w.now.Before(until.Add(-time.Minute)) {
		w.look()
	}
	if w.requests != asked || w.st.Failed == "" || !w.st.Until.Equal(until) {
		t.Errorf("%d requests, %+v", w.requests-asked, w.st)
	}
	w.look()
	if w.requests == asked || w.st.Failed != "" {
		t.Errorf("%+v", w.st)
	}
}
