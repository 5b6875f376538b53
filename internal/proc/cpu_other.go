//go:build !linux

package proc

import (
	"errors"
	"time"
)

// CPUTime is not available here.
func CPUTime(string, func(string) bool) (time.Duration, error) { return 0, errors.ErrUnsupported }
