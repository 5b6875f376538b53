//go:build !linux

package sandbox

import "errors"

type order struct {
	Policy Policy
	Paths  bool
	Scopes bool
}

func before(string, order) ([]string, error) { return nil, errors.ErrUnsupported }

func landlockABI() int { return 0 }

func refusesKeys() bool { return false }

func ownFolder() (string, func(), error) { return "", nil, errors.ErrUnsupported }

// Sweep does nothing: there are no folders of commands.
func Sweep() {}

func first(View) ([]string, error) { return nil, errors.ErrUnsupported }
