package sandbox

import "golang.org/x/net/bpf"

// KeyFilter returns the filter of an architecture.
func KeyFilter(goarch string) []bpf.Instruction { return keyFilter(keyCalls[goarch]) }
