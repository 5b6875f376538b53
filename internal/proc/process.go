package proc

import (
	"crypto/rand"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// nudge is the interval at which a busy supervisor is woken.
const nudge = 100 * time.Millisecond

// supervised maps the process ids of supervisors to the markers of their running commands.
var supervised sync.Map

// A Process is a started command. Its methods may be called from several goroutines, Wait from one.
type Process struct {
	name       string
	marker     string
	mark       string // marker of the supervisor, and of the command until it executes its program
	pid        int
	supervisor *exec.Cmd
	events     *os.File
	decoder    *gob.Decoder
	over       chan struct{} // closed after the last event
	ended      *ended        // set by then; nil if the supervisor is lost
	cause      error         // why it is lost

	ordered atomic.Bool // the supervisor has an order and must be awake
	killing atomic.Bool // an order to kill everything was given

	mu      sync.Mutex // guards the fields below
	orders  *os.File
	encoder *gob.Encoder
	serial  int                // serial of the last question
	asked   map[int]chan event // waiting for answers, by serial
}

// Start starts a command under a supervisor and returns when it runs. The error names the program.
// It is [exec.ErrNotFound] if there is no such program, [fs.ErrPermission] if it may not be
// executed, and [fs.ErrNotExist] if the working directory, or the interpreter of a script, is
// missing. It is [ErrSupervisorLost] if the supervisor was killed meanwhile; then no process runs
// that [Process.Wait] would have found. The caller must call Wait.
func Start(spec Spec) (*Process, error) {
	path, dir, args, err := spec.resolve()
	if err != nil {
		return nil, err
	}
	p, err := newProcess(spec.Stdin, spec.Stdout, spec.Stderr)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	if err := p.start(spec, path, dir, args); err != nil {
		return nil, err
	}
	return p, nil
}

// newProcess starts a supervisor for a command with these standard streams; nil is the null device.
func newProcess(stdin, stdout, stderr *os.File) (*Process, error) {
	orders, ordersW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer orders.Close()
	eventsR, events, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, ordersW.Close())
	}
	defer events.Close()
	p := &Process{
		mark:   supervisorEnv + "=" + rand.Text(),
		orders: ordersW, encoder: gob.NewEncoder(ordersW),
		events: eventsR, decoder: gob.NewDecoder(eventsR), over: make(chan struct{}), asked: map[int]chan event{},
	}
	if err := p.supervise([]*os.File{orders, events, stdin, stdout, stderr}); err != nil {
		return nil, errors.Join(fmt.Errorf("its supervisor: %w", err), p.close())
	}
	// Our copies are closed before the first event is read; otherwise the loss of the supervisor
	// would not end the events.
	if err := errors.Join(orders.Close(), events.Close()); err != nil {
		return nil, errors.Join(err, p.abandon())
	}
	return p, nil
}

// start makes the supervisor start the command that [Spec.resolve] found. If that fails, the
// supervisor is ended.
func (p *Process) start(spec Spec, path, dir string, args []string) error {
	p.name, p.marker = spec.Args[0], spec.Marker
	wrapper := ""
	if len(spec.Wrapper) > 0 {
		wrapper = filepath.Base(spec.Wrapper[0])
	}
	answer, err := p.request(request{
		Path: path, Args: args, Dir: dir, Env: spec.Env, KillGrace: spec.KillGrace, Wrapper: wrapper,
		Apart: spec.Apart,
	})
	if err != nil {
		// The command may already run, or be about to execute its program and still look like its
		// supervisor.
		_, swept := Sweep(p.mark)
		if errors.Is(swept, errors.ErrUnsupported) {
			swept = nil
		}
		_, err = p.lost(err)
		return errors.Join(fmt.Errorf("start %w", err), swept)
	}
	switch {
	case answer.Problem != "":
		err = errors.New(answer.Problem)
	case answer.Errno != 0:
		err = refusal(path, answer.Errno)
	default:
		p.pid = answer.Pid
		supervised.Store(p.supervisor.Process.Pid, p.marker)
		go p.listen()
		return nil
	}
	return errors.Join(fmt.Errorf("start %s: %w", path, err), p.abandon())
}

// supervise starts the supervisor with its files; nil is the null device. It gets a session of its
// own, out of reach of the terminal's signals.
func (p *Process) supervise(files []*os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	self, err := executable()
	if err != nil {
		return err
	}
	p.supervisor = &exec.Cmd{
		Path:        self,
		Args:        []string{os.Args[0], superviseArg, p.mark}, // visible to everybody, also when closed
		Dir:         "/",                                        // keep no work tree busy
		Env:         append(runtimeEnviron(), p.mark),           // ralph's own environment has secrets
		Stderr:      os.Stderr,                                  // for a crash's stack trace; nothing else is printed
		SysProcAttr: supervisorAttr(),
	}
	for _, f := range files {
		if f == nil {
			f = null
		}
		p.supervisor.ExtraFiles = append(p.supervisor.ExtraFiles, f)
	}
	return p.supervisor.Start()
}

// runtimeEnviron returns the variables that Go's runtime reads.
func runtimeEnviron() (list []string) {
	for _, name := range []string{"GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GORACE", "GOTRACEBACK", "GOCOVERDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			list = append(list, name+"="+value)
		}
	}
	return list
}

// request makes the supervisor start the command. The error means that the supervisor does not
// answer.
func (p *Process) request(r request) (s started, err error) {
	answered := make(chan error, 1)
	go func() {
		err := p.encoder.Encode(r)
		if err == nil {
			err = p.decoder.Decode(&s)
		}
		answered <- err
	}()
	again := time.NewTicker(nudge)
	defer again.Stop()
	for looks := 0; ; {
		select {
		case err := <-answered:
			return s, err
		case <-again.C:
			p.urge(&looks) // the command may have stopped it before it could answer
		}
	}
}

// refusal is the error for a program that was found but cannot be executed.
func refusal(path string, errno syscall.Errno) error {
	err := &fs.PathError{Op: "exec", Path: path, Err: errno}
	if errno == syscall.ENOENT {
		return fmt.Errorf("%w (is there the interpreter that its first line names?)", err)
	}
	return err
}

// Pid returns the process id of the command, which is also its group's id.
func (p *Process) Pid() int { return p.pid }

// Interrupt sends SIGINT to the command, but not to its children, so that it can end by itself;
// everything is killed after Spec.KillGrace. Once all processes are gone it returns
// [os.ErrProcessDone].
func (p *Process) Interrupt() error { return p.send(order{Do: interruptLeader}) }

// InterruptGroup is Interrupt for the command's whole process group, like Ctrl-C on a terminal;
// shells expect that.
func (p *Process) InterruptGroup() error { return p.send(order{Do: interruptGroup}) }

// Kill kills the command and everything that it started. It does not wait; see Wait. Once all
// processes are gone it returns [os.ErrProcessDone].
func (p *Process) Kill() error { return p.send(order{Do: killAll}) }

func (p *Process) send(o order) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ordered.Store(true)
	if o.Do == killAll {
		p.killing.Store(true)
	}
	err := p.wake()
	if err == nil {
		err = p.encoder.Encode(o)
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return os.ErrProcessDone
	}
	return err
}

// wake resumes the supervisor. An agent may have stopped it along with other processes, or do so
// all the time; a stopped supervisor does not obey.
func (p *Process) wake() error { return p.supervisor.Process.Signal(syscall.SIGCONT) }

// urge makes a supervisor work that something is expected of. If it is stopped again and again, its
// processes are killed. looks counts the times that it was, or may have been.
func (p *Process) urge(looks *int) (killed []Leftover) {
	// It may be awake at each look, and still do no work.
	if p.killing.Load() || stopped(p.supervisor.Process.Pid) {
		if *looks++; *looks%10 == 0 {
			killed = p.rescue()
		}
	}
	_ = p.wake() // if it is gone, its events end
	return killed
}

// listen passes the supervisor's events to their readers, until the supervisor ends.
func (p *Process) listen() {
	defer close(p.over)
	for p.ended == nil {
		var e event
		if p.cause = p.decoder.Decode(&e); p.cause != nil {
			return
		}
		p.ended = e.Ended
		p.mu.Lock()
		if answer := p.asked[e.Serial]; answer != nil {
			answer <- e // never blocks: each order has one answer
		}
		p.mu.Unlock()
	}
}

// Wait returns when the command, and every process that it started, has ended. The error is
// [ErrSupervisorLost] if the supervisor was killed: then the processes were found by Spec.Marker,
// or may still run without one. Any other error names processes that could not be killed; Exit is
// valid nevertheless.
func (p *Process) Wait() (Exit, error) {
	again := time.NewTicker(nudge)
	defer again.Stop()
	var rescued []Leftover
	for over, looks := false, 0; !over; {
		select {
		case <-p.over:
			over = true
		case <-again.C:
			if p.ordered.Load() {
				rescued = append(rescued, p.urge(&looks)...)
			}
		}
	}
	if p.ended == nil {
		return p.lost(p.cause)
	}
	e := *p.ended
	for _, found := range rescued {
		if !slices.ContainsFunc(e.Exit.Leftovers, func(l Leftover) bool { return l.Pid == found.Pid }) {
			e.Exit.Leftovers = append(e.Exit.Leftovers, found)
		}
	}
	// The supervisor is finished; there is no need to wait for its exit.
	if err := p.abandon(); err != nil {
		return e.Exit, fmt.Errorf("%s: %w", p.name, err)
	}
	if e.Survivors != "" {
		return e.Exit, fmt.Errorf("%s: %s", p.name, e.Survivors)
	}
	return e.Exit, nil
}

// lost does the work of a supervisor that was killed.
func (p *Process) lost(cause error) (Exit, error) {
	exit := Exit{Code: -1}
	err := fmt.Errorf("%s: %w", p.name, ErrSupervisorLost)
	if !errors.Is(cause, io.EOF) && !errors.Is(cause, io.ErrUnexpectedEOF) && !errors.Is(cause, syscall.EPIPE) {
		err = fmt.Errorf("%w (%w)", err, cause)
	}
	if e := p.abandon(); e != nil {
		err = errors.Join(err, e)
	}
	if p.marker == "" {
		return exit, fmt.Errorf("%w; what it started may still run", err)
	}
	leftovers, e := Sweep(p.marker)
	exit.Leftovers = leftovers
	if e != nil {
		err = errors.Join(err, e)
	}
	return exit, err
}

// abandon ends the supervisor and releases it.
func (p *Process) abandon() error {
	supervised.Delete(p.supervisor.Process.Pid)
	err := p.supervisor.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	var killed *exec.ExitError // it is, unless it exited before
	if e := p.supervisor.Wait(); e != nil && !errors.As(e, &killed) {
		err = errors.Join(err, e)
	}
	return errors.Join(err, p.close())
}

func (p *Process) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.orders.Close(), p.events.Close())
}
