package follow

import (
	"errors"
	"io"
	"syscall"
)

// Lasting is an output whose reader may leave before the run ends, such as a closed terminal or
// `head`: that must not end the run.
type Lasting struct{ io.Writer }

// Write writes to the output; nothing once its reader has left.
func (l Lasting) Write(p []byte) (int, error) {
	n, err := l.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.EIO) {
		return len(p), nil
	}
	return n, err
}
