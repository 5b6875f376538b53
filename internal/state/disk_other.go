//go:build !linux && !darwin

package state

// networkDisk is always "": network file systems cannot be recognized here.
var networkDisk = func(string) string { return "" }
