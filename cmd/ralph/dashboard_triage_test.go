package main

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"ralph"
	"ralph/internal/inbox"
	"ralph/signals"
	"ralph/store"
)

// walk opens rows of the open inbox, by a step in the page, and returns the faults. The pane has to show that very
// item, its forms have to be about it, and the list has to stay as it was.
const walk = `(async (how) => {
	const params = (to) => { const q = new URL(to, location.href).searchParams; q.delete("item"); return String(q); };
	const list = params(location.href), wrong = [];
	const row = (doc) => doc.querySelector("#pane article.item")?.dataset.row;
	const check = (li, doc, address) => {
		const [, kind, task, ref] = li.id.match(/^w-(.*)-(\d+)-(\d+)$/), names = li.querySelector(".pick input")?.value;
		if (row(doc) !== li.id) wrong.push(li.id + " shows " + row(doc));
		if (params(address) !== list) wrong.push(li.id + " leads to " + address);
		if (doc.querySelectorAll("#rows li").length !== count) wrong.push(li.id + ": other rows");
		for (const f of doc.querySelectorAll("#pane form")) {
			const about = new URL(f.action, location.href).pathname.split("/").includes(ref === "0" ? task : ref)
				|| f.action.includes("/tasks/" + task + "/") || names && [...f.querySelectorAll("[name=item]")].some((i) => names.includes(i.value));
			if (!about && kind !== "plan") wrong.push(li.id + " posts to " + f.action);
		}
	};
	const all = [...document.querySelectorAll("#rows li")], count = all.length;
	const shown = (id) => new Promise((done) => {
		const until = Date.now() + 20000;
		const look = () => row(document) === id || Date.now() > until ? done() : setTimeout(look, 5);
		look();
	});
	for (const li of how.startsWith("fetch") ? all.filter((_, i) => i % 4 === Number(how.slice(5))) : []) {
		const answer = await fetch(li.querySelector("a.to").href);
		check(li, new DOMParser().parseFromString(await answer.text(), "text/html"), answer.url);
	}
	const some = all.filter((_, i) => i % Math.ceil(count / 20) === 0 || i === count - 1); // of a long list; fetch has all
	for (const { id } of how === "click" ? some : []) {
		document.getElementById(id).querySelector("a.to").click();
		await shown(id);
		check(document.getElementById(id), document, location.href);
	}
	const key = (k) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true }));
	if (how === "keys") {
		const ids = all.slice(0, 20).map((li) => li.id);
		for (const id of [...ids.slice(1), ...ids.slice(0, -1).reverse()]) {
			key(ids.indexOf(id) > ids.indexOf(row(document)) ? "j" : "k");
			await shown(id);
			check(document.getElementById(id), document, location.href);
		}
		if (count) {
			document.activeElement?.blur();
			key("Enter");
			const at = document.activeElement, field = "#pane textarea, #pane input:not([type=hidden]), #pane button";
			if (document.querySelector(field) && !at.matches(field)) wrong.push("Enter goes to " + at.outerHTML);
		}
	}
	return { wrong, count };
})`

// A triaged has the findings of a walk.
type triaged struct {
	Wrong []string
	Count int
}

// TestEachItemOpensUnderEachFilterAndPage, by a click, by keys and without JavaScript; and a decision there is about
// that very item.
func TestEachItemOpensUnderEachFilterAndPage(t *testing.T) {
	long(t)
	t.Parallel()
	needChromium(t)
	s := newNightSite(t)
	if err := s.Plan(); err != nil {
		t.Fatal(err)
	}
	const many = 210 // more than a page, of two sessions; the last ones are TASK-1's
	for i := range many {
		session, err := store.Read(t.Context(), s.db, func(tx *store.Tx) (ralph.Session, error) {
			return tx.Session(s.Running[(2*many-1-2*i)/many])
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.db.Say(t.Context(), session.TaskID, session.ID, "agent", signals.Flag{
			What: fmt.Sprint("Flag & number ", i), Severity: "warning", Category: "bug",
		}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(of ...string) (n int) {
		s.tx(func(tx *store.Tx) error {
			counts, err := tx.InboxCounts()
			for _, kind := range of {
				n += counts[kind]
			}
			return err
		})
		return n
	}
	seen := map[inbox.Filter]int{}
	for _, filter := range inbox.Filters {
		for page := 1; ; page++ {
			q := url.Values{}
			if filter != inbox.FilterAll {
				q.Set("show", string(filter))
			}
			if page > 1 {
				q.Set("page", fmt.Sprint(page))
			}
			address := s.url + "/inbox?" + q.Encode()
			for _, how := range []string{"fetch0", "fetch1", "fetch2", "fetch3", "click", "keys"} { // a quarter each
				s.open(address)
				s.reads("#live", "live")
				s.reads(".kinds [aria-current]", fmt.Sprint(filter.Label(), " ", count(filter.Kinds()...)))
				got := eval[triaged](s.tab, walk+fmt.Sprintf("(%q)", how))
				if len(got.Wrong) > 0 {
					t.Errorf("%s, by %s, %d of %d: %.2000q", q.Encode(), how, len(got.Wrong), got.Count, got.Wrong)
				}
				if how == "fetch0" {
					seen[filter] += got.Count
				}
			}
			if !eval[bool](s.tab, `!!document.querySelector(".pager [rel=next]")`) {
				break
			}
		}
	}
	for _, filter := range inbox.Filters[1:] {
		seen[inbox.FilterAll] -= seen[filter]
	}
	if seen[inbox.FilterAll] != 0 || seen[inbox.FilterRead] < many || seen[inbox.FilterDecide] < 4 || seen[inbox.FilterQuestions] == 0 || seen[inbox.FilterFailed] == 0 {
		t.Errorf("rows by filter, and of all those that are under none: %v", seen)
	}
	s.decidesOnTheLastPage(t)
}

// decidesOnTheLastPage decides with a filter on the last page, with JavaScript and without, and wants no other item
// decided.
func (s *nightSite) decidesOnTheLastPage(t *testing.T) {
	t.Helper()
	const third = `document.querySelectorAll("#rows li")[2]`
	address := s.url + "/inbox?show=read&page=2"
	resolved := func() (ids []int64) {
		s.tx(func(tx *store.Tx) error {
			said, err := tx.Timeline(1, store.CommentFilter{Verbs: []ralph.Verb{ralph.VerbFlag}, Limit: 1000})
			for _, c := range said {
				if !c.ResolvedAt.IsZero() {
					ids = append(ids, c.ID)
				}
			}
			return err
		})
		return ids
	}
	ref := func() (id int64) {
		_, err := fmt.Sscan(eval[string](s.tab, third+`.id.split("-").at(-1)`), &id)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	s.open(address)
	s.reads("#live", "live")
	first := ref()
	s.press("j")
	s.press("j")
	s.sees("the third is shown", `document.querySelector("#pane article.item").dataset.row === `+third+`.id`)
	s.press("\r")
	s.press("it is known")
	s.click("#pane button[data-key=a]")
	s.reads("#corner", "TASK-1: Resolve")
	s.press("j") // nothing that is decided on holds the keys
	s.open(address)
	s.sees("it was sent", fmt.Sprintf(`!document.getElementById("w-flag-1-%d")`, first))
	if got := resolved(); !slices.Equal(got, []int64{first}) {
		t.Errorf("resolved are %v, want %d", got, first)
	}
	s.withoutScript()
	s.open(address)
	second := ref()
	s.open(s.url + eval[string](s.tab, third+`.querySelector("a.to").getAttribute("href")`))
	s.reads("#pane article.item", fmt.Sprint("C", second))
	s.click("#pane textarea")
	s.press("it is known, too")
	s.click("#pane button[data-key=a]")
	s.reads(".flash", "TASK-1")
	if got := resolved(); !slices.Contains(got, second) || len(got) != 2 {
		t.Errorf("resolved are %v, want %d as well", got, second)
	}
	s.reads("#pane", "This does not wait any more.")
}
