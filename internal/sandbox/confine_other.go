//go:build !linux

package sandbox

import "errors"

// ConfineArg is the first argument that selects [Confine].
const ConfineArg = "__confine"

type order struct {
	Policy Policy
	Scopes bool
}

func before(string, order) ([]string, error) { return nil, errors.ErrUnsupported }

func landlockABI() int { return 0 }

// Confine is only for Linux.
func Confine() int { return 126 }

func ownFolder() (string, func(), error) { return "", nil, errors.ErrUnsupported }
