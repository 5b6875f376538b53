package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"ralph"
	"ralph/internal/state"
	"ralph/store"
)

// TestTheInboxIsGoneThroughWithKeys: what is closed is opened before it is decided on, and what is
// chosen is shown whole first.
func TestTheInboxIsGoneThroughWithKeys(t *testing.T) {
	t.Parallel()
	needChromium(t)
	s := newShowcase(t, friendly)
	d := serveProject(t, s.scriptedProject, "127.0.0.1:0")
	p := newTab(t)
	p.signIn(s.scriptedProject, d)
	p.open(d.url + "/inbox")
	p.reads("#live", "live")
	const question = `[...document.querySelectorAll("article.item")].find((e) => e.id.startsWith("w-question"))`
	open := question + ".querySelector('details').open"
	eval[bool](p, question+".focus(), true")
	if eval[bool](p, open) {
		t.Fatal("the question is open already")
	}
	p.press("1")
	p.sees("a digit opens what is closed", open)
	p.press("\r")
	p.sees("Enter closes it", "!"+open)
	p.press("\r")
	p.sees("Enter opens it", open)
	eval[bool](p, `(() => {
		const real = window.fetch;
		window.fetch = (to, how) => how?.method !== "POST" ? real(to, how) : (window.fetch = real, Promise.reject(new TypeError("broken")));
		return true;
	})()`)
	p.press("2")
	p.reads("[id^=w-question] .undo", "Not sent: ralph cannot be reached. It will be tried again.")
	p.reads(".flash", "Answered")
	p.sees("it waits no longer", "!"+question)
	p.sees("what stands in its place is open", `document.activeElement.matches("article.item") && document.activeElement.querySelector("details").open`)

	t.Log("a rejection can be taken back, and is sent when the page is left")
	const proposal = `document.querySelector("article.item[id^=w-proposal]")`
	eval[bool](p, proposal+".querySelector('details').open = true")
	eval[bool](p, proposal+".querySelector('button[data-undo]').click(), true")
	p.reads("[id^=w-proposal] .undo", "“Reject” is carried out in 10 seconds.")
	s.picture(p, "undo")
	p.press("u")
	p.sees("it is taken back", `!document.querySelector(".undo")`)
	if out := s.ralph(0, "inbox"); !strings.Contains(out, "TASK-3") {
		t.Errorf("what was taken back is decided:\n%s", out)
	}
	eval[bool](p, proposal+".querySelector('button[data-undo]').click(), true")
	eval[bool](p, proposal+".querySelector('.undo button').click(), true")
	p.sees("it is taken back by the button", `!document.querySelector(".undo") && document.activeElement.id.startsWith("w-proposal")`)
	eval[bool](p, proposal+".querySelector('button[data-undo]').click(), true")
	p.reads("[id^=w-proposal] .undo", "“Reject” is carried out in 10 seconds.")
	p.open(d.url + "/inbox")
	p.reads("#live", "live")
	p.sees("it is rejected", "!"+proposal)

	for _, kind := range []string{"suggestion", "nack"} {
		eval[bool](p, fmt.Sprintf(`document.querySelector("article.item[id^=w-%s]").focus(), true`, kind))
		p.press("x")
	}
	p.sees("two are chosen", `document.querySelectorAll(".pick :checked").length === 2`)
	p.click("button[form=many], #many button")
	p.reads("h1", "Decide on 2 items at once")
	p.reads(".card", "It was like this before.")
	s.picture(p, "many")
	p.click("button[value=reject]")
	p.reads(".flash", "2 items decided on.")
	p.sees("both are gone", `location.pathname === "/inbox" && !document.querySelector("[id^=w-suggestion], [id^=w-nack]")`)
}

// TestFourSessionsAreReadOnAPhone.
func TestFourSessionsAreReadOnAPhone(t *testing.T) {
	t.Parallel()
	needChromium(t)
	s := newShowcase(t, friendly)
	db, err := store.Open(t.Context(), filepath.Join(s.state, state.Database), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d := serveProject(t, s.scriptedProject, "127.0.0.1:0")
	p := newTab(t)
	p.signIn(s.scriptedProject, d)
	unlock, err := state.Lock(s.state) // as a run does; from now on, what this process starts is taken for a session's
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unlock(); err != nil {
			t.Error(err)
		}
	}()
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		run, err := tx.StartRun("", ralph.Limits{MaxSessions: 10, MaxTasks: 10, MaxSeconds: 3600, MaxCostUSD: 5, MaxDayCostUSD: 10, MaxMonthCostUSD: 10, Parallel: 4}, "bubblewrap")
		if err != nil {
			return err
		}
		for number := range 3 {
			id, err := tx.AddTask(ralph.Task{Title: "Reject empty URLs in the bookmark form, as RFC 3986 has it", Priority: 2}, "human")
			if err != nil {
				return err
			}
			start := store.Start{ID: fmt.Sprintf("cccccccc-0000-4000-8000-00000000000%d", number), Task: id, Run: run.ID, Number: number + 1, Snapshot: struct{}{}, Hashes: struct{}{}}
			if _, err := tx.StartSession(start); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	p.look(390, 844, "light")
	p.open(d.url)
	for number := range 4 {
		p.reads("main", fmt.Sprint(number+1, " of 4"))
	}
	p.reads("main", "4 of 4 is free")
	p.sees("it is as wide as the screen", "document.documentElement.scrollWidth <= 390")
	s.picture(p, "parallel-phone")
}

// picture leaves a picture of the page if pictures are asked for.
func (s *showcase) picture(p *tab, name string) {
	p.t.Helper()
	dir := os.Getenv("RALPH_TEST_SCREENSHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600)
	}
	if err != nil {
		p.t.Error(err)
	}
}
