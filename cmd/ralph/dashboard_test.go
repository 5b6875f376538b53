package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// talkative is an agent that asks, suggests and proposes an amendment.
const talkative = `task Divide
session 1
  call ask {"question": "What is 1/0?", "options": ["an error", "infinity"], "preferred": "an error", "blocking": true}
  call suggest {"what": "Test the multiplication", "kind": "new_task", "why": "Nobody does."}
  call learned {"text": "Numbers are whole here.", "kind": "discovery", "scope": "project"}
  call flag {"what": "The README names no operator.", "severity": "warning", "category": "stale"}
  call partial {"summary": "Looked around.", "remaining": "All of it."}
`

// TestTheDashboardInABrowser clicks through people's jobs.
func TestTheDashboardInABrowser(t *testing.T) {
	t.Parallel()
	needChromium(t)
	s := newScriptedProject(t, talkative, "")
	s.ralph(0, "task", "add", "Divide")
	s.ralph(4, "run")
	s.ralph(0, "amendment", "propose", "1", "--patch", `{"title":"Divide whole numbers","contracts":{"acceptance":["1/0 is an error"]}}`, "--rationale", "it was not clear")
	d := serveProject(t, s, "127.0.0.1:0")
	p := newTab(t)

	p.open(d.url)
	p.reads("h1", "Sign in")
	p.signIn(s, d)
	p.reads("h1", "Now")
	p.reads("#live", "live")

	t.Log("filtering the timeline")
	p.open(d.url + "/tasks/1")
	p.reads(".card.red", "names no operator")
	p.choose("#verb", "ask")
	p.click(".filters button")
	p.sees("only the question is left", `document.querySelectorAll("#timeline .card").length === 1 && location.search.includes("verb=ask")`)
	p.reads("#timeline .card.yellow", "What is 1/0?")
	p.reads(".choice.preferred", "an error")

	t.Log("answering the question with an option, by the keyboard")
	p.open(d.url + "/tasks/1?verb=ask")
	p.press("\t")
	p.sees("the first stop leads to the content", `document.activeElement.className === "skip"`)
	p.press("\r")
	p.sees("the content has the focus", `document.activeElement.id === "main"`)
	for range 30 {
		if p.press("\t"); eval[bool](p, `document.activeElement.matches(".choice.preferred")`) {
			break
		}
	}
	p.press("\r")
	p.reads(".flash", "Answered. TASK-1 is queued again.")
	p.reads("#timeline .card.signal .outcome", "an error")

	t.Log("approving the amendment and the suggestion in the inbox")
	p.click(`nav a[href="/inbox"]`)
	p.reads(".diff .add", "Divide whole numbers")
	eval[bool](p, `window.stays = true`)
	p.click(`form[action="/amendments/1/decide"] button[value="approve"]`)
	p.reads("#corner", "TASK-1: Approve")
	p.write("#pane textarea[name=text]", "it names them now")
	p.click("#pane button.primary")
	p.reads("#pane .item", "Test the multiplication")
	p.click(`button[formaction="/tasks/2/approve"]`)
	p.reads(".empty", "Nothing waits for you.")
	p.sees("no decision has loaded the page anew", `window.stays === true`)
	if out := s.ralph(0, "task", "list"); !strings.Contains(out, "TASK-2  queued") || !strings.Contains(out, "Divide whole numbers") {
		t.Errorf("the queue is\n%s", out)
	}

	t.Log("the stream goes on after the server was started anew")
	p.open(d.url + "/tasks/1")
	p.reads("#live", "live")
	addr := d.addr(t)
	d.stop(t, 0)
	p.reads("#live", "reconnecting")
	s.ralph(0, "comment", "1", "said while nobody listened")
	serveProject(t, s, addr)
	p.reads("#timeline .card", "said while nobody listened")
	p.reads("#live", "live")
	s.ralph(0, "comment", "1", "said afterwards")
	p.reads("#timeline .card", "said afterwards")
	p.reads("header button", "Sign out") // the browser is still known

	t.Log("nothing jumps while the page is brought up to date")
	p.open(d.url)
	p.reads("#live", "live")
	s.ralph(0, "task", "add", "One more")
	p.reads("#queue-h ~ ol", "One more")
	shifted := eval[float64](p, `new Promise((done) => { new PerformanceObserver((l) => done(l.getEntries().reduce((n, e) => n + e.value, 0))).observe({type: "layout-shift", buffered: true}); setTimeout(() => done(0), 300) })`)
	if shifted > 0.05 {
		t.Errorf("the page shifted by %.3f", shifted)
	}

	t.Log("what is being written stays when news comes")
	p.open(d.url + "/tasks/1")
	p.write("#say-text", "half a thou")
	s.ralph(0, "comment", "1", "and once more")
	p.reads("#timeline .card", "and once more")
	p.write("#say-text", "ght")
	p.click("#say button")
	p.reads("#timeline .card.human", "half a thought")

	s.ralph(0, "comment", "1", "waits for the contract", "--kind", "blocker", "--rationale", "it is not signed")
	p.reads("#timeline .card", "waits for the contract")
	blocker := eval[string](p, `[...document.querySelectorAll("#timeline .card")].find((c) => c.textContent.includes("waits for the contract")).id.slice(1)`)
	p.write("#d"+blocker, "it is sig")
	s.ralph(0, "resolve", blocker, "somebody else was faster")
	p.reads("#c"+blocker+" .outcome", "somebody else was faster")
	if kept := eval[string](p, `document.querySelector("#d`+blocker+`").value`); kept != "it is sig" {
		t.Errorf("what was being written is %q", kept)
	}
	p.click("#c" + blocker + " .decide button")
	p.reads(".flash.bad", "decided already")
	p.sees("what was written is still there", `[...document.querySelectorAll("textarea")].some((e) => e.value === "it is sig")`)

	t.Log("answering and reading without a script")
	p.withoutScript()
	p.open(d.url + "/tasks/2")
	p.write("#say-text", "typed without a script")
	p.click("#say button")
	p.reads(".flash", "is on TASK-2")
	p.reads("#timeline .card.human", "typed without a script")
}

// TestALiveSessionIsSteeredInABrowser: the page follows the agent, and a comment typed there reaches it.
func TestALiveSessionIsSteeredInABrowser(t *testing.T) {
	t.Parallel()
	needChromium(t)
	s := newScriptedProject(t, `task *
  say I look around
  write a.txt "x\n"
  run sh -c 'until test -f "$RALPH_ROOT/.git/go"; do sleep 0.05; done'
turn
  say I have heard it
  call done {"summary": "Did it, with IPv6."}
`, "")
	s.ralph(0, "task", "add", "Watched")
	d := serveProject(t, s, "127.0.0.1:0", "run", "--serve", "--daemon")
	p := newTab(t)
	p.signIn(s, d)
	p.open(d.url)
	p.reads(".running", "Watched")
	p.click(`.running a[href^="/sessions/"]`)
	p.reads("#stream li", "I look around")
	p.reads("#stream li", "a.txt")
	p.reads(".way [aria-current]", "Implementing")
	p.write("#say-text", "mind IPv6")
	p.click("#say button")
	p.reads(".flash", "is told at once")
	p.reads("main", "The session was told")
	if err := os.WriteFile(filepath.Join(s.dir, ".git", "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.reads("#stream li", "mind IPv6")
	p.reads("#stream li", "I have heard it")
	p.reads("#stream li", "Did it, with IPv6.")
	p.reads("main .lead", "Merged")
	d.stop(t, 130)
	if out := s.ralph(0, "timeline", "1"); !strings.Contains(out, "the running session was told") {
		t.Errorf("the comment was not delivered:\n%s", out)
	}
}
