package main

import (
	"errors"
	"fmt"
	"testing"
)

func TestErrorsAreSaidOnce(t *testing.T) {
	disk, lock := errors.New("the disk is full"), errors.New("the lock is gone")
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"one", disk, "the disk is full"},
		{"the same twice", errors.Join(disk, errors.New("the disk is full")), "the disk is full"},
		{"two", errors.Join(disk, lock), "the disk is full\nthe lock is gone"},
		{"joined again", errors.Join(errors.Join(disk, lock), errors.Join(disk)), "the disk is full\nthe lock is gone"},
		{"worded by what wraps it", fmt.Errorf("%w, and %w", disk, disk), "the disk is full, and the disk is full"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := once(tt.err); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
