package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Years of work, the base for measuring pages and commands: the number of tasks, three in five of them merged in
// nights of aNight each, and ten comments and events a task.
const (
	aNight     = 500
	perTask    = 10
	inFeatures = 20
	chattyTask = 1 // it has a hundredth of all comments
)

// asks is the number of requests for each page in a round.
const asks = 10

// years returns a project with the given number of tasks.
func (b *bench) years(ctx context.Context, tasks int) project {
	p := b.merged(ctx, 0)
	// In memory until it is complete: no log beside it, and no page written twice.
	db := must(sql.Open("sqlite3", "file:"+p.database()+
		"?_synchronous=OFF&_txlock=immediate&_journal_mode=OFF&_cache_size=-1000000"))
	db.SetMaxOpenConns(1)
	tx := must(db.BeginTx(ctx, nil))
	merged := tasks * 3 / 5
	nights{aNight, 24}.copy(ctx, tx, 2, merged-1)
	do := func(statement string, args ...any) { must(tx.ExecContext(ctx, statement, args...)) }
	do(`INSERT INTO features (name, created, updated)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
		SELECT 'feature ' || i, '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z' FROM n`, inFeatures)
	do(`INSERT INTO tasks (title, normal_title, description, status, priority, created, updated)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
		SELECT 'Task ' || i, 'task ' || i, 'What task ' || i || ' is about, in a line or two.',
			CASE WHEN i % 100 = 1 THEN 'failed' WHEN i % 200 = 2 THEN 'proposed' ELSE 'pending' END, i % 5,
			'2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z'
		FROM n`, tasks-merged)
	do(`UPDATE tasks SET feature_id = 1 + id % $1`, inFeatures)
	do(`INSERT INTO task_dependencies (task_id, depends_on, source, created)
		SELECT id, id - 1, 'human', '2026-01-01T00:00:00.000Z' FROM tasks WHERE id % 8 <> 0 AND id > 1`)
	// SQLite numbers parameters in the order in which they first appear, ignoring their names.
	do(`INSERT INTO task_comments (task_id, author, author_kind, kind, body, resolved_at)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
		SELECT CASE WHEN i % 100 = 0 THEN $2 ELSE 1 + i % $3 END, 'somebody', 'human',
			CASE WHEN i % 10 = 0 THEN 'question' ELSE 'note' END, 'A word on it, the ' || i || 'th.',
			CASE WHEN i % 10000 <> 0 THEN '2026-01-01T00:00:00.000Z' ELSE '' END
		FROM n`, (perTask-2)*tasks, chattyTask, tasks)
	// Agents' flags, questions and suggestions; one in a thousand is open.
	do(`INSERT INTO task_comments (task_id, session_id, author, author_kind, signal_verb, signal_payload, signal_answered,
			body, resolved_at)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
		SELECT 1 + i % $2, printf('00000000-0000-4000-8000-%012d', 2 + i % ($2 / 2)), 'agent', 'agent',
			CASE i % 3 WHEN 0 THEN 'flag' WHEN 1 THEN 'ask' ELSE 'suggest' END,
			CASE i % 3 WHEN 0 THEN '{"what":"odd","severity":"warning","category":"bug"}'
				WHEN 1 THEN '{"question":"which?","blocking":false}'
				ELSE '{"what":"a test","kind":"alternative","why":"there is none"}' END,
			CASE WHEN i % 3 = 1 AND i % 1000 <> 1 THEN 'the first' END, 'A word',
			CASE WHEN i % 1000 > 2 THEN '2026-01-01T00:00:00.000Z' ELSE '' END
		FROM n`, tasks, tasks)
	do(`INSERT INTO learnings (text, kind, scope, origin, author, last_seen, created)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
		SELECT 'The cache of part ' || i || ' is safe to delete', 'discovery', 'project', 'agent', 'agent',
			'2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z' FROM n`, tasks/100)
	check(tx.Commit())
	must(db.ExecContext(ctx, "PRAGMA journal_mode = WAL"))
	check(db.Close())
	return p
}

// A serving is `ralph serve` of a project.
type serving struct {
	cmd *exec.Cmd
	url string
}

// serve starts the dashboard.
func (p project) serve(ctx context.Context) serving {
	cmd := p.command(ctx, p.ralph, "serve", "--addr", "127.0.0.1:0", "--sign-in", "changes")
	said := must(cmd.StderrPipe())
	check(cmd.Start())
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "dashboard on "); ok {
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return serving{cmd, at}
		}
	}
	check(errors.Join(errors.New("the dashboard does not begin"), cmd.Wait()))
	return serving{}
}

// end stops the dashboard as Ctrl-C does.
func (s serving) end() {
	check(s.cmd.Process.Signal(syscall.SIGINT))
	var exit *exec.ExitError
	if err := s.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		check(err)
	}
}

// ask returns the CPU time of a request. Each request has another address, so that its page is rendered again.
func (s serving) ask(ctx context.Context, path string) time.Duration {
	before := cpuTime(s.cmd.Process.Pid)
	for range asks {
		r := must(http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil))
		q := r.URL.Query()
		q.Set("asked", rand.Text())
		r.URL.RawQuery = q.Encode()
		answer, err := http.DefaultClient.Do(r)
		check(err)
		must(io.Copy(io.Discard, answer.Body))
		check(answer.Body.Close())
		if answer.StatusCode != http.StatusOK {
			check(fmt.Errorf("%s: %s", path, answer.Status))
		}
	}
	return (cpuTime(s.cmd.Process.Pid) - before) / asks
}

// paths are the pages for people, and the ones for programs.
var paths = []string{
	"/", "/inbox", "/tasks", "/tasks?q=999", "/board", "/tasks/1", "/features", "/runs/2", "/runs", "/sessions",
	"/sessions/00000000-0000-4000-8000-000000000002", "/charts", "/learnings", "/metrics", "/healthz",
}

// pages returns the cost of pages and commands after years of work.
func (b *bench) pages(ctx context.Context) (list []row) {
	const small, most = 100, 50.0
	large := b.size(100_000)
	long, short := b.years(ctx, large), b.years(ctx, small)
	one, other := long.serve(ctx), short.serve(ctx)
	defer one.end()
	defer other.end()
	add := func(what string, took, floor samples) {
		r := ratio(what+" with 100,000 tasks: CPU (floor: with 100)", took, floor, most)
		r.aim, r.met = fmt.Sprintf("≤ %.0f ms", most), took.median() <= most
		list = append(list, r)
	}
	for _, path := range paths {
		var took, floor samples
		one.ask(ctx, path) // first reads are not measured
		for range b.rounds {
			took.took(one.ask(ctx, path))
			floor.took(other.ask(ctx, path))
		}
		add("`GET "+path+"`", took, floor)
	}
	list = append(list, long.open(ctx, "with 100,000 tasks")...)
	for _, args := range [][]string{{"status"}, {"report"}, {"inbox"}, {"task", "show", "1"}, {"task", "graph"}} {
		var took, floor samples
		for range b.rounds {
			cpu, _ := long.used(ctx, args)
			took.took(cpu)
			cpu, _ = short.used(ctx, args)
			floor.took(cpu)
		}
		more := difference(took, floor)
		list = append(list, row{
			what:    "`ralph " + strings.Join(args, " ") + "` with 100,000 tasks: CPU (floor: with 100)",
			product: took, floor: floor, value: more.signed(), aim: fmt.Sprintf("≤ +%.0f ms", most),
			met: more.median() <= most,
		})
	}
	return list
}
