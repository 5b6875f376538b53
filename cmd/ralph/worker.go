package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"ralph"
	"ralph/loop"
	"ralph/loop/session"
	"ralph/mcpserver"
	"ralph/signals"
	"ralph/store"
)

// Calls a minute that a client may make if nothing else is said; more where all that
// it may do is read.
const (
	callsPerMinute        = 60
	callsPerMinuteReading = 600
)

// workerFlags are those of `ralph mcp --profile worker`.
type workerFlags struct {
	name   string
	scopes string
	names  string
	http   string
	calls  int // a minute
}

// tokenVariable has the token that clients of a server on HTTP send.
const tokenVariable = "RALPH_MCP_TOKEN"

func serveWorker(cmd *cobra.Command, a *app, f workerFlags) error {
	o := mcpserver.WorkerOptions{Version: version(), Scopes: strings.Split(f.scopes, ","), PerMinute: f.calls}
	for _, s := range o.Scopes {
		if !slices.Contains(mcpserver.Scopes, s) {
			return usage(fieldError("--scopes", s, mcpserver.Scopes...))
		}
	}
	switch {
	case f.calls > 0:
	case cmd.Flags().Changed("calls-per-minute"):
		return usage(&ralph.FieldError{Field: fmt.Sprintf("--calls-per-minute %d", f.calls), Problem: "must be a number from 1"})
	case slices.Contains(o.Scopes, mcpserver.ScopeWrite):
		o.PerMinute = callsPerMinute
	default:
		o.PerMinute = callsPerMinuteReading
	}
	switch f.names {
	case "", "underscore":
	case "dotted":
		o.Dotted = true
	default:
		return usage(fieldError("--tool-names", f.names, "dotted", "underscore"))
	}
	if err := ralph.CheckTitle("--name", f.name); err != nil {
		return usage(err)
	}
	return a.begin(cmd.Context(), func(p *project, db *store.DB) error {
		l, err := newLoop(cmd.Context(), a, p, db)
		if err != nil {
			return err
		}
		// Whoever stops it lets go of the claims first; a second signal ends it at once.
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop)
		if f.http != "" {
			return serveWorkerHTTP(ctx, a, f, func() (*mcp.Server, func()) {
				w := &worker{loop: l, name: f.name}
				return mcpserver.NewWorker(o, w), func() {
					if err := w.leave(context.WithoutCancel(ctx)); err != nil {
						l.Log.Error("a claim could not be given back; it lapses", "worker", f.name, "error", err)
					}
				}
			})
		}
		w := &worker{loop: l, name: f.name}
		err = mcpserver.Serve(ctx, mcpserver.NewWorker(o, w), os.Stdin, os.Stdout)
		if ctx.Err() != nil {
			err = nil
		}
		return errors.Join(err, w.leave(context.WithoutCancel(ctx)))
	})
}

// serveWorkerHTTP serves on a loopback address until it is interrupted.
func serveWorkerHTTP(ctx context.Context, a *app, f workerFlags, connect func() (*mcp.Server, func())) error {
	token := a.getenv(tokenVariable)
	if token == "" {
		token = rand.Text()
	}
	l, err := listenLoopback(ctx, "--http", f.http)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.err, "serving MCP on http://%s\n", l.Addr())
	if a.getenv(tokenVariable) == "" {
		fmt.Fprintf(a.err, "clients send: Authorization: Bearer %s\n(set %s to choose the token)\n", token, tokenVariable)
	}
	return serveUntilStopped(ctx, l, mcpserver.NewClients(token, connect))
}

// A worker is one client's connection. It implements mcpserver.Worker.
type worker struct {
	loop *loop.Loop
	name string

	mu    sync.Mutex                    // held by a call that may end the claim, also while it is checked
	claim atomic.Pointer[session.Claim] // nil if there is none
}

func (w *worker) leave(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	claim := w.claim.Load()
	if claim == nil {
		return nil
	}
	_, err := claim.Release(ctx)
	if err == nil {
		w.claim.Store(nil)
	}
	return err
}

// held is the claim, renewed; an error says why there is none any more. The caller
// holds the lock.
func (w *worker) held(ctx context.Context) (*session.Claim, error) {
	claim := w.claim.Load()
	if claim == nil {
		return nil, fmt.Errorf("you have not claimed a task; call claim_task first: %w", ralph.ErrConflict)
	}
	return claim, w.over(claim.Held(ctx))
}

// over forgets the claim if the error says that there is none any more.
func (w *worker) over(err error) error {
	var dropped *session.DroppedError
	if errors.As(err, &dropped) {
		w.claim.Store(nil)
	}
	return err
}

// alive renews the claim: any call does. An error says why there is none any more.
func (w *worker) alive(ctx context.Context) error {
	if !w.mu.TryLock() {
		return nil // another call is under way, which has renewed it
	}
	defer w.mu.Unlock()
	if w.claim.Load() == nil {
		return nil
	}
	_, err := w.held(ctx)
	return err
}

// Next implements mcpserver.Worker.
func (w *worker) Next(ctx context.Context) (string, error) {
	if err := w.alive(ctx); err != nil {
		return "", err
	}
	t, ok, err := w.loop.Next(ctx)
	if err != nil {
		return "", err
	}
	if !ok {
		return "No task can be claimed now.", nil
	}
	return fmt.Sprintf("TASK-%d %s (priority %d)\n\n%s\n\nTake it with claim_task.", t.ID, t.Title, t.Priority, t.Description), nil
}

// Claim implements mcpserver.Worker. Where the next task is asked for and somebody
// is faster, the one behind it is tried.
func (w *worker) Claim(ctx context.Context, task int64) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.claim.Load() != nil {
		c, err := w.held(ctx)
		if err != nil {
			return "", err
		}
		return "", fmt.Errorf("you hold TASK-%d; close or release it first: %w", c.TaskID(), ralph.ErrConflict)
	}
	for {
		id := task
		if id == 0 {
			next, ok, err := w.loop.Next(ctx)
			if err != nil {
				return "", err
			}
			if !ok {
				return "No task can be claimed now.", nil
			}
			id = next.ID
		}
		c, err := w.loop.Claim(ctx, id, w.name)
		if task == 0 && errors.Is(err, ralph.ErrConflict) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return "", err
		}
		w.claim.Store(c)
		return fmt.Sprintf("You hold TASK-%d (session %s).\n\n%s", c.TaskID(), c.SessionID(), c.Prompt()), nil
	}
}

// Release implements mcpserver.Worker.
func (w *worker) Release(ctx context.Context, task int64) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, err := w.held(ctx)
	if err != nil {
		return "", err
	}
	if task != 0 && task != c.TaskID() {
		return "", fmt.Errorf("you hold TASK-%d, not TASK-%d: %w", c.TaskID(), task, ralph.ErrConflict)
	}
	d, err := c.Release(ctx)
	if err != nil {
		return "", err
	}
	w.claim.Store(nil)
	switch d.Status {
	case ralph.Pending:
		return fmt.Sprintf("TASK-%d is back in the queue.", c.TaskID()), nil
	case "":
		return fmt.Sprintf("TASK-%d was not yours any more.", c.TaskID()), nil
	}
	return fmt.Sprintf("You do not hold TASK-%d any more. It is %s: %s", c.TaskID(), d.Status, d.StatusReason), nil
}

// Say implements mcpserver.Worker.
func (w *worker) Say(ctx context.Context, p signals.Payload) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, err := w.held(ctx)
	if err != nil {
		return "", err
	}
	id, err := w.loop.Store.Say(ctx, c.TaskID(), c.SessionID(), w.name, "", p)
	if err != nil {
		return "", err
	}
	said := fmt.Sprintf("Recorded %s as comment %d.", p.Verb(), id)
	if !p.Verb().Closes() {
		heard, err := c.Heard(ctx)
		return said + heard, err
	}
	again, d, err := c.Close(ctx)
	if err != nil {
		return "", w.over(err)
	}
	if again != "" {
		heard, err := c.Heard(ctx)
		return said + " It does not close the task yet:\n\n" + again + heard, err
	}
	w.claim.Store(nil)
	return fmt.Sprintf("%s TASK-%d is %s: %s", said, c.TaskID(), d.Status, d.StatusReason), nil
}

// SetState implements mcpserver.Worker.
func (w *worker) SetState(ctx context.Context, c mcpserver.StateChange) (reply mcpserver.StateReply, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	claim, err := w.held(ctx)
	if err != nil {
		return reply, err
	}
	if c.SessionID != "" && c.SessionID != claim.SessionID() {
		return reply, otherSession(ctx, w.loop.Store, c.SessionID, claim.SessionID())
	}
	err = w.loop.Store.Tx(ctx, func(tx *store.Tx) error {
		previous, err := tx.ReportState(claim.SessionID(), c.State, c.Metadata)
		reply = mcpserver.StateReply{Success: true, PreviousState: previous, NewState: c.State, TransitionedAt: tx.Now()}
		return err
	})
	return reply, err
}

// Comment implements mcpserver.Worker: on any task, since a reviewer holds none.
func (w *worker) Comment(ctx context.Context, c mcpserver.CommentCall) (id int64, err error) {
	if err := w.alive(ctx); err != nil {
		return 0, err
	}
	err = w.loop.Store.Tx(ctx, func(tx *store.Tx) error {
		id, err = speaker{w.session(), w.name}.comment(tx, c)
		return err
	})
	return id, err
}

// Propose implements mcpserver.Worker.
func (w *worker) Propose(ctx context.Context, c mcpserver.AmendmentCall) (id int64, err error) {
	if err := w.alive(ctx); err != nil {
		return 0, err
	}
	err = w.loop.Store.Tx(ctx, func(tx *store.Tx) error {
		id, err = speaker{w.session(), w.name}.propose(tx, c)
		return err
	})
	return id, err
}

// session is the one that the claim opened; "" without a claim. It waits for nothing:
// it is asked within transactions.
func (w *worker) session() string {
	claim := w.claim.Load()
	if claim == nil {
		return ""
	}
	return claim.SessionID()
}

// Resolve implements mcpserver.Worker.
func (w *worker) Resolve(ctx context.Context, comment int64, decision string) error {
	if err := w.alive(ctx); err != nil {
		return err
	}
	return w.loop.Store.Tx(ctx, func(tx *store.Tx) error { return tx.ResolveAsAgent(comment, decision, w.name) })
}

// Comments implements mcpserver.Worker.
func (w *worker) Comments(ctx context.Context, task int64, kind ralph.CommentKind, openOnly bool) ([]ralph.Comment, error) {
	if err := w.alive(ctx); err != nil {
		return nil, err
	}
	return commentsOf(ctx, w.loop.Store, task, kind, openOnly)
}

// Amendments implements mcpserver.Worker.
func (w *worker) Amendments(ctx context.Context, task int64) ([]ralph.Amendment, error) {
	if err := w.alive(ctx); err != nil {
		return nil, err
	}
	return proposedFor(ctx, w.loop.Store, task)
}

// commentsOf lists what was said on a task.
func commentsOf(ctx context.Context, db *store.DB, task int64, kind ralph.CommentKind, openOnly bool) (list []ralph.Comment, err error) {
	err = db.View(ctx, func(tx *store.Tx) error {
		if _, err := tx.Task(task); err != nil {
			return err
		}
		list, err = tx.Timeline(task, store.CommentFilter{Open: openOnly})
		list = slices.DeleteFunc(list, func(c ralph.Comment) bool { return kind != "" && c.Kind != kind })
		return err
	})
	return list, err
}

// proposedFor lists the changes of a task that wait for a person; 0 is of all tasks.
func proposedFor(ctx context.Context, db *store.DB, task int64) (list []ralph.Amendment, err error) {
	err = db.View(ctx, func(tx *store.Tx) error {
		if err := tx.CheckTask(task); err != nil {
			return err
		}
		list, err = tx.Amendments(store.AmendmentFilter{Task: task, Status: ralph.AmendmentProposed})
		return err
	})
	return list, err
}
