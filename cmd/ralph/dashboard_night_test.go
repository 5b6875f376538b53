package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
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
		Undo: func(_ context.Context, task int64, _ string, _ bool) (string, error) {
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

// pages are all that a person looks at in the morning.
func (s *nightSite) pages() map[string]string {
	return map[string]string{
		"now": "/", "inbox": "/inbox", "inbox-item": "/inbox?item=w-failed-3-0", "tasks": "/tasks", "board": "/board", "features": "/features", "plan": "/inbox?item=w-plan-0-3", "feature-plan": "/feature?name=invoices",
		"task-merged": fmt.Sprint("/tasks/", s.Merged[len(s.Merged)-1]), "task-failed": fmt.Sprint("/tasks/", s.Failed[8]), "task-running": "/tasks/1", "task-held": "/tasks/50", "inbox-held": "/inbox?kind=tests+changed", "inbox-many": "/inbox/many?item=TASK-3+TASK-4+Q1",
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
			for width, height := range map[int64]int64{1440: 900, 720: 900, 390: 844} {
				s.look(width, height, "light")
				s.open(s.url + path)
				s.sees("it is as wide as the screen", fmt.Sprintf("document.documentElement.scrollWidth <= %d", width))
				for scheme, rules := range map[string][]string{"light": nil, "dark": {"color-contrast", "target-size"}} {
					s.look(width, height, scheme)
					s.screen(fmt.Sprintf("%s-%d-%s", name, width, scheme))
					if (width == 390) == (scheme == "dark") {
						show.axe(s.tab, axe, name, fmt.Sprint(width, " ", scheme), rules...)
					}
				}
			}
		})
	}
	for name, path := range s.pages() {
		look(name, path)
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
			err = tx.SetRunState(run.ID, "ending", "5 different tasks changed nothing", time.Time{})
		}
		return errors.Join(err, tx.PauseMerging("main has changes that are not committed"))
	})
	look("notices", "/")
	s.t = t
	for _, said := range []string{"1 session stands still", "Merging is paused: main has changes", "The run is ending: 5 different tasks", "The run has spent $9.", "of its 70 sessions", "of its 8 h", "64 % of five hour are used: the limit is 60 %"} {
		s.reads("#band .now", said)
	}
	s = serveNothing(t)
	for name, path := range map[string]string{"now": "/", "inbox": "/inbox", "tasks": "/tasks", "board": "/board", "runs": "/runs", "charts": "/charts"} {
		look("empty-"+name, path)
	}
}

// screen saves a picture of the first screen, if pictures are asked for.
func (s *nightSite) screen(name string) {
	s.t.Helper()
	folder := os.Getenv("RALPH_TEST_SCREENSHOTS")
	if folder == "" {
		return
	}
	shot, err := chromedp.Run(s.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), shot, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestTheJobsOfAMorning does a person's jobs, each from the page that is open first, with at most four clicks and keys.
// A typed answer counts as one.
func TestTheJobsOfAMorning(t *testing.T) {
	t.Parallel()
	s := newNightSite(t)
	job := func(name string, steps func(hand *hand)) {
		t.Log(name)
		s.open(s.url + "/")
		s.reads("#live", "live")
		h := &hand{nightSite: s}
		steps(h)
		if h.times > 4 {
			t.Errorf("%s: %d clicks and keys", name, h.times)
		}
	}
	failed := func(n int) string { return fmt.Sprintf("w-failed-%d-0", s.Failed[n]) }
	job("what happened tonight", func(h *hand) {
		h.reads("#morning", "12 merged")
		h.reads("#morning", "10 proved · 2 unproved")
		h.reads("#morning", "15 failed")
		h.reads("#morning", "12 commits on main")
	})
	job("what needs me now", func(h *hand) {
		h.reads("#band", "npm publish --tag next")
		h.sees("the title says so", `document.title.startsWith("(1) ralph")`)
		h.click("#band button[value=deny]")
		h.sees("it goes on", `!document.querySelector("#band .now")`)
	})
	job("why did this fail", func(h *hand) {
		h.click(`#` + failed(7) + ` a.to`)
		h.reads("#pane .item", "npm run lint")
		h.reads("#pane .item", "and 4 alike")
		h.click("#pane .item li a")
		h.click(".sessions a")
		h.reads("main", "'zone' is not defined")
	})
	job("show me what changed, and what proves it", func(h *hand) {
		h.reads("main", "red → green")
		h.click(`[aria-labelledby=last-h] a[href$="#diff-h"]`)
		h.reads(".diff .add", "exports.limit = 2000;")
		h.reads("main", "red before, green now")
	})
	job("is it stuck", func(h *hand) {
		h.click(`.running a[href^="/sessions/"]`)
		h.reads("main", "running for")
		h.reads("#stream li", "The tests pass; I look at the edge cases now.")
	})
	job("steer", func(h *hand) {
		h.click(`.running a[href^="/sessions/"]`)
		h.writes("#say-text", "mind IPv6")
		h.click("#say button")
		h.reads(".flash", "is told at once")
	})
	job("stop one", func(h *hand) {
		h.click(`.running a[href^="/sessions/"]`)
		h.click(".sure summary")
		h.click(".sure button")
		h.reads(".flash", "is being stopped")
	})
	job("stop all", func(h *hand) {
		h.click(`form[action="/run/stop"] button`)
		h.reads("main", "Stop now")
		h.click(`main form[action="/run/resume"] button`)
		h.reads("main", "Pause")
	})
	job("retry", func(h *hand) {
		h.click("#" + failed(12) + " button")
		h.reads("#corner", "Retry 3")
		h.open(h.url + "/inbox") // it is sent when the page is left
		h.sees("they wait no longer", fmt.Sprintf("!document.getElementById(%q)", failed(12)))
	})
	job("undo", func(h *hand) {
		last := s.Merged[len(s.Merged)-1]
		h.click(fmt.Sprintf(`[aria-label="Undo TASK-%d"]`, last))
		h.click("#task-act form[action$=undo] button.danger")
		h.reads(".flash", "is being undone")
		if got := <-s.undone; got != last {
			t.Errorf("TASK-%d is undone, want TASK-%d", got, last)
		}
	})
	job("answer", func(h *hand) { // and ten things: TestTenAreAnsweredByKeys
		h.key("g")
		h.key("i")
		h.sees("the inbox is live", `location.pathname === "/inbox" && document.getElementById("live")?.textContent.includes("live")`)
		h.key("j")
		h.sees("the question is shown", `document.querySelector("#pane article.item")?.dataset.row.startsWith("w-question")`)
		h.key("1")
		h.reads("#corner", "TASK-2: yes")
	})
	job("approve a held change after reading it", func(h *hand) {
		h.click(`#waits-h ~ .rows li[id^="w-tests"] a.to`)
		h.reads("#pane .file", "src/part50.js")
		h.reads("#live", "live")
		h.key("a")
		h.reads("#corner", "TASK-50: Approve")
		h.key("u")
		h.sees("it is taken back", `!document.querySelector("#corner p")`)
		if h.times != 3 {
			t.Errorf("two steps approve, and one takes it back: %d", h.times)
		}
	})
	job("order", func(h *hand) {
		second := eval[string](s.tab, `document.querySelector("#queue li:nth-child(2)").id`)
		h.click("#queue li:nth-child(2) button")
		h.sees("the second is the first", fmt.Sprintf(`document.querySelector("#queue li:first-child").id === %q`, second))
	})
	job("add", func(h *hand) {
		h.click(`a[href^="/tasks?add"]`)
		h.writes("#title0", "A sitemap")
		h.click(`form[action="/tasks"] button.primary`)
		h.reads("main table", "A sitemap")
	})
	job("what did it cost, and why", func(h *hand) {
		h.click("#spent-h a")
		h.reads("main .lead", "for each of 29 merged tasks")
		h.click("[aria-labelledby=by-task-h] tbody tr:first-child a")
		h.reads("main .also", "3 sessions, $0.")
		h.click("main tbody tr:first-child a")
		h.reads(".verdict", "of $4.96 ·")
		h.reads("main .lead", "the agent stopped without a verdict")
	})
	job("what is in a column", func(h *hand) {
		h.click("#spent-h a")
		h.click(".chart svg a:last-of-type")
		h.reads("main .also", "the most expensive first")
	})
	job("find", func(h *hand) {
		h.key("/")
		h.writes("#find", "totp")
		h.key("\r")
		h.sees("the search is shown", `location.pathname === "/search"`)
		h.reads("main .rows", "Two-factor sign-in by TOTP")
	})
	job("find a flag by its words", func(h *hand) {
		h.writes("#find", "ssrf")
		h.key("\r")
		h.sees("the search is shown", `location.pathname === "/search"`)
		h.reads("main .rows", "fetch_title() follows redirects")
	})
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

// A hand counts its clicks and keys.
type hand struct {
	*nightSite
	times int
}

// click presses what can be seen and reached. The page does it in one step: one that brings itself up to date would move
// it away from under a pointer.
func (h *hand) click(selector string) {
	h.t.Helper()
	h.times++
	h.sees("there is "+selector+", and it can be clicked", fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		e?.scrollIntoView({block: "center", behavior: "instant"});
		const at = e?.getBoundingClientRect();
		const top = at && document.elementFromPoint(at.left + at.width / 2, at.top + at.height / 2);
		if (!top || !e.contains(top) && !top.contains(e)) return false;
		e.focus();
		e.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true, view: window}));
		return true;
	})()`, selector))
}

func (h *hand) key(key string) {
	h.t.Helper()
	h.times++
	h.press(key)
}

func (h *hand) writes(selector, text string) {
	h.t.Helper()
	h.times++
	h.write(selector, text)
}

// task is a task as it is now.
func (s *nightSite) task(id int64) (t ralph.Task) {
	s.t.Helper()
	s.tx(func(tx *store.Tx) (err error) { t, err = tx.Task(id); return err })
	return t
}

// question is the question of a task's session.
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

// pace is how fast others write: as people and agents would at most.
func (s *nightSite) pace() <-chan time.Time { return time.After(100 * time.Millisecond) }
