//go:build !linux

package proc_test

// escapeHelpers are of use where processes can be followed.
var escapeHelpers map[string]func([]string) error
