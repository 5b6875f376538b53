package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// manyTasks is the queue on which commands are measured, fewTasks that of the floor;
// manyFailed are tasks that failed, which all wait for a person.
const (
	manyTasks  = 100_000
	manyFailed = 10_000
	fewTasks   = 100
)

// commands are the everyday commands on a long queue: the processor's time and the memory
// of each, compared with the same on a short one.
func (b *bench) commands(ctx context.Context) []row {
	open, failed := "- [ ] Task %d\n", `{"ralph":"task","id":"%d","title":"Task","status":"failed"}`+"\n"
	long, short := b.imported(ctx, manyTasks, open), b.imported(ctx, fewTasks, open)
	hopeless := b.imported(ctx, manyFailed, failed)
	var list []row
	for _, m := range []struct {
		on   project
		with string
		args []string
	}{
		{long, "100,000 tasks", []string{"task", "list"}},
		{long, "100,000 tasks", []string{"__complete", "task", "show", "9"}},
		{long, "100,000 tasks", []string{"status"}},
		{long, "100,000 tasks", []string{"inbox"}},
		{hopeless, "10,000 failed tasks", []string{"status"}},
	} {
		args := m.args
		var took, floor, rss samples
		rss.unit = "MB"
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
		const most, memory = 2.0, 64.0
		list = append(list, ratio(what+": CPU (floor: with 100)", took, floor, most), row{
			what: what + ": memory", product: rss, value: number(rss.quantile(1)) + " MB at most",
			aim: fmt.Sprintf("≤ %.0f MB", memory), met: rss.quantile(1) <= memory,
		})
	}
	return list
}

// imported is a project with so many tasks of a file, of which each has such a line.
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

// used is the processor's time of a command, and its memory at most, in MB (10⁶ bytes).
func (p project) used(ctx context.Context, args []string) (cpu time.Duration, memory float64) {
	cmd := p.command(ctx, p.ralph, args...)
	output(cmd)
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		check(fmt.Errorf("%s: its memory is not known", strings.Join(args, " ")))
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), float64(usage.Maxrss) * 1024 / 1e6
}
