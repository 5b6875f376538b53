package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ralph/loop/agent"

	"github.com/google/uuid"

	"ralph"
	"ralph/loop/agent/claude"
	"ralph/store"
)

// inARow are the sessions of one measurement, over which the start of a run and of
// a shell is spread.
const inARow = 20

// sessions compares `ralph run` with its agent in a shell loop, which gets the
// same arguments and messages and signals to the same server on a database like it.
func (b *bench) sessions(ctx context.Context) ([]row, error) {
	var product, floor samples
	for range b.rounds {
		took, err := b.runSessions(ctx)
		if err != nil {
			return nil, err
		}
		product.took(took / inARow)
		if took, err = b.agentAlone(ctx); err != nil {
			return nil, err
		}
		floor.took(took / inARow)
	}
	over := difference(product, floor)
	const most = 15
	return []row{{
		what: "a session of an agent that signals `done` at once", product: product, floor: floor,
		value: "+" + over.String(), aim: fmt.Sprintf("≤ +%d ms", most), met: over.median() <= most,
	}}, nil
}

// runSessions is the time of a run with a session on each of its tasks.
func (b *bench) runSessions(ctx context.Context) (time.Duration, error) {
	p, err := b.newProject(ctx, 100)
	if err != nil {
		return 0, err
	}
	if err := p.fill(ctx, func(tx *store.Tx) error {
		for i := range inARow {
			if _, err := tx.AddTask(ralph.Task{Title: fmt.Sprintf("Task %d", i)}, "human"); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return 0, err
	}
	return p.time(ctx, b.ralph, "run")
}

// fill makes the project's database and writes to it.
func (p project) fill(ctx context.Context, f func(tx *store.Tx) error) error {
	db, err := store.Open(ctx, p.database(), store.Options{})
	if err != nil {
		return err
	}
	return errors.Join(db.Tx(ctx, f), db.Close())
}

// agentAlone is the time of the same agent without ralph around it, started by a
// shell one session after the other.
func (b *bench) agentAlone(ctx context.Context) (time.Duration, error) {
	p, err := b.newProject(ctx, 100)
	if err != nil {
		return 0, err
	}
	var list []agent.Assignment
	if err := p.fill(ctx, func(tx *store.Tx) (err error) {
		list, err = begin(tx, inARow, p.dir)
		return err
	}); err != nil {
		return 0, err
	}
	messages := filepath.Join(b.dir, "messages.jsonl")
	var lines strings.Builder
	for range 2 {
		line, err := json.Marshal(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": strings.Repeat("Do the task. ", 400)}})
		if err != nil {
			return 0, err
		}
		lines.Write(append(line, '\n'))
	}
	if err := os.WriteFile(messages, []byte(lines.String()), 0o600); err != nil {
		return 0, err
	}
	options := claude.Options{MCPCommand: []string{b.ralph, "mcp"}, Database: p.database(), PermissionMode: "acceptEdits"}
	var script strings.Builder
	script.WriteString("set -e\n")
	for _, a := range list {
		fmt.Fprintf(&script, "RALPH_SESSION_ID=%s %s scripted-agent", a.SessionID, quote(b.ralph))
		for _, arg := range claude.Arguments("", options, a) {
			script.WriteString(" " + quote(arg))
		}
		fmt.Fprintf(&script, " <%s >>%s\n", quote(messages), quote(filepath.Join(p.dir, ".git", "out")))
	}
	return p.time(ctx, "/bin/sh", "-c", script.String())
}

// begin has so many sessions on as many tasks in progress.
func begin(tx *store.Tx, n int, dir string) (list []agent.Assignment, err error) {
	run, err := tx.StartRun(os.Getpid(), ralph.Limits{})
	if err != nil {
		return nil, err
	}
	for i := range n {
		a := agent.Assignment{SessionID: uuid.NewString(), LogDir: dir}
		if a.TaskID, err = tx.AddTask(ralph.Task{Title: fmt.Sprintf("Task %d", i)}, "human"); err != nil {
			return nil, err
		}
		if _, err := tx.StartSession(store.Start{ID: a.SessionID, Task: a.TaskID, Run: run.ID, Dir: dir}); err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

// quote is a word for the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
