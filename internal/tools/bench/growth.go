package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ralph"
	"ralph/store"
)

// inOneRun is the number of tasks in a run for a session's average.
const inOneRun = 5

// nights are invented runs, with the number of merged tasks and the hours since the run before.
type nights struct{ tasks, hours int }

// growth returns the cost of commands and sessions by the number of merged tasks.
func (b *bench) growth(ctx context.Context) (rows []row) {
	commands := [][]string{{"status"}, {"task", "show", "1"}, {"inbox"}}
	mergedTasks := []int{0, b.size(500), b.size(5_000)} // the first is the floor
	projects := make([]project, len(mergedTasks))
	took := make([][]samples, len(mergedTasks))
	for i, n := range mergedTasks {
		projects[i], took[i] = b.merged(ctx, n), make([]samples, len(commands)+1)
	}
	for range b.rounds {
		for i, p := range projects { // turn about
			for c, args := range commands {
				cpu, _ := p.used(ctx, args)
				took[i][c].took(cpu)
			}
			p.tasks(ctx, inOneRun)
			cpu, _ := p.used(ctx, []string{"run"})
			took[i][len(commands)].took(cpu / inOneRun)
		}
	}
	for i, n := range mergedTasks {
		after := fmt.Sprintf("after %d merged tasks", n)
		for c := range took[i] {
			if i == 0 {
				continue
			}
			what := "a session in a workspace with its merge"
			if c < len(commands) {
				what = "`ralph " + strings.Join(commands[c], " ") + "`"
			}
			rows = append(rows, ratio(fmt.Sprintf("%s %s: CPU (floor: after none)", what, after), took[i][c], took[0][c], 1.2))
		}
		if i == len(mergedTasks)-1 {
			rows = append(rows, projects[i].bounded(ctx, after)...)
		}
	}
	return rows
}

// bounded returns the refs of ralph and the loose objects of a repository.
func (p project) bounded(ctx context.Context, after string) []row {
	refs := strings.Count(string(must(p.command(ctx, "git", "for-each-ref", "refs/ralph").Output())), "\n")
	loose := len(must(filepath.Glob(filepath.Join(p.dir, ".git", "objects", "??", "*"))))
	const mostRefs, mostLoose = 20, 7_000
	return []row{
		{what: "refs of ralph " + after, value: fmt.Sprint(refs), aim: fmt.Sprintf("≤ %d", mostRefs), met: refs <= mostRefs},
		{
			what: "loose objects " + after, value: fmt.Sprint(loose), aim: fmt.Sprintf("≤ %d", mostLoose),
			met: loose <= mostLoose,
		},
	}
}

// tasks adds tasks to the queue.
func (p project) tasks(ctx context.Context, n int) {
	p.fill(ctx, func(tx *store.Tx) {
		for i := range n {
			must(tx.AddTask(ralph.Task{Title: fmt.Sprintf("Write file %d", i)}, "human"))
		}
	})
}

// merged returns a project with one real merged task, and n more with the same traces: rows, commits on the branch, a
// file and the refs after a merge.
func (b *bench) merged(ctx context.Context, n int) project {
	p := b.newProject(ctx, 100)
	write := func(name, text string) { check(os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600)) }
	write("claude.script", writesAFile)
	write(".gitignore", "*.sessions\n")
	write("ralph.yaml", string(must(os.ReadFile(filepath.Join(p.dir, "ralph.yaml"))))+"verify: [\"true\"]\n")
	p.time(ctx, "git", "add", "-A")
	p.time(ctx, "git", "commit", "-qm", "the project")
	p.time(ctx, "git", "branch", "-qM", "main")
	p.tasks(ctx, 1)
	p.time(ctx, p.ralph, "run")
	if n == 0 {
		return p
	}
	commits := p.commits(ctx, n)
	db := must(sql.Open("sqlite3", "file:"+p.database()+"?_synchronous=OFF&_txlock=immediate"))
	tx := must(db.BeginTx(ctx, nil))
	first := 1_000_000
	nights{30, 6}.copy(ctx, tx, first, n)
	for i, c := range commits {
		must(tx.ExecContext(ctx, `
			UPDATE changes SET base = $1, head = $2, from_commit = $1, to_commit = $3 WHERE task_id = $4`,
			c[0], c[1], c[2], first+i))
	}
	check(tx.Commit())
	check(db.Close())
	return p
}

// copy repeats the rows of the only task, for n tasks from a number on, each in its run.
func (o nights) copy(ctx context.Context, tx *sql.Tx, first, n int) {
	for _, table := range []string{
		"runs", "tasks", "sessions", "changes", "events", "verifications", "baselines", "task_comments",
		"permission_requests",
	} {
		o.copyRows(ctx, tx, table, first, n)
	}
}

// copyRows is copy for one table.
func (o nights) copyRows(ctx context.Context, tx *sql.Tx, table string, first, n int) {
	columns := func() (names []string) { // but for generated ones
		rows := must(tx.QueryContext(ctx, "SELECT name FROM pragma_table_info($1)", table))
		defer rows.Close() //nolint:errcheck // rows.Err tells
		for rows.Next() {
			var name string
			check(rows.Scan(&name))
			names = append(names, name)
		}
		check(rows.Err())
		return names
	}()
	var into, from []string
	const session = "printf('00000000-0000-4000-8000-%012d', n.i)"
	run := fmt.Sprintf("(%d + (n.i - %[1]d) / %d)", first, o.tasks)
	earlier := fmt.Sprintf("'-' || (%d * ((%d - n.i) / %d + 1)) || ' hours'", o.hours, first+n, o.tasks)
	where := "1 = 1"
	for _, c := range columns {
		value := "t." + c
		switch {
		case strings.HasSuffix(c, "_at"), c == "created", c == "updated":
			value = fmt.Sprintf("CASE t.%s WHEN '' THEN '' ELSE strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', t.%[1]s, %s) END",
				c, earlier)
		case c == "id" && table == "runs":
			value, where = run, fmt.Sprintf("t.id = 1 AND (n.i - %d) %% %d = 0", first, o.tasks)
		case c == "run_id":
			value = run
		case c == "id" && table == "tasks":
			value, where = "n.i", "t.id = 1"
		case c == "id" && table == "sessions", c == "session_id":
			value = session
		case c == "id":
			continue
		case c == "task_id":
			value, where = "n.i", "t.task_id = 1"
		case table == "verifications" && c == "content":
			value = "t.content || n.i"
		}
		into, from = append(into, c), append(from, value)
	}
	must(tx.ExecContext(ctx, fmt.Sprintf(`
		WITH RECURSIVE n(i) AS (SELECT $1 UNION ALL SELECT i + 1 FROM n WHERE i < $1 + $2 - 1)
		INSERT INTO %s (%s) SELECT %s FROM %s t, n WHERE %s ORDER BY n.i`,
		table, strings.Join(into, ", "), strings.Join(from, ", "), table, where), first, n))
}

// commits adds merges to the branch, each the merge of a commit, and returns base, head and merge of each.
func (p project) commits(ctx context.Context, n int) (list [][3]string) {
	var in strings.Builder
	who := fmt.Sprintf("committer a <a@localhost> %d +0000\n", time.Now().Unix())
	data := func(text string) string { return fmt.Sprintf("data %d\n%s\n", len(text), text) }
	for i := range n {
		base := fmt.Sprintf(":%d", 2*i)
		if i == 0 {
			base = "refs/heads/main^0"
		}
		// Existing files: growth measures the number of merges, not the size of the project.
		file := fmt.Sprintf("M 100644 inline src/0000/file%02d.go\n%s", i%100, data(fmt.Sprintf("package p\n\n// %d\n", i)))
		fmt.Fprintf(&in, "commit refs/heads/made\nmark :%d\n%s%sfrom %s\n%s", 2*i+1, who, data("It was done."), base, file)
		fmt.Fprintf(&in, "commit refs/heads/main\nmark :%d\n%s%sfrom %s\nmerge :%d\n%s",
			2*i+2, who, data(fmt.Sprintf("TASK-%d: Write a file", i)), base, 2*i+1, file)
	}
	marks := p.dir + "-marks"
	cmd := p.command(ctx, "git", "fast-import", "--quiet", "--export-marks="+marks)
	cmd.Stdin = strings.NewReader(in.String())
	output(cmd)
	tip := strings.TrimSpace(string(must(p.command(ctx, "git", "rev-parse", "main~"+fmt.Sprint(n)).Output())))
	ids := map[string]string{"0": tip}
	for line := range strings.Lines(string(must(os.ReadFile(marks)))) {
		mark, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		ids[strings.TrimPrefix(mark, ":")] = id
	}
	for i := range n {
		list = append(list, [3]string{ids[fmt.Sprint(2*i)], ids[fmt.Sprint(2*i+1)], ids[fmt.Sprint(2*i+2)]})
	}
	for _, args := range [][]string{
		{"reset", "-q", "--hard"},
		{"branch", "-qD", "made"},
		{"update-ref", "refs/ralph/target/main", "main"},
		{"update-ref", "refs/ralph/seen/main", "main"},
	} {
		p.time(ctx, "git", args...)
	}
	return list
}
