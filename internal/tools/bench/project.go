package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// An agent that signals done at once. It has no checks and changes nothing, so ralph asks
// once more, and it answers done again.
const doneAtOnce = `task *
  done {"summary": "It was done already: go test ./... passes."}
turn
  done {"summary": "It was done already: go test ./... passes."}
`

// A project is a repository with a queue.
type project struct {
	*bench
	dir string
}

// newProject makes a repository with n committed files, in folders of 100.
func (b *bench) newProject(ctx context.Context, files int) project {
	p := project{bench: b, dir: must(os.MkdirTemp(b.dir, "project-*"))}
	for name, text := range map[string]string{
		"ralph.yaml": fmt.Sprintf("agent: {command: [%q, scripted-agent]}\n", b.ralph) +
			"limits: {max_sessions: 100000, stagnant_sessions: 100000, max_tasks: 100000, " +
			"max_cost_usd: 100000, max_cost_per_day_usd: 100000}\n",
		"claude.script": doneAtOnce,
	} {
		check(os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
	}
	for i := range files {
		folder := filepath.Join(p.dir, "src", fmt.Sprintf("%04d", i/100))
		if i%100 == 0 {
			check(os.MkdirAll(folder, 0o700))
		}
		text := fmt.Appendf(nil, "package p\n\nconst Value%d = %d\n", i, i)
		check(os.WriteFile(filepath.Join(folder, fmt.Sprintf("file%02d.go", i%100)), text, 0o600))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "begin"}} {
		p.time(ctx, "git", args...)
	}
	return p
}

// command is a command in the project, out of reach of the user's configuration.
func (p project) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "HOME="+p.bench.dir, "XDG_CONFIG_HOME="+p.bench.dir,
		"RALPH_STATE_DIR="+p.state(), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost")
	return cmd
}

// time runs a command to its end and returns how long it took.
func (p project) time(ctx context.Context, name string, args ...string) time.Duration {
	return output(p.command(ctx, name, args...))
}

// output runs a command, and shows its output only if it fails.
func output(cmd *exec.Cmd) time.Duration {
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(begin)
	if err != nil {
		check(fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out))
	}
	return took
}

// database returns where ralph keeps the project's state.
func (p project) database() string { return filepath.Join(p.state(), "ralph.db") }

func (p project) state() string { return p.dir + "-state" }
