package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// answerTime is how long a supervisor may take to answer.
const answerTime = 10 * time.Second

var errNoAnswer = fmt.Errorf("its supervisor has not answered for %v", answerTime)

// Members lists the living processes of the command, parents first. Once all processes are gone it
// returns [os.ErrProcessDone].
func (p *Process) Members() ([]Member, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), answerTime, errNoAnswer)
	defer cancel()
	e, err := p.ask(ctx, order{Do: listAll})
	if err != nil {
		return nil, fmt.Errorf("list the processes of %s: %w", p.name, err)
	}
	return e.Members, nil
}

// Prune kills the processes of the command that keep refuses, until it finds none. It also kills processes that start
// during the search. A process that constantly starts others may escape until the command ends. The error means that
// ctx ended, or that some processes are still there after 10 seconds; with [os.ErrProcessDone], that the command has
// ended. On other systems than Linux it is [errors.ErrUnsupported].
func (p *Process) Prune(ctx context.Context, keep func(Member) bool) (killed []Leftover, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("kill what %s has started: %w", p.name, err)
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, fmt.Errorf("some are there after %v", answerTime))
	defer cancel()
	e, err := p.ask(ctx, order{Do: listAll})
	if err != nil {
		return nil, err
	}
	for keep := kept(e.Members, keep); ; {
		again, err := p.ask(ctx, order{Do: killOthers, Keep: keep})
		if err != nil || len(again.Killed) == 0 {
			return killed, err
		}
		for _, k := range again.Killed { // a process that dies slowly is found again
			i := slices.IndexFunc(killed, func(l Leftover) bool { return l.Pid == k.Pid })
			switch dying := strings.HasPrefix(k.Command, "["); { // its arguments have gone
			case i < 0:
				killed = append(killed, k)
			case !dying:
				killed[i] = k // it has executed another program since
			}
		}
	}
}

// kept lists the processes to keep. A wrapper is kept if its command is.
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

// obey carries out an order about some processes.
func (s *supervisor) obey(o order) {
	e := event{Serial: o.Serial}
	var err error
	if o.Do == listAll {
		var found []process
		found, err = s.hunt.list()
		e.Members = s.hunt.members(found)
	} else {
		var caught []process
		s.hunt.kept = map[identity]bool{}
		caught, err = s.hunt.kill(o.Keep)
		for _, p := range caught {
			e.Killed = append(e.Killed, Leftover{p.pid, p.command})
		}
	}
	if err != nil {
		e.Problem = err.Error()
	}
	s.tell(e)
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
