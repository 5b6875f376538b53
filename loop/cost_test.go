package loop_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"ralph"
	"ralph/internal/worktree"
	"ralph/loop"
	"ralph/signals"
	"ralph/store"
)

// statements runs a loop on so many tasks and returns what it, and its agent, asked of
// the database.
func statements(t *testing.T, tasks int) (list []string, db *store.DB) {
	t.Helper()
	dir := t.TempDir()
	var mu sync.Mutex
	path := filepath.Join(dir, ".ralph", "ralph.db")
	db, err := store.Open(t.Context(), path, store.Options{Statement: func(query string) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, strings.Join(strings.Fields(query), " "))
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for i := range tasks {
		if err := db.Tx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.AddTask(ralph.Task{Title: fmt.Sprintf("Task %d", i), Priority: 2}, "human")
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	list = nil
	tree, err := worktree.Open(t.Context(), dir, ".ralph")
	if err != nil {
		t.Fatal(err)
	}
	l := &loop.Loop{
		Store: db, Agent: speaker{db}, Tree: tree, Dir: dir, State: filepath.Join(dir, ".ralph"), Log: slog.New(slog.DiscardHandler),
		Limits: ralph.Limits{
			MaxSessions: 100, MaxTasks: 100, MaxSeconds: 3600, MaxCostUSD: 100, MaxDayCostUSD: 100, SessionSeconds: 3600, IdleSeconds: 3600, SessionTurns: 10,
			SessionCostUSD: 10, Attempts: 10, StagnantMaximum: 100,
		},
		Rules: signals.Rules{StuckLimit: 3, VerifyFailures: 3, Attempts: 10}, PromptTokens: 10000,
	}
	if result, err := l.Run(t.Context()); err != nil || result.Status != ralph.ExitOK {
		t.Fatalf("got %+v, %v", result, err)
	}
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(list), db
}

// TestASessionAsksLittleOfTheDatabase counts instead of taking the time: a statement
// or a durable commit more is a decision, and not an accident. The agent says four
// things, each of which is a commit.
func TestASessionAsksLittleOfTheDatabase(t *testing.T) {
	count := func(list []string) (statements, commits int) {
		for _, s := range list {
			if s == "COMMIT" {
				commits++
			} else {
				statements++
			}
		}
		return statements, commits
	}
	one, _ := statements(t, 1)
	six, _ := statements(t, 6)
	s1, c1 := count(one)
	s6, c6 := count(six)
	const mostStatements, mostCommits = 104, 7
	if n := (s6 - s1) / 5; n > mostStatements {
		t.Errorf("a session takes %d statements, at most %d are allowed", n, mostStatements)
	}
	if n := (c6 - c1) / 5; n > mostCommits {
		t.Errorf("a session takes %d commits, at most %d are allowed", n, mostCommits)
	}
}

// few are the tables and names of which every row may be read: they do not grow with
// the history of a project, or end with the newest.
var few = map[string]string{
	"agent_state": "one row", "usage_windows": "about six", "protected_files": "those of the work tree", "configuration_files": "about three", "c": "configuration_files", "k": "conflicts of learnings",
	"r": "runs, of which the newest is taken", "latest": "the comments that a prompt has room for",
}

// scanned is a table that a plan reads as a whole. An index that has a name was made
// for what is asked; one without has the whole table.
var scanned = regexp.MustCompile(`^SCAN (\w+)( USING .*sqlite_autoindex.*)?$`)

// TestNoStatementOfASessionReadsAWholeTable explains what a session really asks.
func TestNoStatementOfASessionReadsAWholeTable(t *testing.T) {
	list, db := statements(t, 2)
	slices.Sort(list)
	for _, query := range slices.Compact(list) {
		// The plan of an INSERT has the checks of foreign keys, which are not made where
		// there is nothing to mend.
		if query == "COMMIT" || strings.HasPrefix(query, "INSERT") {
			continue
		}
		args := make([]any, len(slices.Compact(slices.Sorted(slices.Values(placeholder.FindAllString(query, -1))))))
		for i := range args {
			args[i] = 1
		}
		err := db.View(t.Context(), func(tx *store.Tx) error {
			rows, err := tx.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
			if err != nil {
				return err
			}
			defer func() {
				if err := rows.Close(); err != nil {
					t.Error(err)
				}
			}()
			for rows.Next() {
				var id, parent, unused int
				var detail string
				if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
					return err
				}
				if m := scanned.FindStringSubmatch(detail); m != nil && few[m[1]] == "" {
					t.Errorf("%s\n%s", query, detail)
				}
				if strings.Contains(query, "LIMIT 1") && strings.Contains(detail, "TEMP B-TREE FOR ORDER BY") {
					t.Errorf("sorts what it takes the first of: %s\n%s", query, detail)
				}
			}
			return rows.Err()
		})
		if err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}

var placeholder = regexp.MustCompile(`\$\d+`)
