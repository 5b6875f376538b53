package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"ralph"
	"ralph/internal/web"
	"ralph/internal/web/webtest"
	"ralph/loop/agent/claude"
	"ralph/store"
)

// A nightSite is a dashboard over a rich night, with a browser that has signed in.
type nightSite struct {
	*tab
	*webtest.Night
	db  *store.DB
	url string

	undone chan int64 // the tasks that are undone
}

// morning is when the nights of pictures end.
var morning = time.Date(2026, 11, 28, 7, 0, 0, 0, time.UTC)

// newNightSite serves a rich night from this process.
func newNightSite(t *testing.T) *nightSite { return serveNight(t, &webtest.Night{}) }

// serveNight serves a night.
func serveNight(t *testing.T, n *webtest.Night) *nightSite {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ralph.db"), store.Options{Now: n.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Fill(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return serveStore(t, n, db)
}

// serveNothing serves a project in which nothing has happened.
func serveNothing(t *testing.T) *nightSite {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ralph.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return serveStore(t, &webtest.Night{}, db)
}

// serveStore serves a database, which it closes in the end.
func serveStore(t *testing.T, n *webtest.Night, db *store.DB) *nightSite {
	t.Helper()
	const token = "a-token-of-twenty-and-more-characters"
	undone := make(chan int64, 1)
	server := &web.Server{
		Undo: func(_ context.Context, task int64, _ ralph.Status, _ string, _ bool) (string, error) {
			undone <- task
			return fmt.Sprintf("TASK-%d is being undone.", task), nil
		},
		Store: db, Project: "my-app", Person: "ada", Version: "test", Token: token,
		Limits: ralph.Limits{MaxSessions: 120, MaxSeconds: 12 * 3600, MaxCostUSD: 20, MaxDayCostUSD: 40, MaxMonthCostUSD: 400},
		Log:    slog.New(slog.DiscardHandler), Reader: claude.NewReader,
		Control: func(ctx context.Context, what string) error {
			return db.Tx(ctx, func(tx *store.Tx) error { return tx.Control(what) })
		},
		Open: func(session string, file web.SessionFile) (io.ReadCloser, error) {
			text, ok := n.Files[session+"/"+string(file)]
			if !ok {
				return nil, fs.ErrNotExist
			}
			return io.NopCloser(strings.NewReader(text)), nil
		},
	}
	var listen net.ListenConfig
	l, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() {
		if err := server.Serve(ctx, l, nil); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		served.Wait()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &nightSite{tab: newTab(t), Night: n, db: db, url: "http://" + l.Addr().String(), undone: undone}
	s.open(s.url + "/sign-in#" + token)
	s.reads("header button", "Sign out")
	return s
}

// tx changes the database, as somebody else does.
func (s *nightSite) tx(f func(tx *store.Tx) error) {
	s.t.Helper()
	if err := s.db.Tx(s.t.Context(), f); err != nil {
		s.t.Fatal(err)
	}
}

// pages returns all that a person looks at in the morning.
func (s *nightSite) pages() map[string]string {
	return map[string]string{
		"now": "/", "inbox": "/inbox", "inbox-item": "/inbox?item=w-failed-3-0", "tasks": "/tasks", "board": "/board", "features": "/features", "plan": "/inbox?item=w-plan-0-3", "feature-plan": "/feature?name=invoices",
		"task-merged": fmt.Sprint("/tasks/", s.Merged[len(s.Merged)-1]), "task-failed": fmt.Sprint("/tasks/", s.Failed[8]), "task-running": "/tasks/1", "task-held": "/tasks/50", "inbox-held": "/inbox?show=decide", "inbox-many": fmt.Sprint("/inbox/many?item=TASK-3+TASK-4+Q", s.question(2).ID),
		"session-running": "/sessions/" + s.Running[0], "session-failed": "/sessions/" + s.Ended[s.Failed[8]], "session-merged": "/sessions/" + s.Ended[s.Merged[3]],
		"sessions": "/sessions", "runs": "/runs", "run": "/runs/2", "charts": "/charts", "search": "/search?q=links", "learnings": "/learnings",
	}
}

// TestTheMorningLooksLikeThis asks axe-core about each page of a rich night and of an empty project, and checks that no
// page is wider than the screen. `make pictures` leaves pictures of all: wide, narrow, on a phone, light and dark. The
// documentation has some of them.
func TestTheMorningLooksLikeThis(t *testing.T) {
	t.Parallel()
	needPages(t)
	axe, s := axeSource(t), serveNight(t, &webtest.Night{Morning: morning})
	if err := s.Plan(); err != nil {
		t.Fatal(err)
	}
	show := &showcase{}
	s.stopClocks()
	look := func(name, path string) {
		t.Run(name, func(t *testing.T) {
			s.t = t
			for _, size := range [][2]int64{{1440, 900}, {720, 900}, {390, 844}} {
				width, height := size[0], size[1]
				s.look(width, height, "light")
				s.open(s.url + path)
				s.sees("it is no error", `!document.body.matches(".page-problem")`)
				s.sees("it is as wide as the screen", fmt.Sprintf("document.documentElement.scrollWidth <= %d", width))
				for _, scheme := range []string{"light", "dark"} {
					s.look(width, height, scheme)
					s.screen(fmt.Sprintf("%s-%d-%s", name, width, scheme))
					show.axe(s.tab, axe, name, fmt.Sprint(width, " ", scheme))
				}
			}
		})
	}
	pages := s.pages()
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		look(name, pages[name])
	}
	s.t = t
	for _, scheme := range []string{"light", "dark"} { // for the README
		s.look(1200, 750, scheme)
		s.open(s.url + "/")
		s.reads("#live", "live")
		s.screen("morning-" + scheme)
	}
	s = serveNight(t, &webtest.Night{Limits: webtest.Near(), Morning: morning})
	s.stopClocks()
	s.tx(func(tx *store.Tx) error {
		run, _, err := tx.LastRun()
		if err == nil {
			err = errors.Join(tx.SetIdle(run.ID, "money"), tx.SetRunState(run.ID, "ending", "5 different tasks changed nothing", time.Time{}))
		}
		return errors.Join(err, tx.PauseMerging("main has changes that are not committed"))
	})
	look("notices", "/")
	s.t = t
	for _, said := range []string{"1 session stands still", "Merging is paused: main has changes", "The run is ending: 5 different tasks", "The run has spent $9.", "of its 70 sessions", "of its 8 h", "64 % of five hour are used: the limit is 60 %", "Money holds back 2 of 4 sessions: $9.92 of $10.00"} {
		s.reads("#band .now", said)
	}
	s = serveNothing(t)
	for _, name := range []string{"now", "inbox", "tasks", "board", "runs", "charts"} {
		look("empty-"+name, "/"+strings.TrimPrefix(name, "now"))
	}
}

// moving returns the animated elements of a page, with every element as fresh as after an update.
const moving = `(() => {
	const all = [...document.querySelectorAll("*")], fresh = all.filter((e) => !e.classList.contains("fresh"));
	for (const e of fresh) e.classList.add("fresh");
	const found = document.getAnimations().map((a) => a.animationName ?? a.transitionProperty);
	for (const e of all) {
		const s = getComputedStyle(e);
		if (s.transitionDuration !== "0s" || s.scrollBehavior !== "auto") found.push(e.outerHTML.slice(0, 80));
	}
	for (const e of fresh) e.classList.remove("fresh");
	return [...new Set(found)];
})()`

// TestNoMotionIfReduced: with reduced motion nothing moves on any page. Otherwise a short motion marks updates.
func TestNoMotionIfReduced(t *testing.T) {
	t.Parallel()
	s := newNightSite(t)
	for name, path := range s.pages() {
		s.open(s.url + path)
		s.prefers("light", "reduce")
		if got := eval[[]string](s.tab, moving); len(got) > 0 {
			t.Errorf("%s: %q move", name, got)
		}
		s.prefers("light", "no-preference")
		if got := eval[[]string](s.tab, moving); !slices.Equal(got, []string{"fresh"}) {
			t.Errorf("%s, for others: %q move", name, got)
		}
	}
}

// screen saves a picture of the first screen, if pictures are asked for.
func (s *nightSite) screen(name string) {
	s.t.Helper()
	folder := os.Getenv("RALPH_TEST_SCREENSHOTS")
	if folder == "" {
		return
	}
	if eval[bool](s.tab, `!!document.body.dataset.stream && !!document.getElementById("live")`) {
		s.reads("#live", "live") // the line appears after the page
	}
	eval[bool](s.tab, `document.activeElement?.style.setProperty("caret-color", "transparent"), true`) // it blinks
	eval[bool](s.tab, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
	shot, err := chromedp.Run(s.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), shot, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestTenAreAnsweredByKeys goes through the inbox: one key an item, and one to take it back.
func TestTenAreAnsweredByKeys(t *testing.T) {
	t.Parallel()
	s := newNightSite(t)
	s.open(s.url + "/inbox")
	s.reads("#live", "live")
	row := func() string { return eval[string](s.tab, `document.querySelector("#pane article.item").dataset.row`) }
	shows := func(kind string) {
		t.Helper()
		s.sees("the next is shown: "+kind, fmt.Sprintf(`document.querySelector("#pane article.item")?.dataset.row.startsWith("w-%s")`, kind))
	}
	shows("flag")
	s.press("j")
	shows("question")
	question := row()
	s.press("1")
	s.reads("#corner", "TASK-2: yes")
	shows("tests changed")
	s.press("u")
	shows("question")
	if out := s.question(2); out.Answer != nil {
		t.Error("what was taken back is answered")
	}
	s.sees("its row is there again", fmt.Sprintf("!document.getElementById(%q).hidden", question))
	// the connection breaks once: the decision is sent later, and is not lost
	eval[bool](s.tab, `(() => {
		const real = window.fetch;
		window.fetch = (to, how) => how?.method !== "POST" ? real(to, how) : (window.fetch = real, Promise.reject(new TypeError("broken")));
		return true;
	})()`)
	s.press("2")
	shows("tests changed")
	s.press("a")
	s.reads("#corner", "Not sent: ralph cannot be reached. It will be tried again.")
	failed := func(n int) string { return fmt.Sprintf("failed-%d-", s.Failed[n]) }
	shows(failed(0))
	s.press("a") // seven at once
	shows(failed(7))
	s.press("d") // five are cancelled
	shows(failed(12))
	s.press("e") // later
	shows("amendment")
	s.press("a")
	shows("flag")
	s.press("x")
	s.press("j")
	s.press("x")
	s.sees("two are chosen", `document.querySelectorAll(".pick :checked").length === 2`)
	s.press("a")
	s.reads("h1", "Decide on 2 items at once")
	s.write("#many-text", "they are known")
	s.click("button[value=resolve]")
	s.reads(".flash", "2 items decided on.")
	s.sees("what could not be sent at first was sent", fmt.Sprintf("!document.getElementById(%q)", question))
	if out := s.question(2); out.Answer == nil || *out.Answer != "no" {
		t.Errorf("the question is answered with %v", out.Answer)
	}
	for n, want := range map[int]ralph.Status{0: ralph.Pending, 6: ralph.Pending, 7: ralph.Cancelled, 11: ralph.Cancelled, 12: ralph.Failed} {
		if got := s.task(s.Failed[n]).Status; got != want {
			t.Errorf("TASK-%d is %s, want %s", s.Failed[n], got, want)
		}
	}
}

// TestNothingIsLostWhileEverythingChanges: somebody types, decides and comments while others write as fast as they can.
func TestNothingIsLostWhileEverythingChanges(t *testing.T) {
	t.Parallel()
	s := newNightSite(t)
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := s.db.Tx(t.Context(), func(tx *store.Tx) error {
				_, err := tx.AddComment(ralph.Comment{TaskID: []int64{2, 49}[min(i/20, 1)], Author: "bob", AuthorKind: ralph.ByHuman, Kind: []ralph.CommentKind{ralph.Note, ralph.Question}[i%2], Body: fmt.Sprint("noise ", i)})
				return err
			}); err != nil {
				t.Error(err)
				return
			}
			<-s.pace()
		}
	})
	defer func() { close(stop); others.Wait() }()
	s.open(s.url + "/tasks/2")
	s.reads("#live", "live")
	s.reads("#timeline", "noise 3")
	s.write("#say-text", "half a ")
	s.reads("#timeline", "noise 9")
	s.write("#say-text", "thought")
	// a flag is resolved beside it
	s.write("#timeline .card.red textarea", "it is mended")
	s.click("#timeline .card.red .decide button.primary")
	s.reads("#timeline .card.signal .outcome", "it is mended")
	if got := eval[string](s.tab, `document.querySelector("#say-text").value`); got != "half a thought" {
		t.Errorf("the comment being written is %q", got)
	}
	// a reload keeps it, and so does another page
	s.open(s.url + "/inbox?item=w-amendment-49-1")
	s.write("#pane input[name=text]", "not ")
	s.press("j")
	s.press("k")
	s.open(s.url + "/tasks/2")
	s.sees("it is still there", `document.querySelector("#say-text").value === "half a thought"`)
	s.click("#say button")
	s.reads("#timeline .card.human", "half a thought")
	s.open(s.url + "/tasks/2")
	s.reads("#live", "live")
	if got := eval[string](s.tab, `document.querySelector("#say-text").value`); got != "" {
		t.Errorf("what was sent is there again: %q", got)
	}
	s.open(s.url + "/")
	s.click(".side button")
	s.reads("header", "Sign in")
	if n := eval[int](s.tab, `Object.keys(localStorage).length`); n != 0 {
		t.Errorf("%d drafts are left in the browser of somebody who signed out", n)
	}
}

// task returns a task as it is now.
func (s *nightSite) task(id int64) (t ralph.Task) {
	s.t.Helper()
	s.tx(func(tx *store.Tx) (err error) { t, err = tx.Task(id); return err })
	return t
}

// question returns the question of a task's session.
func (s *nightSite) question(task int64) (c ralph.Comment) {
	s.t.Helper()
	s.tx(func(tx *store.Tx) error {
		said, err := tx.Timeline(task, store.CommentFilter{Verbs: []ralph.Verb{ralph.VerbAsk}, Limit: 1})
		if err == nil {
			c = said[0]
		}
		return err
	})
	return c
}

// pace returns how fast others write: as people and agents would at most.
func (s *nightSite) pace() <-chan time.Time { return time.After(100 * time.Millisecond) }
