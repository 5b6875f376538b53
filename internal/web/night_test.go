package web_test

import (
	"fmt"
	"html"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"ralph/internal/pgtest"
	"ralph/internal/web"
	"ralph/internal/web/webtest"
	"ralph/signals"
	"ralph/store"
)

// newNight returns a dashboard over a rich night.
func newNight(t testing.TB) (*site, *webtest.Night) {
	t.Helper()
	s, n := newSite(t), &webtest.Night{}
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{Now: n.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := n.Fill(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	s.db, s.server.Store, s.files = db, db, n.Files
	return s, n
}

// TestTheFiguresOfANight: the overview has the night's result, open items by reason, and the last merges.
func TestTheFiguresOfANight(t *testing.T) {
	t.Parallel()
	s, n := newNight(t)
	if len(n.Merged) != 29 || len(n.Failed) != 15 || len(n.Running) != 2 {
		t.Errorf("%d merged, %d failed, %d running", len(n.Merged), len(n.Failed), len(n.Running))
	}
	b := s.browser().signIn()
	page := b.get("/")
	has(t, unlinked(page), "33 tasks, $9.23: 12 merged (10 proved, 2 unproved), 15 failed, 2 need you, 4 not finished",
		"2 runs: 50 tasks, $11.88: 29 merged (25 proved, 4 unproved), 15 failed, 2 need you, 4 not finished",
		"24 files, 12 commits on main", "<b>+72</b>", "(1) ralph", "blocking, security", "red before, green now: limit of part", "2 of 4</span>", "verifying")
	has(t, b.get("/tasks?q=totp"), "Two-factor sign-in by TOTP")
	for _, path := range []string{"/inbox", "/tasks", "/runs", "/tasks/3", "/sessions"} {
		has(t, b.get(path), "npm publish --tag next")
	}
}

// TestANumberLeadsToItsItems, row by row, at the first visit and four hours after one.
func TestANumberLeadsToItsItems(t *testing.T) {
	t.Parallel()
	s, n := newNight(t)
	b := s.browser().signIn()
	b.get("/")
	var mark string
	for name := range b.cookies {
		if strings.HasPrefix(name, "ralph_looked_") {
			mark = name
		}
	}
	counts := map[string][]string{}
	for name, looked := range map[string]string{
		"the first time": "", "4 hours ago": fmt.Sprint("0-", n.Now().Add(-4*time.Hour-20*time.Minute).Unix()),
	} {
		b.cookies[mark] = looked
		page := b.get("/")
		_, line, _ := strings.Cut(page, `id="morning"`)
		line, _, _ = strings.Cut(line, "</ul>")
		for _, to := range regexp.MustCompile(`<a href="([^"]+)"><b[^>]*>\$?([\d.]+)</b>([^<]*)</a>`).FindAllStringSubmatch(line, -1) {
			counts[to[3]] = append(counts[to[3]], to[2])
			if to[1] == "/inbox" {
				continue // tasks need a person, for as many things as stand there
			}
			if got := b.rows(html.UnescapeString(to[1]), to[2]); got != to[2] {
				t.Errorf("%s: %s%s leads to %s, which has %s", name, to[2], to[3], to[1], got)
			}
		}
	}
	for _, what := range []string{" merged", " failed", " need you", ""} {
		if len(counts[what]) == 0 {
			t.Errorf("%q is not counted, or is no link: %q", what, counts)
		}
	}
	for _, what := range []string{""} {
		if c := counts[what]; len(c) == 2 && c[0] == c[1] {
			t.Errorf("%q is the same for both: %q", what, c)
		}
	}
}

// rows counts the rows of a list over all of its pages; for money it returns the cost of the list's sessions.
func (b *browser) rows(path, want string) string {
	b.t.Helper()
	one := regexp.MustCompile(map[string]string{
		"/runs": `<tr id="r`, "/tasks": `<tr id="t`, "/sessions": `<tr id="s`, "/inbox": `<li id="w-|<article class="now" id="n\d`, // an item of the band is not a row
	}[strings.Split(path, "?")[0]])
	n := 0
	for path != "" {
		page := b.get(path)
		if strings.Contains(want, ".") {
			_, usd, _ := strings.Cut(page, " sessions, $")
			usd, _, _ = strings.Cut(usd, "<")
			return usd
		}
		n += len(one.FindAllString(page, -1))
		for _, times := range regexp.MustCompile(`class="times">×(\d+)<`).FindAllStringSubmatch(page, -1) {
			further, _ := strconv.Atoi(times[1])
			n += further - 1
		}
		path = ""
		if next := regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(page); next != nil {
			path = html.UnescapeString(next[1])
		}
	}
	return strconv.Itoa(n)
}

// TestARunsPageBeginsWithItsResult. Then it has the reasons of failed tasks, one a row.
func TestARunsPageBeginsWithItsResult(t *testing.T) {
	t.Parallel()
	s, _ := newNight(t)
	page := s.browser().get("/runs/2")
	_, first, _ := strings.Cut(page, "<h1")
	first, _, _ = strings.Cut(first, "</p>")
	has(t, first, `<a href="/tasks?run=2&amp;status=failed">15 failed</a>`)
	has(t, unlinked(first), "33 tasks, $9.23: 12 merged (10 proved, 2 unproved), 15 failed, 2 need you, 4 not finished")
	has(t, page, "changed: 12 commits on main, 24 files (&#43;72 −12)", "×7", "×5", "×3", "63 of 120 sessions", "$9.23 of $20.00")
	has(t, unlinked(s.browser().get("/runs/1")), "<h1>Run 1 ", "17 tasks", "17 merged", "ended: the limit of $2.60 per run is reached ($2.65 spent)", "$2.65 of $2.60")
}

// TestSinceYouLooked: a mark of the browser says when the visit before this one ended.
func TestSinceYouLooked(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	for name, tt := range map[string]struct {
		mark       string
		from, next string
	}{
		"never":            {"", "", "0-1000000"},
		"a moment ago":     {"0-999900", "", "0-1000000"},
		"the same visit":   {"900000-999900", "900000", "900000-1000000"},
		"after a night":    {"900000-960000", "960000", "960000-1000000"},
		"the first return": {"0-960000", "960000", "960000-1000000"},
		"no mark":          {"rm -rf", "", "0-1000000"},
		"from tomorrow":    {"2000000-2000000", "", "0-1000000"},
	} {
		from, next := web.Since(tt.mark, now)
		got := ""
		if !from.IsZero() {
			got = fmt.Sprint(from.Unix())
		}
		if got != tt.from || next != tt.next {
			t.Errorf("%s: since %q, keeps %q", name, got, next)
		}
	}
}

// TestTheBoardShowsWhyATaskWaits, since when, its cost, and its session. Ended tasks are only counted.
func TestTheBoardShowsWhyATaskWaits(t *testing.T) {
	t.Parallel()
	s, n := newNight(t)
	page := s.browser().get("/board")
	card := func(id int64) string {
		_, card, ok := strings.Cut(page, fmt.Sprintf(`<li id="t%d"`, id))
		if !ok {
			t.Fatalf("TASK-%d is not on the board", id)
		}
		card, _, _ = strings.Cut(card, "</li>")
		return card
	}
	has(t, card(2), "waits for an answer", "4 h", "$0.23", "1 attempt")
	has(t, card(1), `<span class="lane">`, "Stands still", "18 min")
	has(t, card(49), `<span class="lane">`, "Implementing", "12 min")
	for _, path := range []string{"/tasks/1", "/sessions", "/sessions/" + n.Running[0]} {
		has(t, s.browser().get(path), `</svg> Stands still</span>`)
	}
	has(t, card(55), "verifying", "$0.")
	has(t, card(n.Failed[0]), "the fixture server on :8080 does not answer")
	if strings.Contains(page, fmt.Sprintf(`id="t%d"`, n.Merged[0])) {
		t.Error("what is completed has cards")
	}
	has(t, page, "/tasks?status=merged", `<span class="n">29</span>`)
}

// TestAClaimIsNoVerdict: an agent's words on its own work are separate from ralph's findings, and have no colour.
func TestAClaimIsNoVerdict(t *testing.T) {
	t.Parallel()
	s, n := newNight(t)
	b := s.browser().signIn()
	refused, merged := n.Failed[8], n.Merged[3]
	page := b.get(fmt.Sprint("/tasks/", refused))
	has(t, page, `<div class="claim"><div class="md"><p>all green here</p>`, "Not accepted</span> done was refused: <code>npm run lint</code> exits 1")
	if strings.Contains(page, `card signal green`) {
		t.Error("a done that was refused is green")
	}
	has(t, b.get(fmt.Sprint("/tasks/", merged)), "Checked</span> <code>npm test</code>")
	page = b.get("/sessions/" + n.Ended[refused])
	has(t, page, "Not merged</span> done was refused", `<dd class="md claim"><p>all green here</p>`, "Retry, about $0.14", "Tell the next session")
	if strings.Contains(page, "**Done") {
		t.Error("the claim is shown as Markdown's source")
	}
	// Of two dones of a session, the first was refused, and its agent was told why.
	running := n.Running[1]
	s.say(49, running, signals.Done{Summary: "the first"})
	s.write(func(tx *store.Tx) error { return tx.NoteRefusal(running, "`npm test` exits 2") })
	s.say(49, running, signals.Done{Summary: "the second"})
	has(t, b.get("/tasks/49"), "Refused</span> <code>npm test</code> exits 2; its agent was told", "Not checked yet</span>")
	has(t, b.get("/sessions/"+n.Ended[merged]), "Merged</span> done and verified")
}
