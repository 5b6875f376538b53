package forge

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// number reads a number from the environment.
func number(t *testing.T, name string, or uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return or
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ends has a session of a task end without a change.
func (w *world) ends(id int64, said signals.Payload, d signals.Decision) {
	w.t.Helper()
	w.n++
	session := fmt.Sprintf("00000000-0000-4000-8000-%012d", w.n)
	w.tx(func(tx *store.Tx) error {
		_, err := tx.StartSession(store.Start{ID: session, Task: id, Origin: ralph.FromLoop})
		return err
	})
	if said != nil {
		if _, err := w.db.Say(w.t.Context(), id, session, "agent", said); err != nil {
			w.t.Fatal(err)
		}
	}
	w.tx(func(tx *store.Tx) error {
		s, err := tx.Session(session)
		if err != nil {
			return err
		}
		s.Ending, d.Mover, d.Attempts, d.Outcome = ralph.Finished, ralph.Verdict, 1, ralph.OutcomeFailure
		return tx.Apply(s, signals.Facts{}, d)
	})
}

// asks has a session of a task ask a question.
func (w *world) asks(id int64) {
	w.t.Helper()
	ask := signals.Ask{Question: "Which?", Options: []string{"one", "two"}, Blocking: new(true)}
	w.ends(id, ask, signals.Decision{Status: ralph.NeedsInput, StatusReason: "asks"})
}

// fails has a session of a task fail for good.
func (w *world) fails(id int64) {
	w.t.Helper()
	w.ends(id, nil, signals.Decision{Status: ralph.Failed, StatusReason: "refused with s3cret @all #1"})
}

// night are the events of a night, in order. Between any two of them, the syncer looks.
var night = []func(w *world){
	func(w *world) {
		w.label(dev, w.issue(dev, "One", "x"), "ralph", true)
		w.label(dev, w.issue(guest, "Two", "y"), "ralph", true)
		w.label(dev, w.issue(dev, "Three", "z"), "ralph", true)
	},
	func(w *world) { w.says(dev, 1, "mind the gap"); w.says(guest, 1, "evil") },
	func(w *world) { w.works(w.taskOf(1)) },
	func(w *world) {
		w.changes(w.pullOf(w.taskOf(1)).Number, func(p *fakePull) {
			p.Reviews = []Review{{ID: "1", Author: dev, Objects: true, Body: "no"}}
			p.Remarks = []Remark{{ID: "2", Thread: "2", Author: dev, Body: "why?"}, {ID: "3", Thread: "2", Author: dev, Body: "hm"}}
		})
	},
	func(w *world) { w.works(w.taskOf(1)) },
	func(w *world) { w.fails(w.taskOf(3)) },
	func(w *world) { w.asks(w.taskOf(5)) },
	func(w *world) {
		w.says(dev, 3, "/retry use the other one")
		w.says(dev, 5, "/answer 2")
		w.says(dev, 5, "/answer 2")
	},
	func(w *world) { w.works(w.taskOf(3)) },
	func(w *world) {
		w.tx(func(tx *store.Tx) error { _, err := tx.Cancel(w.taskIn(tx, 3), "ann"); return err })
		w.changes(w.pullOf(w.taskOf(1)).Number, func(p *fakePull) { p.Closed, p.Merged = true, strings.Repeat("a", 40) })
		w.closes(dev, 1, true)
	},
	func(w *world) { w.works(w.taskOf(5)) },
}

func (w *world) taskOf(issue int64) (id int64) {
	w.tx(func(tx *store.Tx) error { id = w.taskIn(tx, issue); return nil })
	return id
}

func (w *world) taskIn(tx *store.Tx, issue int64) int64 {
	w.t.Helper()
	i, ok, err := tx.ForgeIssue(issue)
	if err != nil || !ok {
		w.t.Fatalf("issue #%d is no task: %v", issue, err)
	}
	return i.TaskID
}

// after describes the state after a night.
func (w *world) left() string {
	w.t.Helper()
	var b strings.Builder
	for _, n := range slices.Sorted(maps.Keys(w.issues)) {
		i := w.issues[n]
		is := w.task(w.taskOf(n))
		fmt.Fprintf(&b, "#%d %s %s %q\n", n, is.Status, is.StatusReason, i.Labels)
		count := w.marks(n)
		for _, of := range slices.Sorted(maps.Keys(count)) {
			fmt.Fprintf(&b, "  %d of %s\n", count[of], of[:strings.IndexByte(of+" event", ' ')]+kindOfMark(of))
		}
		for _, c := range i.comments {
			if of, ok := Marked(c.Body); ok && strings.HasSuffix(of, " status") {
				_, body, _ := strings.Cut(c.Body, "\n")
				body, _, _ = strings.Cut(body, "\n\nralph keeps")
				fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(body, "\n", " "))
			}
		}
		reactions := 0
		for _, c := range i.comments {
			reactions += w.reactions[c.ID+" "+string(Taken)] + w.reactions[c.ID+" "+string(Refused)]
		}
		fmt.Fprintf(&b, "  reactions %d\n", reactions)
		notes := 0
		w.tx(func(tx *store.Tx) error {
			list, err := tx.Timeline(is.ID, store.CommentFilter{})
			for _, c := range list {
				if c.AuthorKind == ralph.ByHuman {
					notes++
				}
			}
			return err
		})
		fmt.Fprintf(&b, "  notes %d\n", notes)
	}
	for _, n := range slices.Sorted(maps.Keys(w.pulls)) {
		p := w.pulls[n]
		fmt.Fprintf(&b, "pull of %s closed %v merged %v comments %d threads %d\n", p.Branch, p.Closed, p.Merged != "",
			len(p.comments), len(p.threads["2"]))
	}
	return pullNumber.ReplaceAllString(b.String(), "${1}n")
}

// pullNumber matches the number of a pull request, which depends on what came before it.
var pullNumber = regexp.MustCompile(`(pull request \[?#\x{200b}?|[,(] ?u)\d+`)

// kindOfMark returns a mark without its numbers.
func kindOfMark(of string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, " "+of)
}

// calm returns the state after an undisturbed night.
func calm(t *testing.T) string {
	w := newWorld(t)
	for _, does := range night {
		does(w)
		w.look()
	}
	for range 3 {
		w.look()
	}
	return w.left()
}

// TestKilledAtEachStep kills the syncer at any moment of posting and pulling: before and after a request, and between
// two statements of the database. Each event is posted once, each comment taken once, each pull request opened once.
// RALPH_TEST_SEED is the first of RALPH_TEST_KILLS nights.
func TestKilledAtEachStep(t *testing.T) {
	want := calm(t)
	first := number(t, "RALPH_TEST_SEED", 1)
	for seed := first; seed < first+number(t, "RALPH_TEST_KILLS", 5); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			draw := rand.New(rand.NewPCG(seed, 0)).IntN
			killed := 0
			for _, does := range night {
				does(w)
				for range draw(3) {
					killed += w.killed(draw(1 << (1 + draw(8))))
					w.restart()
				}
				w.look()
			}
			for range 3 {
				w.look()
			}
			if got := w.left(); got != want {
				t.Errorf("killed %d times, it leaves\n%swant\n%s", killed, got, want)
			}
		})
	}
}

// killed looks, and is killed after so many moments: 1 if it was.
func (w *world) killed(after int) (n int) {
	ctx, kill := context.WithCancel(w.t.Context())
	defer kill()
	moment := func() {
		if after--; after == 0 {
			kill()
			n = 1
		}
	}
	before, lost := w.before, w.after
	w.told = func(string) { moment() }
	w.before = func(string) error { moment(); return nil }
	w.after = func(string) error { moment(); return nil }
	defer func() { w.told, w.before, w.after = nil, before, lost }()
	w.now = w.now.Add(time.Minute)
	if err := w.s.Once(ctx); err != nil && ctx.Err() == nil {
		w.t.Errorf("a look that was not killed: %v", err)
	}
	return n
}

// TestTheForgeIsAway in the middle of a night: the same is left as without that, and the posts arrive in their order.
func TestTheForgeIsAway(t *testing.T) {
	order := func(w *world) (list []string) {
		var all []Comment
		for _, i := range w.issues {
			all = append(all, i.comments...)
		}
		slices.SortFunc(all, func(a, b Comment) int { return strings.Compare(fmt.Sprintf("%9s", a.ID), fmt.Sprintf("%9s", b.ID)) })
		for _, c := range all {
			if of, ok := Marked(c.Body); ok && strings.Contains(of, "event") {
				list = append(list, of)
			}
		}
		return list
	}
	quiet := newWorld(t)
	for _, does := range night {
		does(quiet)
		quiet.look()
	}
	for lost, how := range map[string]func(w *world, fail func(string) error){
		"no request arrives": func(w *world, fail func(string) error) { w.before = fail },
		"no answer arrives":  func(w *world, fail func(string) error) { w.after = fail },
	} {
		w := newWorld(t)
		for at, does := range night {
			does(w)
			if at >= 4 && at <= 6 {
				how(w, func(string) error { return &Error{Kind: Away, Said: errLost.Error()} })
				w.now = w.now.Add(20 * time.Minute)
				if err := w.s.Once(t.Context()); KindOf(err) != Away || w.st.Failed == "" || at > 4 && w.st.Posts == 0 {
					t.Errorf("%s: %v, %+v", lost, err, w.st)
				}
				w.before, w.after = nil, nil
				continue
			}
			w.look()
		}
		for range 3 {
			w.look()
		}
		if got, want := w.left(), calm(t); got != want {
			t.Errorf("%s: it leaves\n%swant\n%s", lost, got, want)
		}
		if got, want := order(w), order(quiet); len(got) != len(want) || !slices.IsSortedFunc(got, byEvent) {
			t.Errorf("%s: posted in the order %q, want %q", lost, got, want)
		}
	}
}

// byEvent compares marks by their events.
func byEvent(a, b string) int {
	n := func(of string) (id int) {
		_, err := fmt.Sscanf(of[strings.Index(of, "event"):], "event %d", &id)
		if err != nil {
			return -1
		}
		return id
	}
	return n(a) - n(b)
}
