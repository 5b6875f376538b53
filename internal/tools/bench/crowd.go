package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/store"
)

//go:embed testdata/crowd
var crowdFiles embed.FS

// The agent's waits in a crowd, and the verification.
const (
	agentWaits  = 2.0 // seconds
	verifyWaits = 0.5
)

// A crowd is a project whose tasks several sessions work on at once.
type crowd struct {
	project
	names []string // names of the tasks
}

// twelve are four tasks that insert at the same place, two that fail only when both are
// merged, and six that have nothing to do with each other.
var twelve = []string{"ant", "bee", "cat", "dog", "rename", "call", "own0", "own1", "own2", "own3", "own4", "own5"}

// newCrowd makes a project with a task for each name, which selects its part of agent.sh.
func (b *bench) newCrowd(ctx context.Context, names []string, verify string) crowd {
	c := crowd{b.newProject(ctx, 0), names}
	write := func(name, text string) { check(os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600)) }
	for _, name := range []string{"agent.sh", "verify.sh"} {
		write(name, string(must(crowdFiles.ReadFile("testdata/crowd/"+name))))
	}
	write("list.txt", "animals\nplants\n")
	write("lib.sh", "greet_old() { :; }\n")
	write("use_first.sh", "greet_old\n")
	write(".gitignore", "*.sessions\n")
	var script strings.Builder
	for _, name := range names {
		done := fmt.Sprintf("  done {\"summary\": %q}\n", name)
		fmt.Fprintf(&script, "task Task %s.\n  run sh agent.sh %g %s\n%s", name, b.waits(agentWaits), name, done)
		for range 8 {
			fmt.Fprintf(&script, "turn\n  run sh agent.sh merge %s\n%s", name, done)
		}
	}
	write("claude.script", script.String())
	config := must(os.ReadFile(filepath.Join(c.dir, "ralph.yaml")))
	write("ralph.yaml", fmt.Sprintf("%spermissions: {guards: false}\nverify: [%q]\n", config, verify))
	c.time(ctx, "git", "add", "-A")
	c.time(ctx, "git", "commit", "-qm", "the project")
	c.time(ctx, "git", "branch", "-qM", "main")
	c.fill(ctx, func(tx *store.Tx) {
		for _, name := range names {
			must(tx.AddTask(ralph.Task{Title: "Task " + name + "."}, "human"))
		}
	})
	return c
}

// work makes n sessions at once work through the tasks.
func (c crowd) work(ctx context.Context, sessions int) time.Duration {
	return c.time(ctx, c.ralph, "run", "--parallel", fmt.Sprint(sessions))
}

// red counts the commits of main's first-parent line that fail the verification.
func (c crowd) red(ctx context.Context) (n int) {
	const script = `git clone -q . "$1" && cd "$1" && for c in $(git rev-list --first-parent main); do
		git checkout -q "$c" && if test -e verify.sh && ! sh verify.sh; then echo "$c"; fi; done`
	out := must(c.command(ctx, "sh", "-c", script, "sh", c.dir+"-clone").Output())
	return strings.Count(string(out), "\n")
}

// crowds measures how much faster several sessions are than one, and than a shell loop.
func (b *bench) crowds(ctx context.Context) (rows []row) {
	tasks, mixed := 32, twelve
	if b.small {
		tasks, mixed = 4, twelve[2:6] // which still conflict and break each other
	}
	own := make([]string, tasks)
	for i := range own {
		own[i] = fmt.Sprintf("own%d", i)
	}
	waits := fmt.Sprintf("sleep %g; sh verify.sh", b.waits(verifyWaits))
	measure := func(sessions int, names []string) (took samples, red int) {
		c := b.newCrowd(ctx, names, waits)
		took.took(c.work(ctx, sessions))
		return took, c.red(ctx)
	}
	one, _ := measure(1, own)
	for _, aim := range []struct {
		sessions int
		least    float64
	}{{2, 1.9}, {4, 3.6}, {8, 6.5}} {
		took, _ := measure(aim.sessions, own)
		times := one.median() / took.median()
		rows = append(rows, row{
			what:    fmt.Sprintf("%d tasks, %d sessions at once (floor: one)", tasks, aim.sessions),
			product: took, floor: one, value: number(times) + "× as fast",
			aim: fmt.Sprintf("≥ %g×", aim.least), met: times >= aim.least,
		})
	}
	third := slices.Clone(own)
	for i := range third {
		if i%10 < 3 {
			third[i] = fmt.Sprintf("insert%d", i)
		}
	}
	took, red := measure(8, third)
	times := one.median() / took.median()
	rows = append(rows, row{
		what: "… 8 sessions, 30 % of the tasks conflict; all are completed", product: took, floor: one,
		value: number(times) + "× as fast",
	})
	var ours, theirs samples
	for range max(b.rounds/2, 1) {
		c := b.newCrowd(ctx, mixed, "sh verify.sh")
		ours.took(c.work(ctx, 4))
		red += c.red(ctx)
		c = b.newCrowd(ctx, mixed, "sh verify.sh")
		loop := string(must(crowdFiles.ReadFile("testdata/crowd/loop.sh")))
		args := append([]string{"-c", loop, "loop", fmt.Sprint(b.waits(agentWaits)), "4"}, mixed...)
		theirs.took(c.time(ctx, "bash", args...))
	}
	return append(rows,
		ratio("twelve tasks, six of them in conflict, 4 sessions (floor: a shell loop)", ours, theirs, 0.9),
		row{what: "… commits on main that do not pass, in both of these", value: fmt.Sprint(red), aim: "0", met: red == 0},
	)
}
