package claude

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// A reading is one line of the agent's output.
type reading struct {
	event event
	ok    bool   // it is an event
	line  []byte // its beginning, if it is not an event
	err   error  // the output cannot be stored
}

// read reads the agent's output to its end.
func (s *session) read(lines chan<- reading) {
	r := newLineReader(s.process.Output(), s.process.Transcript)
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
			// The session ends with this error, and the agent must not block until
			// then. The deadline ends this at the latest.
			_, _ = io.Copy(io.Discard, s.process.Stdout)
			return
		}
	}
}

// write writes messages to the agent, which may read them late. Closing stdin makes a
// write return.
func (s *session) write(feed <-chan []byte, fed chan<- error) {
	for line := range feed {
		_, err := s.process.Stdin.Write(line)
		fed <- err
	}
}
