package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Members lists the living processes of the command, parents first. Once all processes are gone it
// returns [os.ErrProcessDone].
func (p *Process) Members() ([]Member, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), stillTime, errNoAnswer)
	defer cancel()
	e, err := p.ask(ctx, order{Do: listAll})
	if err != nil {
		return nil, fmt.Errorf("list the processes of %s: %w", p.name, err)
	}
	return e.Members, nil
}

var errNoAnswer = fmt.Errorf("its supervisor has not answered for %v", stillTime)

// Still freezes the whole process tree, kills the processes that keep refuses, and leaves
// the others frozen. Everything is stopped first, so that nothing can escape while keep decides. Still returns
// when two looks agree that nothing moves: in a cgroup the freezer ensures that, elsewhere each
// thread was seen stopped.
//
// An error means that the tree runs: stopped processes go on, except for those killed by then. That
// is so if ctx ends, or after 10 seconds; if a process belongs to a user whom ralph may not signal;
// and, with [os.ErrProcessDone], if the command has ended. Elsewhere than on Linux the error is
// [errors.ErrUnsupported], and nothing is stopped.
//
// The command can still be killed. Interrupts reach it when it is thawed, but its grace period
// begins at once.
func (p *Process) Still(ctx context.Context, keep func(Member) bool) (*Still, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("freeze %s: %w", p.name, err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, stillTime, fmt.Errorf("it moves after %v", stillTime))
	defer cancel()
	s, err := p.still(limited, keep)
	if err == nil {
		return s, nil
	}
	err = fmt.Errorf("freeze %s: %w", p.name, err)
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, ErrSupervisorLost) {
		return nil, err
	}
	moving, undone := p.thaw()
	if len(moving) > 0 {
		err = fmt.Errorf("%w: %s", err, strings.Join(moving, ", "))
	}
	return nil, errors.Join(err, undone)
}

func (p *Process) still(ctx context.Context, keep func(Member) bool) (*Still, error) {
	frozen, err := p.ask(ctx, order{Do: freezeAll})
	if err != nil {
		return nil, err
	}
	culled, err := p.ask(ctx, order{Do: cull, Keep: kept(frozen.Members, keep)})
	if err != nil {
		return nil, err
	}
	return &Still{Killed: culled.Killed, By: culled.By, process: p}, nil
}

// kept lists the processes to keep. A wrapper is kept if what it wraps is.
func kept(members []Member, keep func(Member) bool) []int {
	parents := map[int]Member{}
	for _, m := range members {
		parents[m.Pid] = m
	}
	var list []int
	wrappers := map[int]bool{}
	for _, m := range members {
		if m.Wrapper || !keep(m) {
			continue
		}
		list = append(list, m.Pid)
		for up := parents[m.Parent]; up.Pid != 0 && !wrappers[up.Pid]; up = parents[up.Parent] {
			wrappers[up.Pid] = true
			if up.Wrapper {
				list = append(list, up.Pid)
			}
		}
	}
	return list
}

// Thaw resumes the tree, children before their parents. Processes that were stopped before stay
// stopped.
func (s *Still) Thaw() error {
	p, err := s.end()
	if err != nil {
		return err
	}
	_, err = p.thaw()
	return err
}

// Kill kills the tree without letting it move; [Process.Wait] then returns as after [Process.Kill],
// and lists no kept process as a leftover. An error means that the tree may have moved since Still:
// it was woken from outside, or has ended, or its supervisor is lost. It is killed all the same.
func (s *Still) Kill() error {
	p, err := s.end()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), stillTime, errNoAnswer)
	defer cancel()
	if _, err := p.ask(ctx, order{Do: killAll}); err != nil {
		return fmt.Errorf("kill %s frozen: %w", p.name, err)
	}
	return nil
}

// end makes sure that only one of Thaw and Kill is called.
func (s *Still) end() (*Process, error) {
	p := s.process
	if p == nil {
		return nil, errors.New("it was thawed or killed already")
	}
	s.process = nil
	return p, nil
}

// thaw resumes everything, and returns the processes that had not come to rest.
func (p *Process) thaw() (moving []string, err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), stillTime, errNoAnswer)
	defer cancel()
	e, err := p.ask(ctx, order{Do: thaw})
	if err != nil {
		return nil, fmt.Errorf("thaw %s: %w", p.name, err)
	}
	return e.Moving, nil
}

// ask gives the supervisor an order and returns its answer.
func (p *Process) ask(ctx context.Context, o order) (event, error) {
	answer := make(chan event, 1)
	p.mu.Lock()
	p.serial++
	o.Serial = p.serial
	p.asked[o.Serial] = answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.asked, o.Serial)
		p.mu.Unlock()
	}()
	if err := p.send(o); err != nil {
		return event{}, err
	}
	again := time.NewTicker(nudge)
	defer again.Stop()
	for {
		select {
		case e := <-answer:
			return e, e.problem()
		case <-p.over:
			select {
			case e := <-answer: // just in time
				return e, e.problem()
			default:
			}
			if p.ended == nil {
				return event{}, ErrSupervisorLost
			}
			return event{}, os.ErrProcessDone
		case <-ctx.Done():
			return event{}, context.Cause(ctx)
		case <-again.C:
			_ = p.wake() // if it is gone, its events end
		}
	}
}

func (e event) problem() error {
	if e.Problem == "" {
		return nil
	}
	return errors.New(e.Problem)
}
