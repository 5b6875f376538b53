package web

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/internal/report"
	"ralph/store"
)

// visitGap is how long a visitor is away before the next page begins with a summary.
const visitGap = 30 * time.Minute

// lookedFor is how long a browser remembers its last visit.
const lookedFor = 90 * 24 * time.Hour

// since returns the start of the visitor's summary, which is the end of the last visit, and the mark to keep. mark has
// the end of the visit before this one, and the time of the last page. Zero means the last night.
func since(mark string, now time.Time) (from ralph.Time, next string) {
	visit, last, _ := strings.Cut(mark, "-")
	before, _ := strconv.ParseInt(visit, 10, 64)
	seen, err := strconv.ParseInt(last, 10, 64)
	if err == nil && seen > 0 && seen <= now.Unix() && now.Sub(time.Unix(seen, 0)) > visitGap {
		before = seen
	}
	if before > 0 && before <= now.Unix() {
		from = ralph.At(time.Unix(before, 0))
	} else {
		before = 0
	}
	return from, fmt.Sprintf("%d-%d", before, now.Unix())
}

// looked returns the mark of the last page that a browser has shown; "" for none.
func (a *app) looked(r *http.Request) string {
	c, err := r.Cookie(a.key.cookie("looked"))
	if err != nil {
		return ""
	}
	return c.Value
}

// morning returns the summary since a time, or that of the last run. spending is that of sessions in progress so far
// (USD).
func morning(tx *store.Tx, from ralph.Time, spending float64) (m report.Morning, err error) {
	if !from.IsZero() {
		news, err := tx.Sessions(store.SessionFilter{Active: from, Merges: true, Limit: 1})
		if err != nil {
			return m, err
		}
		if len(news) == 0 { // nothing happened since; show the last run instead
			from = ralph.Time{}
		}
	}
	return report.MorningOf(tx, from, spending)
}

// spending returns the reported spending of sessions in progress so far (USD).
func (a *app) spending(tx *store.Tx) (usd float64, err error) {
	open, err := tx.OpenSessions()
	if err != nil {
		return 0, err
	}
	for _, s := range open[:min(len(open), overviewUses)] {
		used, err := a.transcripts.used(s.ID)
		if err != nil {
			return 0, err
		}
		usd += used.CostUSD
	}
	return usd, nil
}

// A menuEntry is a link to a page.
type menuEntry struct {
	To, Name string
	Current  bool
}

// menus has the entries of the menu, with the pages of each.
var menus = map[string][]menuEntry{
	"/tasks": {{To: "/tasks", Name: "List"}, {To: "/board", Name: "Board"}, {To: "/features", Name: "Features"}},
	"/runs": {
		{To: "/runs", Name: "Runs"},
		{To: "/sessions", Name: "Sessions"},
		{To: "/charts", Name: "Charts"},
		{To: "/learnings", Name: "Learnings"},
	},
}

// menu returns the menu entry of a page, and the other pages of the entry.
func menu(page string) (entry string, beside []menuEntry) {
	for entry, pages := range menus {
		for i, p := range pages {
			if p.To == page {
				beside = append(beside, pages...)
				beside[i].Current = true
				return entry, beside
			}
		}
	}
	return page, nil
}
