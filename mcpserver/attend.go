package mcpserver

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"time"

	"ralph/loop"
	"ralph/loop/session"
	"ralph/signals"
)

// An Attended task is a task that a person works on in an agent's own terminal. The agent has a worker's tools, on a
// socket. The claim lasts as long as the terminal.
type Attended struct {
	*loop.Claim
	w          *worker
	listener   net.Listener
	over       context.Context
	end        context.CancelFunc
	background sync.WaitGroup
}

// Attend claims a task and serves its tools from an empty folder until [Attended.Leave].
func Attend(ctx context.Context, o WorkerOptions, l *loop.Loop, task int64, folder string) (*Attended, error) {
	listener, err := net.Listen("unix", filepath.Join(folder, socketFile))
	if err != nil {
		return nil, err
	}
	claim, err := l.Claim(ctx, task, o.Name)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	a := &Attended{Claim: claim, w: &worker{loop: l, name: o.Name}, listener: listener}
	a.w.claim.Store(claim)
	a.over, a.end = context.WithCancel(context.WithoutCancel(ctx))
	a.background.Go(a.renew)
	a.background.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			a.background.Go(func() {
				defer context.AfterFunc(a.over, func() { _ = conn.Close() })()
				_ = Serve(a.over, newWorker(o, a.w), conn, conn) // one client's error does not matter to the others
			})
		}
	})
	return a, nil
}

// renew keeps the claim while a person thinks.
func (a *Attended) renew() {
	tick := time.NewTicker(session.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-a.over.Done():
			return
		case <-tick.C:
			_ = a.w.alive(a.over) // the next call reports the state of the claim
		}
	}
}

// Socket returns the path that the agent's server of tools connects to.
func (a *Attended) Socket() string { return a.listener.Addr().String() }

// Held reports whether the task is still claimed.
func (a *Attended) Held() bool { return a.w.claim.Load() != nil }

// Done reports the task as done for the person, and returns the result.
func (a *Attended) Done(ctx context.Context, summary string) (string, error) {
	return a.w.say(ctx, signals.Done{Summary: summary})
}

// Leave stops serving, and gives the task back if it is still claimed. It then returns the task's state.
func (a *Attended) Leave(ctx context.Context) (said string, err error) {
	a.end()
	err = a.listener.Close()
	a.background.Wait()
	if !a.Held() {
		return "", err
	}
	v, rerr := a.w.release(ctx, onTask{})
	said, _ = v.(string)
	return said, errors.Join(err, rerr)
}
