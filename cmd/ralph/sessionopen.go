package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/project"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/mcpserver"
	"ralph/store"
)

func newSessionOpen(a *app) *cobra.Command {
	return newCommand("open [SESSION]", func(cmd *cobra.Command, args []string) error {
		return a.withLoop(cmd.Context(), func(p *project.Project, l *loop.Loop) error {
			if err := project.Cloneable(cmd.Context(), l); err != nil {
				return err
			}
			row, err := store.Read(cmd.Context(), l.Store, func(tx *store.Tx) (ralph.Session, error) {
				return sessionNamed(tx, args)
			})
			if err != nil {
				return err
			}
			return a.goOn(cmd.Context(), p, l, row)
		})
	})
}

// goOn lets a person continue a session in the terminal of its agent.
func (a *app) goOn(ctx context.Context, p *project.Project, l *loop.Loop, row ralph.Session) (err error) {
	if row.CompletedAt.IsZero() {
		return ralph.Conflict("session %.8s is at work: `ralph stop --session %[1]s` ends it first", row.ID)
	}
	resumer, ok := l.Agents.All[row.Agent].(agent.Resumer)
	if !ok {
		return usage(fmt.Errorf("session %.8s is %s's, with which nobody can go on in a terminal: "+
			"claude and codex can, where they are configured", row.ID, text.Line(row.Agent+row.Worker, 100)))
	}
	folder, err := os.MkdirTemp("", "ralph-open-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	o := mcpserver.WorkerOptions{Version: release, Name: a.person(), Dotted: true, Scopes: mcpserver.Scopes}
	task, err := mcpserver.Attend(ctx, o, l, row.TaskID, folder)
	if err != nil {
		return err
	}
	werr := a.inTerminal(ctx, p, resumer, row, task)
	said, err := task.Leave(context.WithoutCancel(ctx))
	if err = errors.Join(werr, err); err != nil {
		return err
	}
	t, err := store.Read(ctx, l.Store, func(tx *store.Tx) (ralph.Task, error) { return tx.Task(row.TaskID) })
	if err != nil {
		return err
	}
	if said == "" {
		said = fmt.Sprintf("TASK-%d %s: %s", t.ID, t.Is(), t.StatusReason)
	}
	return a.say(map[string]any{"task_id": t.ID, "status": t.State, "status_reason": t.StatusReason},
		"%s", text.Line(said, 400))
}

// inTerminal runs the agent until the person leaves it. Then it asks whether the task is done,
// unless the agent has said so.
func (a *app) inTerminal(
	ctx context.Context, p *project.Project, resumer agent.Resumer, row ralph.Session, task *mcpserver.Attended,
) error {
	dir, env := task.Workspace()
	model, effort := agent.SplitEffort(row.Model)
	command, added, err := resumer.Resume(agent.Resumption{
		SessionID: row.ID, LogDir: p.Session(row.ID), From: row.Dir, Dir: dir, Socket: task.Socket(),
		Model: model, Effort: effort,
		Prompt: fmt.Sprintf("A person goes on with you from here, in this terminal. Your folder is now %s: "+
			"it has your work, on the newest commit. Say in a sentence or two where you stopped, and wait. "+
			"When the person says that it is done, call ralph's tool for done again.", dir),
	})
	if err != nil {
		return err
	}
	// //nolint:forbidigo // a person's program on their terminal, which they end
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(append(a.environ, env...), added...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.in, a.out, a.err
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // interrupts are for the agent
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) { // the status tells nothing about the task
		return err
	}
	if !task.Held() || !term.Is(a.in) {
		return nil
	}
	fmt.Fprintf(a.out, "Is TASK-%d done? [y/N] ", row.TaskID)
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil || !strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y") {
		return nil //nolint:nilerr // no answer means no
	}
	said, err := task.Done(ctx, a.person()+" completed it in a terminal")
	if err == nil && task.Held() {
		fmt.Fprintln(a.out, text.Visible(said))
	}
	return err
}
