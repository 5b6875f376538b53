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

// Prune is not supported here; the error is [errors.ErrUnsupported].
func (*Process) Prune(context.Context, func(Member) bool) ([]Leftover, error) {
	return nil, fmt.Errorf("kill what a command has started: %w", errors.ErrUnsupported)
}
