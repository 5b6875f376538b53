package claude

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"ralph/loop/agent"

	"ralph/internal/proc"
)

// A launch is a process that is to come: its standard streams, each from the
// agent's end to ralph's, and its supervisor.
type launch struct {
	theirs, ours [3]*os.File
	supervisor   *proc.Prepared
}

// prepare makes the pipes and starts the supervisor.
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

// close closes all ends of the pipes that are there.
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

// Prepare gets ready for the next session while its owner does something else;
// [Agent.Work] then takes less time. forget undoes it if there was no session. What
// cannot be done now is left to Work, which says why.
func (a *Agent) Prepare() (forget func()) {
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

// forget has another launch take the place of the next one. The caller holds the
// lock.
func (a *Agent) forget(l *launch) {
	if a.next != nil {
		// It has no command, and ends with ralph if it cannot be killed.
		_ = a.next.supervisor.Discard()
		a.next.close()
	}
	a.next = l
}

// launch is the next one, which is prepared now if it is not yet.
func (a *Agent) launch() (*launch, error) {
	a.preparing.Lock()
	defer a.preparing.Unlock()
	if l := a.next; l != nil {
		a.next = nil
		return l, nil
	}
	return prepare()
}

// start launches the agent.
func (a *Agent) start(version string, task agent.Assignment, logs *logs) (*session, error) {
	o := a.options
	l, err := a.launch()
	if err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	// The agent alone shall hold its ends, or there would be no end of its output.
	defer closeAll(l.theirs)
	p, err := l.supervisor.Start(proc.Spec{
		Args: append(o.Command[:len(o.Command):len(o.Command)], Arguments(version, o, task)...),
		Dir:  task.Dir, Env: Environment(o.Environ, o.Env, task), Marker: marker(task),
		KillGrace: o.KillGrace, Wrapper: o.Wrapper, Containment: o.Containment,
	})
	if err != nil {
		closeAll(l.ours)
		return nil, err
	}
	return &session{
		options: o, task: task, logs: logs, process: p,
		stdin: l.ours[0], stdout: l.ours[1], stderr: l.ours[2],
		history: history{tools: toolNames()},
		outbox:  []agent.Message{{Text: task.Prompt}},
	}, nil
}

// A reading is one line of the agent's output.
type reading struct {
	event event
	ok    bool   // it is an event
	line  []byte // the beginning of it, if it is none
	err   error  // the output cannot be kept
}

// read reads the agent's output to its end.
func (s *session) read(lines chan<- reading) {
	r := newLineReader(s.stdout, s.logs.transcript)
	for {
		line, err := r.next()
		e, ok := parse(line)
		read := reading{event: e, ok: ok}
		if !ok {
			read.line = bytes.Clone(line[:min(len(line), maxRubbish)])
		}
		if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
			lines <- read
			return
		}
		read.err = err
		lines <- read
		if err != nil {
			// The session ends because of it, and the agent must not wait meanwhile.
			// Its end is the deadline at the latest.
			_, _ = io.Copy(io.Discard, s.stdout)
			return
		}
	}
}

// write writes messages to the agent, which may take as long as it likes to
// read them. Closing stdin makes a write return.
func (s *session) write(feed <-chan []byte, fed chan<- error) {
	for line := range feed {
		_, err := s.stdin.Write(line)
		fed <- err
	}
}
