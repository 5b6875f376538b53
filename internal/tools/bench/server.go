package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver of the store, for the same INSERT without it
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/internal/pipe"
	"ralph/loop/agent"
	"ralph/mcpserver"
	"ralph/store"
)

// starts is the number of server starts in a round.
const starts = 10

// calls is the number of signals to a server in a round. A session takes up to 200.
const calls = 100

// program builds the program in that folder of the bench, unless it is there.
func (b *bench) program(ctx context.Context, name string) (path string) {
	path = filepath.Join(b.dir, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./"+name)
	cmd.Dir = filepath.Join(b.module, "internal", "tools", "bench")
	output(cmd)
	return path
}

// A server is a process that serves tools on stdio.
type server struct {
	*mcp.ClientSession
	came time.Duration // time from its start to its answer to initialize
}

func dial(ctx context.Context, cmd *exec.Cmd) server {
	client := mcp.NewClient(&mcp.Implementation{Name: "bench"}, nil)
	begin := time.Now()
	session := must(client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil))
	return server{session, time.Since(begin)}
}

func (s server) close() { check(s.Close()) }

// call calls a tool and returns how long that took.
func (s server) call(ctx context.Context, tool string, arguments map[string]any) (time.Duration, error) {
	begin := time.Now()
	result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	took := time.Since(begin)
	if err == nil && result.IsError {
		err = fmt.Errorf("%s was refused: %v", tool, result.Content)
	}
	return took, err
}

// serverOf starts `ralph mcp` for a session.
func (p project) serverOf(ctx context.Context, a agent.Assignment) server {
	cmd := p.command(ctx, p.ralph, "mcp")
	cmd.Env = append(append(cmd.Env, pipe.Variable+"="+a.Channel.Socket), a.Env...)
	return dial(ctx, cmd)
}

// overHTTP serves a session on loopback, with a token: the floor for `ralph mcp`.
func (p project) overHTTP(ctx context.Context, a agent.Assignment) (dial func() server, shut func()) {
	db := must(store.Open(ctx, p.database(), store.Options{}))
	s := mcpserver.Session{Store: db, TaskID: a.TaskID, SessionID: a.SessionID}
	clients := mcpserver.NewClients("token", func() (*mcp.Server, func()) { return s.Server(), func() {} })
	web := httptest.NewServer(clients)
	dial = func() server {
		client := mcp.NewClient(&mcp.Implementation{Name: "bench"}, nil)
		connection := &http.Client{Transport: bearer{&http.Transport{}}}
		begin := time.Now()
		session := must(client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: web.URL, HTTPClient: connection}, nil))
		return server{session, time.Since(begin)}
	}
	return dial, func() {
		check(clients.Close())
		web.Close()
		check(db.Close())
	}
}

// A bearer sends the token.
type bearer struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer token")
	return b.RoundTripper.RoundTrip(r)
}

// learned is a signal of the usual size.
var learned = map[string]any{"text": learnedText, "kind": "discovery", "scope": "project"}

const learnedText = "The cache of the parser lives in /var/cache/parser and is safe to delete"

const learnedTool = "ralph.signal.learned"

// servers compares `ralph mcp` with the smallest server of the same SDK: the time to
// start, and from a signal to its durable reply.
func (b *bench) servers(ctx context.Context) []row {
	floor := b.program(ctx, "floor")
	p, list := b.withSessions(ctx, 10, 3*b.rounds)
	var came, floorCame, httpCame, signal, httpSignal, insert, empty samples
	for own := range slices.Chunk(list, 3) {
		dialHTTP, shutHTTP := p.overHTTP(ctx, own[1])
		for range starts {
			served, shut := p.channels(ctx, own[:1]) // a session has one server
			s := p.serverOf(ctx, served[0])
			came.took(s.came)
			s.close()
			shut()
			s = dial(ctx, p.command(ctx, floor))
			floorCame.took(s.came)
			s.close()
			s = dialHTTP()
			httpCame.took(s.came)
			s.close()
		}
		served, shut := p.channels(ctx, own[:1])
		p.signalOnce(ctx, served[0], own[2], floor, dialHTTP, &signal, &httpSignal, &insert, &empty)
		shut()
		shutHTTP()
	}
	sum := samples{unit: "ms", values: []float64{insert.median() + empty.median()}}
	what := fmt.Sprintf("a signal: call to durable reply (floor: the INSERT %s ms + an empty call %s ms)",
		number(insert.median()), number(empty.median()))
	compare := func(what string, product, other samples) row {
		return row{what: what, product: product, floor: other, value: number(product.median()/other.median()) + "×"}
	}
	return []row{
		ratio("`ralph mcp`: start to answered `initialize`", came, floorCame, 1.3),
		compare("… against HTTP on loopback, from the connection", came, httpCame),
		ratio(what, signal, sum, 1.2),
		compare("… against HTTP on loopback", signal, httpSignal),
	}
}

// signalOnce sends signals to ralph, calls an empty tool, and inserts the same rows for another session in this
// process, alternately.
func (p project) signalOnce(
	ctx context.Context, a, other agent.Assignment, floor string, dialHTTP func() server,
	signal, overHTTP, insert, empty *samples,
) {
	s := p.serverOf(ctx, a)
	defer s.close()
	web := dialHTTP()
	defer web.close()
	idle := dial(ctx, p.command(ctx, floor))
	defer idle.close()
	// Like the store. Only the store has SQL elsewhere; this is the floor for it.
	db := must(sql.Open("sqlite3",
		"file:"+p.database()+"?_txlock=immediate&_synchronous=FULL&_foreign_keys=1&_busy_timeout=30000"))
	defer func() { check(db.Close()) }()
	db.SetMaxOpenConns(1)
	for i := range calls + 5 {
		took, nothing := must(s.call(ctx, learnedTool, learned)), must(idle.call(ctx, "nothing", nil))
		onWeb := must(web.call(ctx, learnedTool, learned))
		begin := time.Now()
		must(db.ExecContext(ctx, `
			INSERT INTO task_comments (task_id, session_id, author, author_kind, signal_verb, signal_payload, body, created)
			VALUES ($1, $2, 'agent', 'agent', 'learned', $3, $4, $5)`, other.TaskID, other.SessionID,
			`{"text":"`+learnedText+`","kind":"discovery","scope":"project"}`, learnedText, ralph.At(begin).String()))
		alone := time.Since(begin)
		if i < 5 {
			continue // the first ones open the files for the others
		}
		signal.took(took)
		overHTTP.took(onWeb)
		empty.took(nothing)
		insert.took(alone)
	}
}

// writersAtOnce is the number of servers that signal at the same time, beside a daemon.
const writersAtOnce = 8

// writers has many servers and a daemon write at once, and one server alone.
func (b *bench) writers(ctx context.Context) []row {
	var together, alone, slow samples
	together.unit, alone.unit, slow.unit = "signals/s", "signals/s", "×"
	for range b.rounds {
		took, each := b.signalling(ctx, writersAtOnce, calls)
		together.add(float64(writersAtOnce*calls) / took.Seconds())
		slow.add(each.quantile(0.99) / each.median())
		took, _ = b.signalling(ctx, 1, calls)
		alone.add(calls / took.Seconds())
	}
	share := together.median() / alone.median()
	const least, most = 0.8, 10
	return []row{
		{
			what:    "eight servers and the daemon signalling at once",
			product: together,
			floor:   alone,
			value:   number(share) + "×, no error",
			aim:     "≥ 0.8×",
			met:     share >= least,
		},
		{
			what:    "… the slowest hundredth of their signals over the median",
			product: slow,
			value:   number(slow.median()) + "×",
			aim:     "< 10×",
			met:     slow.median() < most,
		},
	}
}

// signalling makes n servers send signals at once, while a daemon runs. With several, a writer in this process
// writes like a running loop.
func (b *bench) signalling(ctx context.Context, n, each int) (took time.Duration, all samples) {
	p, list := b.withSessions(ctx, 10, n)
	list, shut := p.channels(ctx, list)
	defer shut()
	servers := make([]server, n)
	for i := range servers {
		servers[i] = p.serverOf(ctx, list[i])
	}
	over := make(chan struct{})
	var daemon, calling sync.WaitGroup
	errs := make([]error, n+1)
	if n > 1 {
		daemon.Go(func() { errs[n] = p.observe(ctx, list, over) })
	}
	each1 := make([]samples, n)
	begin := time.Now()
	for i, s := range servers {
		calling.Go(func() {
			for range each {
				d, err := s.call(ctx, learnedTool, learned)
				if err != nil {
					errs[i] = err
					return
				}
				each1[i].took(d)
			}
		})
	}
	calling.Wait()
	took = time.Since(begin)
	close(over)
	daemon.Wait()
	for i, s := range servers {
		errs[i] = errors.Join(errs[i], s.Close())
		all.values = slices.Concat(all.values, each1[i].values)
	}
	check(errors.Join(errs...))
	return took, all
}

// observe writes down phases of sessions, as a loop does while they run.
func (p project) observe(ctx context.Context, list []agent.Assignment, over <-chan struct{}) error {
	db, err := store.Open(ctx, p.database(), store.Options{})
	if err != nil {
		return err
	}
	phases := []ralph.Phase{ralph.PhaseAnalyzing, ralph.PhaseImplementing, ralph.PhaseTesting}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-over:
			return db.Close()
		case <-tick.C:
		}
		err := db.Tx(ctx, func(tx *store.Tx) error {
			_, err := tx.ObserveState(list[i%len(list)].SessionID, phases[i%len(phases)], tx.Now())
			return err
		})
		if err != nil {
			return errors.Join(err, db.Close())
		}
	}
}
