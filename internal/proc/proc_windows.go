package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A Process is a command in a job object. Windows ends all processes of a job when its last handle
// is closed, as happens when ralph dies, so there is no supervisor. Processes that the command
// starts in its first instants, before it is in the job, escape.
type Process struct {
	cmd   *exec.Cmd
	grace time.Duration

	mu   sync.Mutex // guards the fields below
	job  windows.Handle
	done bool
	kill *time.Timer // set by the first interrupt
}

// Start starts a command in a job object. The error names the program; it is [exec.ErrNotFound] or
// [fs.ErrNotExist] as elsewhere. The caller must call Wait.
func Start(spec Spec) (*Process, error) {
	path, dir, args, err := spec.resolve()
	if err != nil {
		return nil, err
	}
	job, err := newJob()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	p := &Process{job: job, grace: spec.KillGrace, cmd: &exec.Cmd{
		Path: path, Args: args, Dir: dir, Env: append([]string{}, spec.Env...),
		SysProcAttr: &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP},
	}}
	// A nil *os.File must not become a non-nil Reader.
	if spec.Stdin != nil {
		p.cmd.Stdin = spec.Stdin
	}
	if spec.Stdout != nil {
		p.cmd.Stdout = spec.Stdout
	}
	if spec.Stderr != nil {
		p.cmd.Stderr = spec.Stderr
	}
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", path, err), windows.CloseHandle(job))
	}
	if err := p.enter(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", path, err),
			p.cmd.Process.Kill(), p.cmd.Wait(), windows.CloseHandle(job))
	}
	return p, nil
}

// A Prepared holds the streams of a command to start.
type Prepared struct{ stdin, stdout, stderr *os.File }

// Prepare keeps the standard streams of a command; nothing else can be prepared here.
func Prepare(stdin, stdout, stderr *os.File) (*Prepared, error) {
	return &Prepared{stdin, stdout, stderr}, nil
}

// Discard does nothing.
func (*Prepared) Discard() error { return nil }

// Start is [Start] with the streams of Prepare.
func (p *Prepared) Start(spec Spec) (*Process, error) {
	spec.Stdin, spec.Stdout, spec.Stderr = p.stdin, p.stdout, p.stderr
	return Start(spec)
}

// newJob creates a job object that dies with its last handle.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("create a job object: %w", err)
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
		},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		return 0, errors.Join(fmt.Errorf("limit a job object: %w", err), windows.CloseHandle(job))
	}
	return job, nil
}

// enter puts the command into the job.
func (p *Process) enter() error {
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid()))
	if err != nil {
		return fmt.Errorf("open the process: %w", err)
	}
	return errors.Join(windows.AssignProcessToJobObject(p.job, h), windows.CloseHandle(h))
}

// Pid returns the process id of the command, which is also that of its group.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Interrupt sends Ctrl-Break to the command's process group, as Windows can do nothing else;
// everything is killed after Spec.KillGrace. Once all processes are gone it returns
// [os.ErrProcessDone].
func (p *Process) Interrupt() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return os.ErrProcessDone
	}
	if p.kill == nil {
		// An error means that it has ended already, as Wait reports.
		p.kill = time.AfterFunc(p.grace, func() { _ = p.Kill() })
	}
	return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.Pid()))
}

// InterruptGroup is Interrupt.
func (p *Process) InterruptGroup() error { return p.Interrupt() }

// Kill kills the command and everything that it started. It does not wait; see Wait. Once all
// processes are gone it returns [os.ErrProcessDone].
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return os.ErrProcessDone
	}
	return windows.TerminateJobObject(p.job, 1)
}

// Wait returns when the command, and everything that it started, has been told to end.
// Exit.Leftovers is empty: they are killed without being listed.
func (p *Process) Wait() (Exit, error) {
	err := p.cmd.Wait()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	if p.kill != nil {
		p.kill.Stop()
	}
	err = errors.Join(err, windows.TerminateJobObject(p.job, 1), windows.CloseHandle(p.job))
	return Exit{Code: p.cmd.ProcessState.ExitCode()}, err
}

// Sweep is not needed here, since a job dies with ralph. The error is [errors.ErrUnsupported].
func Sweep(string) ([]Leftover, error) {
	return nil, fmt.Errorf("find processes by their environment: %w", errors.ErrUnsupported)
}
