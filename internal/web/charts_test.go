package web_test

import (
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/web"
	"ralph/store"
)

// TestABarLeadsToItsSessions: the list of sessions behind each bar and column has as many sessions and costs as much.
func TestABarLeadsToItsSessions(t *testing.T) {
	t.Parallel()
	s, _ := newNight(t)
	b := s.browser().signIn()
	var (
		row    = regexp.MustCompile(`<th scope="row"><a href="([^"]+)">([^<]+)</a><svg.*?</svg></th><td class="n">(?:about )?(\$[\d.]+)</td><td class="n wide">(\d+)</td>`)
		column = regexp.MustCompile(`<a href="([^"]+)" aria-label="([^"]+): (\$[\d.]+)">`)
		sum    = regexp.MustCompile(`<strong>(\d+) sessions?, (\$[\d.]+)</strong>`)
	)
	for _, by := range []string{"day", "week", "month"} {
		page := b.get("/charts?by=" + by)
		rows := row.FindAllStringSubmatch(page, -1)
		if len(rows) < 3+2+2+10 {
			t.Errorf("by %s: %d rows", by, len(rows))
		}
		cost, _, _ := strings.Cut(page, "<h2>Cost per merged task</h2>")
		columns := column.FindAllStringSubmatch(cost, -1)
		if n := len(columns); n < 1 || n > 2 { // the night may begin before midnight, and with it the scale
			t.Errorf("by %s: %d columns", by, n)
		}
		for _, found := range append(rows, columns...) {
			list := sum.FindStringSubmatch(b.get(html.UnescapeString(found[1])))
			if list == nil || list[2] != found[3] || len(found) > 4 && list[1] != found[4] {
				t.Errorf("by %s: %s is %s, and its list %q", by, found[2], found[3:], list)
			}
		}
	}
	list := b.get("/sessions?model=gpt-5.5&agent=codex&feature=links&sort=cost")
	has(t, list, "the most expensive first", `aria-label="Without model gpt-5.5"`)
	dearest := 1e9
	for _, cost := range regexp.MustCompile(`data-l="Cost">\$([\d.]+)`).FindAllStringSubmatch(list, -1) {
		usd, err := strconv.ParseFloat(cost[1], 64)
		if err != nil || usd > dearest {
			t.Errorf("%s comes after %v: %v", cost[1], dearest, err)
		}
		dearest = usd
	}
	if dearest == 1e9 || strings.Contains(list, "sonnet-5") {
		t.Error("the list is not narrowed")
	}
	for _, wrong := range []string{"from=yesterday", "to=1", "task=x", "run=-1"} {
		if w := b.send("GET", "/sessions?"+wrong, nil); w.Code != 422 {
			t.Errorf("%s: %d", wrong, w.Code)
		}
	}
}

// TestColumnsOfCharts begin at midnight, on Mondays and on the first of a month, over changes of the clock.
func TestColumnsOfCharts(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 31, 1, 30, 0, 0, zone) // a Tuesday, after the clock went on
	for by, want := range map[string][3]string{
		"day":   {"2026-03-20T00:00:00+01:00", "2026-03-31T00:00:00+02:00", "2026-04-01T00:00:00+02:00"},
		"week":  {"2026-01-12T00:00:00+01:00", "2026-03-30T00:00:00+02:00", "2026-04-06T00:00:00+02:00"},
		"month": {"2025-04-01T00:00:00+02:00", "2026-03-01T00:00:00+01:00", "2026-04-01T00:00:00+02:00"},
	} {
		starts := web.Starts(by, now)
		n := len(starts)
		if got := [3]string{starts[0].Format(time.RFC3339), starts[n-2].Format(time.RFC3339), starts[n-1].Format(time.RFC3339)}; got != want {
			t.Errorf("by %s: %s", by, got)
		}
	}
}

// TestAMomentIsInOneColumn: a session that ends at a column's end belongs to the next one.
func TestAMomentIsInOneColumn(t *testing.T) {
	t.Parallel()
	s, _ := newNight(t)
	if err := s.db.View(t.Context(), func(tx *store.Tx) error {
		sessions, err := tx.Sessions(store.SessionFilter{})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(sessions, func(s ralph.Session) bool { return !s.CompletedAt.IsZero() })
		at := sessions[i].CompletedAt
		in := 0
		for _, ended := range sessions {
			if ended.CompletedAt == at {
				in++
			}
		}
		next := ralph.At(at.Add(time.Millisecond))
		for _, column := range []struct {
			from, to ralph.Time
			n        int
		}{{at, at, 0}, {at, next, in}} {
			spent, err := tx.Spent(column.from, column.to)
			if err != nil {
				return err
			}
			n := 0
			for _, group := range spent {
				n += group.Sessions
			}
			if n != column.n {
				t.Errorf("from %s to %s: %d sessions, want %d", column.from, column.to, n, column.n)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
