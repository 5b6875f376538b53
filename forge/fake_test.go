package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// A fake is a forge in memory, with the repository octo/app. Boss is ralph's account, dev may write, others may not.
type fake struct {
	now       time.Time
	clock     func() time.Time // nil: each change is a second after the one before
	apart     bool             // pull requests have numbers of their own
	reactions map[string]int   // by comment and reaction
	issues    map[int64]*fakeIssue
	pulls     map[int64]*fakePull
	last      int64 // number of an issue, a pull request or a comment
	requests  int
	renamed   string                // the repository's former address
	readOnly  bool                  // boss may not write any more
	before    func(op string) error // fails the request, which does nothing
	after     func(op string) error // the answer is lost
}

type fakeIssue struct {
	Issue
	acts     []fakeAct
	comments []Comment
}

type fakeAct struct {
	act   Act
	who   string
	label string
	at    time.Time
}

type fakePull struct {
	Pull
	Proposal
	comments []Comment
	threads  map[string][]string
	style    string // of its merge
}

const boss, dev, guest = "boss", "dev", "guest"

func newFake() *fake {
	return &fake{
		now: time.Date(2026, 11, 1, 22, 0, 0, 0, time.UTC), issues: map[int64]*fakeIssue{}, pulls: map[int64]*fakePull{},
		reactions: map[string]int{},
	}
}

// id returns a new number, a second later.
func (f *fake) id() int64 {
	if f.now = f.now.Add(time.Second); f.clock != nil {
		f.now = f.clock()
	}
	f.last++
	return f.last
}

// reacts adds a reaction to a comment, once.
func (f *fake) reacts(id, reaction string) { f.reactions[id+" "+reaction] = 1 }

// issue opens an issue.
func (f *fake) issue(as, title, body string) int64 {
	n := f.id()
	f.issues[n] = &fakeIssue{Issue: Issue{Number: n, URL: fmt.Sprint("u", n), Title: title, Body: body, Author: as, Updated: f.now}}
	return n
}

// label sets or takes away a label.
func (f *fake) label(as string, n int64, label string, set bool) {
	i, act := f.issues[n], Labelled
	i.Labels = slices.DeleteFunc(i.Labels, func(l string) bool { return l == label })
	if set {
		i.Labels = append(i.Labels, label)
	} else {
		act = Unlabelled
	}
	f.act(as, n, act, label)
}

// closes closes or reopens an issue.
func (f *fake) closes(as string, n int64, closed bool) {
	f.issues[n].Closed = closed
	f.act(as, n, map[bool]Act{true: Closed, false: Reopened}[closed], "")
}

func (f *fake) act(as string, n int64, act Act, label string) {
	f.id()
	f.issues[n].Updated = f.now
	f.issues[n].acts = append(f.issues[n].acts, fakeAct{act, as, label, f.now})
}

// says comments on an issue or a pull request.
func (f *fake) says(as string, n int64, body string) string {
	if i, ok := f.issues[n]; ok {
		c := Comment{strconv.FormatInt(f.id(), 10), as, body, f.now}
		i.comments, i.Updated = append(i.comments, c), f.now
		return c.ID
	}
	return f.saysOn(as, n, body)
}

// saysOn comments on a pull request.
func (f *fake) saysOn(as string, n int64, body string) string {
	c := Comment{strconv.FormatInt(f.id(), 10), as, body, f.now}
	f.pulls[n].comments, f.pulls[n].Updated = append(f.pulls[n].comments, c), f.now
	return c.ID
}

// changes changes a pull request.
func (f *fake) changes(n int64, how func(p *fakePull)) {
	f.id()
	how(f.pulls[n])
	f.pulls[n].Updated = f.now
}

// request counts a request, and does it unless that fails.
func (f *fake) request(ctx context.Context, op string, does func() error) error {
	f.requests++
	if f.before != nil {
		if err := f.before(op); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := does(); err != nil {
		return err
	}
	if f.after != nil {
		if err := f.after(op); err != nil {
			return err
		}
	}
	return ctx.Err()
}

var errGone = &Error{Kind: Gone, Status: 404, Said: "Not Found"}

// on calls does for an issue.
func (f *fake) on(ctx context.Context, op string, n int64, does func(i *fakeIssue) error) error {
	return f.request(ctx, op, func() error {
		if i, ok := f.issues[n]; ok {
			return does(i)
		}
		return errGone
	})
}

// of calls does for a pull request.
func (f *fake) of(ctx context.Context, op string, n int64, does func(p *fakePull) error) error {
	return f.request(ctx, op, func() error {
		if p, ok := f.pulls[n]; ok {
			return does(p)
		}
		return errGone
	})
}

func (f *fake) Repository() string { return "git.example.org/octo/app" }

func (f *fake) Leads(_ context.Context, from string) (bool, error) { return from == f.renamed, nil }

func (f *fake) Limit() (int, bool) { return 4000, true }

func (f *fake) Self(ctx context.Context) (a Account, err error) {
	return Account{boss, !f.readOnly}, f.request(ctx, "self", func() error { return nil })
}

func (f *fake) CanWrite(ctx context.Context, login string) (ok bool, err error) {
	return login == boss || login == dev, f.request(ctx, "can write", func() error { return nil })
}

func (f *fake) Issues(ctx context.Context, since time.Time, page int) (list []Issue, more bool, err error) {
	const perPage = 100
	err = f.request(ctx, "issues", func() error {
		for _, i := range f.issues {
			if !i.Updated.Before(since) {
				list = append(list, i.Issue)
			}
		}
		slices.SortFunc(list, func(a, b Issue) int { return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.Number, b.Number)) })
		list = list[min(len(list), perPage*(page-1)):]
		more = len(list) > perPage
		list = list[:min(len(list), perPage)]
		return nil
	})
	return list, more, err
}

func (f *fake) Last(ctx context.Context, issue int64, act Act, label string) (login string, at time.Time, err error) {
	return login, at, f.on(ctx, "last", issue, func(i *fakeIssue) error {
		for _, a := range i.acts {
			if a.act == act && (a.label == "" || a.label == label) {
				login, at = a.who, a.at
			}
		}
		return nil
	})
}

func (f *fake) Comments(ctx context.Context, n int64, since time.Time) (list []Comment, err error) {
	return list, f.on(ctx, "comments", n, func(i *fakeIssue) error {
		for _, c := range i.comments {
			if !c.Updated.Before(since) {
				list = append(list, c)
			}
		}
		return nil
	})
}

func (f *fake) Comment(ctx context.Context, n int64, body string) (id string, err error) {
	return id, f.on(ctx, "comment", n, func(*fakeIssue) error { id = f.says(boss, n, body); return nil })
}

func (f *fake) Edit(ctx context.Context, n int64, id, body string) error {
	return f.on(ctx, "edit", n, func(i *fakeIssue) error {
		at := slices.IndexFunc(i.comments, func(c Comment) bool { return c.ID == id })
		if at < 0 {
			return errGone
		}
		f.id()
		i.comments[at].Body, i.comments[at].Updated, i.Updated = body, f.now, f.now
		return nil
	})
}

func (f *fake) React(ctx context.Context, _ int64, id string, r Reaction) error {
	return f.request(ctx, "react", func() error { f.reacts(id, string(r)); return nil })
}

func (f *fake) SetLabel(ctx context.Context, n int64, label string, without []string) error {
	return f.on(ctx, "label", n, func(i *fakeIssue) error {
		has := slices.Contains(i.Labels, label)
		for _, l := range without {
			if slices.Contains(i.Labels, l) {
				f.label(boss, n, l, false)
			}
		}
		if label != "" && !has {
			f.label(boss, n, label, true)
		}
		return nil
	})
}

func (f *fake) Changed(ctx context.Context, since time.Time) (list []Changed, err error) {
	return list, f.request(ctx, "changed", func() error {
		for _, p := range f.pulls {
			if !p.Updated.Before(since) {
				list = append(list, Changed{p.Number, !p.Closed, p.Updated})
			}
		}
		return nil
	})
}

func (f *fake) Pull(ctx context.Context, n int64) (pull Pull, err error) {
	return pull, f.of(ctx, "pull", n, func(p *fakePull) error {
		if pull = p.Pull; !pull.Closed {
			pull.Comments = slices.Clone(p.comments)
		}
		return nil
	})
}

func (f *fake) PullOf(ctx context.Context, branch string) (n int64, err error) {
	return n, f.request(ctx, "pull of", func() error {
		for _, p := range f.pulls {
			if p.Branch == branch && !p.Closed {
				n = p.Number
			}
		}
		return nil
	})
}

func (f *fake) Open(ctx context.Context, o Proposal) (n int64, err error) {
	return n, f.request(ctx, "open", func() error {
		if n = f.id(); f.apart {
			n = int64(len(f.pulls) + 1)
		}
		f.pulls[n] = &fakePull{
			Pull: Pull{Number: n, URL: fmt.Sprint("u", n), Head: "head", Into: o.Into, Updated: f.now}, Proposal: o, threads: map[string][]string{},
		}
		return nil
	})
}

func (f *fake) Merge(ctx context.Context, n int64, head string) (queued bool, err error) {
	return false, f.of(ctx, "merge", n, func(p *fakePull) error {
		if p.Head != head {
			return &Error{Kind: Invalid, Status: 409, Said: "Head branch was modified"}
		}
		f.changes(n, func(p *fakePull) { p.Closed, p.Merged = true, fmt.Sprintf("%040d", n) })
		return nil
	})
}

func (f *fake) Said(ctx context.Context, n int64) (list []Comment, err error) {
	return list, f.of(ctx, "said", n, func(p *fakePull) error {
		for _, thread := range p.threads {
			for _, body := range thread {
				list = append(list, Comment{Author: boss, Body: body})
			}
		}
		list = append(list, p.comments...)
		return nil
	})
}

func (f *fake) Say(ctx context.Context, n int64, thread, body string) error {
	return f.of(ctx, "say", n, func(p *fakePull) error {
		if thread == "" {
			f.saysOn(boss, n, body)
		} else {
			p.threads[thread] = append(p.threads[thread], body)
		}
		return nil
	})
}

func (f *fake) Close(ctx context.Context, n int64) error {
	return f.of(ctx, "close", n, func(*fakePull) error {
		f.changes(n, func(p *fakePull) { p.Closed = true })
		return nil
	})
}

// A fakeGit stands for the repository of the pull requests.
type fakeGit struct {
	tip       string
	conflicts map[string]bool
	dropped   []string
}

func (g *fakeGit) Tip(context.Context) (string, error) { return g.tip, nil }

func (g *fakeGit) Pull(context.Context, ralph.Change, string) (commit, tree string, err error) {
	return "abc", "def", nil
}

func (g *fakeGit) Conflicts(_ context.Context, branch string, _ bool) (bool, error) {
	return g.conflicts[branch], nil
}

func (g *fakeGit) Landed(context.Context, string, string, string, string) (string, []ralph.FileChange, error) {
	return "base", nil, nil
}

func (g *fakeGit) DropBranch(_ context.Context, branch, _ string) error {
	g.dropped = append(g.dropped, branch)
	return nil
}

// A world is a queue beside a fake forge.
type world struct {
	*fake
	s    *Syncer
	t    *testing.T
	db   *store.DB
	git  *fakeGit
	st   Standing
	told func(statement string)
	n    int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, fake: newFake(), git: &fakeGit{tip: "tip", conflicts: map[string]bool{}}}
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ralph.db"), store.Options{Statement: func(q string) {
		if w.told != nil {
			w.told(q)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.told = nil
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	w.db = db
	w.restart()
	return w
}

// restart begins with a syncer that knows nothing.
func (w *world) restart() {
	w.s = &Syncer{
		Forge: w.fake, Store: w.db, Label: "ralph", Into: "main", Git: w.git, Rounds: 3, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return w.now }, Mask: func(s string) string { return strings.ReplaceAll(s, "s3cret", "[masked]") },
		Stands: func(st Standing) { w.st = st },
	}
}

// look looks once, a minute later.
func (w *world) look() {
	w.t.Helper()
	w.now = w.now.Add(time.Minute)
	if err := w.s.Once(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tx(do func(tx *store.Tx) error) {
	w.t.Helper()
	if err := w.db.Tx(w.t.Context(), do); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) task(id int64) (t ralph.Task) {
	w.t.Helper()
	w.tx(func(tx *store.Tx) (err error) { t, err = tx.Task(id); return err })
	return t
}

// works has a task's session end with a verified change; id 0 adds a task. Its branch is pushed.
func (w *world) works(id int64) (int64, ralph.Change) {
	w.t.Helper()
	w.n++
	session := fmt.Sprintf("00000000-0000-4000-8000-%012d", w.n)
	var c ralph.Change
	w.tx(func(tx *store.Tx) (err error) {
		if id == 0 {
			if id, err = tx.AddTask(ralph.Task{Title: fmt.Sprintf("Task %d", w.n), Priority: 2}, "human"); err != nil {
				return err
			}
		}
		if _, err := tx.StartSession(store.Start{ID: session, Task: id, Origin: ralph.FromLoop}); err != nil {
			return err
		}
		s, err := tx.Session(session)
		if err != nil {
			return err
		}
		s.Change, s.Ending = &ralph.Change{Base: "base", Head: fmt.Sprintf("%040d", w.n), Tree: "tree"}, ralph.Finished
		return tx.Apply(s, signals.Facts{}, signals.Decision{
			Accepted: true, Status: ralph.Merging, Mover: ralph.Verdict, StatusReason: "done", Attempts: 1,
			Outcome: ralph.OutcomeSuccess,
		})
	})
	w.pushed(id)
	w.tx(func(tx *store.Tx) (err error) { c, _, err = tx.ChangeOf(id); return err })
	return id, c
}

// pushed has the queued change of a task pushed for review.
func (w *world) pushed(id int64) {
	w.t.Helper()
	w.tx(func(tx *store.Tx) error {
		c, _, err := tx.ChangeOf(id)
		if err != nil {
			return err
		}
		c.To = c.Head
		branch, ended, err := tx.PullsOf(id)
		if err != nil {
			return err
		}
		c.Branch = cmp.Or(branch, fmt.Sprintf("ralph/TASK-%d-%d", id, ended+1))
		return errors.Join(tx.BeginMove(c), tx.BeginReview(c))
	})
}

// pullOf returns a task's newest pull request.
func (w *world) pullOf(id int64) (p store.ForgePull) {
	w.t.Helper()
	w.tx(func(tx *store.Tx) (err error) {
		var ok bool
		if p, ok, err = tx.ForgePullOf(id); err == nil && !ok {
			err = fmt.Errorf("TASK-%d has no pull request", id)
		}
		return err
	})
	return p
}

// marks counts ralph's posts on an issue, by mark.
func (f *fake) marks(n int64) map[string]int {
	count := map[string]int{}
	var list []Comment
	if i, ok := f.issues[n]; ok {
		list = i.comments
	} else {
		list, _ = f.Said(context.Background(), n)
	}
	for _, c := range list {
		if of, ok := Marked(c.Body); ok && c.Author == boss {
			count[of]++
		}
	}
	return count
}

var errLost = errors.New("connection reset")
