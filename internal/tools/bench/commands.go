package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ralph"
	"ralph/store"
)

// manyTasks is the size of the queue on which commands are measured, fewTasks that of the floor.
// manyFailed is the number of failed tasks, which all wait for a person. manySessions is the number
// of sessions in one night.
const (
	manyTasks    = 100_000
	manyFailed   = 10_000
	manySessions = 1_000
	fewTasks     = 100
)

// commands returns the everyday commands on a long queue: the CPU time and the memory of each, compared with a short
// queue.
func (b *bench) commands(ctx context.Context) []row {
	open, failed := "- [ ] Task %d\n", `{"ralph":"task","id":"%d","title":"Task","status":"failed"}`+"\n"
	long, short := b.imported(ctx, b.size(manyTasks), open), b.imported(ctx, fewTasks, open)
	hopeless, night := b.imported(ctx, b.size(manyFailed), failed), b.imported(ctx, b.size(manyTasks), open)
	night.works(ctx, b.size(manySessions))
	var list []row
	rss := samples{unit: "MB"}
	for _, m := range []struct {
		on   project
		with string
		args []string
	}{
		{long, "100,000 tasks", []string{"task", "list"}},
		{long, "100,000 tasks", []string{"__complete", "task", "show", "9"}},
		{long, "100,000 tasks", []string{"status"}},
		{long, "100,000 tasks", []string{"inbox"}},
		{night, "100,000 tasks and 1,000 sessions in the last run", []string{"status"}},
		{hopeless, "10,000 failed tasks", []string{"status"}},
	} {
		args := m.args
		var took, floor samples
		for range b.rounds {
			cpu, memory := m.on.used(ctx, args)
			took.took(cpu)
			rss.add(memory)
			cpu, _ = short.used(ctx, args)
			floor.took(cpu)
		}
		what := "`ralph " + strings.Join(args, " ") + "` with " + m.with
		if args[0] == "__complete" {
			what = "completion of `ralph task show 9` with " + m.with
		}
		const most, cpu = 2.0, 100.0
		processor := ratio(what+": CPU (floor: with 100)", took, floor, most)
		if m.on == night { // the floor has no night to sum up
			processor.aim, processor.met = fmt.Sprintf("≤ %.0f ms", cpu), took.quantile(1) <= cpu
		}
		list = append(list, processor)
	}
	const memory = 64.0
	return append(list, row{
		what: "… their memory", product: rss, value: number(rss.quantile(1)) + " MB at most",
		aim: fmt.Sprintf("≤ %.0f MB", memory), met: rss.quantile(1) <= memory,
	})
}

// imported returns a project with n tasks from a file with that line for each.
func (b *bench) imported(ctx context.Context, tasks int, line string) project {
	p := b.newProject(ctx, 1)
	var text strings.Builder
	for i := range tasks {
		fmt.Fprintf(&text, line, i)
	}
	file := filepath.Join(b.dir, "tasks")
	check(os.WriteFile(file, []byte(text.String()), 0o600))
	p.time(ctx, b.ralph, "import", file)
	return p
}

// works gives the queue a night with n sessions that each completed a task.
func (p project) works(ctx context.Context, sessions int) {
	p.fill(ctx, func(tx *store.Tx) {
		run := must(tx.StartRun("", ralph.Limits{}, "")).ID
		must(tx.ExecContext(ctx, `INSERT INTO sessions (id, task_id, run_id, attempt, outcome, ending, cost_usd,
				files, commits, decision, facts, started_at, updated_at, completed_at)
			SELECT lower(hex(randomblob(16))), id, $1, 1, 'success', 'finished', 0.25,
				'[{"path":"src/a.go","status":"modified","added":10,"removed":2},
				{"path":"src/' || id || '.go","status":"added","added":90}]',
				'["' || lower(hex(randomblob(20))) || '"]', '{"reason":"' || $2 || '"}', '{"reason":"' || $2 || '"}',
				'2026-01-01T00:00:00.000Z', '2026-01-01T01:00:00.000Z', '2026-01-01T01:00:00.000Z'
			FROM tasks ORDER BY id LIMIT $3`, run, strings.Repeat("it is done ", 100), sessions))
		must(tx.ExecContext(ctx, `UPDATE tasks SET status = 'completed', completed_at = '2026-01-01T01:00:00.000Z'
			WHERE id IN (SELECT task_id FROM sessions)`))
		check(tx.EndRun(run, ralph.ExitOK, "nothing is left to do"))
	})
}

// used returns the processor's time of a command, and its memory at most, in MB (10⁶ bytes).
func (p project) used(ctx context.Context, args []string) (cpu time.Duration, memory float64) {
	return p.bench.used(ctx, p.command(ctx, p.ralph, args...))
}

// used runs a command by the program of that name, which prints the values for [project.used].
func (b *bench) used(ctx context.Context, cmd *exec.Cmd) (cpu time.Duration, memory float64) {
	program := b.program(ctx, "used")
	cmd.Args, cmd.Path = append([]string{program, cmd.Path}, cmd.Args[1:]...), program
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err == nil {
		_, err = fmt.Sscan(string(text), &cpu, &memory)
	}
	if err != nil {
		check(fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args[1:], " "), err, stderr.String()))
	}
	return cpu, memory / 1e6
}
