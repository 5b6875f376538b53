package loop_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/check"
	"ralph/loop/order"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// statements runs a loop on so many tasks, and returns the database
// statements of the loop and its agent.
func statements(t *testing.T, tasks int) (list []string, db *store.DB) {
	t.Helper()
	dir := t.TempDir()
	var mu sync.Mutex
	path := filepath.Join(dir, ".ralph", "ralph.db")
	db, err := store.Open(t.Context(), pgtest.Path(t, path), store.Options{Statement: func(query string) {
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
	l := newLoop(t, db, dir, speaker{db})
	if result, err := l.Run(t.Context()); err != nil || result.Status != ralph.ExitOK {
		t.Fatalf("got %+v, %v", result, err)
	}
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(list), db
}

// TestASessionAsksLittleOfTheDatabase counts statements, transactions and commits instead of measuring time, so that an
// additional one is a decision, not an accident. The agent gives four signals; each is a commit.
func TestASessionAsksLittleOfTheDatabase(t *testing.T) {
	t.Parallel()
	type cost struct{ statements, transactions, commits int }
	count := func(list []string) (c cost) {
		for _, s := range list {
			switch s {
			case "COMMIT":
				c.commits++
			case "BEGIN":
				c.transactions++
			case "PRAGMA data_version": // reads no table, and its timing depends on the clock
			default:
				c.statements++
			}
		}
		return c
	}
	one, _ := statements(t, 1)
	six, _ := statements(t, 6)
	first, all := count(one), count(six)
	each := cost{
		(all.statements - first.statements) / 5, (all.transactions - first.transactions) / 5, (all.commits - first.commits) / 5,
	}
	// A look after each change is a statement; two or three happen during the check. A merge has a commit for each of
	// building, verifying, moving and merged. The other commits are the claim, the signals and the verdict.
	most := cost{statements: 140, transactions: 40, commits: 10}
	if pgtest.Used() { // where a merge takes the lease of the merge queue, and gives it back
		most.statements, most.commits = most.statements+8, most.commits+2
	}
	if each.statements > most.statements || each.transactions > most.transactions || each.commits > most.commits {
		t.Errorf("a session takes %+v, at most %+v is allowed", each, most)
	}
}

// few lists the tables and aliases that may be read completely: they do not
// grow with a project's history, or are read from the newest row on.
var few = map[string]string{
	"agent_states": "a row an agent", "troubles": "three rows at most and one for each receiver", "usage_windows": "about six an agent",
	"r": "runs, of which the newest is taken", "latest": "the comments that a prompt has room for",
	"planned": "what waits of plans, found by indexes", "d": "one row", "own": "one row", "held": "one row", "today": "one row", "month": "one row",
}

// scanned is a table that a plan reads completely. A named index was made
// for the query; one without a name has the whole table.
var scanned = regexp.MustCompile(`^SCAN (\w+)( USING .*sqlite_autoindex.*)?$`)

var placeholder = regexp.MustCompile(`\$\d+`)

// explain reports statements whose plans read a whole table, or sort more
// than one task's rows to take the first.
func explain(t *testing.T, db *store.DB, list []string) {
	t.Helper()
	for _, query := range list {
		// The plan of an INSERT includes foreign key checks, which do not run if
		// there is nothing to check.
		if query == "COMMIT" || query == "BEGIN" || strings.HasPrefix(query, "INSERT") {
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
				if strings.Contains(query, "LIMIT 1") && !strings.Contains(query, "task_id = $1") && strings.Contains(detail, "TEMP B-TREE FOR ORDER BY") {
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

// everybody is an agent that gives the signals that its task's title asks
// for, after its session was watched for a while.
type everybody struct {
	db    *store.DB
	beats chan struct{}
}

func (e everybody) Work(ctx context.Context, a agent.Assignment) (agent.Report, error) {
	for range 3 { // rounds of the session's watch
		<-e.beats
	}
	var title string
	if err := e.db.View(ctx, func(tx *store.Tx) error { task, err := tx.Task(a.TaskID); title = task.Title; return err }); err != nil {
		return agent.Report{}, err
	}
	yes := true
	a.Seen(agent.Event{Kind: agent.Edited, Tool: "Edit"})
	for _, p := range map[string][]signals.Payload{
		"ask":    {signals.Ask{Question: "why?", Blocking: &yes}, halt},
		"block":  {signals.Blocked{On: "accept", Kind: "upstream_task"}, signals.Stuck{Reason: "no idea"}},
		"teach":  {signals.Learned{Text: "the cache is slow", Kind: "discovery", Scope: "project"}, signals.Flag{What: "x", Severity: "blocking", Category: "bug"}, halt},
		"accept": {signals.Suggest{What: "Another", Kind: "new_task", Why: "w"}, finish},
		"refuse": {finish},
		"tamper": {finish},
	}[title] {
		if _, err := e.db.Say(ctx, a.TaskID, a.SessionID, "agent", p); err != nil {
			return agent.Report{}, err
		}
	}
	left := map[string]string{"accept": "done", "tamper": "ci.sh", "teach": "notes"}[title]
	if left != "" {
		if err := os.WriteFile(filepath.Join(a.Dir, left), []byte(title), 0o600); err != nil {
			return agent.Report{}, err
		}
	}
	for a.TurnEnded(ctx, agent.Turn{}).Text != "" {
	}
	return agent.Report{Ending: ralph.Finished, CostUSD: 0.01, CostKnown: true}, nil
}

func (everybody) Salvage(string, agent.Death) (agent.Report, error) { return agent.Report{}, nil }

// TestNoStatementOfTheLoopReadsAWholeTable explains the actual statements
// of the loop, workers and people, in sessions that use every feature.
func TestNoStatementOfTheLoopReadsAWholeTable(t *testing.T) {
	t.Parallel()
	pgtest.Files(t) // SQLite explains its plans
	dir := t.TempDir()
	var mu sync.Mutex
	asked := map[string]bool{}
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(dir, ".ralph", "ralph.db")), store.Options{Statement: func(query string) {
		mu.Lock()
		defer mu.Unlock()
		asked[strings.Join(strings.Fields(query), " ")] = true
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx := func(f func(tx *store.Tx) error) {
		t.Helper()
		if err := db.Tx(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	agent := everybody{db, make(chan struct{})}
	l := &loop.Loop{
		Config: order.Config{
			Agent: agent,
			Limits: ralph.Limits{
				MaxSessions: 12, MaxTasks: 100, MaxSeconds: 3600, MaxCostUSD: 100, MaxDayCostUSD: 100, MaxMonthCostUSD: 100, SessionSeconds: 3600, IdleSeconds: 3600, SessionTurns: 10,
				SessionCostUSD: 10, Attempts: 2, StagnantMaximum: 100, Usage: map[string]int{"five_hour": 80},
			},
			Rules:   signals.Rules{StuckLimit: 2, VerifyFailures: 2, Attempts: 2, ReviewProtect: true, Retries: 1},
			Prompts: order.Prompts{Tokens: 10000},
			Check:   check.Rules{Commands: []string{"test -e done"}, Protect: []string{"ci.sh"}, Timeout: time.Minute, Env: os.Environ()},
		},
		Store: db,
		Here:  &workspace.Workspace{Dir: dir, State: filepath.Join(dir, ".ralph")},
		Log:   slog.New(slog.DiscardHandler),
		OnRed: loop.RedGo,
	}
	withWorkspaces(t, l)
	l.Heart = beat(func() {
		select {
		case agent.beats <- struct{}{}:
		default:
		}
	})
	tx(func(tx *store.Tx) error {
		if err := tx.PutFeature(ralph.Feature{Name: "f"}); err != nil {
			return err
		}
		for i, title := range []string{"refuse", "ask", "block", "teach", "accept", "tamper", "worker's", "person's"} {
			id, err := tx.AddTask(ralph.Task{Title: title, Priority: i / 2, Feature: []string{"", "f"}[i%2]}, "human")
			if err != nil {
				return err
			}
			if _, err := tx.AddComment(ralph.Comment{TaskID: id, Author: "ann", AuthorKind: ralph.ByHuman, Kind: "note", Body: "x"}); err != nil {
				return err
			}
		}
		return nil
	})
	mu.Lock()
	clear(asked) // people's own commands may take longer
	mu.Unlock()
	const workers, persons = 7, 8
	claim, err := l.Claim(t.Context(), workers, "w")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.ClaimFor(t.Context(), persons, "ann"); err != nil {
		t.Fatal(err)
	}
	result, err := l.Run(t.Context())
	if err != nil || len(result.Reasons) < 2 {
		t.Fatalf("got %+v, %v", result, err)
	}
	if _, err := claim.Heard(t.Context()); err != nil {
		t.Error(err)
	}
	if err := claim.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := claim.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := l.Sessions().ReleaseFor(t.Context(), persons, "ann"); err != nil {
		t.Error(err)
	}
	if err := db.View(t.Context(), func(tx *store.Tx) error { _, err := tx.Events(3, 10); return err }); err != nil {
		t.Error(err)
	}
	list := slices.Sorted(maps.Keys(asked))
	for _, table := range []string{
		"tasks", "task_comments", "task_dependencies", "sessions", "events", "learnings", "verifications", "permission_requests", "runs", "usage_windows",
	} {
		if !slices.ContainsFunc(list, func(query string) bool {
			return strings.HasPrefix(query, "SELECT") && regexp.MustCompile(`\b`+table+`\b`).MatchString(query)
		}) {
			t.Errorf("nothing was read of %s: this test does not see what it should", table)
		}
	}
	explain(t, db, list)
}
