package follow

import (
	"errors"
	"io"
	"sync"
	"syscall"
)

// Lasting is the output of a run. If its reader leaves before the run ends, such as a closed terminal or `head`, or
// its disk is full, the run continues and its exit status stays the same.
type Lasting struct {
	io.Writer
	Lost func(error) // called once, when something could not be written although there may be a reader

	once sync.Once
}

// Write writes as much as the output accepts. It always succeeds.
func (l *Lasting) Write(p []byte) (int, error) {
	_, err := l.Writer.Write(p)
	if err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.EIO) {
		l.once.Do(func() { l.Lost(err) })
	}
	return len(p), nil
}
