package main

import (
	"fmt"
	"strings"
	"testing"
)

// A job is something that a person does in the dashboard.
type job struct {
	name  string
	most  int  // clicks and keys; typed words count as one, with the key that sends them
	phone bool // on a phone, without sideways scrolling
	do    func(h *hand)
	then  func(h *hand) // checks, and makes ready for the next job; may be nil
}

// A hand does jobs and counts its clicks and keys. Without a mouse, it walks to a row by j and to everything else by
// Tab, and presses Enter there.
type hand struct {
	*nightSite
	mouse bool
	times int
}

// TestTheJobsOfAMorning does a person's jobs, each from Now, with few clicks and keys, and again by the keyboard alone.
func TestTheJobsOfAMorning(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"usual, by hand", "usual, by the keyboard alone", "others, by hand", "others, by the keyboard alone"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			which, how, _ := strings.Cut(name, ", ")
			mouse := how == "by hand"
			s := newNightSite(t)
			all := jobs(s)
			if which == "others" {
				if err := s.Plan(); err != nil {
					t.Fatal(err)
				}
				all = rarer()
			}
			for _, j := range all {
				s.look(1280, 900, "light")
				if j.phone {
					s.look(390, 844, "light")
				}
				s.open(s.url + "/")
				s.reads("#live", "live")
				h := &hand{nightSite: s, mouse: mouse}
				j.do(h)
				t.Logf("%s: %d", j.name, h.times)
				if mouse && h.times > j.most {
					t.Errorf("%s: %d clicks and keys, want at most %d", j.name, h.times, j.most)
				}
				if wide := eval[bool](s.tab, "document.documentElement.scrollWidth > innerWidth || scrollX > 0"); wide {
					t.Errorf("%s: the page is wider than the screen", j.name)
				}
				if j.then != nil {
					j.then(h)
				}
			}
		})
	}
}

// inSight returns an expression for whether an element is on the screen as it is scrolled.
func inSight(selector string) string {
	return fmt.Sprintf(`(() => {
		const at = document.querySelector(%q)?.getBoundingClientRect();
		return at?.height > 0 && at.top >= 0 && at.bottom <= innerHeight && at.left >= 0 && at.right <= innerWidth;
	})()`, selector)
}

func jobs(s *nightSite) []job {
	failed := func(n int) string { return fmt.Sprintf("w-failed-%d-0", s.Failed[n]) }
	held := `#waits-h ~ .rows li[id^="w-tests"] a.to`
	reading := []job{
		{"what happened tonight", 0, false, func(h *hand) {
			for _, want := range []string{"12 merged", "10 proved · 2 unproved", "15 failed", "12 commits on main"} {
				h.reads("#morning", want)
			}
		}, nil},
		{"why did this fail", 2, false, func(h *hand) {
			h.click("#" + failed(7) + " a.to")
			h.reads("#pane .item .output", "'zone' is not defined")
			h.reads("#pane .item", "and 4 alike")
			h.sees("the reason is on the first screen", inSight("#pane .item .output"))
		}, nil},
		{"find by a word of the title", 2, false, func(h *hand) { h.finds("totp", "Two-factor sign-in by TOTP") }, nil},
		{"find a flag by its words", 2, false, func(h *hand) { h.finds("ssrf", "fetch_title() follows redirects") }, nil},
		{"go to a flag by its words", 3, false, func(h *hand) {
			h.finds("ssrf", "fetch_title() follows redirects")
			h.click(`#found a[href*="#c"]`)
			h.reads("#timeline", "follows redirects to 169.254.169.254")
		}, nil},
		{"what changed, and what proves it", 1, false, func(h *hand) {
			h.reads("main", "red → green")
			h.click(`[aria-labelledby=last-h] a[href$="#diff-h"]`)
			h.reads(".diff .add", "exports.limit = 2000;")
			h.reads("main", "red before, green now")
		}, nil},
		{"is it stuck", 1, false, func(h *hand) {
			h.click(`.running a[href^="/sessions/"]`)
			h.reads("main", "running for")
			h.reads("#stream li", "The tests pass; I look at the edge cases now.")
		}, nil},
		{"what did it cost, and why", 3, false, func(h *hand) {
			h.click("#spent-h a")
			h.reads("main .lead", "for each of 29 merged tasks")
			h.click("[aria-labelledby=by-task-h] tbody tr:first-child a")
			h.reads("main .also", "3 sessions, $0.")
			h.click("main tbody tr:first-child a")
			h.reads(".verdict", "of $4.96 ·")
			h.reads("main .lead", "the agent stopped without a verdict")
		}, nil},
		{"what is in a column", 2, false, func(h *hand) {
			h.click("#spent-h a")
			h.click(".chart svg a:last-of-type")
			h.reads("main .also", "the most expensive first")
		}, nil},
	}
	deciding := []job{
		{"what needs me now", 1, false, func(h *hand) {
			h.reads("#band", "npm publish --tag next")
			h.sees("the title says so", `document.title.startsWith("(1) ralph")`)
			h.click("#band button[value=deny]")
			h.sees("it goes on", `!document.querySelector("#band .now")`)
		}, nil},
		{"approve a held change after reading it", 2, false, func(h *hand) {
			h.click(held)
			h.reads("#pane .file[open] .add", "assert.equal(limit, 2000);")
			h.reads("#live", "live")
			h.key("a")
			h.reads("#corner", "TASK-50: Approve")
		}, takenBack},
		{"approve a held change on a phone", 3, true, func(h *hand) {
			h.click(held)
			h.reads("#pane .file[open] .add", "assert.equal(limit, 2000);")
			h.reads("#live", "live")
			h.sees("the decision is in sight", inSight("#pane .decide [data-key=a]"))
			h.click("#pane .decide [data-key=a]")
			h.reads("#corner", "TASK-50: Approve")
		}, takenBack},
		{"answer a question", 4, false, func(h *hand) {
			h.key("g")
			h.key("i")
			h.inbox()
			h.key("j")
			h.sees("the question is shown", `document.querySelector("#pane article.item")?.dataset.row.startsWith("w-question")`)
			h.key("1")
			h.reads("#corner", "TASK-2: yes")
		}, takenBack},
		{"follow a session and tell it something", 2, false, func(h *hand) {
			h.click(`.running a[href^="/sessions/"]`)
			h.reads("#stream li", "The tests pass; I look at the edge cases now.")
			h.sees("it can be told", `document.activeElement.id === "say-text"`)
			h.types("mind IPv6")
			h.pressWith(control, "\r")
			h.reads(".flash", "is told at once")
		}, nil},
		{"stop one", 3, false, func(h *hand) {
			h.click(`.running a[href^="/sessions/"]`)
			h.click(".sure summary")
			h.click(".sure button")
			h.reads(".flash", "is being stopped")
		}, nil},
		{"stop all, and not after all", 2, false, func(h *hand) {
			h.click(`form[action="/run/stop"] button`)
			h.reads("main", "Stop now")
			h.click(`main form[action="/run/resume"] button`)
			h.reads("main", "Pause")
		}, nil},
		{"undo", 2, false, func(h *hand) {
			h.click(fmt.Sprintf(`[aria-label="Undo TASK-%d"]`, s.Merged[len(s.Merged)-1]))
			h.click("#task-act form[action$=undo] button.danger")
			h.reads(".flash", "is being undone")
		}, func(h *hand) {
			if got, want := <-s.undone, s.Merged[len(s.Merged)-1]; got != want {
				h.t.Errorf("TASK-%d is undone, want TASK-%d", got, want)
			}
		}},
		{"order", 1, false, func(h *hand) {
			second := eval[string](s.tab, `document.querySelector("#queue li:nth-child(2)").id`)
			h.click("#queue li:nth-child(2) button")
			h.sees("the second is the first", fmt.Sprintf(`document.querySelector("#queue li:first-child").id === %q`, second))
		}, nil},
		{"add", 2, false, func(h *hand) {
			h.key("n")
			h.sees("it can be written", `document.activeElement.id === "title0"`)
			h.types("A sitemap\r")
			h.reads("main table", "A sitemap")
		}, nil},
		{"retry all failures of one cause", 1, false, func(h *hand) {
			h.click("#" + failed(12) + " button")
			h.reads("#corner", "Retry 3")
		}, func(h *hand) {
			h.open(h.url + "/inbox") // it is sent when the page is left
			h.sees("they wait no longer", fmt.Sprintf("!document.getElementById(%q)", failed(12)))
		}},
		{"answer ten things", 12, false, func(h *hand) {
			h.key("g")
			h.key("i")
			h.inbox()
			before := eval[int](s.tab, waitingRows)
			for range 10 {
				row := eval[string](s.tab, shownRow)
				key := "a"
				if strings.HasPrefix(row, "w-question") {
					key = "1"
				}
				h.key(key)
				h.sees("the next is shown after "+row, fmt.Sprintf("%s !== %q", shownRow, row))
			}
			if after := eval[int](s.tab, waitingRows); after != before-10 {
				h.t.Errorf("%d of %d things wait after ten decisions", after, before)
			}
		}, nil},
	}
	return append(reading, deciding...)
}

// takenBack undoes the decision that a job has made.
func takenBack(h *hand) {
	h.press("u")
	h.sees("it is taken back", `!document.querySelector("#corner p")`)
}

// rarer are jobs of a night with a plan.
func rarer() []job {
	return []job{
		{"change what a task asks for", 4, false, func(h *hand) {
			h.click("#queue li:first-child a.to")
			h.click(`[aria-labelledby=text-h] details.reply:first-child > summary`)
			h.sees("it can be written", `document.querySelector("main form[action$='/edit']").checkVisibility()`)
			h.click(`main form[action$="/edit"] [name=title]`)
			h.types(" at once")
			h.pressWith(control, "\r")
			h.reads(".flash", "is changed")
		}, nil},
		{"add what one knows", 5, false, func(h *hand) {
			h.key("g")
			h.key("h")
			h.click(`.beside a[href="/learnings"]`)
			h.click("#l-text")
			h.types("Mind the clock")
			h.pressWith(control, "\r")
			h.reads("article .body", "Mind the clock")
		}, nil},
		{"approve a part of a plan", 4, false, func(h *hand) {
			h.click(`#waits-h ~ .rows li[id^="w-plan"] a.to`)
			h.reads("#live", "live")
			h.click(".plan li:nth-child(3) .take input")
			h.click("#pane button[value=approve]:not([formaction])")
			h.reads("#corner", "Approve chosen")
		}, takenBack},
		{"the failures alone, and cancel one reason", 4, false, func(h *hand) {
			h.key("g")
			h.key("i")
			h.inbox()
			h.click(`.kinds a[href="/inbox?show=failed"]`)
			h.sees("failures alone", `[...document.querySelectorAll("#rows li")].every((li) => li.id.startsWith("w-failed"))`)
			h.reads("#live", "live")
			h.key("d")
			h.reads("#corner", "Cancel")
		}, takenBack},
		{"pause and resume", 2, false, func(h *hand) {
			h.click(`form[action="/run/pause"] button`)
			h.click(`form[action="/run/resume"] button`)
			h.reads("main", "Pause")
		}, nil},
	}
}

// Expressions about the inbox: the row of the item that is shown, and the number of rows.
const (
	shownRow    = `document.querySelector("#pane article.item")?.dataset.row`
	waitingRows = `document.querySelectorAll("#rows li:not([hidden])").length`
)

// inbox waits for the inbox.
func (h *hand) inbox() {
	h.t.Helper()
	h.sees("the inbox is live", `location.pathname === "/inbox" && document.getElementById("live")?.textContent.includes("live") && `+shownRow)
}

// finds types words into the search, and sees a result without any further key.
func (h *hand) finds(words, result string) {
	h.t.Helper()
	h.key("/")
	h.types(words)
	h.reads("#found .rows", result)
}

// click presses an element that can be seen and reached. The page does it in one step: one that brings itself up to date
// would move it away from under a pointer. Without a mouse, keys do it.
func (h *hand) click(selector string) {
	h.t.Helper()
	if !h.mouse {
		h.walk(selector)
		switch {
		case eval[bool](h.tab, `document.activeElement.matches("[type=checkbox]")`):
			h.key(" ")
		case !eval[bool](h.tab, `document.activeElement.matches("input, textarea")`): // there it is written
			h.key("\r")
		}
		return
	}
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

// walk moves the focus to an element: by j to a row's link, and else by Tab.
func (h *hand) walk(selector string) {
	h.t.Helper()
	h.sees("there is "+selector, fmt.Sprintf("document.querySelector(%q)", selector))
	key := "\t"
	if eval[bool](h.tab, fmt.Sprintf(`document.querySelector(%q).matches("main .rows a.to, main tbody th a")`, selector)) {
		key = "j"
	}
	for range 150 {
		h.key(key)
		if eval[bool](h.tab, fmt.Sprintf("document.querySelector(%q) === document.activeElement", selector)) {
			return
		}
	}
	h.t.Fatalf("no key leads to %s", selector)
}

func (h *hand) key(key string) {
	h.t.Helper()
	h.times++
	h.press(key)
}

// types writes words where the focus is.
func (h *hand) types(words string) {
	h.t.Helper()
	h.times++
	h.press(words)
}
