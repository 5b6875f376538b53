package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"ralph"
	"ralph/internal/worktree"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/workspace"
	"ralph/store"
)

// Times of what waits: each begins and is then counted.
const (
	quiet   = 3 * time.Second
	counted = 10 * time.Second
)

// asked counts what a database is asked: statements, and looks whether there was a
// commit, which read no table.
type asked struct{ statements, looks atomic.Int64 }

func (a *asked) hear(query string) {
	if query == "PRAGMA data_version" {
		a.looks.Add(1)
	} else {
		a.statements.Add(1)
	}
}

// silent is an agent that does nothing until it is stopped.
type silent struct{}

// Work implements agent.Agent.
func (silent) Work(ctx context.Context, _ agent.Assignment) (agent.Report, error) {
	<-ctx.Done()
	return agent.Report{Ending: ralph.Interrupted, CostKnown: true}, nil
}

// Salvage implements agent.Agent.
func (silent) Salvage(string, agent.Death) (agent.Report, error) { return agent.Report{}, nil }

// waiting is what the database is asked meanwhile in which nothing happens: by a session
// whose agent is silent, and by a daemon without work.
func (b *bench) waiting(ctx context.Context) []row {
	var list []row
	for _, w := range []struct {
		what  string
		tasks int
	}{{"a session whose agent is silent", 1}, {"a daemon without work", 0}} {
		statements, looks := b.wait(ctx, w.tasks)
		const most = 1
		list = append(list, row{
			what: "statements of " + w.what + " (floor: looks whether there was a commit)", product: statements, floor: looks,
			value: number(statements.median()) + " a second", aim: "≤ 1 a second", met: statements.median() <= most,
		})
	}
	return list
}

// wait counts what a daemon with so many tasks asks, in a second.
func (b *bench) wait(ctx context.Context, tasks int) (statements, looks samples) {
	statements.unit, looks.unit = "/s", "/s"
	p := b.newProject(ctx, 100)
	var heard asked
	db := must(store.Open(ctx, p.database(), store.Options{Statement: heard.hear}))
	defer func() { check(db.Close()) }()
	check(db.Tx(ctx, func(tx *store.Tx) error {
		for range tasks {
			if _, err := tx.AddTask(ralph.Task{Title: "Wait"}, "human"); err != nil {
				return err
			}
		}
		return nil
	}))
	tree := must(worktree.Open(ctx, p.dir))
	working, stop := context.WithCancel(ctx)
	defer stop()
	l := &loop.Loop{
		Store: db, Agent: silent{}, Here: &workspace.Workspace{Dir: p.dir, Tree: tree, State: p.state()},
		Log: slog.New(slog.DiscardHandler), Daemon: true, Prompts: loop.Prompts{Tokens: 24_000},
		Limits: ralph.Limits{
			MaxSessions: 1, MaxTasks: 1, MaxSeconds: 3600,
			MaxCostUSD: 1, MaxDayCostUSD: 1, MaxMonthCostUSD: 1, SessionSeconds: 3600,
			IdleSeconds: 3600, SessionTurns: 10, SessionCostUSD: 1, Attempts: 1, StagnantMaximum: 1,
		},
	}
	ended := make(chan error, 1)
	go func() {
		_, err := l.Run(working)
		ended <- err
	}()
	pause(ctx, quiet)
	for range int(counted / time.Second) {
		s, n := heard.statements.Load(), heard.looks.Load()
		pause(ctx, time.Second)
		statements.add(float64(heard.statements.Load() - s))
		looks.add(float64(heard.looks.Load() - n))
	}
	stop()
	check(<-ended)
	return statements, looks
}
