//go:build !linux

package proc

import (
	"errors"
	"time"
)

// CPUTime is not available here.
func CPUTime(string) (time.Duration, error) { return 0, errors.ErrUnsupported }
