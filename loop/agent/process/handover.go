package process

import (
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

// HandOver makes a named pipe at path that gives a text to one reader, once. The name disappears when
// the reader opens it, so that nobody can read it after the agent. withdraw removes an unused pipe.
func HandOver(path, text string) (withdraw func(), err error) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("hand over the agent's servers at %s: %w", path, err)
	}
	var handed sync.WaitGroup
	handed.Go(func() {
		w, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for a reader
		if err != nil {
			return // it was withdrawn, and the agent reports the missing file
		}
		_ = os.Remove(path)
		_, _ = io.WriteString(w, text) // a reader that has ended reports that itself
		_ = w.Close()
	})
	return func() {
		if r, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = r.Close() // it has ended the wait for a reader
		}
		handed.Wait()
	}, nil
}
