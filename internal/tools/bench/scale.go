package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"ralph"
	"ralph/internal/worktree"
	"ralph/loop"
	"ralph/loop/order"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// commentsEach is the number of comments of a task.
const commentsEach = 5

// steps are the loop's operations on the database for each session.
var steps = []string{"picking", "building a prompt", "deciding"}

// scale compares a session's cost in the database by the database's size.
func (b *bench) scale(ctx context.Context) []row {
	sizes := []int{b.size(1_000), b.size(10_000), b.size(100_000)} // the first is the floor
	var projects []queue
	for _, n := range sizes {
		q := b.newQueue(ctx, n, n*commentsEach)
		defer q.Store.Close()
		projects = append(projects, q)
	}
	took := make([][]samples, len(projects)) // by size and step
	for i := range took {
		took[i] = make([]samples, len(steps))
	}
	const each = 20
	for range b.rounds * each {
		for i, q := range projects {
			q.session(ctx, took[i])
		}
	}
	var rows []row
	for s, name := range steps {
		for i, n := range sizes[1:] {
			what := fmt.Sprintf("%s at %d tasks and %d comments (floor: at %d and %d)",
				name, n, n*commentsEach, sizes[0], sizes[0]*commentsEach)
			rows = append(rows, ratio(what, took[i+1][s], took[0][s], 1.5))
		}
	}
	return rows
}

// A queue is a loop without a run, and with much data in its database.
type queue struct {
	*loop.Loop
	run int64
}

// newQueue fills a database: half of the tasks are done, each in a session,
// and each has its share of the comments.
func (b *bench) newQueue(ctx context.Context, tasks, comments int) (q queue) {
	p := b.newProject(ctx, 10)
	p.fill(ctx, func(tx *store.Tx) { q.run = must(tx.StartRun("", ralph.Limits{}, "")).ID })
	fillByHand(ctx, p.database(), tasks, comments)
	tree := must(worktree.Open(ctx, p.dir))
	db := must(store.Open(ctx, p.database(), store.Options{}))
	q.Loop = &loop.Loop{
		Config: order.Config{
			Dir:     p.dir,
			Limits:  ralph.Limits{Attempts: 1000},
			Prompts: order.Prompts{Tokens: 24_000},
		},
		Store: db,
		Here:  &workspace.Workspace{Dir: p.dir, Tree: tree, State: filepath.Dir(p.database())},
		Log:   slog.New(slog.DiscardHandler),
	}
	return q
}

// fillByHand writes rows without the store, which would take hours: the benchmark measures only
// reads.
func fillByHand(ctx context.Context, path string, tasks, comments int) {
	db := must(sql.Open("sqlite3", "file:"+path+"?_synchronous=OFF&_foreign_keys=1&_txlock=immediate"))
	defer func() { check(db.Close()) }()
	for _, fill := range []struct {
		statement string
		n         int
	}{
		{`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
			INSERT INTO tasks (title, normal_title, description, status, priority, created, updated)
			SELECT 'Task ' || i, 'task ' || i, 'What task ' || i || ' is about, in a line or two.',
				CASE WHEN i % 2 = 0 THEN 'pending' ELSE 'completed' END, i / 2 % 5,
				'2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z'
			FROM n`, tasks},
		{`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
			INSERT INTO task_comments (task_id, author, author_kind, kind, body)
			SELECT 1 + i % (SELECT max(id) FROM tasks), 'somebody', 'human', 'note', 'A word on it, the ' || i || 'th.'
			FROM n`, comments},
		{`INSERT INTO sessions (id, task_id, run_id, attempt, started_at, updated_at, completed_at)
			SELECT lower(hex(randomblob(16))), id, 1, 1,
				'2026-01-01T00:00:00.000Z', '2026-01-01T01:00:00.000Z', '2026-01-01T01:00:00.000Z'
			FROM tasks WHERE status = 'completed' LIMIT $1`, tasks},
	} {
		must(db.ExecContext(ctx, fill.statement, fill.n))
	}
}

// session makes the loop's operations for one session, without the agent: its task is put back.
func (q queue) session(ctx context.Context, took []samples) {
	begin := time.Now()
	task, ok, err := q.Next(ctx)
	if err == nil && !ok {
		err = errors.New("no task is left")
	}
	check(err)
	took[0].took(time.Since(begin))

	begin = time.Now()
	check(q.Store.View(ctx, func(tx *store.Tx) error {
		_, err := q.BuildPrompt(tx, task)
		return err
	}))
	took[1].took(time.Since(begin))

	id := uuid.NewString()
	check(q.Store.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.StartSession(store.Start{ID: id, Task: task.ID, Run: q.run, Dir: q.Here.Dir})
		return err
	}))
	must(q.Store.Say(ctx, task.ID, id, "agent", signals.Done{Summary: "It is done."}))
	begin = time.Now()
	check(q.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		defer caught(&err)
		f := must(tx.Facts(id))
		f.Ending, f.Changed, f.Rules = ralph.Finished, true, q.Rules
		return tx.Apply(must(tx.Session(id)), f, signals.Decide(f))
	}))
	took[2].took(time.Since(begin))
}
