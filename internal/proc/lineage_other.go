//go:build !linux

package proc

import "os"

// A Kin is this process; those that it descends from cannot be looked at here.
type Kin struct {
	Environ []string
}

// Lineage is this process alone.
func Lineage() []Kin { return []Kin{{Environ: os.Environ()}} }

// HasOpen is false: what a process has open cannot be seen here.
func (Kin) HasOpen(string) bool { return false }

// GroupMarkers are none: there are no cgroups here.
func GroupMarkers() []string { return nil }

// Supervises is false: what runs under a supervisor cannot be seen here.
func (Kin) Supervises() bool { return false }
