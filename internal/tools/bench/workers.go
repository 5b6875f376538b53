package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/signals"
	"ralph/store"
)

// A server of PostgreSQL, which ends with the bench.
type postgres struct {
	base string
	made int
}

// newPostgres starts a server; ok is false if the machine has none.
func (b *bench) newPostgres() (pg *postgres, ok bool) {
	check(os.Setenv("RALPH_TEST_DATABASE", "postgres")) // so that it is durable, like a file
	server, err := pgtest.Serve()
	if err != nil {
		fmt.Fprintln(b.log, "skipped, as there is no PostgreSQL:", err)
		return nil, false
	}
	return &postgres{base: server.URL}, true
}

// database makes a database and returns its URL.
func (pg *postgres) database(ctx context.Context) string {
	pg.made++
	name := fmt.Sprintf("b%d", pg.made)
	db := must(sql.Open("pgx", pg.base))
	must(db.ExecContext(ctx, "CREATE DATABASE "+name))
	check(db.Close())
	return strings.Replace(pg.base, "/postgres?", "/"+name+"?", 1)
}

// Many workers on a large queue.
const (
	manyWorkers = 50
	largeQueue  = 100_000
	workingFor  = 10 * time.Second
)

// manyAtOnce returns how many sessions many workers get through the database, and how long a claim takes.
func (b *bench) manyAtOnce(ctx context.Context) []row {
	p := b.newProject(ctx, 0)
	p.fill(ctx, func(tx *store.Tx) {
		check(tx.EndRun(must(tx.StartRun("", ralph.Limits{}, "")).ID, 0, ""))
	})
	queue := largeQueue
	if b.small {
		queue = 5_000
	}
	fillByHand(ctx, p.database(), queue, queue)
	file := must(store.Open(ctx, p.database(), store.Options{}))
	defer func() { check(file.Close()) }()
	var claims, fileClaims, each, fileEach samples
	pg, ok := b.newPostgres()
	if ok {
		db := must(store.Open(ctx, pg.database(ctx), store.Options{}))
		defer func() { check(db.Close()) }()
		must(store.Move(ctx, file, db))
		claims, each = workOn(ctx, db, p.dir, b.lasts(workingFor))
	}
	fileClaims, fileEach = workOn(ctx, file, p.dir, b.lasts(workingFor))
	what := fmt.Sprintf("%d workers on %d tasks", manyWorkers, queue)
	if !ok {
		return []row{{what: what + ", on SQLite", product: fileEach}}
	}
	p99 := func(s samples) samples { return samples{unit: "ms", values: []float64{s.quantile(0.99)}} }
	const least = 10
	return []row{
		{
			what: what + ", on PostgreSQL (floor: SQLite)", product: each, floor: fileEach,
			value: number(each.median()/fileEach.median()) + "×", aim: fmt.Sprintf("≥ %d sessions/s", least),
			met: each.median() >= least,
		},
		{
			what: "… the slowest hundredth of their claims, the pick included", product: p99(claims), floor: p99(fileClaims),
			value: number(p99(claims).median()/p99(fileClaims).median()) + "×",
		},
	}
}

// workOn makes many workers claim, signal and be decided for a while. It returns the times of their claims, and the
// number of sessions per second.
func workOn(ctx context.Context, db *store.DB, dir string, d time.Duration) (claims, each samples) {
	var run int64
	check(db.Tx(ctx, func(tx *store.Tx) (err error) {
		r, err := tx.StartRun("", ralph.Limits{}, "")
		run = r.ID
		return err
	}))
	var mu sync.Mutex
	var failed error
	var workers sync.WaitGroup
	began, n := time.Now(), 0
	for range manyWorkers {
		workers.Go(func() {
			for time.Since(began) < d {
				took, err := oneSession(ctx, db, run, dir)
				mu.Lock()
				claims.took(took)
				n++
				failed = errors.Join(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	workers.Wait()
	check(failed)
	each.unit = "sessions/s"
	each.add(float64(n) / time.Since(began).Seconds())
	return claims, each
}

// oneSession makes the database's operations for a session, without its agent and its check. It returns the time of the
// claim.
func oneSession(ctx context.Context, db *store.DB, run int64, dir string) (claim time.Duration, err error) {
	id, task, begin := uuid.NewString(), int64(0), time.Now()
	if err := db.Tx(ctx, func(tx *store.Tx) error {
		t, ok, err := tx.Next()
		if err == nil && !ok {
			err = errors.New("no task is left")
		}
		if err == nil {
			task = t.ID
			_, err = tx.StartSession(store.Start{ID: id, Task: task, Run: run, Dir: dir})
		}
		return err
	}); err != nil {
		return 0, err
	}
	claim = time.Since(begin)
	if _, err := db.Say(ctx, task, id, "agent", signals.Done{Summary: "It is done."}); err != nil {
		return claim, err
	}
	return claim, db.Tx(ctx, func(tx *store.Tx) error {
		f, err := tx.Facts(id)
		if err != nil {
			return err
		}
		f.Ending, f.Changed = ralph.Finished, true
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		return tx.Apply(s, f, signals.Decide(f))
	})
}
