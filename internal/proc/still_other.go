//go:build !linux

package proc

import (
	"context"
	"errors"
	"fmt"
)

// Members is not supported here; the error is [errors.ErrUnsupported].
func (*Process) Members() ([]Member, error) {
	return nil, fmt.Errorf("list the processes of a command: %w", errors.ErrUnsupported)
}

// Still is not supported here; the error is [errors.ErrUnsupported].
func (*Process) Still(context.Context, func(Member) bool) (*Still, error) {
	return nil, fmt.Errorf("freeze a command: %w", errors.ErrUnsupported)
}

// Thaw cannot be called here, since there is no Still.
func (*Still) Thaw() error { return errors.ErrUnsupported }

// Kill cannot be called here, since there is no Still.
func (*Still) Kill() error { return errors.ErrUnsupported }
