package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"ralph"
	"ralph/internal/pipe"
	"ralph/loop/agent"
	"ralph/loop/agent/claude"
	"ralph/loop/agent/process"
	"ralph/loop/workspace"
	"ralph/mcpserver"
	"ralph/store"
)

// inARow is the number of sessions in one measurement, which share the cost of starting a
// run and a shell.
const inARow = 20

// sessions compares `ralph run` with its agent in a shell loop, which gets the
// same arguments and messages and signals to the same server on a database like it.
func (b *bench) sessions(ctx context.Context) []row {
	var product, floor samples
	for range b.rounds {
		product.took(b.runSessions(ctx) / inARow)
		floor.took(b.agentAlone(ctx) / inARow)
	}
	over := difference(product, floor)
	const most = 200 // no processes are prepared; a session of a real agent takes minutes
	return []row{{
		what: "a session of an agent that signals `done` at once", product: product, floor: floor,
		value: over.signed(), aim: fmt.Sprintf("≤ +%d ms", most), met: over.median() <= most,
	}}
}

// runSessions returns the time of a run with a session on each of its tasks.
func (b *bench) runSessions(ctx context.Context) time.Duration {
	p := b.newProject(ctx, 100)
	p.fill(ctx, func(tx *store.Tx) {
		for i := range inARow {
			must(tx.AddTask(ralph.Task{Title: fmt.Sprintf("Task %d", i)}, "human"))
		}
	})
	return p.time(ctx, b.ralph, "run")
}

// fill creates the project's database and fills it.
func (p project) fill(ctx context.Context, f func(tx *store.Tx)) {
	db := must(store.Open(ctx, p.database(), store.Options{}))
	check(errors.Join(db.Tx(ctx, func(tx *store.Tx) (err error) {
		defer caught(&err)
		f(tx)
		return nil
	}), db.Close()))
}

// agentAlone returns the time of the same agent without ralph around it, started by a shell one session after the
// other.
func (b *bench) agentAlone(ctx context.Context) time.Duration {
	p, list := b.withSessions(ctx, 100, inARow)
	messages := filepath.Join(b.dir, "messages.jsonl")
	words := strings.Repeat("Do the task. ", 400)
	line := must(json.Marshal(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": words}}))
	check(os.WriteFile(messages, bytes.Repeat(append(line, '\n'), 2), 0o600))
	list, shut := p.channels(ctx, list)
	defer shut()
	options := claude.Options{
		Options: process.Options{MCPCommand: []string{b.ralph, "mcp"}}, PermissionMode: "acceptEdits",
	}
	var script strings.Builder
	script.WriteString("set -e\n")
	for _, a := range list {
		fmt.Fprintf(&script, "RALPH_SESSION_ID=%s %s %s scripted-agent",
			a.SessionID, strings.Join(a.Env, " "), quote(b.ralph))
		for _, arg := range claude.Arguments("", options, a) {
			script.WriteString(" " + quote(arg))
		}
		fmt.Fprintf(&script, " <%s >>%s\n", quote(messages), quote(filepath.Join(p.dir, ".git", "out")))
	}
	return p.time(ctx, "/bin/sh", "-c", script.String())
}

// withSessions returns a project with that number of files and of sessions in progress.
func (b *bench) withSessions(ctx context.Context, files, sessions int) (p project, list []agent.Assignment) {
	p = b.newProject(ctx, files)
	p.fill(ctx, func(tx *store.Tx) {
		run := must(tx.StartRun("", ralph.Limits{}, ""))
		for i := range sessions {
			a := agent.Assignment{SessionID: uuid.NewString(), LogDir: p.dir}
			a.TaskID = must(tx.AddTask(ralph.Task{Title: fmt.Sprintf("Task %d", i)}, "human"))
			must(tx.StartSession(store.Start{ID: a.SessionID, Task: a.TaskID, Run: run.ID, Dir: p.dir}))
			list = append(list, a)
		}
	})
	return p, list
}

// channels serves sessions from this process, as a run does.
func (p project) channels(ctx context.Context, list []agent.Assignment) (served []agent.Assignment, shut func()) {
	db := must(store.Open(ctx, p.database(), store.Options{}))
	var open []*mcpserver.Channel
	for _, a := range list {
		folder := workspace.Channel(a.SessionID)
		check(os.Mkdir(folder, 0o700))
		c := must(mcpserver.OpenChannel(mcpserver.Session{Store: db, TaskID: a.TaskID, SessionID: a.SessionID}, folder))
		a.Channel.Socket = c.Socket()
		a.Env = []string{pipe.Ticket + "=" + c.Ticket()} // of its server, without the agent's further work
		open, served = append(open, c), append(served, a)
	}
	return served, func() {
		for _, c := range open {
			check(errors.Join(c.Close(), os.RemoveAll(filepath.Dir(c.Socket()))))
		}
		check(db.Close())
	}
}

// quote returns a word for the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
