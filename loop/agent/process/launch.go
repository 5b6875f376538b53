package process

import (
	"os"
	"sync"

	"ralph/internal/proc"
)

// A launch is prepared for a process: both ends of its standard streams, and its supervisor.
type launch struct {
	theirs, ours [3]*os.File
	supervisor   *proc.Prepared
}

// prepare creates the pipes and starts the supervisor.
func prepare() (l *launch, err error) {
	l = &launch{}
	for i := range l.ours {
		r, w, err := os.Pipe()
		if err != nil {
			l.close()
			return nil, err
		}
		if l.theirs[i], l.ours[i] = w, r; i == 0 {
			l.theirs[i], l.ours[i] = r, w
		}
	}
	if l.supervisor, err = proc.Prepare(l.theirs[0], l.theirs[1], l.theirs[2]); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// close closes the open ends of the pipes.
func (l *launch) close() {
	closeAll(l.theirs)
	closeAll(l.ours)
}

func closeAll(files [3]*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// A Launcher starts programs, and can prepare the next start. It is safe
// for concurrent use, also by several agents.
type Launcher struct {
	preparing sync.Mutex
	next      *launch // prepared for the next session; nil if none
}

// Prepare prepares the next start, which then takes less time. forget undoes this if
// no session came. If it fails, the start itself tries again and reports the error.
func (a *Launcher) Prepare() (forget func()) {
	l, err := prepare()
	if err != nil {
		return func() {}
	}
	a.preparing.Lock()
	defer a.preparing.Unlock()
	a.forget(l)
	return func() {
		a.preparing.Lock()
		defer a.preparing.Unlock()
		if a.next == l {
			a.forget(nil)
		}
	}
}

// forget replaces the next launch. The caller holds the lock.
func (a *Launcher) forget(l *launch) {
	if a.next != nil {
		a.next.forsake()
	}
	a.next = l
}

// forsake ends a launch without a command. If it cannot be killed, it ends with ralph.
func (l *launch) forsake() {
	_ = l.supervisor.Discard()
	l.close()
}

// launch returns the prepared launch, or prepares one now.
func (a *Launcher) launch() (*launch, error) {
	a.preparing.Lock()
	defer a.preparing.Unlock()
	if l := a.next; l != nil {
		a.next = nil
		return l, nil
	}
	return prepare()
}
