package main

import (
	"fmt"
	"testing"
)

// TestHeldWorkIsDecidedWhereItIsSeen: the work for approval is open beside the buttons, in the inbox, among several and
// on top of the task's page, within the first screen of a desktop and of a phone.
func TestHeldWorkIsDecidedWhereItIsSeen(t *testing.T) {
	t.Parallel()
	needChromium(t)
	s := newNightSite(t)
	s.Files[s.Ended[50]+"/diffs"] = `{"files":[{"path":"src/dates.js","diff":"@@ -1 +1,2 @@\n a\n+b\n"},` +
		`{"path":"test/part50.test.js","diff":"@@ -1 +1 @@\n-utc <b>\n+local\u0000 <b>\n"}]}`
	inSight := func(selector string) string {
		return fmt.Sprintf(`[...document.querySelectorAll(%q)].length && [...document.querySelectorAll(%q)].every((e) => { const at = e.getBoundingClientRect(); return at.height > 0 && at.top >= 0 && at.bottom <= innerHeight })`, selector, selector)
	}
	for _, width := range []int64{1440, 390} {
		s.look(width, map[int64]int64{1440: 900, 390: 844}[width], "light")
		s.open(s.url + "/inbox?show=decide")
		s.reads("#rows .gist", "Approve changed tests: dates are UTC")
		s.click("#rows a.to")
		s.reads("#pane .file[open] .add", "+local<U+0000> <b>")
		s.sees("other files are folded", `document.querySelectorAll("#pane .file:not([open])").length === 1`)
		s.sees("the buttons are in sight", inSight("#pane .decide button"))
		s.screen(fmt.Sprint("held-inbox-", width))
		s.open(s.url + "/tasks/50")
		s.reads("main .file[open] .add", "+local<U+0000> <b>")
		s.sees("the buttons are on the first screen", inSight(".due .decide button"))
		s.sees("it is as wide as the screen", fmt.Sprintf("document.documentElement.scrollWidth <= %d", width))
		s.screen(fmt.Sprint("held-task-", width))
		names := eval[string](s.tab, `fetch("/inbox").then((a) => a.text()).then((t) => [...new DOMParser().parseFromString(t, "text/html").querySelectorAll("[id^='w-tests changed'] input")][0].value)`)
		s.open(s.url + "/inbox/many?item=" + names)
		s.reads("article .file[open] .add", "+local<U+0000> <b>")
		s.screen(fmt.Sprint("held-many-", width))
	}
	s.open(s.url + "/tasks/50")
	s.reads("#live", "live")
	s.click(".due button.primary")
	s.sees("it waits no longer", `!document.querySelector(".due")`)
	if got := s.task(50).Status; got == "needs_input" {
		t.Errorf("TASK-50 is %s", got)
	}
}
