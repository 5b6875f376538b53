//go:build !linux

package proc

import "os"

// A Kin is this process; its ancestors cannot be seen here.
type Kin struct {
	Environ []string
}

// Lineage returns only this process.
func Lineage() []Kin { return []Kin{{Environ: os.Environ()}} }

// HasOpen is always false: open files cannot be seen here.
func (Kin) HasOpen(string) bool { return false }

// Holds is always false: locks cannot be seen here.
func (Kin) Holds(string) bool { return false }

// Supervises is always false: supervisors cannot be seen here.
func (Kin) Supervises() bool { return false }
