package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"ralph"
	"ralph/internal/state"
	"ralph/store"
)

// TestAPausedAgentInABrowser is first on every page, comes and goes while somebody writes, and is answered there.
func TestAPausedAgentInABrowser(t *testing.T) {
	t.Parallel()
	needChromium(t)
	s := newShowcase(t, "An ordinary text.")
	db, err := store.Open(t.Context(), filepath.Join(s.state, state.Database), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ask := func(command string) (id int64) {
		t.Helper()
		id, err := db.AddPermission(t.Context(), ralph.Permission{
			TaskID: 1, SessionID: s.running, Tool: "Bash", Input: `{"command":"` + command + `"}`, Decision: "ask", Expires: ralph.At(time.Now().Add(27 * time.Minute)),
		})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	answer := func(id int64) {
		t.Helper()
		if err := db.Tx(t.Context(), func(tx *store.Tx) error { return tx.AnswerPermission(id, true, "", "ada") }); err != nil {
			t.Fatal(err)
		}
	}
	answer(1) // of the showcase
	d := serveProject(t, s.scriptedProject, "127.0.0.1:0")
	p := newTab(t)
	p.signIn(s.scriptedProject, d)
	pages := []string{"/", "/board", "/tasks", "/tasks/2", "/inbox", "/sessions", "/sessions/" + s.ended, "/learnings", "/features", "/runs", "/runs/1", "/charts"}
	for i, page := range pages {
		p.open(d.url + page)
		p.sees("the page follows", `document.getElementById("live").textContent === "live"`)
		id := ask(fmt.Sprintf("npm publish %d", i))
		p.sees("the band is there", fmt.Sprintf(`document.querySelector("#band .now pre")?.textContent.includes("npm publish %d")`, i))
		p.sees("the title counts it", `document.title.startsWith("(1) ralph")`)
		p.sees("its time runs", `/^2[67]:\d\d$/.test(document.querySelector("#band [data-left]").textContent)`)
		answer(id)
		p.sees("the band is gone", `!document.querySelector("#band .now") && !document.title.startsWith("(")`)
	}

	// After a comment the transcript stays where it is, and a text in progress stays too.
	p.open(d.url + "/sessions/" + s.running)
	p.write("main textarea[name=text]", "the first")
	p.click("main form[action$='/comment'] button")
	p.reads(".flash", "Comment")
	p.do("write", chromedp.SendKeys(chromedp.CSS("main textarea[name=text]"), "half a th", chromedp.NodeVisible))
	eval[bool](p, `(() => { window.field = document.activeElement; window.at = field.getBoundingClientRect().top; window.list = document.getElementById("stream"); return true })()`)
	id := ask("npm publish --tag next")
	p.sees("the band is there", `!!document.querySelector("#band .now")`)
	p.press("o")
	p.press("u")
	if !eval[bool](p, `document.activeElement === window.field && window.field.value === "half a thou" && document.getElementById("stream") === window.list`) {
		t.Error("the page took the field away from under the hands")
	}
	if moved := eval[float64](p, `Math.abs(window.field.getBoundingClientRect().top - window.at)`); moved > 2 {
		t.Errorf("the field has moved by %.0f pixels", moved)
	}
	if folder := os.Getenv("RALPH_TEST_SCREENSHOTS"); folder != "" {
		for _, width := range []int64{1440, 390} {
			for _, scheme := range []string{"light", "dark"} {
				p.look(width, 900, scheme)
				shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("band-%d-%s.png", width, scheme)), shot, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		p.look(1280, 900, "light")
	}
	p.click("#band button[value=deny]")
	p.sees("the band is gone", `!document.querySelector("#band .now")`)
	if !eval[bool](p, `window.field.isConnected && window.field.value === "half a thou"`) {
		t.Error("the answer reloaded the page")
	}
	if err := db.View(t.Context(), func(tx *store.Tx) error {
		got, err := tx.Permission(id)
		if got.Decision != "deny" {
			t.Errorf("it is decided %q", got.Decision)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestNothingIsDecidedOnBehindAScrollBar, which some systems do not show.
func TestNothingIsDecidedOnBehindAScrollBar(t *testing.T) {
	t.Parallel()
	needChromium(t)
	s := newShowcase(t, "| a |\n|---|\n| `b|c` |\n"+strings.Repeat("a line\n", 100)+"the end")
	d := serveProject(t, s.scriptedProject, "127.0.0.1:0")
	p := newTab(t)
	p.signIn(s.scriptedProject, d)
	for _, page := range []string{"/inbox", "/tasks/1"} {
		p.open(d.url + page)
		p.sees("long texts are there", `[...document.querySelectorAll("main pre, main .whole")].some(e => e.textContent.includes("the end") && e.clientHeight > 500)`)
		if n := eval[int](p, `[...document.querySelectorAll(".md pre, .item pre, .whole")].filter(e => e.scrollHeight > e.clientHeight + 1).length`); n > 0 {
			t.Errorf("on %s %d texts scroll", page, n)
		}
	}
}

// TestAHiddenTabKeepsItsTitleTrue, without a stream; it is brought up to date when it is seen again.
func TestAHiddenTabKeepsItsTitleTrue(t *testing.T) {
	t.Parallel()
	s := newNightSite(t)
	s.begins(`(() => {
		const real = setInterval;
		setInterval = (f, ms) => real(f, ms === 20000 ? 50 : ms);
		let hidden = false;
		Object.defineProperty(document, "hidden", { get: () => hidden });
		document.hide = (is) => { hidden = is; document.dispatchEvent(new Event("visibilitychange")); };
	})()`)
	s.open(s.url + "/")
	s.reads("#live", "live")
	s.sees("the title has the session that stands still", `document.title.startsWith("(1) ralph")`)
	eval[bool](s.tab, "document.hide(true), true")
	s.reads("#live", "paused")
	s.tx(func(tx *store.Tx) error {
		asked, err := tx.InboxOf("permission")
		if err == nil {
			err = tx.AnswerPermission(asked[0].Ref.ID, false, "", "bob")
		}
		return err
	})
	s.sees("the title has it no longer", `!document.title.startsWith("(1)")`)
	if !eval[bool](s.tab, `!!document.querySelector("#band .now")`) {
		t.Error("a hidden page is brought up to date")
	}
	eval[bool](s.tab, "document.hide(false), true")
	s.sees("the band is up to date", `!document.querySelector("#band .now")`)
}
