package proc

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lingerTime is the time for children to end by themselves after the command, such as
	// servers whose standard input has just closed.
	lingerTime = 250 * time.Millisecond

	// patience is how long a process may take to die of SIGKILL.
	patience = 10 * time.Second

	// pause is the time between two rounds of killing if nothing died.
	pause = 5 * time.Millisecond
)

// A supervisor is the process between ralph and a command. One goroutine does all of its work, so a
// child's process id stays valid until that goroutine reaps it.
type supervisor struct {
	orders   <-chan order // closed when ralph is gone
	child    <-chan os.Signal
	leader   int
	wrapped  bool // the leader becomes a wrapper with the command as a child
	grace    time.Duration
	hunt     *hunt
	tell     func(event) // sends to ralph
	exit     Exit
	ended    bool // the leader has ended; exit describes how
	deserted bool // no child is left
}

// A command waits for its supervisor, and ralph needs several milliseconds to initialize the
// packages of all its commands. Go initializes packages in the order of their paths, as soon as
// their imports are ready. This package is early because it imports no late one, such as net/url.
func init() { //nolint:gochecknoinits // before the packages that take long
	if len(os.Args) < 2 || os.Args[1] != superviseArg {
		return
	}
	if os.Getenv(supervisorEnv) == "" {
		fmt.Fprintf(os.Stderr, "%s is for ralph's own use\n", superviseArg)
		os.Exit(2)
	}
	if err := supervise(); err != nil {
		fmt.Fprintf(os.Stderr, "supervisor: %v\n", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func supervise() error {
	// All signals are caught and discarded: only ralph decides when the supervisor ends. If they
	// were ignored, the command would inherit that, as it would with signals that ralph was started
	// to ignore (SIGINT by "ralph &" in sh).
	signal.Notify(make(chan os.Signal, 1))
	child := make(chan os.Signal, 1)
	signal.Notify(child, syscall.SIGCHLD)
	if err := errors.Join(Close(), closeOnExec(), becomeSubreaper()); err != nil {
		return err
	}

	var r request
	decoder := gob.NewDecoder(os.NewFile(ordersFD, "orders"))
	err := decoder.Decode(&r)
	if errors.Is(err, io.EOF) {
		return nil // ralph is gone, or has no command for this supervisor
	}
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	encoder := gob.NewEncoder(os.NewFile(eventsFD, "events"))
	leader, err := start(r)
	if err != nil {
		return encoder.Encode(refused(err))
	}
	// If ralph cannot be told, it is gone, and the pipe of orders closes too.
	told := encoder.Encode(started{Pid: leader})
	tell := func(e event) {
		if told == nil {
			told = encoder.Encode(e)
		}
	}
	s := &supervisor{
		orders: readOrders(decoder), child: child, leader: leader, wrapped: r.Wrapper != "",
		grace: r.KillGrace, hunt: newHunt(leader, r.Wrapper), tell: tell,
	}
	survivors := s.run()
	tell(event{Ended: &ended{s.exit, survivors}})
	if errors.Is(told, syscall.EPIPE) {
		return nil // ralph is gone, and so is everything else
	}
	return told
}

// start starts the command in its own process group, and closes its streams here, so that only
// the command's processes hold them.
func start(r request) (int, error) {
	pid, err := forkExec(r, &syscall.ProcAttr{
		Dir:   r.Dir,
		Env:   r.Env,
		Files: []uintptr{stdinFD, stdoutFD, stderrFD},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	for _, fd := range []int{stdinFD, stdoutFD, stderrFD} {
		// An error would concern the caller's data, and the caller still has the file open.
		_ = syscall.Close(fd)
	}
	return pid, err
}

// refused returns the answer for a command that did not start.
func refused(err error) started {
	if errno, ok := err.(syscall.Errno); ok { //nolint:errorlint // a wrapped one has another cause
		return started{Errno: errno}
	}
	return started{Problem: err.Error()}
}

// readOrders turns the pipe into a channel that is closed at its end.
func readOrders(decoder *gob.Decoder) <-chan order {
	orders := make(chan order)
	go func() {
		defer close(orders)
		for {
			var o order
			if decoder.Decode(&o) != nil {
				return
			}
			orders <- o
		}
	}()
	return orders
}

// run supervises until nothing is left. It describes the processes that could not be killed.
func (s *supervisor) run() (survivors string) {
	if s.attend() {
		s.hunt.endedByItself()
		s.linger()
	}
	if s.deserted && adoptsOrphans {
		return ""
	}
	last := time.Now()
	for {
		err := s.hunt.strike()
		if err != nil && !s.ended {
			// This is the least that can be done; the id is valid while the leader is not reaped.
			_ = syscall.Kill(-s.leader, syscall.SIGKILL)
		}
		reaped := s.reap()
		if s.deserted {
			break
		}
		if reaped {
			last = time.Now()
		}
		if time.Since(last) > patience {
			survivors = s.hunt.survivors(err)
			break
		}
		select {
		case <-s.child:
		case <-time.After(pause):
		}
		if s.reap() {
			last = time.Now()
		}
		if s.deserted { // all killed processes have ended, which saves another search
			break
		}
	}
	s.exit.Leftovers = s.hunt.leftovers()
	return survivors
}

// attend waits for the command to end and obeys orders. It returns false if everything must be
// killed at once.
func (s *supervisor) attend() bool {
	var grace <-chan time.Time
	for !s.ended {
		select {
		case <-s.child:
			s.reap()
		case <-grace:
			return false
		case o, ok := <-s.orders:
			if !ok || o.Do == killAll {
				return false
			}
			if o.Do != interruptLeader && o.Do != interruptGroup {
				s.obey(o)
				continue
			}
			s.interrupt(o.Do == interruptGroup)
			if grace == nil {
				grace = time.After(s.grace)
			}
		}
	}
	return true
}

// interrupt interrupts the command, or its whole group. An error means that it has ended, which the
// next SIGCHLD reports.
func (s *supervisor) interrupt(all bool) {
	switch {
	case s.wrapped && s.hunt.interrupt(all):
	case all:
		_ = syscall.Kill(-s.leader, syscall.SIGINT)
	default:
		_ = syscall.Kill(s.leader, syscall.SIGINT)
	}
}

// linger gives the command's children a moment to end by themselves.
func (s *supervisor) linger() {
	enough := time.After(lingerTime)
	for !s.deserted {
		select {
		case <-s.child:
			s.reap()
		case <-enough:
			return
		case o, ok := <-s.orders:
			if !ok || o.Do == killAll {
				return
			}
		}
	}
}

// reap reaps the ended children, including adopted ones, and reports whether there was one. If
// orphans are adopted, a process without a child has no descendant either.
func (s *supervisor) reap() (any bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil: // ECHILD
			s.deserted = true
			return any
		case pid == 0:
			return any
		}
		any = true
		if pid == s.leader && !s.ended {
			s.ended = true
			s.exit.Code = status.ExitStatus() // -1 if a signal ended it
			switch {
			case status.Signaled():
				s.exit.Signal = unix.SignalName(status.Signal())
			case s.wrapped && s.exit.Code == 128+int(syscall.SIGKILL): // wrappers report a signal like this
				s.exit.Code, s.exit.Signal = -1, unix.SignalName(syscall.SIGKILL)
			}
		}
	}
}
