package process

import (
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// takeTime is how long the reader of a handed over text may take for it.
const takeTime = time.Minute

// HandOver makes a named pipe at path that gives a text to one reader, once. The name disappears when
// the reader opens it, so that nobody can read it after the agent. withdraw removes an unused pipe, also
// when a session has removed or renamed it.
func HandOver(path, text string) (withdraw func(), err error) {
	err = syscall.Mkfifo(path, 0o600)
	var name string
	var release func()
	if err == nil {
		name, release, err = lasting(path)
	}
	if err != nil {
		return nil, fmt.Errorf("hand over the agent's servers at %s: %w", path, err)
	}
	var handed sync.WaitGroup
	opened := make(chan struct{})
	handed.Go(func() {
		w, err := os.OpenFile(name, os.O_WRONLY, 0) // waits for a reader
		close(opened)
		if err != nil {
			return // it was withdrawn, and the agent reports the missing file
		}
		_ = os.Remove(path)
		_ = w.SetWriteDeadline(time.Now().Add(takeTime))
		_, _ = io.WriteString(w, text) // a reader that has ended reports that itself
		_ = w.Close()
	})
	return func() {
		if r, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
			<-opened // by r, if there was no other reader
			_ = r.Close()
		}
		handed.Wait()
		release()
	}, nil
}
