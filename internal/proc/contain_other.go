//go:build !linux

package proc

// Contain has nothing to offer here but to say so.
func Contain(l Limits) (c Containment, missing []string) {
	if l != (Limits{}) {
		missing = []string{"memory, processes and priority are not limited: that takes Linux"}
	}
	return c, missing
}
