package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/signals"
	"ralph/store"
)

// distances are how far away a server is: what its answer takes longer.
var distances = []time.Duration{0, 5 * time.Millisecond}

// A server of PostgreSQL, which ends with the bench.
type postgres struct {
	base string
	made int
}

// newPostgres starts a server; ok is false where there is none to be started.
func (b *bench) newPostgres() (pg *postgres, ok bool) {
	check(os.Setenv("RALPH_TEST_DATABASE", "postgres")) // so that it is durable, as a file is
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

// away is the URL of a database on a server that is so far away, by a relay on loopback that holds up each direction
// by half of that.
func away(ctx context.Context, base string, d time.Duration) (far string, shut func()) {
	u := must(url.Parse(base))
	socket := filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432")
	listener := must((&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"))
	var relays sync.WaitGroup
	relays.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // it was shut
			}
			server, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
			if err != nil {
				_ = client.Close() // who connects is told
				continue
			}
			relays.Go(func() { relay(client, server, d/2) })
			relays.Go(func() { relay(server, client, d/2) })
		}
	})
	u.Host, u.RawQuery = listener.Addr().String(), "sslmode=disable"
	return u.String(), func() {
		check(listener.Close())
		relays.Wait()
	}
}

// relay passes on what it reads, so much later, until either end is closed, and closes both.
func relay(from, to net.Conn, d time.Duration) {
	type piece struct {
		due time.Time
		b   []byte
	}
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		for {
			b := make([]byte, 32<<10)
			n, err := from.Read(b)
			if n > 0 {
				pieces <- piece{time.Now().Add(d), b[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.b); err != nil {
			break
		}
	}
	_, _ = to.Close(), from.Close() // so that nothing is read any more
	for range pieces {
	}
}

// apart is a run of tasks that have nothing to do with each other, by where the database is.
func (b *bench) apart(ctx context.Context) (rows []row) {
	pg, ok := b.newPostgres()
	if !ok {
		return nil
	}
	for _, of := range []struct{ sessions, tasks int }{{1, 4}, {4, 8}} {
		var here samples
		there := make([]samples, len(distances))
		for range max(b.rounds/3, 1) {
			here.took(b.runOn(ctx, "", of.sessions, of.tasks))
			for i, d := range distances {
				at, shut := away(ctx, pg.database(ctx), d)
				there[i].took(b.runOn(ctx, at, of.sessions, of.tasks))
				shut()
			}
		}
		rows = append(rows, row{
			what:    fmt.Sprintf("%d tasks, %d at once, on PostgreSQL (floor: SQLite)", of.tasks, of.sessions),
			product: there[0], floor: here, value: number(there[0].median()/here.median()) + "×",
		},
			ratio("… 5 ms away (floor: 0 ms)", there[1], there[0], 6))
	}
	return rows
}

// runOn is the time of a run on a database, or a file for "".
func (b *bench) runOn(ctx context.Context, database string, sessions, tasks int) time.Duration {
	p := b.newProject(ctx, 0)
	p.url = database
	var script strings.Builder
	for i := range tasks {
		fmt.Fprintf(&script, "task Task %d.\n  run echo x >made%d\n  done {\"summary\": \"It was done.\"}\n", i, i)
	}
	write := func(name, text string) { check(os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600)) }
	write("claude.script", script.String())
	write("ralph.yaml", string(must(os.ReadFile(filepath.Join(p.dir, "ralph.yaml"))))+"verify: [\"true\"]\n")
	p.time(ctx, "git", "add", "-A")
	p.time(ctx, "git", "commit", "-qm", "the project")
	p.time(ctx, "git", "branch", "-qM", "main")
	p.fill(ctx, func(tx *store.Tx) {
		for i := range tasks {
			must(tx.AddTask(ralph.Task{Title: fmt.Sprintf("Task %d.", i)}, "human"))
		}
	})
	return p.time(ctx, p.ralph, "run", "--parallel", fmt.Sprint(sessions))
}

// Many workers on a large queue.
const (
	manyWorkers = 50
	largeQueue  = 100_000
	workingFor  = 10 * time.Second
)

// manyAtOnce is how many sessions many workers get through the database, and how long a claim takes.
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

// workOn has many workers claim, signal and be decided for a while. It returns the times of their claims, and how many
// sessions a second there were.
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

// oneSession is what the database does for a session, without its agent and its check. It returns the time of the
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
