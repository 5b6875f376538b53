package claude

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"ralph/internal/proc"
	"ralph/loop"
)

// start launches the agent.
func start(o Options, version string, task loop.Assignment, l *logs) (*session, error) {
	var theirs, ours [3]*os.File
	closeAll := func(files [3]*os.File) {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}
	// The agent alone shall hold its ends, or there would be no end of its output.
	defer func() { closeAll(theirs) }()
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			return nil, fmt.Errorf("start the agent: %w", err)
		}
		if theirs[i], ours[i] = w, r; i == 0 {
			theirs[i], ours[i] = r, w
		}
	}
	p, err := proc.Start(proc.Spec{
		Args: append(o.Command[:len(o.Command):len(o.Command)], Arguments(version, o, task)...),
		Dir:  task.Dir, Env: Environment(o.Environ, o.Env, task), Marker: marker(task),
		Stdin: theirs[0], Stdout: theirs[1], Stderr: theirs[2], KillGrace: o.KillGrace,
		Wrapper: o.Wrapper, Containment: o.Containment,
	})
	if err != nil {
		closeAll(ours)
		return nil, err
	}
	return &session{
		options: o, task: task, logs: l, process: p,
		stdin: ours[0], stdout: ours[1], stderr: ours[2],
		history: history{tools: toolNames()},
		outbox:  []loop.Message{{Text: task.Prompt}},
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
			read.line = bytes.Clone(line[:min(len(line), maxSeenText)])
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
