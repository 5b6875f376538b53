package bm25_test

import (
	"slices"
	"strings"
	"testing"

	"ralph/internal/bm25"
)

// labelled are tasks and the learnings that a worker on them should read first, out of all of the learnings below.
var labelled = []struct {
	task string
	best []int
}{
	{"Reject empty URLs when a bookmark is saved", []int{0, 1}},
	{"The test suite fails without Redis", []int{2, 3}},
	{"Add pagination to the audit log endpoint", []int{4, 5}},
	{"Migrate the users table to the new schema", []int{6, 7}},
	{"Make the login page work on phones", []int{8, 9}},
}

var learnings = []string{
	"validateURL in bookmarks.go accepts an empty string; the caller has to check",
	"Bookmarks are saved through BookmarkStore.Save, never directly",
	"Tests need Redis on port 6379; start it with make redis",
	"The test suite takes the Redis address from REDIS_URL",
	"Audit logs are append-only; read them through the AuditLog iterator, never with OFFSET",
	"Endpoints return at most 100 rows; pagination uses an opaque cursor",
	"Schema migrations run inside a transaction, one file per table",
	"The users table has a trigger that forbids deleting rows",
	"The login page is rendered by the server; its styles are in auth.css",
	"Layouts for phones begin below 600 pixels",
	"The release is tagged on Fridays",
	"Prices are stored in cents",
}

// terms are texts as they are scored.
func terms(texts []string) []string {
	list := make([]string, len(texts))
	for i, t := range texts {
		list[i] = strings.Join(bm25.Words(t), " ")
	}
	return list
}

// TestScoresPutFittingTextsFirst measures precision and recall of the first two.
func TestScoresPutFittingTextsFirst(t *testing.T) {
	found, wanted := 0, 0
	for _, tt := range labelled {
		scores := bm25.Scores(tt.task, terms(learnings))
		order := make([]int, len(learnings))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case scores[a] > scores[b]:
				return -1
			case scores[a] < scores[b]:
				return 1
			}
			return 0
		})
		for _, i := range order[:len(tt.best)] {
			if slices.Contains(tt.best, i) {
				found++
			} else {
				t.Logf("%q: %q was ranked before what it needs", tt.task, learnings[i])
			}
		}
		wanted += len(tt.best)
	}
	t.Logf("precision and recall at 2: %d of %d", found, wanted)
	if found < wanted-1 {
		t.Errorf("found %d of %d", found, wanted)
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                 nil,
		"The tests are running":            {"test", "run"},
		"validateURL, audit_log and HTTP2": {"valid", "url", "audit", "log", "http2"},
		"Größe ändern":                     {"größe", "ändern"},
		"a I x":                            nil,
	} {
		if got := bm25.Words(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzScores(f *testing.F) {
	f.Add("a query", "a text")
	f.Fuzz(func(t *testing.T, query, text string) {
		for _, s := range bm25.Scores(query, terms([]string{text, query, ""})) {
			if !(s >= 0) {
				t.Errorf("score %g", s)
			}
		}
	})
}
