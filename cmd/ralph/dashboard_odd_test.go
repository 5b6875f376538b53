package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"ralph"
	"ralph/store"
)

// TestOddTitlesFit: long words, right-to-left text and emoji make no page wider than its screen.
func TestOddTitlesFit(t *testing.T) {
	t.Parallel()
	s := newNightSite(t)
	var ids []int64
	s.tx(func(tx *store.Tx) error {
		for _, title := range []string{strings.Repeat("W", 500), "اختبار " + strings.Repeat("شبكة ", 40), strings.Repeat("👩‍👩‍👧‍👦", 40), "שלום (abc) 123"} {
			for _, status := range []ralph.Status{ralph.Pending, ralph.Proposed} {
				id, err := tx.AddTask(ralph.Task{Title: title, Status: status, Priority: 0, Description: title}, "human")
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
		}
		for _, task := range []int64{ids[0], 1} {
			if _, err := tx.AddComment(ralph.Comment{TaskID: task, Author: "ada", AuthorKind: ralph.ByHuman, Kind: ralph.Question, Body: strings.Repeat("w", 500)}); err != nil {
				return err
			}
		}
		return nil
	})
	for _, width := range []int64{1440, 720, 390} {
		s.look(width, 844, "light")
		for name, path := range map[string]string{
			"now": "/", "inbox": "/inbox", "tasks": "/tasks", "board": "/board", "task": fmt.Sprint("/tasks/", ids[0]), "rtl": fmt.Sprint("/tasks/", ids[2]),
			"item": fmt.Sprintf("/inbox?item=w-proposal-%d-0", ids[1]), "search": "/search?q=WWWWWW",
		} {
			s.open(s.url + path)
			s.sees("it is no error", `!document.body.matches(".page-problem")`)
			if wide := eval[int64](s.tab, "document.documentElement.scrollWidth"); wide > width {
				t.Errorf("%s is %d wide on a screen of %d", path, wide, width)
			}
			cut := eval[[]string](s.tab, `[...document.querySelectorAll("button, .badge, .decide, .rows .end")].filter((e) => { const r = e.getBoundingClientRect(); return r.width && (r.right > innerWidth + 1 || r.left < -1) && !e.closest(".scroll, .kinds") }).map((e) => e.outerHTML.slice(0, 160))`)
			for _, c := range cut {
				t.Errorf("%s at %d: off the screen: %s", path, width, c)
			}
			s.screen(fmt.Sprintf("odd-%s-%d", name, width))
		}
	}
}

// TestALargeInbox shows 2,000 things in pages, and decides on one of the last page.
func TestALargeInbox(t *testing.T) {
	t.Parallel()
	s := newNightSite(t)
	s.tx(func(tx *store.Tx) error {
		for i := range 2000 {
			if _, err := tx.AddTask(ralph.Task{Title: fmt.Sprintf("Suggested thing %d", i), Status: ralph.Proposed, Origin: ralph.ByAgent, Priority: 2}, "agent"); err != nil {
				return err
			}
		}
		return nil
	})
	s.open(s.url + "/")
	s.reads("#morning", "need you")
	s.open(s.url + "/inbox?show=decide&page=10")
	s.reads("#live", "live")
	rows := eval[int](s.tab, waitingRows)
	if rows != 200 {
		t.Errorf("the tenth page has %d rows", rows)
	}
	for range 2 {
		row := eval[string](s.tab, shownRow)
		s.press("a")
		s.sees("the next is shown", fmt.Sprintf("%[1]s && %[1]s !== %[2]q", shownRow, row))
		// Once the decision is sent, the page below moves up: this row counts, not the number of rows.
		s.sees("it waits no longer", fmt.Sprintf("!document.getElementById(%q)?.checkVisibility()", row))
	}
}

// TestAnItemThatIsGone while it is open, and the way back after a decision.
func TestAnItemThatIsGone(t *testing.T) {
	t.Parallel()
	s := newNightSite(t)
	s.open(s.url + "/inbox?item=w-amendment-49-1")
	s.reads("#live", "live")
	s.reads("#pane", "half of the feeds are Atom")
	s.tx(func(tx *store.Tx) error { return tx.RejectAmendment(1, "no", "bob") })
	s.reads("#pane", "This does not wait any more.")
	s.reads("#pane a", "TASK-49")
	s.press("a")
	s.press("j")
	s.sees("another is shown", shownRow)

	// back after a decision
	s.open(s.url + "/")
	s.reads("#live", "live")
	s.click(`#waits-h ~ .rows li[id^="w-tests"] a.to`)
	s.reads("#pane .file[open] .add", "assert.equal(limit, 2000);")
	s.reads("#live", "live")
	s.press("a")
	s.reads("#corner", "TASK-50: Approve")
	s.do("back", chromedp.NavigateBack())
	s.sees("Now is shown", `location.pathname === "/"`)
	// It may be sent a moment after the page was read.
	s.sees("it does not wait any more", `document.readyState === "complete" && !document.querySelector('li[id^="w-tests"]')`)
	s.do("forward", chromedp.NavigateForward())
	s.sees("the inbox is shown", `location.pathname === "/inbox"`)
	s.reads("#live", "live")
	s.sees("it is not offered again", `!document.querySelector('#pane form[action*="/comments/"][action$="/resolve"] [value=approve]') && !document.querySelector('li[id^="w-tests"]:not([hidden])')`)
}

// TestTheInboxWithoutAScript decides on an item.
func TestTheInboxWithoutAScript(t *testing.T) {
	t.Parallel()
	s := newNightSite(t)
	s.withoutScript()
	s.open(s.url + "/inbox?item=w-amendment-49-1")
	s.click(`#pane [value=approve]`)
	s.reads(".flash", "Approved A1: TASK-49 is changed.")
}
