package follow

import (
	"errors"
	"io"
	"sync"
	"syscall"
)

// Lasting is the output of a run. Its reader may leave before the run ends, such as a closed terminal or `head`, or its
// disk may be full: that must not end the run, or change its exit status.
type Lasting struct {
	io.Writer
	Lost func(error) // called once, when something could not be written although there may be a reader

	once sync.Once
}

// Write writes as much as the output takes. It always succeeds.
func (l *Lasting) Write(p []byte) (int, error) {
	_, err := l.Writer.Write(p)
	if err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.EIO) {
		l.once.Do(func() { l.Lost(err) })
	}
	return len(p), nil
}
