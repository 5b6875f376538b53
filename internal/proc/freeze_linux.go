package proc

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A freeze is the state of freezing a command's processes.
type freeze struct {
	hunt     *hunt
	serial   int // of the order to answer when nothing moves; 0 for none
	captives map[identity]*captive
	order    []*captive        // found alive at the last look, parents first
	moving   []*captive        // those that were not at rest
	found    map[identity]bool // found at the last look, and whether dead
	calm     time.Time         // since when nothing has changed; zero if something has
	culled   bool              // only the processes in hunt.kept may live
	killed   []process         // because of culled, each once
	by       string
}

// A captive is a process that is frozen or about to be.
type captive struct {
	process
	grouped bool      // held by its cgroup
	ours    bool      // it was not stopped before
	since   time.Time // when it was signalled to stop
	leash   time.Time // may run until then; see [freeze.unblock]
	length  time.Duration
}

// doubtTime is how long nothing may change before a look is trusted during which processes
// vanished, as always happens on a busy machine.
const doubtTime = time.Second

// obey carries out an order about all processes.
func (s *supervisor) obey(o order) {
	e := event{Serial: o.Serial}
	var err error
	switch o.Do {
	case listAll:
		var found []process
		found, err = s.hunt.look()
		e.Members = s.hunt.members(found)
	case freezeAll:
		if s.freeze != nil {
			err = errors.New("it is frozen already")
			break
		}
		s.freeze = &freeze{hunt: s.hunt, serial: o.Serial, captives: map[identity]*captive{}}
		return // look answers
	case cull:
		if s.freeze == nil || s.freeze.serial != 0 {
			err = errors.New("it is not frozen")
			break
		}
		if err = s.freeze.cull(o.Keep); err == nil {
			s.freeze.serial, s.freeze.calm = o.Serial, time.Time{}
			return // look answers
		}
	case thaw:
		if s.freeze != nil {
			e.Moving, err = s.freeze.thaw()
			s.freeze = nil
		}
	}
	if err != nil {
		e.Problem = err.Error()
	}
	s.tell(e)
}

// look checks whether everything that is to be frozen is at rest, and then answers the order. The
// channel fires when to look again; it is nil if there is nothing to wait for.
func (s *supervisor) look() <-chan time.Time {
	if s.freeze == nil || s.freeze.serial == 0 {
		return nil
	}
	still, err := s.freeze.look()
	if err == nil && !still {
		return time.After(pause)
	}
	e := event{Serial: s.freeze.serial, By: s.freeze.by}
	if err != nil {
		e.Problem = err.Error() // ralph then undoes the freeze
	} else {
		var members []process
		for _, c := range s.freeze.order {
			members = append(members, c.process)
		}
		e.Members, e.Killed = s.hunt.members(members), s.freeze.leftovers()
	}
	s.freeze.serial = 0
	s.tell(e)
	return nil
}

// last answers the order to kill the frozen processes: whether anything has moved.
func (s *supervisor) last(o order) {
	if s.freeze == nil || o.Serial == 0 {
		return
	}
	e := event{Serial: o.Serial}
	if err := s.freeze.verify(); err != nil {
		e.Problem = err.Error()
	}
	s.tell(e)
}

// look stops the processes that it finds. It returns true if nothing moves and the previous look
// found the same processes: a fork, exit or wake-up would change the list, since only the
// supervisor reaps them.
func (f *freeze) look() (still bool, err error) {
	by := "cgroup"
	grouped := map[identity]bool{}
	for _, g := range f.hunt.groups {
		if err := g.freeze(true); err != nil {
			return false, err
		}
		for _, p := range g.members() {
			grouped[p.identity] = true
		}
	}
	found, err := f.hunt.look()
	if err != nil {
		return false, err
	}
	alive := 0
	f.order, f.moving = nil, nil
	now := map[identity]bool{}
	var errs []error
	for _, p := range found {
		now[p.identity] = p.dead()
		if p.dead() {
			continue
		}
		alive++
		c := f.captives[p.identity]
		if c == nil {
			c = &captive{length: pause}
			f.captives[p.identity] = c
		}
		c.process, c.grouped = p, grouped[p.identity]
		if f.culled && !f.hunt.kept[p.identity] {
			errs = append(errs, f.kill(p))
			continue
		}
		f.order = append(f.order, c)
		if c.grouped {
			continue
		}
		by = "signals"
		if !atRest(p.pid) {
			f.moving = append(f.moving, c)
			errs = append(errs, c.stop())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	f.unblock()
	same := maps.Equal(now, f.found)
	f.found, f.by = now, by
	if !same || len(f.moving) > 0 || len(f.order) < alive || !f.frozen() {
		f.calm = time.Time{}
		return false, nil
	}
	if f.calm.IsZero() {
		f.calm = time.Now()
	}
	return f.hunt.sure || time.Since(f.calm) > doubtTime, nil
}

// stop sends SIGSTOP; it takes effect when the process's threads leave the kernel.
func (c *captive) stop() error {
	now := time.Now()
	if now.Before(c.leash) {
		return nil
	}
	if c.since.IsZero() {
		c.since = now
	}
	c.ours = true
	if err := c.signal(syscall.SIGSTOP); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("process %s cannot be stopped: %w", c.named(), err)
	}
	return nil
}

// unblock lets the children of processes that do not stop run for a moment. A process that called
// vfork cannot stop before its child executes a program.
func (f *freeze) unblock() {
	now := time.Now()
	for _, m := range f.moving {
		if now.Sub(m.since) < 10*pause {
			continue
		}
		for _, c := range f.captives {
			if c.parent != m.pid || !c.ours || c.grouped || slices.Contains(f.moving, c) {
				continue
			}
			c.length *= 2
			c.leash = now.Add(c.length)
			_ = c.signal(syscall.SIGCONT) // or it is gone
		}
	}
}

// frozen reports whether the cgroups are frozen.
func (f *freeze) frozen() bool {
	for _, g := range f.hunt.groups {
		if g.count("cgroup.events", "frozen") == 0 {
			return false
		}
	}
	return true
}

// cull kills all processes but those to keep, children first. A death may wake another process, in
// a process group that it orphans, and that one may start a further process before it is killed:
// the next looks kill that one too.
func (f *freeze) cull(keep []int) error {
	f.culled, f.hunt.kept = true, map[identity]bool{}
	var errs []error
	for _, c := range slices.Backward(f.order) {
		if slices.Contains(keep, c.pid) {
			f.hunt.kept[c.identity] = true
		} else {
			errs = append(errs, f.kill(c.process))
		}
	}
	return errors.Join(errs...)
}

// kill kills a process and remembers it.
func (f *freeze) kill(p process) error {
	if !slices.ContainsFunc(f.killed, func(k process) bool { return k.identity == p.identity }) {
		f.killed = append(f.killed, p.named()) // while its command line can be read
	}
	if err := p.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("process %s cannot be killed: %w", p.named(), err)
	}
	return nil
}

// leftovers lists the killed processes, parents first.
func (f *freeze) leftovers() []Leftover {
	var list []Leftover
	for _, p := range slices.Backward(f.killed) {
		list = append(list, Leftover{p.pid, p.command})
	}
	return list
}

// thaw resumes all processes that were not stopped before, children first. It returns those that
// never came to rest.
func (f *freeze) thaw() (moving []string, err error) {
	f.hunt.kept = nil
	var errs []error
	for _, c := range slices.Backward(f.order) {
		if !c.ours {
			continue
		}
		if err := c.signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, fmt.Errorf("process %s cannot be thawed: %w", c.named(), err))
		}
	}
	for _, g := range f.hunt.groups {
		errs = append(errs, g.freeze(false))
	}
	for _, c := range f.moving {
		moving = append(moving, c.named().String())
	}
	return moving, errors.Join(errs...)
}

// verify returns an error that names the processes that have moved since everything was at rest.
func (f *freeze) verify() error {
	found, err := f.hunt.look()
	if err != nil {
		return err
	}
	var moved []string
	for _, p := range found {
		c := f.captives[p.identity]
		switch {
		case p.dead():
		case c == nil, !c.grouped && !atRest(p.pid):
			moved = append(moved, p.named().String())
		}
	}
	if !f.frozen() {
		moved = append(moved, "its cgroup")
	}
	if len(moved) > 0 {
		return fmt.Errorf("somebody has woken what was frozen: %s", strings.Join(moved, ", "))
	}
	return nil
}
